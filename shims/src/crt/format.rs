//! Rewrites a Microsoft format string into the one that makes glibc print the same.
//!
//! Differences: `l` means 32 bits, as `long` on Windows; `I64`, `I32` and `I` are length prefixes; `%s` and `%c` take strings of
//! the function's width, `%S` and `%C` of the other one, unless `h`, `l` or `w` selects it; `%p` prints 16 digits; `%n`, which
//! writes to memory, is refused.
//!
//! What glibc cannot be told, zeros before text (`%04s`) and `-nan(ind)`, is done behind it: the conversion is put between marks, with
//! its width, and `resolve` pads what was printed there.

/// The result of [`rewrite`].
#[derive(Debug, PartialEq)]
pub(crate) struct Format<T> {
    /// The format for glibc, with its NUL.
    pub text: Vec<T>,
    /// A conversion takes a string of the other width, which glibc converts by its locale.
    pub mixes_widths: bool,
    /// Some output stands between marks: see [`resolve`].
    pub marked: bool,
    /// A number with a fraction is printed, which may be none.
    pub fractions: bool,
}

/// The marks: before a conversion, between its width and its output, and behind it.
const BEGIN: &[u8] = b"\x01\x11\x01";
const MIDDLE: u8 = 0x02;
const END: &[u8] = b"\x03\x11\x03";

/// How the output between marks is padded.
#[derive(Clone, Copy)]
enum Padding {
    Left = b'l' as isize,
    Right = b'r' as isize,
    /// Zeros before text.
    Text = b't' as isize,
    /// Zeros before a number's digits.
    Number = b'n' as isize,
}

