//! What a format of the `scanf` family asks for, the format by which glibc reads it, and the program's places.

use crate::crt::va_list::Arguments;
use crate::text::{self, Unit, Wchar};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The unit of a function's format, and of what it reads.
pub(super) trait Width: Unit + From<u8> + Into<u32> {
    /// Whether the function is a wide one.
    const WIDE: bool;
}

impl Width for u8 {
    const WIDE: bool = false;
}

impl Width for Wchar {
    const WIDE: bool = true;
}

/// A text assignment: the program's buffer.
pub(super) struct Field<T> {
    target: *mut c_void,
    /// In characters; `None` if the program has told none.
    size: Option<u32>,
    wide: bool,
    read: Read<T>,
    /// How much was read in front of the text, and with it: what was read may have NULs in it.
    bounds: [c_int; 2],
}

/// What a `%n` has found: how much was read up to there.
pub(super) struct Count {
    target: *mut c_void,
    /// Of the program's variable, in bytes.
    size: usize,
    /// glibc's, -1 if the conversion was not reached.
    found: c_int,
}

/// The text that glibc has read, which may not fit.
enum Read<T> {
    /// `%c`: so many characters at most, and no NUL.
    Plain(Vec<T>),
    /// Allocated by glibc (`%ms`); NULL before.
    Allocated(*mut T),
}

impl<T> Drop for Read<T> {
    fn drop(&mut self) {
        if let Read::Allocated(text) = self {
            // SAFETY: NULL, or allocated by glibc for this place alone.
            unsafe { libc::free(text.cast()) };
        }
    }
}

/// An assignment: a number, by its address, or text; or what counts as none.
pub(super) enum Assignment<T> {
    Number(u64),
    Text(Field<T>),
    Count(Count),
}

/// A parsed format: the format for glibc, and the assignments in order.
pub(super) struct Plan<T> {
    pub(super) format: Vec<T>,
    pub(super) assignments: Vec<Assignment<T>>,
}

/// What is left of a format.
struct Rest<'a, T>(&'a [T]);

impl<'a, T: Width> Rest<'a, T> {
    /// A letter; NUL where there is none.
    fn at(&self, index: usize) -> u8 {
        self.0.get(index).and_then(|unit| u8::try_from(Into::<u32>::into(*unit)).ok()).unwrap_or(0)
    }

    fn take(&mut self, length: usize) -> &'a [T] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    /// Passes over a word, if it is next.
    fn passes(&mut self, word: &str) -> bool {
        let found = word.bytes().enumerate().all(|(index, letter)| self.at(index) == letter);
        if found {
            self.take(word.len());
        }
        found
    }

    /// What stands in front of the next conversion.
    fn literal(&mut self) -> &'a [T] {
        self.take((0..self.0.len()).find(|index| self.at(*index) == b'%').unwrap_or(self.0.len()))
    }

    /// A width, 0 if there is none; `None` if nothing has so many characters.
    fn width(&mut self) -> Option<usize> {
        let mut width = 0;
        while self.at(0).is_ascii_digit() {
            width = width * 10 + usize::from(self.at(0) - b'0');
            self.take(1);
            if width > c_int::MAX as usize {
                return None;
            }
        }
        Some(width)
    }

    /// The set of a `%[`, from after the bracket up to and including the closing one.
    fn set(&mut self) -> Option<&'a [T]> {
        let start = usize::from(self.at(0) == b'^');
        // A closing bracket at the start belongs to the set.
        let end = (start + 1..self.0.len()).find(|index| self.at(*index) == b']')?;
        Some(self.take(end + 1))
    }
}

/// Room for so many characters; `None` if there is no memory for them.
fn room<T: Width>(length: usize) -> Option<Vec<T>> {
    Vec::<T>::new().try_reserve_exact(length).ok()?;
    // What was found to be there is asked for once more, as memory that is zero already.
    Some(vec![T::default(); length])
}

