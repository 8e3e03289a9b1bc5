//! Contexts of cryptographic providers, for random numbers alone: `CryptAcquireContext`, `CryptGenRandom`, `CryptReleaseContext`.

use super::random::fill_for_caller;
use crate::arguments::{Out, Text};
use crate::boundary::guard_bool;
use crate::error::*;
use crate::object::{RawHandle, callbacks};
use crate::text::{Unit, narrow_and_wide};
use std::sync::Arc;

const RSA_FULL: u32 = 1;
const RSA_AES: u32 = 24;
/// `MAXPROVTYPES`.
const MOST_TYPES: u32 = 999;

/// The providers that Windows has of these types. Their random numbers are the system's, and so are all here.
const PROVIDERS: [(&str, u32); 4] = [
    ("Microsoft Base Cryptographic Provider v1.0", RSA_FULL),
    ("Microsoft Enhanced Cryptographic Provider v1.0", RSA_FULL),
    ("Microsoft Strong Cryptographic Provider", RSA_FULL),
    ("Microsoft Enhanced RSA and AES Cryptographic Provider", RSA_AES),
];

const NEW_KEYSET: u32 = 0x8;
const DELETE_KEYSET: u32 = 0x10;
const MACHINE_KEYSET: u32 = 0x20;
const SILENT: u32 = 0x40;
const VERIFY_CONTEXT: u32 = 0xF000_0000;

/// The object of a context's handle.
struct Context;

/// Whether there is such a provider.
fn check_provider(name: Option<&str>, kind: u32) -> Result<(), u32> {
    if kind == 0 || kind > MOST_TYPES {
        return Err(NTE_BAD_PROV_TYPE);
    }
    match name.filter(|name| !name.is_empty()) {
        None if kind == RSA_FULL || kind == RSA_AES => Ok(()),
        None => Err(NTE_PROV_TYPE_NOT_DEF),
        Some(name) => match PROVIDERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            None => Err(NTE_KEYSET_NOT_DEF),
            Some((_, of)) if *of != kind => Err(NTE_PROV_TYPE_NO_MATCH),
            Some(_) => Ok(()),
        },
    }
}

/// There are no keys, so that of the flags only `CRYPT_VERIFYCONTEXT` leads to a context.
fn check_flags(container: Option<&str>, flags: u32) -> Result<(), u32> {
    let known = VERIFY_CONTEXT | NEW_KEYSET | DELETE_KEYSET | MACHINE_KEYSET | SILENT;
    let action = flags & !(MACHINE_KEYSET | SILENT);
    match action {
        _ if flags & !known != 0 => Err(NTE_BAD_FLAGS),
        VERIFY_CONTEXT if container.is_some_and(|container| !container.is_empty()) => Err(NTE_BAD_FLAGS),
        VERIFY_CONTEXT => Ok(()),
        0 | DELETE_KEYSET => Err(NTE_BAD_KEYSET),
        NEW_KEYSET => Err(NTE_PERM),
        _ => Err(NTE_BAD_FLAGS),
    }
}

fn acquire<T: Unit>(
    context: Out<'_, RawHandle>,
    container: Text<'_, T>,
    provider: Text<'_, T>,
    kind: u32,
    flags: u32,
) -> i32 {
    guard_bool(|| {
        let context = context.required(ERROR_INVALID_PARAMETER)?;
        context.put(RawHandle::NULL);
        check_provider(provider.read().as_deref(), kind)?;
        check_flags(container.read().as_deref(), flags)?;
        context.put(callbacks::open(Arc::new(Context))?);
        Ok(())
    })
}

narrow_and_wide! {
    "`CryptAcquireContext`: with `CRYPT_VERIFYCONTEXT` only."
    ndw_CryptAcquireContextA ndw_CryptAcquireContextW = acquire(
        context: Out<'_, RawHandle>,
        container: Text<'_, T>,
        provider: Text<'_, T>,
        kind: u32,
        flags: u32,
    ) -> i32;
}

/// `CryptReleaseContext`. Flags are an error, but it is released.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CryptReleaseContext(context: RawHandle, flags: u32) -> i32 {
    guard_bool(|| {
        callbacks::take::<Context>(context).map_err(|_| ERROR_INVALID_PARAMETER)?;
        if flags == 0 { Ok(()) } else { Err(NTE_BAD_FLAGS) }
    })
}

