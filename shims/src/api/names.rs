//! `GetComputerName`, `GetComputerNameEx`, `GetUserName`.

use crate::arguments::InOut;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::text::{self, Unit, narrow_and_wide};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// The longest NetBIOS name.
const MAX_COMPUTERNAME_LENGTH: usize = 15;

/// The name of the machine, as `hostname` shows it.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// One of the names. The domain is taken from the host name, without a look-up.
fn name(host: &str, format: u32) -> Option<String> {
    let (label, domain) = host.split_once('.').unwrap_or((host, ""));
    Some(match format {
        // NetBIOS, physical or not.
        0 | 4 => label.chars().take(MAX_COMPUTERNAME_LENGTH).collect::<String>().to_uppercase(),
        1 | 5 => label.to_owned(),
        2 | 6 => domain.to_owned(),
        3 | 7 => host.to_owned(),
        _ => return None,
    })
}

/// Writes a name to the caller's buffer: the length without the NUL, or the error `short` and the size needed.
///
/// # Safety
/// `buffer` is NULL or has room for as many units as `size` says.
unsafe fn answer<T: Unit>(name: Option<String>, buffer: *mut T, size: InOut<'_, u32>, short: u32) -> i32 {
    guard_bool(|| {
        let room = size.read().ok_or(ERROR_INVALID_PARAMETER)?;
        let name = T::spell(&name.ok_or(ERROR_INVALID_PARAMETER)?);
        if buffer.is_null() && room != 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: so much room, as the caller promises.
        let stored = unsafe { text::store(&name, buffer, room as usize) };
        size.put(name.len() as u32 + u32::from(!stored));
        if stored { Ok(()) } else { Err(short) }
    })
}

/// The name of the user whose rights the process has; the number of one who has no name.
fn user() -> String {
    let id = rustix::process::geteuid().as_raw();
    let (mut entry, mut found) = (MaybeUninit::<libc::passwd>::uninit(), null_mut());
    let mut text = vec![0u8; 1024];
    loop {
        let room = text.as_mut_ptr().cast();
        // SAFETY: places of ours, and the room that is told.
        let result = unsafe { libc::getpwuid_r(id, entry.as_mut_ptr(), room, text.len(), &mut found) };
        if result != libc::ERANGE {
            break;
        }
        text.resize(2 * text.len(), 0);
    }
    if found.is_null() {
        return id.to_string();
    }
    // SAFETY: not NULL, hence our entry, which has been filled in.
    let name = unsafe { entry.assume_init() }.pw_name;
    // SAFETY: NULL or terminated, and within our text.
    unsafe { text::string_from_narrow(name) }.unwrap_or_else(|| id.to_string())
}

/// Unlike the others it tells the size with the NUL.
///
/// # Safety
/// As for [`answer`].
unsafe fn user_name<T: Unit>(buffer: *mut T, size: InOut<'_, u32>) -> i32 {
    // SAFETY: as much room as `size` says, as the caller promises.
    let done = unsafe { answer(Some(user()), buffer, size, ERROR_INSUFFICIENT_BUFFER) };
    if done != 0 {
        size.put(size.read().map_or(0, |length| length + 1));
    }
    done
}

/// # Safety
/// As for [`answer`].
unsafe fn computer<T: Unit>(buffer: *mut T, size: InOut<'_, u32>) -> i32 {
    // SAFETY: as much room as `size` says, as the caller promises.
    unsafe { answer(name(&host(), 0), buffer, size, ERROR_BUFFER_OVERFLOW) }
}

/// # Safety
/// As for [`answer`].
unsafe fn computer_ex<T: Unit>(format: u32, buffer: *mut T, size: InOut<'_, u32>) -> i32 {
    // SAFETY: as much room as `size` says, as the caller promises.
    unsafe { answer(name(&host(), format), buffer, size, ERROR_MORE_DATA) }
}

