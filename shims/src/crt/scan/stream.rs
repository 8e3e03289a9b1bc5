//! Reading a narrow stream by a wide format, character by character: glibc's own function would make the stream a wide one for good.

use super::vsscanf;
use crate::crt::va_list::Arguments;
use crate::crt::wide_input::Locked;
use crate::text::{self, Wchar};
use libc::FILE;
use std::ffi::{CString, c_int};
use std::ptr::with_exposed_provenance_mut;

/// Why nothing more was read.
enum Stop {
    /// The stream has ended.
    Input,
    /// What is there does not match.
    Matching,
}

/// A stream with the character that is next, once it was looked at; that is given back in the end.
struct Input {
    stream: Locked,
    next: Option<Option<Wchar>>,
    /// How many were read.
    count: c_int,
}

impl Input {
    fn next(&mut self) -> Option<Wchar> {
        *self.next.get_or_insert_with(|| self.stream.character())
    }

    /// The next character, if it is wanted.
    fn take(&mut self, wanted: impl FnOnce(Wchar) -> bool) -> Option<Wchar> {
        let character = self.next().filter(|character| wanted(*character))?;
        self.next = None;
        self.count = self.count.wrapping_add(1);
        Some(character)
    }

    /// What is wanted of the characters that are next, at most so many: none is an error.
    fn text(&mut self, width: usize, wanted: impl Fn(&[Wchar], Wchar) -> bool) -> Result<Vec<Wchar>, Stop> {
        self.next().ok_or(Stop::Input)?;
        let mut text = Vec::new();
        while text.len() < width
            && let Some(character) = self.take(|character| wanted(&text, character))
        {
            text.push(character);
        }
        if text.is_empty() { Err(Stop::Matching) } else { Ok(text) }
    }

    fn skip_space(&mut self) {
        while self.take(is_space).is_some() {}
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Some(Some(_)) = self.next {
            self.stream.give_back_last();
        }
    }
}

fn is_space(character: Wchar) -> bool {
    char::from_u32(character).is_some_and(char::is_whitespace)
}

/// The units of a format, which [`super::plan`] has made: its conversions are known ones.
struct Format<'a>(&'a [Wchar]);

impl<'a> Format<'a> {
    fn takes(&mut self, letter: u8) -> bool {
        let found = self.0.first() == Some(&Wchar::from(letter));
        if found {
            self.0 = &self.0[1..];
        }
        found
    }

    fn unit(&mut self) -> Option<Wchar> {
        let (unit, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*unit)
    }

    /// The set of a `%[`, without the closing bracket.
    fn set(&mut self) -> &'a [Wchar] {
        let bracket = Wchar::from(b']');
        let start = usize::from(self.0.first() == Some(&Wchar::from(b'^')));
        let end = (start + 1..self.0.len()).find(|index| self.0[*index] == bracket).unwrap_or(self.0.len());
        let set = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        set
    }
}

/// Whether a set has the character.
fn has(set: &[Wchar], character: Wchar) -> bool {
    let [caret, dash] = [b'^', b'-'].map(Wchar::from);
    let (mut set, negated) = match set {
        [first, rest @ ..] if *first == caret => (rest, true),
        set => (set, false),
    };
    let mut found = false;
    while let [first, rest @ ..] = set {
        set = match rest {
            [sign, last, rest @ ..] if *sign == dash => {
                found |= (*first..=*last).contains(&character);
                rest
            }
            rest => {
                found |= *first == character;
                rest
            }
        };
    }
    found != negated
}

/// Whether a number of the conversion may begin so. The decimal point is the locale's.
fn begins(letter: u8, text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase();
    let hexadecimal = text.strip_prefix("0x");
    let digits = |text: &str, base| text.chars().all(|digit| digit.is_digit(base));
    match letter {
        b'd' | b'u' => digits(&text, 10),
        b'o' => digits(&text, 8),
        b'x' | b'p' => digits(hexadecimal.unwrap_or(&text), 16),
        b'i' => match hexadecimal {
            Some(rest) => digits(rest, 16),
            None => digits(&text, if text.starts_with('0') { 8 } else { 10 }),
        },
        _ if "infinity".starts_with(&text) || "nan".starts_with(&text) => true,
        _ => {
            let (base, sign) = if hexadecimal.is_some() { (16, 'p') } else { (10, 'e') };
            let text = hexadecimal.unwrap_or(&text);
            let (mantissa, exponent) = text.split_once(sign).map_or((text, None), |(m, e)| (m, Some(e)));
            let (whole, fraction) = mantissa.split_once(point()).unwrap_or((mantissa, ""));
            digits(whole, base)
                && digits(fraction, base)
                && exponent.is_none_or(|exponent| {
                    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                    whole.len() + fraction.len() > 0 && digits(exponent, 10)
                })
        }
    }
}

/// The decimal point in force.
fn point() -> char {
    // SAFETY: takes a number.
    let point = unsafe { libc::nl_langinfo(libc::RADIXCHAR) }.cast::<u8>();
    // SAFETY: a terminated text.
    let point = unsafe { point.read() };
    if point.is_ascii_punctuation() { point.into() } else { '.' }
}

