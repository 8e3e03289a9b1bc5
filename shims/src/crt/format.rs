//! Rewrites a Microsoft format string into the one that makes glibc print the same.
//!
//! What differs: `l` means 32 bits, as `long` does on Windows; `I64`, `I32` and `I` are length prefixes; `%s`
//! and `%c` take the width of the function, `%S` and `%C` the other one; `h`, `l` and `w` before them choose; `%p` is 16
//! digits; `%n`, a way to write to memory, is refused.

/// What [`rewrite`] made of a format string.
#[derive(Debug, PartialEq)]
pub(crate) struct Format<T> {
    /// The format for glibc, with its NUL.
    pub text: Vec<T>,
    /// A conversion takes a string of the other width than the format's, which glibc converts by its locale.
    pub mixes_widths: bool,
}

/// Rewrites the format string of a narrow (`wide` false) or a wide function; `None` when it has a `%n`.
pub(crate) fn rewrite<T: Copy + From<u8> + Into<u32>>(format: &[T], wide: bool) -> Option<Format<T>> {
    let mut out = Format { text: Vec::with_capacity(format.len() + 8), mixes_widths: false };
    let mut rest = format;
    while let [unit, tail @ ..] = rest {
        rest = tail;
        out.text.push(*unit);
        if is(*unit, b'%') {
            rest = conversion(tail, wide, &mut out)?;
        }
    }
    out.text.push(T::from(0));
    Some(out)
}

fn is<T: Copy + Into<u32>>(unit: T, byte: u8) -> bool {
    unit.into() == u32::from(byte)
}

/// The length prefix of a conversion.
#[derive(Clone, Copy, PartialEq)]
enum Length {
    None,
    /// `h` and `hh` pass as they are; before a string they mean a narrow one.
    Short(&'static str),
    /// `l` and `w`: 32 bits of an integer, a wide string.
    Long,
    /// `ll`, `I64`, and `I` on a 64-bit system.
    LongLong,
    /// `I32`.
    Int32,
    /// `z`, `t`, `j` and `L` mean the same to both.
    Same(&'static str),
}

/// Longer prefixes stand before their own beginnings.
const LENGTHS: &[(&str, Length)] = &[
    ("I64", Length::LongLong),
    ("I32", Length::Int32),
    ("I", Length::LongLong),
    ("hh", Length::Short("hh")),
    ("h", Length::Short("h")),
    ("ll", Length::LongLong),
    ("l", Length::Long),
    ("w", Length::Long),
    ("z", Length::Same("z")),
    ("t", Length::Same("t")),
    ("j", Length::Same("j")),
    ("L", Length::Same("L")),
];

/// Rewrites what follows a `%` and returns what follows the conversion; `None` for one that is refused.
fn conversion<'a, T: Copy + From<u8> + Into<u32>>(
    tail: &'a [T],
    wide: bool,
    out: &mut Format<T>,
) -> Option<&'a [T]> {
    let byte = |unit: &T| u8::try_from((*unit).into()).unwrap_or(0);
    let in_set = |set: &'static [u8]| move |unit: &&T| set.contains(&byte(unit));
    let flags = tail.iter().take_while(in_set(b"-+ #0")).count();
    let width = tail[flags..].iter().take_while(in_set(b"0123456789*.")).count();
    let (modifiers, rest) = tail.split_at(flags + width);

    let starts = |prefix: &str| prefix.bytes().eq(rest.iter().take(prefix.len()).map(byte));
    let (prefix, length) = LENGTHS.iter().find(|(prefix, _)| starts(prefix)).unwrap_or(&("", Length::None));
    let Some((letter, rest)) = rest[prefix.len()..].split_first() else {
        // The string ends inside the conversion: nothing is printed for it.
        out.text.pop();
        return Some(&[]);
    };