/// Rewrites the format string of a narrow (`wide` false) or a wide function; `None` when it has a `%n`. Numbers with fractions are put
/// between marks if asked for.
pub(crate) fn rewrite<T: Copy + From<u8> + Into<u32>>(
    format: &[T],
    wide: bool,
    mark_fractions: bool,
) -> Option<Format<T>> {
    let text = Vec::with_capacity(format.len() + 8);
    let mut out = Format { text, mixes_widths: false, marked: false, fractions: false };
    let mut rest = format;
    while let [unit, tail @ ..] = rest {
        rest = tail;
        out.text.push(*unit);
        if is(*unit, b'%') {
            rest = conversion(tail, wide, mark_fractions, &mut out)?;
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
    /// `h` and `hh` stay; before a string conversion they select narrow.
    Short(&'static str),
    /// `l` and `w`: 32 bits of an integer, a wide string.
    Long,
    /// `ll`, `I64`, and `I` on a 64-bit system.
    LongLong,
    /// `I32`.
    Int32,
    /// `z`, `t`, `j` and `L` mean the same to both.
    Same(&'static str),
    /// `T`: of the function's width.
    Natural,
}

/// Longer prefixes come before their own prefixes.
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
    ("T", Length::Natural),
];

/// Rewrites the conversion after a `%` and returns the rest of the format; `None` if it is refused.
fn conversion<'a, T: Copy + From<u8> + Into<u32>>(
    tail: &'a [T],
    wide: bool,
    mark_fractions: bool,
    out: &mut Format<T>,
) -> Option<&'a [T]> {
    let byte = |unit: &T| u8::try_from((*unit).into()).unwrap_or(0);
    let in_set = |set: &'static [u8]| move |unit: &&T| set.contains(&byte(unit));
    let flags = tail.iter().take_while(in_set(b"-+ #0")).count();
    let width = tail[flags..].iter().take_while(in_set(b"0123456789*.")).count();
    let (modifiers, rest) = tail.split_at(flags + width);
    let star =
        modifiers[flags..].windows(2).position(|pair| is(pair[0], b'*') && byte(&pair[1]).is_ascii_digit());
    let replaced;
    let modifiers = match star {
        // `*2`: the width is 2, and the argument is skipped: by a string conversion of precision 0, which does not read it.
        Some(star) => {
            out.text.extend(if wide { &b".0ls%"[..] } else { b".0s%" }.iter().map(|&byte| T::from(byte)));
            replaced = [&modifiers[..flags + star], &modifiers[flags + star + 1..]].concat();
            &replaced
        }
        None => modifiers,
    };

    let starts = |prefix: &str| prefix.bytes().eq(rest.iter().take(prefix.len()).map(byte));
    let (prefix, length) = LENGTHS.iter().find(|(prefix, _)| starts(prefix)).unwrap_or(&("", Length::None));
    let Some((letter, rest)) = rest[prefix.len()..].split_first() else {
        // The format ends inside the conversion, which prints nothing.
        out.text.pop();
        return Some(&[]);
    };

    // On Windows a precision does not shorten a pointer.
    let precision = modifiers.iter().position(|unit| is(*unit, b'.')).unwrap_or(modifiers.len());
    let has = |flag: u8| modifiers[..flags].iter().any(|unit| is(*unit, flag));
    let mut emit = |length: &str, letter: u8| {
        out.text.extend_from_slice(modifiers);
        out.text.extend(length.bytes().chain([letter]).map(T::from));
    };
    /// The same between marks.
    fn emit_marked<T: Copy + From<u8> + Into<u32>>(
        out: &mut Format<T>,
        padding: Padding,
        [flags, width, precision]: [&[T]; 3],
        conversion: &str,
    ) {
        // The percent sign.
        out.text.pop();
        out.text.extend(BEGIN.iter().chain(&[padding as u8]).map(|byte| T::from(*byte)));
        match width {
            [] => out.text.push(T::from(b'0')),
            [star] if is(*star, b'*') => out.text.extend([b'%', b'd'].map(T::from)),
            digits => out.text.extend_from_slice(digits),
        }
        out.text.extend([MIDDLE, b'%'].map(T::from));
        out.text.extend(flags.iter().filter(|unit| !is(**unit, b'0') && !is(**unit, b'-')));
        out.text.extend_from_slice(precision);
        out.text.extend(conversion.bytes().chain(END.iter().copied()).map(T::from));
        out.marked = true;
    }
    let parts = [&modifiers[..flags], &modifiers[flags..precision], &modifiers[precision..]];
    match byte(letter) {
        letter @ (b'd' | b'i' | b'o' | b'u' | b'x' | b'X') => emit(
            match *length {
                Length::None | Length::Long | Length::Int32 | Length::Natural => "",
                Length::LongLong => "ll",
                Length::Short(same) | Length::Same(same) => same,
            },
            letter,
        ),
        letter @ (b's' | b'c' | b'S' | b'C') => {
            let wide_argument = match *length {
                Length::Short(_) => false,
                Length::Long => true,
                Length::Natural => wide,
                _ => wide == letter.is_ascii_lowercase(),
            };
            let (length, letter) = (if wide_argument { "l" } else { "" }, letter.to_ascii_lowercase());
            match has(b'0') && !has(b'-') {
                false => emit(length, letter),
                true => emit_marked(out, Padding::Text, parts, &format!("{length}{}", char::from(letter))),
            }
            out.mixes_widths |= wide_argument != wide;
        }
        letter @ (b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A') => {
            let length = if *length == Length::Same("L") { "L" } else { "" };
            let padding = match (has(b'-'), has(b'0')) {
                (true, _) => Padding::Left,
                (_, true) => Padding::Number,
                _ => Padding::Right,
            };
            // Microsoft's shows all digits of a double unless told otherwise, glibc's as many as the value has.
            let exact = matches!(letter, b'a' | b'A') && length.is_empty() && precision == modifiers.len();
            let length = if exact { ".13" } else { length };
            match mark_fractions {
                false => emit(length, letter),
                true => emit_marked(out, padding, parts, &format!("{length}{}", char::from(letter))),
            }
            out.fractions = true;
        }
        b'p' if modifiers[precision..].iter().any(|unit| is(*unit, b'*')) => emit("ll", b'X'),
        b'p' => {
            out.text.extend_from_slice(&modifiers[..precision]);
            out.text.extend(b".16llX".map(T::from));
        }
        b'n' => return None,
        b'%' => out.text.push(T::from(b'%')),
        // Not a conversion: the character after the percent sign is printed as it is.
        _ => {
            out.text.pop();
            out.text.push(*letter);
        }
    }
    Some(rest)
}

/// Whether printed text may have a number that is none.
pub(crate) fn has_nan<T: Copy + Into<u32>>(text: &[T]) -> bool {
    let is_n = |unit: T| is(unit, b'n') || is(unit, b'N');
    text.windows(3)
        .any(|three| is_n(three[0]) && (is(three[1], b'a') || is(three[1], b'A')) && is_n(three[2]))
}

/// Pads what was printed between marks, and takes the marks away.
pub(crate) fn resolve<T: Copy + From<u8> + Into<u32>>(text: &[T]) -> Vec<T> {
    let begins = |text: &[T], mark: &[u8]| {
        text.len() >= mark.len() && text.iter().zip(mark).all(|(unit, byte)| is(*unit, *byte))
    };
    let mut resolved = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [unit, tail @ ..] = rest {
        let marked = begins(rest, BEGIN).then(|| &rest[BEGIN.len()..]).and_then(|rest| {
            let middle = rest.iter().position(|unit| is(*unit, MIDDLE))?;
            let end = (middle..rest.len()).find(|at| begins(&rest[*at..], END))?;
            Some((&rest[..middle], &rest[middle + 1..end], &rest[end + END.len()..]))
        });
        match marked {
            Some(([padding, width @ ..], inner, behind)) => {
                pad(&mut resolved, (*padding).into(), width, inner);
                rest = behind;
            }
            _ => {
                resolved.push(*unit);
                rest = tail;
            }
        }
    }
    resolved
}

/// Adds the output of a conversion; a negative width is one to the left.
fn pad<T: Copy + From<u8> + Into<u32>>(out: &mut Vec<T>, padding: u32, width: &[T], inner: &[T]) {
    let width: String = width.iter().filter_map(|unit| char::from_u32((*unit).into())).collect();
    let width = width.parse::<i64>().unwrap_or(0);
    let is_text = padding == Padding::Text as u32;
    let spells = |text: &[u8]| inner.len() == text.len() && inner.iter().zip(text).all(|(a, b)| is(*a, *b));
    let indefinite: &[u8] = match () {
        () if is_text => b"",
        () if spells(b"-nan") => b"(ind)",
        () if spells(b"-NAN") => b"(IND)",
        () => b"",
    };
    let missing = (width.unsigned_abs() as usize).saturating_sub(inner.len() + indefinite.len());
    let is_digit = |unit: &T| (u32::from(b'0')..=u32::from(b'9')).contains(&(*unit).into());
    let (before, fill, behind) = match padding {
        _ if width < 0 || padding == Padding::Left as u32 => (0, b' ', missing),
        _ if is_text => (missing, b'0', 0),
        // Not before `inf` and `nan`.
        _ if padding == Padding::Number as u32 && inner.iter().any(is_digit) => (missing, b'0', 0),
        _ => (missing, b' ', 0),
    };
    // Zeros of a number come behind its sign, and behind `0x`.
    let mut first = 0;
    if fill == b'0' && !is_text {
        first = inner.iter().take_while(|unit| b"+- ".iter().any(|sign| is(**unit, *sign))).count();
        if let [zero, x, ..] = &inner[first..]
            && is(*zero, b'0')
            && (is(*x, b'x') || is(*x, b'X'))
        {
            first += 2;
        }
    }
    out.extend_from_slice(&inner[..first]);
    out.extend(std::iter::repeat_n(T::from(fill), before));
    out.extend_from_slice(&inner[first..]);
    out.extend(indefinite.iter().map(|byte| T::from(*byte)));
    out.extend(std::iter::repeat_n(T::from(b' '), behind));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wide: bool, cases: &[(&str, &str)]) {
        for (format, expected) in cases {
            let text = rewrite(format.as_bytes(), wide, false).unwrap().text;
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
            ["%s", "%S", "%hs", "%ls", "%ws", "%hS", "%lS", "%Ts"].map(|format| {
                (
                    format,
                    match format {
                        "%s" | "%Ts" => function,
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
            assert_eq!(
                rewrite(format.as_bytes(), wide, false).unwrap().mixes_widths,
                mixes,
                "{format} {wide}"
            );
        }
    }

    #[test]
    fn what_is_no_conversion_is_printed_as_it_is() {
        check(false, &[("100%", "100"), ("%y", "y"), ("%", ""), ("%-5", ""), ("\u{fc}%d", "\u{fc}%d")]);
    }

    #[test]
    fn a_width_behind_a_star_takes_its_place() {
        check(
            false,
            &[("%0*2d", "%.0s%02d"), ("%*0d", "%.0s%0d"), ("% *2d", "%.0s% 2d"), ("%*.*d", "%*.*d")],
        );
        check(true, &[("%-*12.3d|", "%.0ls%-12.3d|")]);
    }

    #[test]
    fn writing_to_memory_is_refused() {
        for format in ["%n", "%d %hhn", "%I64n", "%5ln"] {
            assert_eq!(rewrite(format.as_bytes(), false, false), None, "{format}");
        }
        assert!(rewrite(b"%%n", false, false).is_some());
    }
}
