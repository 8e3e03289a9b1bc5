//! Names of objects.

use super::*;
use crate::api::file_mapping::{ndw_CreateFileMappingA, ndw_OpenFileMappingA};
use crate::api::mutex::*;
use crate::api::semaphore::*;
use crate::arguments::Text;
use crate::text::w;
use std::ffi::CStr;

fn named_event(name: &CStr) -> RawHandle {
    ndw_CreateEventA(null(), 1, 0, name.into())
}

#[test]
fn the_same_name_is_the_same_object() {
    let first = named_event(c"ndcompat test: same");
    assert_eq!(last_error(), ERROR_SUCCESS);
    // What the second asks for in other respects does not matter.
    let (second, third) = {
        let second = ndw_CreateEventW(null(), 0, 1, Text::terminated(&w("ndcompat test: same")));
        assert_eq!(last_error(), ERROR_ALREADY_EXISTS);
        (second, ndw_OpenEventA(0, 0, c"Local\\ndcompat test: same".into()))
    };
    assert!(first != second && second != third);
    assert_eq!(wait(second, 0), WAIT_TIMEOUT);
    ndw_SetEvent(second);
    assert_eq!([first, second, third].map(|event| wait(event, 0)), [0; 3]);
    [first, second, third].into_iter().for_each(close);
    // With the last handle the name is free again.
    let fourth = named_event(c"ndcompat test: same");
    assert_eq!((last_error(), wait(fourth, 0)), (ERROR_SUCCESS, WAIT_TIMEOUT));
    close(fourth);
}

#[test]
fn all_kinds_of_objects_share_one_space_of_names() {
    // Sections are known to other processes, too.
    let [plain, local, global, capitals] = ["kinds", "Local\\kinds", "Global\\kinds", "KINDS"].map(|name| {
        std::ffi::CString::new(format!("{name} of ndcompat's test {}", std::process::id())).unwrap()
    });
    let event = named_event(&plain);
    let name = (&*plain).into();
    for handle in [
        ndw_CreateSemaphoreA(null(), 0, 1, name),
        ndw_CreateMutexA(null(), 0, name),
        ndw_OpenSemaphoreA(0, 0, name),
        ndw_OpenMutexA(0, 0, name),
    ] {
        assert_eq!((handle, last_error()), (RawHandle::NULL, ERROR_INVALID_HANDLE));
    }
    // Case matters, and so does the space.
    for other in [capitals, global] {
        assert_eq!(ndw_OpenEventA(0, 0, (&*other).into()), RawHandle::NULL);
        assert_eq!(last_error(), ERROR_FILE_NOT_FOUND);
    }
    let (file, size) = (RawHandle::INVALID, 4096);
    assert_eq!(ndw_CreateFileMappingA(file, null(), 4, 0, size, name), RawHandle::NULL);
    assert_eq!(last_error(), ERROR_INVALID_HANDLE);
    close(event);
    let section = ndw_CreateFileMappingA(file, null(), 4, 0, size, name);
    assert_eq!(last_error(), ERROR_SUCCESS);
    for event in [named_event(&local), ndw_OpenEventA(0, 0, name)] {
        assert_eq!((event, last_error()), (RawHandle::NULL, ERROR_INVALID_HANDLE));
    }
    close(section);
    close(named_event(&plain));
}

#[test]
fn a_sections_name_is_taken_until_the_last_handle_of_it_is_closed() {
    let name = std::ffi::CString::new(format!("section of ndcompat's test {}", std::process::id())).unwrap();
    let create = || ndw_CreateFileMappingA(RawHandle::INVALID, null(), 4, 0, 4096, (&*name).into());
    let event = || (named_event(&name), last_error());
    let refused = (RawHandle::NULL, ERROR_INVALID_HANDLE);
    let (first, second) = (create(), create());
    assert_eq!((last_error(), event()), (ERROR_ALREADY_EXISTS, refused));
    close(second);
    assert_eq!(event(), refused);
    let opened = ndw_OpenFileMappingA(4, 0, (&*name).into());
    assert_ne!(opened, RawHandle::NULL);
    close(first);
    assert_eq!(event(), refused);
    close(opened);
    let (event, code) = event();
    assert_eq!(code, ERROR_SUCCESS);
    close(event);
}

#[test]
fn names_that_cannot_be_are_refused() {
    let long = std::ffi::CString::new("x".repeat(260)).unwrap();
    for (name, error) in
        [(c"ndcompat\\test", ERROR_PATH_NOT_FOUND), (long.as_c_str(), ERROR_FILENAME_EXCED_RANGE)]
    {
        assert_eq!((named_event(name), last_error()), (RawHandle::NULL, error));
    }
    assert_eq!(ndw_OpenMutexW(0, 0, Text::NULL), RawHandle::NULL);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    assert_eq!(ndw_OpenSemaphoreW(0, 0, Text::terminated(&w(""))), RawHandle::NULL);
    assert_eq!(last_error(), ERROR_INVALID_NAME);
    assert_eq!(
        ndw_OpenEventW(0, 0, Text::terminated(&w("ndcompat test: nobody made this"))),
        RawHandle::NULL
    );
    assert_eq!(last_error(), ERROR_FILE_NOT_FOUND);
}

#[test]
fn a_named_mutex_that_exists_is_not_taken_by_its_creator() {
    let first = ndw_CreateMutexA(null(), 0, c"ndcompat test: mutex".into());
    let second = ndw_CreateMutexA(null(), 1, c"ndcompat test: mutex".into());
    assert_eq!(last_error(), ERROR_ALREADY_EXISTS);
    assert_eq!(code(ndw_ReleaseMutex(second)), ERROR_NOT_OWNER);
    // Taken by one handle, released by another.
    let third = ndw_OpenMutexW(0, 0, Text::terminated(&w("ndcompat test: mutex")));
    assert_eq!((wait(first, 0), ndw_ReleaseMutex(third)), (0, 1));
    assert_eq!(code(ndw_ReleaseMutex(first)), ERROR_NOT_OWNER);
    [first, second, third].into_iter().for_each(close);
}

#[test]
fn a_pulse_ends_the_waits_that_are_there() {
    let event = event(1, 0);
    let waiters = [(); 2].map(|()| std::thread::spawn(move || wait(event, LONG)));
    while !waiters.iter().all(|waiter| waiter.is_finished()) {
        assert_eq!(ndw_PulseEvent(event), 1);
        std::thread::yield_now();
    }
    assert_eq!(waiters.map(|waiter| waiter.join().unwrap()), [0, 0]);
    assert_eq!(wait(event, 0), WAIT_TIMEOUT);
    close(event);
    assert_eq!(code(ndw_PulseEvent(event)), ERROR_INVALID_HANDLE);
}