    let mut emit = |length: &str, letter: u8| {
        out.text.extend_from_slice(modifiers);
        out.text.extend(length.bytes().chain([letter]).map(T::from));
    };
    // A pointer has as many digits as it needs on Windows, whatever precision is asked for.
    let precision = modifiers.iter().position(|unit| is(*unit, b'.')).unwrap_or(modifiers.len());
    match byte(letter) {
        letter @ (b'd' | b'i' | b'o' | b'u' | b'x' | b'X') => emit(
            match *length {
                Length::None | Length::Long | Length::Int32 => "",
                Length::LongLong => "ll",
                Length::Short(same) | Length::Same(same) => same,
            },
            letter,
        ),
        letter @ (b's' | b'c' | b'S' | b'C') => {
            let wide_argument = match *length {
                Length::Short(_) => false,
                Length::Long => true,
                _ => wide == letter.is_ascii_lowercase(),
            };
            emit(if wide_argument { "l" } else { "" }, letter.to_ascii_lowercase());
            out.mixes_widths |= wide_argument != wide;
        }
        letter @ (b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A') => {
            emit(if *length == Length::Same("L") { "L" } else { "" }, letter)
        }
        b'p' if modifiers[precision..].iter().any(|unit| is(*unit, b'*')) => emit("ll", b'X'),
        b'p' => {
            out.text.extend_from_slice(&modifiers[..precision]);
            out.text.extend(b".16llX".map(T::from));
        }
        b'n' => return None,
        b'%' => out.text.push(T::from(b'%')),
        // Not a conversion: what follows the sign is printed as it is.
        _ => {
            out.text.pop();
            out.text.push(*letter);
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wide: bool, cases: &[(&str, &str)]) {
        for (format, expected) in cases {
            let text = rewrite(format.as_bytes(), wide).unwrap().text;
            let (nul, text) = text.split_last().unwrap();
            assert_eq!((*nul, std::str::from_utf8(text).unwrap()), (0, *expected), "{format}");
        }
    }

    #[test]
    fn integers_have_the_width_that_windows_gives_them() {
        check(
            false,
            &[
                ("%d %u %x %#X", "%d %u %x %#X"),
                ("%I64d %I64u %-20I64x", "%lld %llu %-20llx"),
                ("%I32d %I32u", "%d %u"),
                ("%9Id %Iu%%", "%9lld %llu%%"),
                ("%ld %lu %08lx", "%d %u %08x"),
                ("%9ul", "%9ul"),
                ("%lld %08llx", "%lld %08llx"),
                ("%hu %hhd %zu %td %ju", "%hu %hhd %zu %td %ju"),
                ("%*d %.*f %-8.3e %Lf %lf", "%*d %.*f %-8.3e %Lf %f"),
                ("%p %-20p %.3p", "%.16llX %-20.16llX %.16llX"),
            ],
        );
    }

    #[test]
    fn strings_take_the_width_of_the_function_or_of_their_prefix() {
        let cases = |function: &'static str, other: &'static str| {
            ["%s", "%S", "%hs", "%ls", "%ws", "%hS", "%lS"].map(|format| {
                (
                    format,
                    match format {
                        "%s" => function,
                        "%S" => other,
                        "%hs" | "%hS" => "%s",
                        _ => "%ls",
                    },
                )
            })
        };
        check(false, &cases("%s", "%ls"));
        check(true, &cases("%ls", "%s"));
        check(false, &[("%c %C %-10.4S", "%c %lc %-10.4ls")]);
        check(true, &[("%c %C %hc %-10s", "%lc %c %c %-10ls")]);
    }

    #[test]
    fn a_string_of_the_other_width_is_told() {
        for (format, wide, mixes) in [
            ("%s %d", false, false),
            ("%S", false, true),
            ("%lc", false, true),
            ("%s %c", true, false),
            ("%hs", true, true),
        ] {
            assert_eq!(rewrite(format.as_bytes(), wide).unwrap().mixes_widths, mixes, "{format} {wide}");
        }
    }

    #[test]
    fn what_is_no_conversion_is_printed_as_it_is() {
        check(false, &[("100%", "100"), ("%y", "y"), ("%", ""), ("%-5", ""), ("\u{fc}%d", "\u{fc}%d")]);
    }

    #[test]
    fn writing_to_memory_is_refused() {
        for format in ["%n", "%d %hhn", "%I64n", "%5ln"] {
            assert_eq!(rewrite(format.as_bytes(), false), None, "{format}");
        }
        assert!(rewrite(b"%%n", false).is_some());
    }
}
