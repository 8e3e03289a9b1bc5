//! GUIDs: creation, comparison, conversion to and from text.

use super::random;
use crate::arguments::{In, InOut, Out, Text};
use crate::error::*;
use crate::text::{self, Unit, Wchar, narrow_and_wide};
use std::cmp::Ordering;
use std::ffi::c_void;
use std::fmt::Write;

/// `GUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Guid {
    data1: u32,
    data2: u16,
    data3: u16,
    data4: [u8; 8],
}

const NIL: Guid = Guid { data1: 0, data2: 0, data3: 0, data4: [0; 8] };

const S_OK: i32 = 0;
const E_INVALIDARG: i32 = 0x8007_0057u32 as i32;
const E_POINTER: i32 = 0x8000_4003u32 as i32;
const E_FAIL: i32 = 0x8000_4005u32 as i32;
const CO_E_CLASSSTRING: i32 = 0x8004_01F3u32 as i32;
const RPC_S_OK: i32 = 0;
const RPC_S_INVALID_STRING_UUID: i32 = 1705;

/// Characters of an identifier without braces.
const LENGTH: usize = 36;

impl Guid {
    /// A new GUID of version 4: 122 random bits from the kernel. `None` if it has none.
    fn random() -> Option<Guid> {
        let mut bytes = [0u8; 16];
        random::fill(&mut bytes).ok()?;
        bytes[7] = bytes[7] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        let [a, b, c, d, e, f, g, h, data4 @ ..] = bytes;
        Some(Guid {
            data1: u32::from_le_bytes([a, b, c, d]),
            data2: u16::from_le_bytes([e, f]),
            data3: u16::from_le_bytes([g, h]),
            data4,
        })
    }

    /// The text, in upper or lower case.
    fn spell(&self, capital: bool) -> String {
        let mut text = format!("{:08x}-{:04x}-{:04x}-", self.data1, self.data2, self.data3);
        for (i, byte) in self.data4.iter().enumerate() {
            let dash = if i == 2 { "-" } else { "" };
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{dash}{byte:02x}");
        }
        if capital { text.to_uppercase() } else { text }
    }

    /// Reads exactly the 36 characters of an identifier.
    fn parse(text: &str) -> Option<Guid> {
        let bytes = text.as_bytes();
        let in_form = bytes.len() == LENGTH
            && bytes
                .iter()
                .enumerate()
                .all(|(i, c)| if matches!(i, 8 | 13 | 18 | 23) { *c == b'-' } else { c.is_ascii_hexdigit() });
        if !in_form {
            return None;
        }
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let number = |from: usize, to: usize| u64::from_str_radix(&digits[from..to], 16).ok();
        Some(Guid {
            data1: number(0, 8)? as u32,
            data2: number(8, 12)? as u16,
            data3: number(12, 16)? as u16,
            data4: number(16, 32)?.to_be_bytes(),
        })
    }
}

/// An argument of a comparison, where NULL is the nil GUID.
fn or_nil(guid: In<'_, Guid>) -> Guid {
    guid.read().unwrap_or(NIL)
}

fn fine(status: Out<'_, i32>) {
    status.put(RPC_S_OK);
}

/// `UuidCreate`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_UuidCreate(uuid: Out<'_, Guid>) -> i32 {
    let (false, Some(new)) = (uuid.is_null(), Guid::random()) else { return ERROR_INVALID_PARAMETER as i32 };
    uuid.put(new);
    RPC_S_OK
}

/// `UuidCreateNil`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_UuidCreateNil(uuid: Out<'_, Guid>) -> i32 {
    uuid.put(NIL);
    RPC_S_OK
}

/// `UuidCompare`: -1, 0 or 1, field by field; NULL stands for zeroes.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_UuidCompare(a: In<'_, Guid>, b: In<'_, Guid>, status: Out<'_, i32>) -> i32 {
    fine(status);
    let a = or_nil(a);
    match a.cmp(&or_nil(b)) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

/// `UuidEqual`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_UuidEqual(a: In<'_, Guid>, b: In<'_, Guid>, status: Out<'_, i32>) -> i32 {
    i32::from(ndw_UuidCompare(a, b, status) == 0)
}

/// `UuidIsNil`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_UuidIsNil(uuid: In<'_, Guid>, status: Out<'_, i32>) -> i32 {
    ndw_UuidEqual(uuid, In::NULL, status)
}