narrow_and_wide! {
    "`GetComputerName`: the NetBIOS name, of 15 characters at most, in capitals."
    ndw_GetComputerNameA ndw_GetComputerNameW = unsafe computer(buffer: *mut T, size: InOut<'_, u32>) -> i32;
    "`GetUserName`: of the user whose rights the process has."
    ndw_GetUserNameA ndw_GetUserNameW = unsafe user_name(buffer: *mut T, size: InOut<'_, u32>) -> i32;
    "`GetComputerNameEx`."
    ndw_GetComputerNameExA ndw_GetComputerNameExW = unsafe computer_ex(format: u32, buffer: *mut T, size: InOut<'_, u32>) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_name_is_told_with_its_size() {
        let expected = std::process::Command::new("id").arg("-un").output().unwrap();
        let expected = String::from_utf8(expected.stdout).unwrap().trim_end().to_owned();
        let mut buffer = [0xFFu8; 300];
        let mut call = |room: u32| {
            let mut size = room;
            set_last_error(0);
            // SAFETY: the room told is there.
            let done = unsafe { ndw_GetUserNameA(buffer.as_mut_ptr(), InOut::from(&mut size)) };
            (done, last_error(), size, buffer[0])
        };
        let length = expected.len() as u32 + 1;
        assert_eq!(call(length - 1), (0, ERROR_INSUFFICIENT_BUFFER, length, 0xFF));
        assert_eq!(call(length), (1, 0, length, expected.as_bytes()[0]));
        assert_eq!(buffer[..length as usize - 1], *expected.as_bytes());
        let (mut size, mut wide) = (300, [0; 300]);
        // SAFETY: the room told is there.
        unsafe {
            assert_eq!(ndw_GetUserNameW(wide.as_mut_ptr(), InOut::from(&mut size)), 1);
            assert_eq!((text::string_from_wide(wide.as_ptr()), size), (Some(expected), length));
            assert_eq!(
                (ndw_GetUserNameA(null_mut(), InOut::NULL), last_error()),
                (0, ERROR_INVALID_PARAMETER)
            );
            size = 0;
            assert_eq!(ndw_GetUserNameW(null_mut(), InOut::from(&mut size)), 0);
        }
        assert_eq!((last_error(), size), (ERROR_INSUFFICIENT_BUFFER, length));
    }

    #[test]
    fn names_of_a_machine() {
        let names = |host| [0, 1, 2, 3].map(|format| name(host, format).unwrap());
        assert_eq!(
            names("node17.cluster.example"),
            ["NODE17", "node17", "cluster.example", "node17.cluster.example"]
        );
        assert_eq!(
            names("a-rather-long-name"),
            ["A-RATHER-LONG-N", "a-rather-long-name", "", "a-rather-long-name"]
        );
        assert_eq!([4, 5, 6, 7].map(|format| name("a.b", format).unwrap()), ["A", "a", "b", "a.b"]);
        assert_eq!(name("a", 8), None);
    }

    #[test]
    fn a_name_needs_its_room() {
        for (format, short) in
            [(None, ERROR_BUFFER_OVERFLOW), (Some(0), ERROR_MORE_DATA), (Some(3), ERROR_MORE_DATA)]
        {
            let mut buffer = [0xFFu8; 256];
            let call = |buffer: *mut u8, size: InOut<'_, u32>| {
                set_last_error(0);
                // SAFETY: the room told is there.
                let done = unsafe {
                    match format {
                        None => computer(buffer, size),
                        Some(format) => computer_ex(format, buffer, size),
                    }
                };
                (done, last_error())
            };
            let mut size = 0;
            assert_eq!(call(null_mut(), InOut::from(&mut size)), (0, short));
            let needed = size;
            assert_eq!(needed as usize, name(&host(), format.unwrap_or(0)).unwrap().len() + 1);
            size = needed - 1;
            assert_eq!(
                (call(buffer.as_mut_ptr(), InOut::from(&mut size)), size, buffer[0]),
                ((0, short), needed, 0xFF)
            );
            assert_eq!((call(buffer.as_mut_ptr(), InOut::from(&mut size)), size), ((1, 0), needed - 1));
            assert_eq!(buffer[size as usize], 0);
            assert_eq!(
                call(null_mut(), InOut::from(&mut size)),
                (0, ERROR_INVALID_PARAMETER),
                "{size} units of nothing"
            );
            assert_eq!(call(buffer.as_mut_ptr(), InOut::NULL), (0, ERROR_INVALID_PARAMETER));
        }
        let mut size = 0;
        // SAFETY: nothing is written.
        assert_eq!(unsafe { computer_ex::<u8>(8, null_mut(), InOut::from(&mut size)) }, 0);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    }
}
