use super::*;
use crate::text::w;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Other tests, which run meanwhile, load another library: the last `FreeLibrary` must find this one gone.
#[test]
fn a_library_is_loaded_used_and_freed() {
    // SAFETY: the names are terminated, the module is this test's own, and `cos` has the type that it is called by.
    unsafe {
        let module = ndw_LoadLibraryW(Text::terminated(&w("libm.so.6")));
        assert!(!module.is_null());
        assert_eq!(ndw_LoadLibraryExA(c"libm.so.6".into(), null_mut(), 0), module);
        let cos = ndw_GetProcAddress(module, c"cos".as_ptr());
        let cos: extern "C" fn(f64) -> f64 = std::mem::transmute(cos);
        assert_eq!(cos(0.0), 1.0);

        assert!(ndw_GetProcAddress(module, c"no_such_function".as_ptr()).is_null());
        assert_eq!(last_error(), ERROR_PROC_NOT_FOUND);
        assert!(ndw_GetProcAddress(module, 17 as *const c_char).is_null());
        assert_eq!(ndw_GetModuleHandleA(c"libm.so.6".into()), module);

        assert_eq!((ndw_FreeLibrary(module), ndw_FreeLibrary(module)), (1, 1));
        assert_eq!(ndw_FreeLibrary(module), 0);
        assert_eq!(last_error(), ERROR_MOD_NOT_FOUND);
    }
}

#[test]
fn a_library_for_rust() {
    let library = Library::load("libresolv.so.2").unwrap();
    assert!(library.function(c"__b64_ntop").is_some() && library.function(c"no_such_function").is_none());
    assert!(Library::load("no-such-library.dll").is_err());
}

#[test]
fn what_cannot_be_loaded() {
    let text = std::env::current_dir().unwrap().join("Cargo.toml");
    // SAFETY: the names are terminated or NULL, and nothing is loaded that would run.
    unsafe {
        for (name, error) in [
            ("no-such-library.dll", ERROR_MOD_NOT_FOUND),
            ("", ERROR_INVALID_PARAMETER),
            (text.to_str().unwrap(), ERROR_BAD_EXE_FORMAT),
        ] {
            assert!(ndw_LoadLibraryW(Text::terminated(&w(name))).is_null());
            assert_eq!(last_error(), error, "{name}");
        }
        assert!(ndw_LoadLibraryA(Text::NULL).is_null());
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        assert!(ndw_LoadLibraryExW(Text::terminated(&w("libm.so.6")), null_mut(), 2).is_null());
        assert_eq!(last_error(), ERROR_NOT_SUPPORTED);
        assert!(ndw_GetModuleHandleW(Text::terminated(&w("no-such-library"))).is_null());
        assert!(ndw_GetProcAddress(0x1234 as Module, c"cos".as_ptr()).is_null());
        assert_eq!(last_error(), ERROR_MOD_NOT_FOUND);
        assert_eq!(ndw_FreeLibrary(0x1234 as Module), 0);
        assert_eq!(last_error(), ERROR_MOD_NOT_FOUND);
        assert_eq!(ndw_FreeLibrary(null_mut()), 0);
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
    }
}

#[test]
fn windows_names_lead_to_linux_libraries() {
    assert_eq!(candidates("nd.dll"), ["nd.dll", "nd.so", "libnd.so"]);
    assert_eq!(candidates("C:\\x\\nd"), ["C:/x/nd", "C:/x/nd.so", "C:/x/libnd.so"]);
    assert_eq!(candidates("libnd.so.1"), ["libnd.so.1"]);
}

#[test]
fn a_library_beside_the_program_is_found_by_its_base_name() {
    let _other = Library::load("libresolv.so.2").unwrap();
    let any = loaded_paths().into_iter().find(|path| path.contains("/libresolv.")).unwrap();
    let program = std::env::current_exe().unwrap();
    let beside = program.with_file_name(format!("libbeside{}.so", std::process::id()));
    let name = format!("Beside{}.dll", std::process::id()).to_lowercase();
    assert!(Library::load(&name).is_err());
    std::fs::copy(any, &beside).unwrap();
    let found = Library::load(&name);
    std::fs::remove_file(beside).unwrap();
    assert!(found.is_ok_and(|library| library.function(c"__b64_ntop").is_some()));
}

#[test]
fn a_loaded_module_is_meant_by_its_base_name_without_case() {
    let paths =
        ["linux-vdso.so.1", "/a/libOne.so", "/b/one.so", "/b/Two.dll", "/c/three.so.1"].map(String::from);
    let find = |name: &str| loaded_as(name, &paths);
    for (name, path) in [
        ("one.dll", "/b/one.so"),
        ("ONE", "/b/one.so"),
        ("LibOne.dll", "/a/libOne.so"),
        ("libone.so", "/a/libOne.so"),
        ("two", "/b/Two.dll"),
        ("TWO.DLL", "/b/Two.dll"),
        ("Three.so.1", "/c/three.so.1"),
    ] {
        assert_eq!(find(name).as_deref(), Some(path), "{name}");
    }
    for name in ["", "three", "three.dll", "two.so", "b/one.dll", "/a/one.so", "b\\one"] {
        assert_eq!(find(name), None, "{name}");
    }
}