/// `CryptGenRandom`: the kernel's.
///
/// # Safety
/// `buffer` must be NULL or have room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CryptGenRandom(context: RawHandle, length: u32, buffer: *mut u8) -> i32 {
    guard_bool(|| {
        callbacks::get::<Context>(context).map_err(|_| ERROR_INVALID_PARAMETER)?;
        match (buffer.is_null(), length) {
            (_, 0) => Ok(()),
            (true, _) => Err(ERROR_INVALID_PARAMETER),
            // SAFETY: not NULL, and the program says that `length` is its size.
            (false, _) => unsafe { fill_for_caller(buffer, length) },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null_mut;

    /// A context, or the error.
    fn context(container: &str, provider: Option<&str>, kind: u32, flags: u32) -> Result<RawHandle, u32> {
        let mut context = RawHandle::INVALID;
        let (container, provider) = (w(container), provider.map(w));
        let provider = provider.as_deref().map_or(Text::NULL, Text::terminated);
        let place = Out::from(&mut context);
        match ndw_CryptAcquireContextW(place, Text::terminated(&container), provider, kind, flags) {
            1 => Ok(context),
            _ => {
                assert_eq!(context, RawHandle::NULL);
                Err(last_error())
            }
        }
    }

    #[test]
    fn a_context_gives_random_numbers_until_it_is_released() {
        let (mut one, mut other) = ([0u8; 64], [0u8; 64]);
        let narrow = c"Microsoft Base Cryptographic Provider v1.0";
        for kind in [RSA_FULL, RSA_AES] {
            let context = context("", None, kind, VERIFY_CONTEXT | SILENT | MACHINE_KEYSET).unwrap();
            // SAFETY: there is so much room.
            unsafe {
                assert_eq!(ndw_CryptGenRandom(context, 64, one.as_mut_ptr()), 1);
                assert_eq!(ndw_CryptGenRandom(context, 63, other.as_mut_ptr()), 1);
                assert!(one[..63] != other[..63] && other[..63] != [0; 63] && other[63] == 0);
                assert_eq!(ndw_CryptGenRandom(context, 0, null_mut()), 1);
                assert_eq!(
                    (ndw_CryptGenRandom(context, 1, null_mut()), last_error()),
                    (0, ERROR_INVALID_PARAMETER)
                );
                assert_eq!(ndw_CryptReleaseContext(context, 0), 1);
                assert_eq!(
                    (ndw_CryptGenRandom(context, 1, &mut one[0]), last_error()),
                    (0, ERROR_INVALID_PARAMETER)
                );
            }
            assert_eq!((ndw_CryptReleaseContext(context, 0), last_error()), (0, ERROR_INVALID_PARAMETER));
        }
        let mut context = RawHandle::NULL;
        let place = Out::from(&mut context);
        assert_eq!(ndw_CryptAcquireContextA(place, Text::NULL, narrow.into(), RSA_FULL, VERIFY_CONTEXT), 1);
        // Flags are an error of a release that is done.
        assert_eq!((ndw_CryptReleaseContext(context, 1), last_error()), (0, NTE_BAD_FLAGS));
        for flags in [0, 1] {
            assert_eq!((ndw_CryptReleaseContext(context, flags), last_error()), (0, ERROR_INVALID_PARAMETER));
        }
        assert_eq!((ndw_CryptReleaseContext(RawHandle::NULL, 1), last_error()), (0, ERROR_INVALID_PARAMETER));
    }

    #[test]
    fn a_context_with_keys_and_of_an_unknown_provider_is_refused() {
        let base = Some("Microsoft Base Cryptographic Provider v1.0");
        for (container, provider, kind, flags, code) in [
            ("", None, 0, VERIFY_CONTEXT, NTE_BAD_PROV_TYPE),
            ("", None, 1000, VERIFY_CONTEXT, NTE_BAD_PROV_TYPE),
            ("", None, 999, VERIFY_CONTEXT, NTE_PROV_TYPE_NOT_DEF),
            ("", Some("none such"), RSA_FULL, VERIFY_CONTEXT, NTE_KEYSET_NOT_DEF),
            ("", base, RSA_AES, VERIFY_CONTEXT, NTE_PROV_TYPE_NO_MATCH),
            ("name", None, RSA_FULL, VERIFY_CONTEXT, NTE_BAD_FLAGS),
            ("", None, RSA_FULL, VERIFY_CONTEXT | 1, NTE_BAD_FLAGS),
            ("", None, RSA_FULL, VERIFY_CONTEXT | NEW_KEYSET, NTE_BAD_FLAGS),
            ("", None, RSA_FULL, 0, NTE_BAD_KEYSET),
            ("name", base, RSA_FULL, MACHINE_KEYSET, NTE_BAD_KEYSET),
            ("name", None, RSA_FULL, DELETE_KEYSET, NTE_BAD_KEYSET),
            ("name", None, RSA_FULL, NEW_KEYSET, NTE_PERM),
        ] {
            assert_eq!(
                context(container, provider, kind, flags),
                Err(code),
                "{container} {provider:?} {kind} {flags}"
            );
        }
        let done = ndw_CryptAcquireContextW(Out::NULL, Text::NULL, Text::NULL, RSA_FULL, VERIFY_CONTEXT);
        assert_eq!((done, last_error()), (0, ERROR_INVALID_PARAMETER));
        let empty = context("", Some(""), RSA_FULL, VERIFY_CONTEXT).unwrap();
        assert_eq!(ndw_CryptReleaseContext(empty, 0), 1);
    }
}
