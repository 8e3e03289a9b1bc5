//! The syntax of `FormatMessage`'s texts: inserts such as `%1!format!`, escapes, line breaks and widths.

use super::FORMAT_MESSAGE_MAX_WIDTH_MASK;
use crate::crt::print::{Formatted, VaList};
use crate::crt::va_list::Arguments;
use crate::error::ERROR_INVALID_PARAMETER;
use crate::text::Wchar;
use std::ffi::c_void;
use std::iter::Peekable;
use std::str::Chars;

/// The highest number of an insert.
const MOST: usize = 99;

/// The arguments of the inserts, and the default width of strings.
pub(super) struct Inserts {
    source: Source,
    /// Arguments taken from the list so far, which can be read only once.
    taken: Vec<u64>,
    /// The number of the argument used last.
    last: usize,
    wide: bool,
}

enum Source {
    None,
    Array(*const u64),
    List(*mut Arguments),
}

impl Inserts {
    /// # Safety
    /// `arguments` is NULL, or an array, or a list, and has what the text will ask for.
    pub(super) unsafe fn new(arguments: *mut c_void, array: bool, wide: bool) -> Inserts {
        let source = match array {
            _ if arguments.is_null() => Source::None,
            true => Source::Array(arguments.cast()),
            false => Source::List(arguments.cast()),
        };
        Inserts { source, taken: Vec::new(), last: 0, wide }
    }

    fn is_list(&self) -> bool {
        matches!(self.source, Source::List(_))
    }

    /// Argument number `number`, or with `None` the one after the last one used.
    fn argument(&mut self, number: Option<usize>) -> Result<u64, u32> {
        let number = number.unwrap_or(self.last + 1);
        if number == 0 || number > MOST {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let value = match self.source {
            Source::None => return Err(ERROR_INVALID_PARAMETER),
            // SAFETY: `Inserts::new` asks for an array of as many elements as the message names.
            Source::Array(array) => unsafe { array.wrapping_add(number - 1).read_unaligned() },
            Source::List(list) => {
                while self.last < number {
                    self.taken.truncate(self.last);
                    // SAFETY: `Inserts::new` asks for a list that nobody else uses while this lives.
                    let list = unsafe { &mut *list };
                    // SAFETY: `Inserts::new` asks for as many arguments as the message names, and fewer than this number are
                    // taken.
                    self.taken.push(unsafe { list.next() });
                    self.last += 1;
                }
                self.taken[number - 1]
            }
        };
        self.last = self.last.max(number);
        Ok(value)
    }

    /// The text of insert `number` in a `printf` format without its percent sign.
    ///
    /// A star takes an argument, too: the first star the one that the insert's number names, and what is shown is the argument after
    /// those of the stars.
    fn show(&mut self, number: usize, format: &str) -> Result<String, u32> {
        let mut number = Some(number);
        let mut plain = String::from("%");
        for c in format.chars() {
            match c {
                '*' => {
                    plain.push_str(&(self.argument(number.take())? as i32).to_string());
                }
                c => plain.push(c),
            }
        }
        if number.is_none() && self.is_list() {
            // As on Windows, which counts one argument less than the stars have taken.
            self.last -= 1;
        }
        let values = [self.argument(number)?];
        let mut values = Arguments::on_stack(&values);
        let format = if self.wide { formatted::<Wchar> } else { formatted::<u8> };
        // SAFETY: the conversion takes the one value of the list at most, and what that points to is as the program's message says.
        let shown = unsafe { format(&plain, values.list()) };
        shown.ok_or(ERROR_INVALID_PARAMETER)
    }
}

/// Formats in the given width.
///
/// # Safety
/// The arguments fit the format.
unsafe fn formatted<T: Formatted>(format: &str, arguments: VaList) -> Option<String> {
    let terminated: Vec<T> = T::spell(format).into_iter().chain([T::default()]).collect();
    // SAFETY: the format ends with the NUL just added, and fits the arguments as the caller promises.
    unsafe { T::format(terminated.as_ptr(), arguments) }.map(|shown| T::string(&shown))
}

/// The output, broken into lines.
struct Lines {
    text: Vec<char>,
    /// The length at which a line is full; `None` for no limit.
    width: Option<usize>,
    /// The start of the present line, and its last run of spaces.
    start: usize,
    spaces: Option<usize>,
}

impl Lines {
    fn push(&mut self, c: char) {
        if c == ' ' && (self.spaces.is_none() || self.text.last() != Some(&' ')) {
            self.spaces = Some(self.text.len());
        }
        self.text.push(c);
        if matches!(c, '\r' | '\n') {
            self.begin_line();
        } else if Some(self.text.len() - self.start) == self.width {
            // The text after the last spaces moves to the next line; a word as long as a line is split.
            let end = self.spaces.unwrap_or(self.text.len());
            let word: Vec<char> = self.text.split_off(end).into_iter().skip_while(|c| *c == ' ').collect();
            self.text.extend(['\r', '\n']);
            self.begin_line();
            self.text.extend(word);
        }
    }