/// In a process of its own: the copy has the name of another library, by which the loader would take it for that.
#[test]
fn a_library_loaded_by_its_path_is_found_by_its_name() {
    crate::alone::run("library::tests::what_is_loaded_by_its_path_has_a_name");
}

#[test]
#[ignore = "the test above runs it"]
fn what_is_loaded_by_its_path_has_a_name() {
    let original = ndw_LoadLibraryA(c"libanl.so.1".into());
    let mut name = [0u8; 4096];
    // SAFETY: there is room for 4096 bytes, and nothing of the library is used.
    let length = unsafe {
        let length = ndw_GetModuleFileNameA(original, name.as_mut_ptr().cast(), 4096);
        ndw_FreeLibrary(original);
        length as usize
    };
    let folder = std::env::temp_dir().join(format!("ndcompat-plug-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("libndPlug.so");
    std::fs::copy(std::str::from_utf8(&name[..length]).unwrap(), &file).unwrap();

    let asked = w(folder.join("ndPlug.dll").to_str().unwrap());
    let module = ndw_LoadLibraryW(Text::terminated(&asked));
    assert!(!module.is_null());
    let mut found = null_mut();
    for name in [c"ndplug.dll", c"ndplug", c"NDPLUG.DLL", c"libndplug.so", c"libNdPlug.dll"] {
        assert_eq!(ndw_GetModuleHandleA(name.into()), module, "{name:?}");
        // SAFETY: a terminated name.
        let done = unsafe {
            get_module_handle_ex(UNCHANGED_REFCOUNT, name.as_ptr().cast::<u8>(), Out::from(&mut found))
        };
        assert_eq!((done, found), (1, module), "{name:?}");
    }
    // SAFETY: there is room for 4096 bytes.
    let length = unsafe { ndw_GetModuleFileNameA(module, name.as_mut_ptr().cast(), 4096) } as usize;
    assert_eq!(Path::new(OsStr::from_bytes(&name[..length])), file.canonicalize().unwrap());
    // A base name means what is loaded, also where a search would find another file.
    let namesake = folder.join("libresolv.so.2");
    std::fs::copy(&file, &namesake).unwrap();
    let path = w(namesake.to_str().unwrap());
    let loaded = ndw_LoadLibraryW(Text::terminated(&path));
    assert!(!loaded.is_null() && loaded != module);
    assert_eq!(ndw_LoadLibraryA(c"libresolv.so.2".into()), loaded);
    // Of all these, only the loading counts, and one that asks for a reference.
    assert_eq!(ndw_LoadLibraryA(c"ndplug".into()), module);
    // SAFETY: nothing of it is used.
    let free = || unsafe { ndw_FreeLibrary(module) };
    assert_eq!((free(), free()), (1, 1));
    assert_eq!((free(), last_error()), (0, ERROR_MOD_NOT_FOUND));
    assert!(ndw_GetModuleHandleA(c"ndplug.dll".into()).is_null(), "it is unloaded");
    // SAFETY: a terminated name.
    assert!(unsafe { ndw_GetProcAddress(module, c"getaddrinfo_a".as_ptr()) }.is_null());
    assert_eq!(last_error(), ERROR_MOD_NOT_FOUND);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn system_modules_are_this_runtime() {
    assert!(is_system_module("KERNEL32.DLL") && is_system_module("C:\\Windows\\System32\\ntdll"));
    assert!(is_system_module("api-ms-win-core-synch-l1-2-0.dll") && !is_system_module("kernel.dll"));
    assert!(is_system_module("ext-ms-win-ntuser-window-l1-1-0.dll") && is_system_module("PsApi.DLL"));
    let module = ndw_GetModuleHandleW(Text::terminated(&w("ntdll.dll")));
    assert!(!module.is_null());
    for name in "iphlpapi psapi bcrypt bcryptprimitives winmm ole32 combase rpcrt4 dnsapi shell32 user32 dbghelp wsock32".split(' ') {
        assert_eq!(ndw_GetModuleHandleW(Text::terminated(&w(name))), module, "{name}");
    }
    assert_eq!(ndw_LoadLibraryA(c"kernel32".into()), module);
    // SAFETY: nothing of it is used.
    assert_eq!(unsafe { ndw_FreeLibrary(module) }, 1);
}

/// In a process of its own: the copy has the name of another library, by which the loader would take it for that.
#[test]
fn a_path_means_the_programs_own_library_before_windows() {
    crate::alone::run("library::tests::a_library_named_as_one_of_windows");
}

#[test]
#[ignore = "the test above runs it"]
fn a_library_named_as_one_of_windows() {
    let original = Library::load("libresolv.so.2").unwrap();
    let any = loaded_paths().into_iter().find(|path| path.contains("/libresolv.")).unwrap();
    let file = std::env::temp_dir().join(format!("ndcompat-own-{}", std::process::id())).join("bcrypt.dll");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::copy(any, &file).unwrap();
    let own = Library::load(file.to_str().unwrap()).unwrap();
    let [ours, of_windows] =
        ["bcrypt.dll", "C:\\Windows\\System32\\bcrypt.dll"].map(|name| Library::load(name).unwrap());
    assert!(own.0 != original.0 && own.0 != ours.0 && own.function(c"__b64_ntop").is_some());
    assert_eq!(of_windows.0, ours.0);
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn file_names() {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let name = Path::new(&program).file_name().unwrap().to_str().unwrap().to_uppercase();
    for name in [name.clone(), name + ".exe"] {
        assert_eq!(
            ndw_GetModuleHandleW(Text::terminated(&w(&name))),
            ndw_GetModuleHandleA(Text::NULL),
            "{name}"
        );
        assert!(ndw_LoadLibraryW(Text::terminated(&w(&name))).is_null());
    }
    let mut buffer = [0; 4096];
    // SAFETY: both buffers have 4096 units, no call is told of more, and the module is loaded until it is freed.
    unsafe {
        let length = ndw_GetModuleFileNameW(null_mut(), buffer.as_mut_ptr(), 4096);
        assert_eq!(text::from_wide(&buffer[..length as usize]), program);
        assert_eq!(ndw_GetModuleFileNameW(null_mut(), buffer.as_mut_ptr(), 5), 5);
        assert_eq!((last_error(), buffer[4]), (ERROR_INSUFFICIENT_BUFFER, 0));
        assert_eq!(ndw_GetModuleFileNameW(null_mut(), buffer.as_mut_ptr(), 4096), length);
        assert_eq!(last_error(), ERROR_SUCCESS, "the earlier error is gone");

        let module = ndw_LoadLibraryA(c"libresolv.so.2".into());
        let mut narrow = [0u8; 4096];
        let length = ndw_GetModuleFileNameA(module, narrow.as_mut_ptr().cast(), 4096);
        let name = std::str::from_utf8(&narrow[..length as usize]).unwrap();
        assert!(name.starts_with('/') && name.contains("libresolv"), "{name}");
        ndw_FreeLibrary(module);
        assert_eq!(ndw_GetModuleFileNameA(0x1234 as Module, narrow.as_mut_ptr().cast(), 4096), 0);
        assert_eq!(last_error(), ERROR_MOD_NOT_FOUND);
    }
}

#[test]
fn a_module_handle_counts_unless_told_not_to() {
    let mut module = null_mut();
    let mut get = |flags: u32, name: *const u8| {
        // SAFETY: terminated names, or addresses.
        let done = unsafe { get_module_handle_ex(flags, name, Out::from(&mut module)) };
        (done == 1, if done == 1 { 0 } else { last_error() }, module)
    };
    let name = c"libutil.so.1".as_ptr().cast();
    let loaded = ndw_LoadLibraryA(c"libutil.so.1".into());
    assert_eq!(get(0, name), (true, 0, loaded));
    assert_eq!(get(UNCHANGED_REFCOUNT, name), (true, 0, loaded));
    // Loaded once and counted once: freed twice, and not a third time.
    // SAFETY: nothing of it is used.
    let free = || unsafe { ndw_FreeLibrary(loaded) };
    assert_eq!((free(), free()), (1, 1));
    assert_eq!((free(), last_error()), (0, ERROR_MOD_NOT_FOUND));
    let here = a_module_handle_counts_unless_told_not_to as *const () as *const u8;
    let program = get(UNCHANGED_REFCOUNT, std::ptr::null());
    assert_eq!(get(UNCHANGED_REFCOUNT | FROM_ADDRESS, here), program);
    let library = get(UNCHANGED_REFCOUNT | FROM_ADDRESS, libc::sysconf as *const () as *const u8);
    assert!(library.0 && library.2 != program.2);
    assert_eq!(get(PIN | UNCHANGED_REFCOUNT, name), (false, ERROR_INVALID_PARAMETER, null_mut()));
    assert_eq!(get(8, name), (false, ERROR_INVALID_PARAMETER, null_mut()));
    assert_eq!(get(0, c"none-such.dll".as_ptr().cast()), (false, ERROR_MOD_NOT_FOUND, null_mut()));
    assert_eq!(get(FROM_ADDRESS, 64 as *const u8), (false, ERROR_MOD_NOT_FOUND, null_mut()));
    // SAFETY: nothing is written.
    assert_eq!(unsafe { get_module_handle_ex::<u8>(0, std::ptr::null(), Out::NULL) }, 0);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
}