fn to_string<T: Unit>(uuid: In<'_, Guid>, result: Out<'_, *mut T>) -> i32 {
    if result.is_null() {
        return ERROR_INVALID_PARAMETER as i32;
    }
    let text = T::spell(&or_nil(uuid).spell(false));
    // SAFETY: takes a number only.
    let block = unsafe { libc::malloc((LENGTH + 1) * size_of::<T>()) }.cast::<T>();
    if block.is_null() {
        return ERROR_OUTOFMEMORY as i32;
    }
    // SAFETY: the block has room for the text and its NUL.
    unsafe { text::store(&text, block, LENGTH + 1) };
    result.put(block);
    RPC_S_OK
}

fn from_string<T: Unit>(text: Text<'_, T>, uuid: Out<'_, Guid>) -> i32 {
    let parsed = match text.read() {
        Some(text) => Guid::parse(&text),
        None => Some(NIL),
    };
    match parsed {
        Some(parsed) if !uuid.is_null() => {
            uuid.put(parsed);
            RPC_S_OK
        }
        _ => RPC_S_INVALID_STRING_UUID,
    }
}

/// # Safety
/// What `text` holds is NULL or of [`to_string`].
unsafe fn free_string<T>(text: InOut<'_, *mut T>) -> i32 {
    if let Some(block) = text.read() {
        text.put(std::ptr::null_mut());
        // SAFETY: NULL, or from `malloc` by `to_string`.
        unsafe { libc::free(block.cast::<c_void>()) };
    }
    RPC_S_OK
}

narrow_and_wide! {
    "`UuidToString`: in small letters; the text goes back to `RpcStringFree`."
    ndw_UuidToStringA ndw_UuidToStringW = to_string(uuid: In<'_, Guid>, result: Out<'_, *mut T>) -> i32;
    "`UuidFromString`."
    ndw_UuidFromStringA ndw_UuidFromStringW = from_string(text: Text<'_, T>, uuid: Out<'_, Guid>) -> i32;
    "`RpcStringFree`."
    ndw_RpcStringFreeA ndw_RpcStringFreeW = unsafe free_string(text: InOut<'_, *mut T>) -> i32;
}

/// `StringFromGUID2`: in braces and capitals; the number of characters with the NUL, 0 if there is no room for them.
///
/// # Safety
/// `buffer` is NULL or has room for `size` characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_StringFromGUID2(guid: In<'_, Guid>, buffer: *mut Wchar, size: i32) -> i32 {
    let Some(guid) = guid.read() else { return 0 };
    let text = text::to_wide(&format!("{{{}}}", guid.spell(true)));
    // SAFETY: the buffer is NULL or has so many units.
    let stored = unsafe { text::store(&text, buffer, size.max(0) as usize) };
    if stored { text.len() as i32 + 1 } else { 0 }
}

/// Text in braces to an identifier: of a class (`CLSIDFromString`) or of an interface.
fn from_braces(text: Text<'_, Wchar>, guid: Out<'_, Guid>, refused: i32) -> i32 {
    if guid.is_null() {
        return E_INVALIDARG;
    }
    let (value, status) = match text.read() {
        None => (NIL, S_OK),
        Some(text) => {
            let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            inner.and_then(Guid::parse).map_or((NIL, refused), |guid| (guid, S_OK))
        }
    };
    guid.put(value);
    status
}

/// `CLSIDFromString`: program ids are not supported, as there is no registry.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CLSIDFromString(text: Text<'_, Wchar>, guid: Out<'_, Guid>) -> i32 {
    from_braces(text, guid, CO_E_CLASSSTRING)
}

/// `IIDFromString`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_IIDFromString(text: Text<'_, Wchar>, guid: Out<'_, Guid>) -> i32 {
    from_braces(text, guid, E_INVALIDARG)
}