/// The length modifier for glibc; `None` for unknown conversions. Text is read in the function's width, unless the C library
/// allocates it.
fn length<T: Width>(letter: u8, prefix: &'static str, allocated: bool) -> Option<&'static str> {
    Some(match (letter, prefix) {
        (b'd' | b'i' | b'o' | b'u' | b'x' | b'X', "I64" | "ll" | "I") => "ll",
        (b'd' | b'i' | b'o' | b'u' | b'x' | b'X', "h" | "hh" | "z" | "t" | "j") => prefix,
        (b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'p' | b'n', _) => "",
        // As for printf: a variable of that type has Linux's size.
        (b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A', "l" | "L") => prefix,
        (b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A', _) => "",
        (b's' | b'c' | b'[', "l") | (b'S' | b'C', _) if allocated => "l",
        (b's' | b'c' | b'S' | b'C' | b'[', _) if T::WIDE && !allocated => "l",
        (b's' | b'c' | b'S' | b'C' | b'[', _) => "",
        _ => return None,
    })
}

impl<T: Width> Plan<T> {
    fn say(&mut self, text: &str) {
        self.format.extend(text.bytes().map(T::from));
    }

    /// Parses a format; `None` for unknown conversions. With `sized`, the size of its buffer follows each text.
    ///
    /// # Safety
    /// The arguments fit the format.
    pub(super) unsafe fn of(format: &[T], sized: bool, arguments: &mut Arguments) -> Option<Plan<T>> {
        let mut plan = Plan { format: Vec::with_capacity(format.len() + 16), assignments: Vec::new() };
        let mut rest = Rest(format);
        loop {
            plan.format.extend_from_slice(rest.literal());
            if rest.passes("%%") {
                plan.say("%%");
            } else if rest.passes("%") {
                // SAFETY: the arguments fit the format.
                unsafe { plan.conversion(&mut rest, sized, arguments) }?;
            } else {
                break;
            }
        }
        plan.format.push(T::default());
        Some(plan)
    }

    /// Parses a conversion, from after its sign.
    ///
    /// # Safety
    /// The arguments fit the format.
    unsafe fn conversion(
        &mut self,
        rest: &mut Rest<'_, T>,
        sized: bool,
        arguments: &mut Arguments,
    ) -> Option<()> {
        let suppressed = rest.passes("*");
        let width = rest.width()?;
        // POSIX's: text in memory that is allocated for it. The C library does that, for code that is Linux's.
        let allocated = !sized && rest.passes("m");
        let prefixes = ["I64", "I32", "hh", "ll", "h", "l", "w", "L", "I", "z", "t", "j"];
        let prefix = prefixes.into_iter().find(|prefix| rest.passes(prefix)).unwrap_or("");
        let letter = rest.at(0);
        let length = length::<T>(letter, prefix, allocated).filter(|_| letter != b'n' || !suppressed)?;
        rest.take(1);
        let set = if letter == b'[' { rest.set()? } else { &[] };
        let is_plain = letter.eq_ignore_ascii_case(&b'c');
        let is_text = matches!(letter, b's' | b'c' | b'S' | b'C' | b'[') && !suppressed && !allocated;
        if is_text {
            // White space, which a `%s` passes over, is not of the text.
            self.say(if letter.eq_ignore_ascii_case(&b's') { " %n" } else { "%n" });
        }
        self.say("%");
        self.say(if suppressed { "*" } else { "" });
        if width != 0 {
            self.say(&width.to_string());
        }
        self.say(if is_text && !is_plain || allocated && !suppressed { "m" } else { "" });
        self.say(length);
        self.format.push(T::from(letter.to_ascii_lowercase()));
        self.format.extend_from_slice(set);
        if is_text {
            self.say("%n");
        }
        if suppressed {
            return Some(());
        }
        // SAFETY: each assignment has a pointer among the arguments.
        let place = unsafe { arguments.next() };
        self.assignments.push(if letter == b'n' {
            let size = match prefix {
                "hh" => 1,
                "h" => 2,
                "I64" | "ll" | "I" | "z" | "t" | "j" => 8,
                _ => 4,
            };
            Assignment::Count(Count { target: place as *mut c_void, size, found: -1 })
        } else if is_text {
            Assignment::Text(Field {
                target: place as *mut c_void,
                // SAFETY: in a function that tells sizes, the pointer of a text is followed by that of its buffer.
                size: sized.then(|| unsafe { arguments.next() } as u32),
                wide: match prefix {
                    "h" => false,
                    "l" | "w" => true,
                    _ => T::WIDE != letter.is_ascii_uppercase(),
                },
                read: if is_plain { Read::Plain(room(width.max(1))?) } else { Read::Allocated(null_mut()) },
                bounds: [0; 2],
            })
        } else {
            Assignment::Number(place)
        });
        Some(())
    }

    /// Where glibc puts what it reads, in the order of the rewritten format.
    pub(super) fn places(&mut self) -> Vec<u64> {
        fn address<T>(place: *mut T) -> u64 {
            place.expose_provenance() as u64
        }
        let mut places = Vec::with_capacity(self.assignments.len() * 3);
        for assignment in &mut self.assignments {
            match assignment {
                Assignment::Number(place) => places.push(*place),
                Assignment::Count(count) => places.push(address(&raw mut count.found)),
                Assignment::Text(field) => {
                    let text = match &mut field.read {
                        Read::Plain(text) => address(text.as_mut_ptr()),
                        Read::Allocated(text) => address(&raw mut *text),
                    };
                    let [before, behind] = &mut field.bounds;
                    places.extend([address(&raw mut *before), text, address(&raw mut *behind)]);
                }
            }
        }
        places
    }
}

impl<T: Width> Field<T> {
    /// Copies the text to the program's buffer; `false`, and an empty string, if it does not fit.
    ///
    /// # Safety
    /// The buffer has room for the size told, or for all of the text if none was; glibc has read the text.
    pub(super) unsafe fn deliver(&self) -> bool {
        let [before, behind] = self.bounds;
        // The counts may have gone beyond what they can hold.
        let length = usize::try_from(behind.wrapping_sub(before)).unwrap_or(0);
        let (units, plain) = match &self.read {
            Read::Plain(text) => (&text[..length.min(text.len())], true),
            Read::Allocated(text) if text.is_null() => (&[][..], false),
            // SAFETY: glibc has read so many units, into memory that it has allocated for them.
            Read::Allocated(text) => (unsafe { std::slice::from_raw_parts(*text, length) }, false),
        };
        let room = |needed: usize| self.size.map_or(needed + usize::from(!plain), |size| size as usize);
        if self.wide {
            let units = T::characters(units);
            // SAFETY: NULL or a buffer of so many wide characters.
            put(&units, unsafe { text::cells(self.target.cast::<Wchar>(), room(units.len())) }, plain)
        } else {
            let bytes = T::bytes(units);
            // SAFETY: NULL or a buffer of so many bytes.
            put(&bytes, unsafe { text::cells(self.target.cast::<u8>(), room(bytes.len())) }, plain)
        }
    }
}

impl Count {
    /// Stores what was counted in the program's variable.
    ///
    /// # Safety
    /// The variable has the size that its conversion says.
    pub(super) unsafe fn deliver(&self) {
        let Ok(found) = u64::try_from(self.found) else { return };
        // SAFETY: so many bytes, as the caller promises.
        if let Some(target) = unsafe { text::cells(self.target.cast::<u8>(), self.size) } {
            text::copy_to(target, &found.to_le_bytes()[..self.size]);
        }
    }
}

/// Stores text, with a NUL unless it is `plain`; `false`, and an empty string, if it does not fit.
fn put<T: Unit>(units: &[T], target: Option<&[Cell<T>]>, plain: bool) -> bool {
    let Some(target) = target else { return false };
    let fits = units.len() + usize::from(!plain) <= target.len();
    let units = if fits { units } else { &[] };
    text::copy_to(target, units);
    if let Some(end) = target.get(units.len()).filter(|_| !plain || !fits) {
        end.set(T::default());
    }
    fits
}
