//! The small language of `FormatMessage`'s texts: `%1!format!` and its kin, escapes, line breaks and widths.

use super::ERROR_INVALID_PARAMETER;
use super::message::FORMAT_MESSAGE_MAX_WIDTH_MASK;
use crate::crt::print::{format_owned, format_wide};
use crate::crt::va_list::Arguments;
use crate::text;
use std::ffi::{CString, c_void};
use std::iter::Peekable;
use std::str::Chars;

/// Inserts are numbered up to this.
const MOST: usize = 99;

/// What the inserts of a text stand for, and their width when nothing is said.
pub(super) struct Inserts {
    source: Source,
    /// What was taken from a list so far, which can be read but once.
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

    /// Argument number `number`, or with `None` the one behind that used last.
    fn argument(&mut self, number: Option<usize>) -> Result<u64, u32> {
        let number = number.unwrap_or(self.last + 1);
        if number == 0 || number > MOST {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: whoever made this vouched for the arguments.
        let value = unsafe {
            match self.source {
                Source::None => return Err(ERROR_INVALID_PARAMETER),
                Source::Array(array) => array.add(number - 1).read_unaligned(),
                Source::List(list) => {
                    while self.last < number {
                        self.taken.truncate(self.last);
                        self.taken.push((*list).next());
                        self.last += 1;
                    }
                    self.taken[number - 1]
                }
            }
        };
        self.last = self.last.max(number);
        Ok(value)
    }

    /// The text of insert `number` in the given `printf` format, which lacks its percent sign.
    ///
    /// A star takes an argument, the first one that of the insert's own number, and the value is the argument behind.
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
            // As on Windows, which counts one argument less than it took for the stars.
            self.last -= 1;
        }
        let values = [self.argument(number)?];
        let mut values = Arguments::on_stack(&values);
        // SAFETY: the caller of `FormatMessage` vouches for the arguments; every conversion takes one value at most.
        let shown = unsafe {
            if self.wide {
                let format: Vec<_> = text::to_wide(&plain).into_iter().chain([0]).collect();
                format_wide(format.as_ptr(), values.list()).map(|shown| text::from_wide(&shown))
            } else {
                let format = CString::new(plain).map_err(|_| ERROR_INVALID_PARAMETER)?;
                let shown = format_owned(format.as_ptr(), values.list());
                shown.map(|shown| String::from_utf8_lossy(&shown).into_owned())
            }
        };
        shown.ok_or(ERROR_INVALID_PARAMETER)
    }
}

/// The output, broken into lines.
struct Lines {
    text: Vec<char>,
    /// The length at which a line is full; `None` for no limit.
    width: Option<usize>,
    /// Where the present line starts, and its last run of spaces.
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
            // What stands behind the last spaces goes to the next line; a word as long as a line is cut.
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

/// The `!format!` behind an insert's number; a string when there is none.
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
    // One conversion, at its end, and two stars at most: as many arguments are taken.
    let (conversion, before) = format.as_bytes().split_last().ok_or(ERROR_INVALID_PARAMETER)?;
    let proper = before.iter().all(|c| b"-+ #0123456789.*hlIwz".contains(c))
        && conversion.is_ascii_alphabetic()
        && !b"eEfFgGaAnhlIwz".contains(conversion)
        && before.iter().filter(|c| **c == b'*').count() <= 2;
    if proper { Ok(format) } else { Err(ERROR_INVALID_PARAMETER) }
}

/// Expands a text. `width` is the low byte of the flags: 0 keeps the line breaks of the text, all ones makes spaces of
/// them, and what lies between breaks lines before they have so many characters, too. Without `inserts` those stay as
/// they are, and so do all escapes but `%n`, `%r`, `%t` and `%0`.
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
        // SAFETY: as above.
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