/// `CoCreateGuid`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CoCreateGuid(guid: Out<'_, Guid>) -> i32 {
    if guid.is_null() {
        return E_POINTER;
    }
    if ndw_UuidCreate(guid) == RPC_S_OK { S_OK } else { E_FAIL }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null_mut;

    const TEXT: &str = "89abcdef-0123-4567-89ab-cdef01234567";
    const GUID: Guid = Guid {
        data1: 0x89ab_cdef,
        data2: 0x0123,
        data3: 0x4567,
        data4: [0x89, 0xab, 0xcd, 0xef, 1, 0x23, 0x45, 0x67],
    };

    #[test]
    fn new_identifiers_differ_and_say_how_they_were_made() {
        let (mut a, mut b) = (NIL, NIL);
        assert_eq!((ndw_UuidCreate((&mut a).into()), ndw_CoCreateGuid((&mut b).into())), (RPC_S_OK, S_OK));
        assert_ne!(a, b);
        assert_eq!((a.data3 >> 12, a.data4[0] >> 6), (4, 2));
        assert_eq!((ndw_UuidIsNil((&a).into(), Out::NULL), ndw_UuidIsNil((&NIL).into(), Out::NULL)), (0, 1));
        assert_eq!(ndw_CoCreateGuid(Out::NULL), E_POINTER);
        assert_eq!((ndw_UuidCreateNil((&mut a).into()), a), (RPC_S_OK, NIL));
    }

    #[test]
    fn identifiers_are_ordered_field_by_field() {
        let mut status = 7;
        let larger = Guid { data1: GUID.data1 + 1, data2: 0, ..GUID };
        let last = Guid { data4: [0x89, 0xab, 0xcd, 0xef, 1, 0x23, 0x45, 0x68], ..GUID };
        assert_eq!(
            (ndw_UuidCompare((&GUID).into(), (&larger).into(), (&mut status).into()), status),
            (-1, RPC_S_OK)
        );
        assert_eq!(ndw_UuidCompare((&last).into(), (&GUID).into(), (&mut status).into()), 1);
        assert_eq!(ndw_UuidCompare((&GUID).into(), (&GUID).into(), Out::NULL), 0);
        assert_eq!(
            (
                ndw_UuidCompare(In::NULL, (&NIL).into(), (&mut status).into()),
                ndw_UuidCompare(In::NULL, (&GUID).into(), (&mut status).into())
            ),
            (0, -1)
        );
        assert_eq!(
            (
                ndw_UuidEqual((&GUID).into(), (&GUID).into(), (&mut status).into()),
                ndw_UuidEqual((&GUID).into(), (&last).into(), (&mut status).into())
            ),
            (1, 0)
        );
    }

    #[test]
    fn identifiers_as_text() {
        let mut buffer = [9 as Wchar; 39];
        let braced = format!("{{{}}}", TEXT.to_uppercase());
        let mut read = NIL;
        // SAFETY: the room told is there, strings are terminated or NULL.
        unsafe {
            assert_eq!(ndw_StringFromGUID2((&GUID).into(), buffer.as_mut_ptr(), 39), 39);
            assert_eq!(buffer[..], w(&braced)[..]);
            assert_eq!(ndw_StringFromGUID2((&GUID).into(), buffer.as_mut_ptr(), 38), 0);
            assert_eq!(ndw_StringFromGUID2((&GUID).into(), null_mut(), 39), 0);
            assert_eq!(
                (ndw_CLSIDFromString(Text::terminated(&w(&braced)), (&mut read).into()), read),
                (S_OK, GUID)
            );
            for wrong in [TEXT, "{}", "", &braced[..37], "{89abcdef-0123-4567-89ab-cdef0123456g}"] {
                assert_eq!(
                    (ndw_CLSIDFromString(Text::terminated(&w(wrong)), (&mut read).into()), read),
                    (CO_E_CLASSSTRING, NIL)
                );
                assert_eq!(ndw_IIDFromString(Text::terminated(&w(wrong)), (&mut read).into()), E_INVALIDARG);
            }
            assert_eq!((ndw_IIDFromString(Text::NULL, (&mut read).into()), read), (S_OK, NIL));
            assert_eq!(ndw_IIDFromString(Text::NULL, Out::NULL), E_INVALIDARG);

            let mut text: *mut u8 = null_mut();
            assert_eq!(to_string((&GUID).into(), (&mut text).into()), RPC_S_OK);
            assert_eq!(std::ffi::CStr::from_ptr(text.cast()).to_str(), Ok(TEXT));
            assert_eq!((from_string(Text::terminated(&w(TEXT)), (&mut read).into()), read), (RPC_S_OK, GUID));
            assert_eq!((free_string((&mut text).into()), text), (RPC_S_OK, null_mut()));
            assert_eq!(
                from_string(Text::terminated(&w(&braced)), (&mut read).into()),
                RPC_S_INVALID_STRING_UUID
            );
            assert_eq!((from_string::<u8>(Text::NULL, (&mut read).into()), read), (RPC_S_OK, NIL));
            assert_eq!(to_string::<u8>((&GUID).into(), Out::NULL), ERROR_INVALID_PARAMETER as i32);
        }
    }
}