/// Reads by the format that the plan has made; the places are those of its conversions, in order.
///
/// # Safety
/// The stream is open; each place has the type that its conversion says.
pub(super) unsafe fn scan(stream: *mut FILE, format: &[Wchar], places: &[u64]) -> c_int {
    // SAFETY: open, as the caller promises.
    let mut input = Input { stream: unsafe { Locked::new(stream) }, next: None, count: 0 };
    let (mut format, mut places, mut assigned) = (Format(format), places.iter(), 0);
    while let Some(unit) = format.unit().filter(|unit| *unit != 0) {
        let matched = if is_space(unit) {
            input.skip_space();
            Ok(0)
        } else if unit != Wchar::from(b'%') {
            literal(&mut input, unit)
        } else if format.takes(b'%') {
            input.skip_space();
            literal(&mut input, unit)
        } else {
            // SAFETY: each place has the type that its conversion says, as the caller promises.
            unsafe { conversion(&mut input, &mut format, &mut places) }
        };
        match matched {
            Ok(more) => assigned += more,
            Err(Stop::Input) if assigned == 0 => return super::EOF,
            Err(_) => return assigned,
        }
    }
    assigned
}

fn literal(input: &mut Input, unit: Wchar) -> Result<c_int, Stop> {
    input.next().ok_or(Stop::Input)?;
    input.take(|character| character == unit).map(|_| 0).ok_or(Stop::Matching)
}

/// Reads by one conversion; how many assignments it is.
///
/// # Safety
/// Each place has the type that its conversion says.
unsafe fn conversion(
    input: &mut Input,
    format: &mut Format<'_>,
    places: &mut std::slice::Iter<'_, u64>,
) -> Result<c_int, Stop> {
    let suppressed = format.takes(b'*');
    let mut width = 0;
    while let Some(digit) = format.0.first().and_then(|unit| char::from_u32(*unit)?.to_digit(10)) {
        width = width * 10 + digit as usize;
        format.unit();
    }
    let allocated = format.takes(b'm');
    let mut modifiers = String::new();
    for letter in [b'h', b'h', b'l', b'l', b'L', b'z', b't', b'j'] {
        if format.takes(letter) {
            modifiers.push(letter.into());
        }
    }
    let letter = format.unit().and_then(|unit| u8::try_from(unit).ok()).ok_or(Stop::Matching)?;
    let place = if suppressed { 0 } else { places.next().copied().unwrap_or(0) };
    if letter == b'n' {
        // SAFETY: the place of a `%n` is one of the plan's, a `c_int`.
        unsafe { with_exposed_provenance_mut::<c_int>(place as usize).write(input.count) };
        return Ok(0);
    }
    let set = if letter == b'[' { format.set() } else { &[] };
    if !matches!(letter, b'[' | b'c') {
        input.skip_space();
    }
    let width = match (width, letter) {
        (0, b'c') => 1,
        (0, _) => usize::MAX,
        (width, _) => width,
    };
    let text = match letter {
        b'c' => input.text(width, |_, _| true),
        b's' => input.text(width, |_, character| !is_space(character)),
        b'[' => input.text(width, |_, character| has(set, character)),
        _ => input.text(width, |text, character| {
            let Some(next) = char::from_u32(character).filter(char::is_ascii) else { return false };
            begins(letter, &(text::from_wide(text) + next.encode_utf8(&mut [0; 4])))
        }),
    }?;
    if !matches!(letter, b'c' | b's' | b'[') {
        // SAFETY: the place has the conversion's type, as the caller promises.
        return unsafe { number(&text::from_wide(&text), &modifiers, letter, place) };
    }
    if suppressed {
        return Ok(0);
    }
    if !allocated {
        // SAFETY: the place of a `%c` has room for so many characters.
        unsafe {
            std::ptr::copy_nonoverlapping(
                text.as_ptr(),
                with_exposed_provenance_mut(place as usize),
                text.len(),
            )
        };
        return Ok(1);
    }
    let is_plain = letter == b'c';
    let bytes: Vec<u8> = if modifiers == "l" {
        let end = (!is_plain).then_some(0);
        text.iter().copied().chain(end).flat_map(Wchar::to_ne_bytes).collect()
    } else {
        text::from_wide(&text).into_bytes().into_iter().chain((!is_plain).then_some(0)).collect()
    };
    // SAFETY: takes a number.
    let memory = unsafe { libc::malloc(bytes.len()) }.cast::<u8>();
    if memory.is_null() {
        return Err(Stop::Input);
    }
    // SAFETY: there is so much room.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
    // SAFETY: the place of text that is allocated is that of a pointer.
    unsafe { with_exposed_provenance_mut::<*mut u8>(place as usize).write(memory) };
    Ok(1)
}

/// Lets glibc store the number that was read, by a conversion of it alone; nowhere if the place is none.
///
/// # Safety
/// The place is 0, or has the conversion's type.
unsafe fn number(text: &str, modifiers: &str, letter: u8, place: u64) -> Result<c_int, Stop> {
    let mut read: c_int = 0;
    let read_at = (&raw mut read).expose_provenance() as u64;
    let (sign, places) = if place == 0 { ("%*", vec![read_at]) } else { ("%", vec![place, read_at]) };
    let format = CString::new(format!("{sign}{modifiers}{}%n", char::from(letter)));
    let (Ok(format), Ok(text)) = (format, CString::new(text)) else { return Err(Stop::Matching) };
    // SAFETY: terminated texts, and a place for each conversion.
    unsafe { vsscanf(text.as_ptr(), format.as_ptr(), Arguments::on_stack(&places).list()) };
    if read == 0 { Err(Stop::Matching) } else { Ok(c_int::from(place != 0)) }
}
