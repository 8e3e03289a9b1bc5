//! The command line as one string, as on Windows, and its parser.

use crate::arguments::{Out, Text};
use crate::error::*;
use crate::text::{self, Wchar};
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Quotes an argument for a Windows command line, so that [`split`] returns it.
fn quote(argument: &str) -> String {
    if !argument.is_empty() && !argument.contains([' ', '\t', '"']) {
        return argument.into();
    }
    let mut quoted = String::from('"');
    let mut backslashes = 0;
    for c in argument.chars() {
        match c {
            '\\' => backslashes += 1,
            '"' => {
                // Backslashes before a quote are doubled, and one more escapes the quote.
                quoted.extend(std::iter::repeat_n('\\', backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        quoted.push(c);
    }
    quoted.extend(std::iter::repeat_n('\\', backslashes));
    quoted.push('"');
    quoted
}

/// The program's arguments, with its name, as one line.
fn line() -> String {
    let arguments = std::env::args_os().map(|argument| quote(&argument.to_string_lossy()));
    arguments.collect::<Vec<_>>().join(" ")
}

/// Splits a command line as Windows does. The first argument, the program's name, ends at a blank or at its closing quote;
/// backslashes are literal in it. In the others 2n backslashes before a quote become n, and the quote opens or closes; with one
/// more backslash the quote is literal. Two quotes in a row inside quotes become one.
fn split(line: &[Wchar]) -> Vec<Vec<Wchar>> {
    let is = |unit: Wchar, byte: u8| unit == Wchar::from(byte);
    let blank = |unit: Wchar| is(unit, b' ') || is(unit, b'\t');
    let mut arguments = Vec::new();

    let (name, mut rest) = match line {
        [quote, tail @ ..] if is(*quote, b'"') => {
            let end = tail.iter().position(|unit| is(*unit, b'"')).unwrap_or(tail.len());
            (&tail[..end], &tail[(end + 1).min(tail.len())..])
        }
        _ => line.split_at(line.iter().position(|unit| blank(*unit)).unwrap_or(line.len())),
    };
    arguments.push(name.to_vec());

    loop {
        while let [unit, tail @ ..] = rest {
            if !blank(*unit) {
                break;
            }
            rest = tail;
        }
        if rest.is_empty() {
            return arguments;
        }
        let (mut argument, mut quoted) = (Vec::new(), false);
        while let [unit, tail @ ..] = rest {
            if blank(*unit) && !quoted {
                break;
            }
            let backslashes = rest.iter().take_while(|unit| is(**unit, b'\\')).count();
            if backslashes > 0 {
                rest = &rest[backslashes..];
                let before_quote = rest.first().is_some_and(|unit| is(*unit, b'"'));
                let kept = if before_quote { backslashes / 2 } else { backslashes };
                argument.extend(std::iter::repeat_n(Wchar::from(b'\\'), kept));
                if before_quote && backslashes % 2 == 1 {
                    argument.push(b'"'.into());
                    rest = &rest[1..];
                }
                continue;
            }
            rest = tail;
            if !is(*unit, b'"') {
                argument.push(*unit);
            } else if quoted && rest.first().is_some_and(|unit| is(*unit, b'"')) {
                argument.push(b'"'.into());
                rest = &rest[1..];
                // The second quote of the pair also closes.
                quoted = false;
            } else {
                quoted = !quoted;
            }
        }
        arguments.push(argument);
    }
}

/// `GetCommandLineW`: the same string each time, which the program may change.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCommandLineW() -> *mut Wchar {
    static LINE: OnceLock<usize> = OnceLock::new();
    *LINE.get_or_init(|| {
        let mut text = text::to_wide(&line());
        text.push(0);
        text.leak().as_mut_ptr() as usize
    }) as *mut Wchar
}

/// `GetCommandLineA`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCommandLineA() -> *mut c_char {
    static LINE: OnceLock<usize> = OnceLock::new();
    *LINE.get_or_init(|| {
        let mut text = line().into_bytes();
        text.push(0);
        text.leak().as_mut_ptr() as usize
    }) as *mut c_char
}

/// `CommandLineToArgvW`: the arguments of a line, or the program's path for an empty one. One block of memory holds all of it, for
/// `LocalFree`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CommandLineToArgvW(line: Text<'_, Wchar>, count: Out<'_, c_int>) -> *mut *mut Wchar {
    let Some(line) = line.units().filter(|_| !count.is_null()) else {
        set_last_error(ERROR_INVALID_PARAMETER);
        return null_mut();
    };
    let arguments = if line.is_empty() {
        let path = std::env::current_exe().unwrap_or_default();
        vec![text::to_wide(&path.to_string_lossy())]
    } else {
        split(line)
    };
    let pointers = (arguments.len() + 1) * size_of::<*mut Wchar>();
    let units: usize = arguments.iter().map(|argument| argument.len() + 1).sum();
    let block = crate::memory::heap::local::ndw_LocalAlloc(0, pointers + units * size_of::<Wchar>());
    if block.is_null() {
        return null_mut();
    }
    let table = block.cast::<*mut Wchar>();
    let mut at = block.wrapping_byte_add(pointers).cast::<Wchar>();
    for (i, argument) in arguments.iter().enumerate() {
        // SAFETY: behind the pointers there is room for every argument with its NUL.
        unsafe { text::store(argument, at, argument.len() + 1) };
        // SAFETY: the block begins with a pointer for each argument.
        unsafe { table.wrapping_add(i).write(at) };
        at = at.wrapping_add(argument.len() + 1);
    }
    // SAFETY: and with one more, for NULL.
    unsafe { table.wrapping_add(arguments.len()).write(null_mut()) };
    count.put(arguments.len() as c_int);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;

    fn parts(line: &str) -> Vec<String> {
        split(&text::to_wide(line)).iter().map(|argument| text::from_wide(argument)).collect()
    }

    #[test]
    fn a_line_is_taken_apart_as_on_windows() {
        for (line, expected) in [
            (r"a b", vec!["a", "b"]),
            ("a  \t b ", vec!["a", "b"]),
            (r#""c:\a b\" x"#, vec![r"c:\a b\", "x"]),
            (r#"a "b c" d"#, vec!["a", "b c", "d"]),
            (r#"a b"c d"e"#, vec!["a", "bc de"]),
            (r#"a \"b \\"c d" \\\"e f\\g"#, vec!["a", r#""b"#, r"\c d", r#"\"e"#, r"f\\g"]),
            (r#"a """#, vec!["a", ""]),
            (r#"a "b""c" d"#, vec!["a", r#"b"c d"#]),
            (r#"a "b"#, vec!["a", "b"]),
            (" a", vec!["", "a"]),
        ] {
            assert_eq!(parts(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_put_together_comes_apart_again() {
        let arguments = ["x", "", "a b", r"c:\d\", r#"say "hi""#, r#"\\"\"#, r"e f\", "\t", r#"""#];
        let line = arguments.map(quote).join(" ");
        assert_eq!(parts(&line), arguments);
    }

    #[test]
    fn the_command_line_holds_the_arguments_of_the_program() {
        let mut count = 0;
        // SAFETY: the texts that the functions return are terminated, `units` ends with a NUL and lives on, index `count` is
        // the array's last place, and the block is freed once, at the end.
        unsafe {
            let line = ndw_GetCommandLineW();
            assert_eq!(line, ndw_GetCommandLineW());
            assert_eq!(text::string_from_wide(line), text::string_from_narrow(ndw_GetCommandLineA()));
            let units = w(&text::string_from_wide(line).unwrap());
            let arguments = ndw_CommandLineToArgvW(Text::terminated(&units), Out::from(&mut count));
            assert_eq!(count as usize, std::env::args().count());
            assert_eq!(text::string_from_wide(*arguments), std::env::args().next());
            assert!((*arguments.add(count as usize)).is_null());
            crate::memory::heap::local::ndw_LocalFree(arguments.cast());
        }
    }

    #[test]
    fn an_empty_line_is_the_program_and_null_is_refused() {
        let mut count = 0;
        // SAFETY: terminated or NULL, and a block that is ours to free.
        unsafe {
            let arguments = ndw_CommandLineToArgvW(Text::terminated(&w("")), Out::from(&mut count));
            assert_eq!(count, 1);
            assert!(text::string_from_wide(*arguments).unwrap().starts_with('/'));
            crate::memory::heap::local::ndw_LocalFree(arguments.cast());
            assert!(ndw_CommandLineToArgvW(Text::NULL, Out::from(&mut count)).is_null());
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            assert!(ndw_CommandLineToArgvW(Text::terminated(&w("a")), Out::NULL).is_null());
        }
    }
}