    fn begin_line(&mut self) {
        self.start = self.text.len();
        self.spaces = None;
    }
}

/// The `!format!` after an insert's number; that of a string if there is none.
fn insert_format(rest: &mut Peekable<Chars<'_>>) -> Result<String, u32> {
    if rest.next_if_eq(&'!').is_none() {
        return Ok("s".into());
    }
    let mut format = String::new();
    loop {
        match rest.next() {
            Some('!') => break,
            Some(c) => format.push(c),
            None => return Err(ERROR_INVALID_PARAMETER),
        }
    }
    // One conversion at the end, and at most two stars, so that the number of arguments is known.
    let (conversion, before) = format.as_bytes().split_last().ok_or(ERROR_INVALID_PARAMETER)?;
    let proper = before.iter().all(|c| b"-+ #0123456789.*hlIwz".contains(c))
        && conversion.is_ascii_alphabetic()
        && !b"eEfFgGaAnhlIwz".contains(conversion)
        && before.iter().filter(|c| **c == b'*').count() <= 2;
    if proper { Ok(format) } else { Err(ERROR_INVALID_PARAMETER) }
}

/// Expands a text. `width` is the low byte of the flags: 0 keeps the text's own line breaks; 255 replaces them by spaces; any
/// other number does, too, and breaks lines that would have more characters. Without `inserts` (`FORMAT_MESSAGE_IGNORE_INSERTS`)
/// only the escapes `%n`, `%r`, `%t` and `%0` are expanded.
pub(super) fn expand(text: &str, width: u32, mut inserts: Option<Inserts>) -> Result<String, u32> {
    let limited = width != 0 && width != FORMAT_MESSAGE_MAX_WIDTH_MASK;
    let mut lines =
        Lines { text: Vec::new(), width: limited.then_some(width as usize), start: 0, spaces: None };
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' | '\n' => {
                if c == '\r' {
                    rest.next_if_eq(&'\n');
                }
                let line_break = if width == 0 { "\r\n" } else { " " };
                line_break.chars().for_each(|c| lines.push(c));
            }
            '%' => match rest.next().ok_or(ERROR_INVALID_PARAMETER)? {
                '0' => break,
                'n' => "\r\n".chars().for_each(|c| lines.push(c)),
                'r' => lines.push('\r'),
                't' => lines.push('\t'),
                c => match &mut inserts {
                    None => ['%', c].into_iter().for_each(|c| lines.push(c)),
                    Some(_) if c == 'b' => lines.push(' '),
                    Some(inserts) if c.is_ascii_digit() => {
                        let second = rest.next_if(char::is_ascii_digit);
                        let digits = [Some(c), second].into_iter().flatten();
                        let number = digits.filter_map(|c| c.to_digit(10)).fold(0, |n, digit| 10 * n + digit);
                        let format = insert_format(&mut rest)?;
                        inserts.show(number as usize, &format)?.chars().for_each(|c| lines.push(c));
                    }
                    Some(_) => lines.push(c),
                },
            },
            c => lines.push(c),
        }
    }
    Ok(lines.text.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: u32 = FORMAT_MESSAGE_MAX_WIDTH_MASK;

    /// Expands with arguments in a list, as a variadic function would hand them over.
    fn from_list(text: &str, values: &[u64]) -> Result<String, u32> {
        let mut arguments = Arguments::on_stack(values);
        // SAFETY: the arguments are those of the text.
        expand(text, 0, Some(unsafe { Inserts::new(arguments.list(), false, false) }))
    }

    fn from_array(text: &str, values: &[u64]) -> Result<String, u32> {
        // SAFETY: the tests give an array with all values that their texts name.
        expand(text, 0, Some(unsafe { Inserts::new(values.as_ptr().cast_mut().cast(), true, true) }))
    }

    fn ignoring(text: &str, width: u32) -> String {
        expand(text, width, None).unwrap()
    }

    #[test]
    fn inserts_come_in_any_order_and_any_number_of_times() {
        let [a, b] = [c"one".as_ptr() as u64, c"two".as_ptr() as u64];
        assert_eq!(from_list("%2, %1, %2!5s!|", &[a, b]).as_deref(), Ok("two, one,   two|"));
        assert_eq!(from_list("%1%2%1", &[a, b]).as_deref(), Ok("onetwoone"));
        let values: Vec<u64> = (1..=12).collect();
        assert_eq!(from_array("%12!d! %1!d!%10!u!", &values).as_deref(), Ok("12 110"));
        assert_eq!(from_list("%3!x!", &[1, 2, 0xDEAD_BEEF_0000_00AB]).as_deref(), Ok("ab"));
        assert_eq!(from_list("%1!I64u!", &[u64::MAX]).as_deref(), Ok("18446744073709551615"));
        assert_eq!(from_list("<%1>", &[0]).as_deref(), Ok("<(null)>"));
    }

    #[test]
    fn stars_take_arguments_in_windows_way() {
        assert_eq!(from_list("%1!*d!", &[4, 7]).as_deref(), Ok("   7"));
        assert_eq!(from_list("%1!*.*u!;%1!*.*u!", &[6, 2, 9, 5, 8]).as_deref(), Ok("    09; 00008"));
        let array = [7, 3, 1, 4, 2, 5];
        assert_eq!(from_array("%1!*.*u!;%4!*.*u!", &array).as_deref(), Ok("    001;  05"));
    }

    #[test]
    fn what_cannot_be_inserted() {
        for text in ["%1", "%1!d!", "%", "a%"] {
            // SAFETY: no arguments.
            let inserts = unsafe { Inserts::new(std::ptr::null_mut(), false, false) };
            assert_eq!(expand(text, 0, Some(inserts)), Err(ERROR_INVALID_PARAMETER), "{text}");
        }
        for text in ["%1!d", "%1!!", "%1!n!", "%1!f!", "%1!d%d!", "%1!***d!", "%1!l!"] {
            assert_eq!(from_list(text, &[1, 2, 3]), Err(ERROR_INVALID_PARAMETER), "{text}");
        }
    }

    #[test]
    fn escapes() {
        let none = |text: &str| from_list(text, &[]).unwrap();
        assert_eq!(none("50%% %. %! % %b|"), "50% . !   |");
        assert_eq!(none("a%nb%rc%td"), "a\r\nb\rc\td");
        assert_eq!(none("seen%0not seen"), "seen");
        assert_eq!(ignoring("%1 %2!s! %% %.%n%r%t%0x", 0), "%1 %2!s! %% %.\r\n\r\t");
    }

    #[test]
    fn line_breaks_are_kept_or_made_spaces() {
        assert_eq!(ignoring("a\nb\r\nc\rd\r\r\n", 0), "a\r\nb\r\nc\r\nd\r\n\r\n");
        assert_eq!(ignoring("a\nb\r\nc\rd\r\r\n", MASK), "a b c d  ");
        assert_eq!(ignoring("a%nb", MASK), "a\r\nb");
        assert_eq!(ignoring(&"word ".repeat(60), MASK), "word ".repeat(60));
    }

    #[test]
    fn lines_stay_below_their_width() {
        for (text, width, expected) in [
            ("red green blue", 15, "red green blue"),
            ("red green blue", 14, "red green\r\nblue"),
            ("red green blue", 9, "red\r\ngreen\r\nblue"),
            ("red   green", 9, "red\r\ngreen"),
            ("red\ngreen", 9, "red\r\ngreen"),
            ("red%ngreen blue", 11, "red\r\ngreen blue"),
            ("red%rgreen blue", 10, "red\rgreen\r\nblue"),
            ("blue", 4, "blue\r\n"),
            ("ultramarine", 5, "ultra\r\nmarin\r\ne"),
            ("  ultramarine", 6, "\r\nultram\r\narine"),
            ("red         ", 4, "red\r\n\r\n\r\n"),
            ("red\tgreen", 6, "red\tgr\r\neen"),
        ] {
            assert_eq!(ignoring(text, width), expected, "{text} {width}");
        }
    }
}
