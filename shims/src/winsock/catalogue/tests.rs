//! The catalogue through its C functions, in folders of the tests' own.

use super::*;
use crate::text::w;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A folder that is the catalogue while this lives. The environment is everybody's, so tests take turns.
struct Catalogue {
    folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Catalogue {
    fn new() -> Catalogue {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = std::env::temp_dir().join(format!("ndcompat-catalogue-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        // SAFETY: Rust code reads the environment under std's lock, and no C code here looks for this variable.
        unsafe { std::env::set_var(folder::VARIABLE, &folder) };
        Catalogue { folder, _turn: turn }
    }

    fn write(&self, name: &str, text: &[u8]) {
        self.write_in(&self.folder, name, text);
    }

    /// A description that counts whatever the umask is.
    fn write_in(&self, folder: &Path, name: &str, text: &[u8]) {
        fs::create_dir_all(folder).unwrap();
        set_mode(folder, 0o755);
        fs::write(folder.join(name), text).unwrap();
        set_mode(&folder.join(name), 0o644);
    }
}

impl Drop for Catalogue {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        // SAFETY: Rust code reads the environment under std's lock, and no C code here looks for this variable.
        unsafe { std::env::remove_var(folder::VARIABLE) };
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn id(number: u32) -> Guid {
    Guid(number, 0, 0, [0; 8])
}

fn enumerate() -> Vec<ProtocolInfo> {
    let (mut size, mut error) = (0, 0);
    // SAFETY: targets of ours, with the sizes told.
    unsafe {
        assert_eq!(
            ndw_WSCEnumProtocols(null(), null_mut(), InOut::from(&mut size), Out::from(&mut error)),
            -1
        );
        assert_eq!(error as u32, WSAENOBUFS);
        let mut entries = vec![ProtocolInfo::network_direct(""); size as usize / SIZE];
        assert_eq!(
            ndw_WSCEnumProtocols(null(), entries.as_mut_ptr(), InOut::from(&mut size), Out::from(&mut error)),
            entries.len() as i32
        );
        entries
    }
}

/// The error of a call, 0 for success.
fn error(call: impl FnOnce(Out<'_, i32>) -> i32) -> u32 {
    let mut error = 0;
    match call(Out::from(&mut error)) {
        0 => 0,
        -1 => error as u32,
        other => panic!("{other}"),
    }
}

fn install(id: &Guid, path: &str, infos: &[ProtocolInfo]) -> u32 {
    // SAFETY: NULL, or as many entries as are told.
    error(|error| unsafe {
        ndw_WSCInstallProvider(
            id.into(),
            Text::terminated(&w(path)),
            infos.as_ptr(),
            infos.len() as u32,
            error,
        )
    })
}

fn update(id: &Guid, path: &str, infos: &[ProtocolInfo]) -> u32 {
    // SAFETY: NULL, or as many entries as are told.
    error(|error| unsafe {
        ndw_WSCUpdateProvider(
            id.into(),
            Text::terminated(&w(path)),
            infos.as_ptr(),
            infos.len() as u32,
            error,
        )
    })
}

fn deinstall(id: &Guid) -> u32 {
    error(|error| ndw_WSCDeinstallProvider(id.into(), error))
}

fn path_of(id: &Guid) -> Result<String, u32> {
    let (mut path, mut length) = ([0; 4096], 4096);
    // SAFETY: targets of ours, with the sizes told.
    unsafe {
        match error(|error| {
            ndw_WSCGetProviderPath(id.into(), path.as_mut_ptr(), InOut::from(&mut length), error)
        }) {
            0 => Ok(text::from_wide(&path[..length as usize - 1])),
            code => Err(code),
        }
    }
}

#[test]
fn the_built_in_provider_is_always_there() {
    let _catalogue = Catalogue::new();
    let [entry] = enumerate()[..] else { panic!("more than one") };
    assert_eq!((entry.provider_id, entry.spi()), (BUILT_IN, Some(Spi::V2)));
    assert_eq!(entry.catalog_entry_id, FIRST_ENTRY);
    assert_eq!(path_of(&BUILT_IN), Ok(runtime_path().unwrap()));
    let info = ProtocolInfo::network_direct("again");
    assert_eq!(install(&BUILT_IN, "/other.so", &[info]), WSAEINVAL);
    assert_eq!(update(&BUILT_IN, "/other.so", &[info]), WSANO_RECOVERY);
    assert_eq!(deinstall(&BUILT_IN), WSANO_RECOVERY);
}

#[test]
fn the_catalogue_is_asked_twice() {
    let _catalogue = Catalogue::new();
    let (mut size, mut error) = (0, 0);
    let mut found = MaybeUninit::<ProtocolInfo>::uninit();
    // SAFETY: targets of ours, with the sizes told.
    unsafe {
        assert_eq!(
            ndw_WSCEnumProtocols(null(), null_mut(), InOut::from(&mut size), Out::from(&mut error)),
            -1
        );
        assert_eq!((size as usize, error as u32), (SIZE, WSAENOBUFS));
        size -= 1;
        assert_eq!(
            ndw_WSCEnumProtocols(null(), found.as_mut_ptr(), InOut::from(&mut size), Out::from(&mut error)),
            -1
        );
        assert_eq!((size as usize, error as u32), (SIZE, WSAENOBUFS));
        assert_eq!(ndw_WSCEnumProtocols(null(), found.as_mut_ptr(), InOut::from(&mut size), Out::NULL), 1);
        assert_eq!(found.assume_init().provider_id, BUILT_IN);
        assert_eq!(
            ndw_WSCEnumProtocols([6, 0].as_ptr(), null_mut(), InOut::from(&mut size), Out::from(&mut error)),
            0
        );
        assert_eq!(ndw_WSCEnumProtocols(null(), null_mut(), InOut::NULL, Out::from(&mut error)), -1);
        assert_eq!(error as u32, WSAEFAULT);
    }
}

#[test]
fn a_provider_comes_and_goes() {
    let _catalogue = Catalogue::new();
    let mut v4 = ProtocolInfo::network_direct("Example (IPv4)");
    v4.address_family = libc::AF_INET;
    // Who installs leaves these to the catalogue.
    (v4.provider_id, v4.catalog_entry_id, v4.chain_length) = (id(99), 7, 0);
    let v6 = ProtocolInfo::network_direct("Example (IPv6)");
    assert_eq!(install(&id(1), "/usr/lib/libexample.so", &[v4, v6]), 0);
    assert_eq!(install(&id(1), "/usr/lib/libother.so", &[v6]), WSAEINVAL, "it is there");

    let entries = enumerate();
    assert_eq!(entries.len(), 3);
    let (first, second) = (entries[1], entries[2]);
    assert_eq!(first, ProtocolInfo { provider_id: id(1), catalog_entry_id: 1002, chain_length: 1, ..v4 });
    assert_eq!(second, ProtocolInfo { provider_id: id(1), catalog_entry_id: 1003, ..v6 });
    assert_eq!(path_of(&id(1)).as_deref(), Ok("/usr/lib/libexample.so"));

    assert_eq!(update(&id(2), "/usr/lib/libnew.so", &[v6]), WSAEINVAL, "it is not there");
    assert_eq!(update(&id(1), "/opt/lib/libnew.so", &[v6]), 0);
    assert_eq!((enumerate().len(), path_of(&id(1)).as_deref()), (2, Ok("/opt/lib/libnew.so")));

    assert_eq!(deinstall(&id(1)), 0);
    assert_eq!((enumerate().len(), path_of(&id(1))), (1, Err(WSAEINVAL)));
    assert_eq!(deinstall(&id(1)), WSAEINVAL);
}

#[test]
fn arguments_are_checked() {
    let catalogue = Catalogue::new();
    let info = ProtocolInfo::network_direct("x");
    let path = w("/x.so");
    // SAFETY: entries and room of the sizes told, or NULL.
    unsafe {
        let install = |id: In<'_, _>, path: Text<'_, _>, infos, count| {
            error(|error| ndw_WSCInstallProvider(id, path, infos, count, error))
        };
        assert_eq!(install(In::NULL, Text::terminated(&path), &info, 1), WSAEFAULT);
        assert_eq!(install(In::from(&id(1)), Text::NULL, &info, 1), WSAEFAULT);
        assert_eq!(install(In::from(&id(1)), Text::terminated(&path), null(), 1), WSAEFAULT);
        assert_eq!(install(In::from(&id(1)), Text::terminated(&path), &info, 0), WSAEINVAL);
        assert_eq!(install(In::from(&id(1)), Text::terminated(&w("")), &info, 1), WSAEINVAL);
        let layered = ProtocolInfo { chain_length: 2, ..info };
        assert_eq!(install(In::from(&id(1)), Text::terminated(&path), &layered, 1), WSAEINVAL);
        assert_eq!(error(|error| ndw_WSCDeinstallProvider(In::NULL, error)), WSAEFAULT);
        let mut length = 4;
        assert_eq!(
            error(|error| ndw_WSCGetProviderPath(In::NULL, null_mut(), InOut::from(&mut length), error)),
            WSAEFAULT
        );
        assert_eq!(
            error(|error| ndw_WSCGetProviderPath(In::from(&BUILT_IN), null_mut(), InOut::NULL, error)),
            WSAEFAULT
        );
        let mut room = [7; 4];
        let short = error(|error| {
            ndw_WSCGetProviderPath(In::from(&BUILT_IN), room.as_mut_ptr(), InOut::from(&mut length), error)
        });
        assert_eq!((short, room), (WSAEFAULT, [7; 4]));
        assert_eq!(length as usize, runtime_path().unwrap().len() + 1, "the length it should have");
        assert_eq!(ndw_WSCDeinstallProvider(In::from(&id(1)), Out::NULL), -1, "nobody asks why");
    }
    assert!(!catalogue.folder.exists());
}

#[test]
fn paths_that_could_lead_elsewhere_are_refused() {
    let catalogue = Catalogue::new();
    let info = ProtocolInfo::network_direct("x");
    let longest = format!("/{}", "x".repeat(258));
    for path in
        ["x.so", "./x.so", "../x.so", "%HOME%/x.so", "/%HOME%/x.so", "/x.so\n", &(longest.clone() + "x")]
    {
        assert_eq!(install(&id(1), path, &[info]), WSAEINVAL, "{path}");
    }
    assert!(!catalogue.folder.exists());
    assert_eq!(install(&id(1), &longest, &[info]), 0);
    assert_eq!(path_of(&id(1)), Ok(longest));
    assert_eq!(update(&id(1), "x.so", &[info]), WSAEINVAL);
    assert_eq!(deinstall(&id(1)), 0);
}

#[test]
fn what_is_no_character_is_refused() {
    let _catalogue = Catalogue::new();
    let info = ProtocolInfo::network_direct("x");
    for unit in [0xD800, 0xDFFF, 0x11_0000, u32::MAX] {
        let path = [u32::from('/'), unit, 0];
        let mut named = info;
        named.name[0] = unit;
        let install = |path: &[u32], info| {
            // SAFETY: references to locals: one entry, as the count says, a terminated path, and the place for the error.
            error(|error| unsafe {
                ndw_WSCInstallProvider(In::from(&id(1)), Text::terminated(path), &info, 1, error)
            })
        };
        assert_eq!(install(&path, info), WSAEINVAL, "{unit:#x}");
        assert_eq!(install(&w("/x.so"), named), WSAEINVAL, "{unit:#x}");
    }
    assert_eq!(enumerate().len(), 1);
}

#[test]
fn what_others_may_write_does_not_count() {
    let catalogue = Catalogue::new();
    assert_eq!(install(&id(1), "/x.so", &[ProtocolInfo::network_direct("x")]), 0);
    let file = catalogue.folder.join(folder::file_name(id(1)));
    for path in [&file, &catalogue.folder] {
        let good = fs::metadata(path).unwrap().permissions();
        for mode in [0o775, 0o757, 0o777, 0o1777] {
            set_mode(path, mode);
            assert_eq!(enumerate().len(), 1, "{path:?} {mode:o}");
            let [fault] = &faults()[..] else { panic!("{:?}", faults()) };
            assert_eq!(*fault, format!("{}: its group or others may write to it", path.display()));
        }
        // Nor is anything written where it would not count.
        let elsewhere = install(&id(2), "/y.so", &[ProtocolInfo::network_direct("y")]);
        assert_eq!(elsewhere, if path == &file { 0 } else { WSANO_RECOVERY });
        fs::set_permissions(path, good).unwrap();
        assert_eq!((enumerate().len(), faults().len()), (3, 0));
    }
}

#[test]
fn the_umask_has_no_say_in_who_may_read_and_write() {
    // The umask is the process's: another one decides here, so as to leave the other tests alone.
    crate::alone::run("winsock::catalogue::tests::installs_under_each_umask");
}

#[test]
#[ignore = "changes the umask of its process; the test above runs it"]
fn installs_under_each_umask() {
    for umask in [0, 0o077, 0o777] {
        let catalogue = Catalogue::new();
        let home = catalogue.folder.join("one/two");
        // SAFETY: Rust code reads the environment under std's lock, and no C code here looks for this variable.
        unsafe { std::env::set_var(folder::VARIABLE, &home) };
        fs::create_dir(&catalogue.folder).unwrap();
        // SAFETY: takes no pointer.
        let before = unsafe { libc::umask(umask) };
        let installed = install(&id(1), "/x.so", &[ProtocolInfo::network_direct("x")]);
        // SAFETY: takes no pointer.
        unsafe { libc::umask(before) };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((installed, mode(&home), mode(home.parent().unwrap())), (0, 0o755, 0o755), "{umask:o}");
        assert_eq!(mode(&home.join(folder::file_name(id(1)))), 0o644, "{umask:o}");
        assert_eq!((enumerate().len(), faults().len()), (2, 0));
    }
}

#[test]
fn where_nothing_can_be_written() {
    let catalogue = Catalogue::new();
    fs::write(&catalogue.folder, "a file in the folder's place").unwrap();
    assert_eq!(install(&id(1), "/x.so", &[ProtocolInfo::network_direct("x")]), WSANO_RECOVERY);
    assert_eq!(enumerate().len(), 1);
    assert_eq!(faults().len(), 1, "{:?}", faults());
    fs::remove_file(&catalogue.folder).unwrap();
}

#[test]
fn bad_files_are_left_out_and_named() {
    let catalogue = Catalogue::new();
    let good = format!("id = {}\nlibrary = /good.so\n", id(1));
    catalogue.write("2-good.provider", good.as_bytes());
    catalogue.write("1-bad.provider", b"id = nonsense\n");
    catalogue.write("3-binary.provider", b"\xFF\xFE\x00");
    catalogue.write("4-empty.provider", b"");
    catalogue.write("5-long.provider", &[b'#'; 70000]);
    catalogue.write("6-same-again.provider", good.replace("/good", "/other").as_bytes());
    catalogue
        .write("7-built-in.provider", good.replace(&id(1).to_string(), &BUILT_IN.to_string()).as_bytes());
    catalogue.write("README", b"not a description");
    catalogue.write(".1-2.draft", b"half written");
    let pipe = std::ffi::CString::new(catalogue.folder.join("8-pipe.provider").to_str().unwrap()).unwrap();
    // SAFETY: a terminated name.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    std::os::unix::fs::symlink("nowhere", catalogue.folder.join("9-dangling.provider")).unwrap();

    let ids: Vec<_> = enumerate().iter().map(|entry| entry.provider_id).collect();
    assert_eq!(ids, [BUILT_IN, id(1)]);
    assert_eq!(path_of(&id(1)).as_deref(), Ok("/good.so"));

    let faults = faults();
    let names: Vec<_> =
        faults.iter().map(|fault| &fault[catalogue.folder.to_str().unwrap().len() + 1..]).collect();
    assert_eq!(names[0], "1-bad.provider:1: not an identifier");
    assert!(names[1].starts_with("3-binary.provider: "), "{names:?}");
    assert_eq!(
        names[2..],
        [
            "4-empty.provider: no id",
            "5-long.provider: too long",
            "8-pipe.provider: no file",
            "9-dangling.provider: No such file or directory (os error 2)",
        ]
    );
    let mut text = [1u8; 20];
    // SAFETY: the buffers are as long as said.
    unsafe {
        let length = ndcompat_catalogue_faults(null_mut(), 0);
        assert_eq!(length, faults.iter().map(|fault| fault.len() + 1).sum::<usize>());
        assert_eq!(ndcompat_catalogue_faults(text.as_mut_ptr().cast(), text.len()), length);
    }
    assert_eq!((&text[..19], text[19]), (&faults[0].as_bytes()[..19], 0));
}

#[test]
fn earlier_folders_win() {
    let catalogue = Catalogue::new();
    for (name, library) in [("a", "/first.so"), ("b", "/second.so")] {
        let folder = catalogue.folder.join(name);
        catalogue.write_in(&folder, "x.provider", format!("id = {}\nlibrary = {library}", id(1)).as_bytes());
    }
    let folders = ["b", "missing", "a"].map(|name| catalogue.folder.join(name));
    // SAFETY: Rust code reads the environment under std's lock, and no C code here looks for this variable.
    unsafe { std::env::set_var(folder::VARIABLE, std::env::join_paths(&folders).unwrap()) };
    assert_eq!(path_of(&id(1)).as_deref(), Ok("/second.so"));
    assert_eq!(install(&id(2), "/new.so", &[ProtocolInfo::network_direct("new")]), 0);
    assert!(folders[0].join(folder::file_name(id(2))).is_file(), "it goes where the catalogue begins");
    // A relative path would mean another catalogue in each folder.
    // SAFETY: Rust code reads the environment under std's lock, and no C code here looks for this variable.
    unsafe { std::env::set_var(folder::VARIABLE, "relative:") };
    assert_eq!((folder::folders(), folder::home()), (vec![], None));
    assert_eq!(faults(), ["relative: not an absolute path"]);
    assert_eq!(install(&id(3), "/new.so", &[ProtocolInfo::network_direct("new")]), WSANO_RECOVERY);
}

#[test]
fn the_usual_folders() {
    let _catalogue = Catalogue::new();
    // SAFETY: Rust code reads the environment under std's lock, and no C code here looks for this variable.
    unsafe { std::env::remove_var(folder::VARIABLE) };
    let folders = folder::folders();
    assert_eq!(folders.last().map(PathBuf::as_path), Some(Path::new("/etc/ndcompat/providers.d")));
    assert!(folders.iter().all(|folder| folder.ends_with("ndcompat/providers.d")), "{folders:?}");
}

#[test]
fn many_install_at_once() {
    let catalogue = Catalogue::new();
    let info = ProtocolInfo::network_direct("one of many");
    // Several threads want each identifier; one gets it.
    let results: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(move || (1..20).map(|number| install(&id(number), "/x.so", &[info])).collect())
            })
            .collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            // Whoever looks meanwhile finds whole files only.
            assert_eq!(faults(), [""; 0]);
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for number in 0..19 {
        let mut outcome: Vec<_> = results.iter().map(|results| results[number]).collect();
        outcome.sort_unstable();
        assert_eq!(outcome, [0, WSAEINVAL, WSAEINVAL, WSAEINVAL], "{number}");
    }
    assert_eq!(enumerate().len(), 20);
    assert_eq!(fs::read_dir(&catalogue.folder).unwrap().count(), 19, "no draft is left");
}

#[test]
fn a_change_of_the_catalogue_ends_a_request_on_a_port() {
    use super::super::changes::ndw_WSAProviderConfigChange;
    use crate::api::completion_port::{ndw_CreateIoCompletionPort, ndw_GetQueuedCompletionStatus};
    use crate::api::handle::close_handle;
    use crate::io::Overlapped;
    use crate::object::RawHandle;
    let _catalogue = Catalogue::new();
    let mut handle = RawHandle::NULL;
    let overlapped = [Overlapped::default(), Overlapped::default()];
    let given = |number: usize| (&raw const overlapped[number]).cast_mut();
    let next = |port, wait: u32| {
        let (mut bytes, mut key, mut which) = (77, 0, null_mut());
        let found = ndw_GetQueuedCompletionStatus(
            port,
            Out::from(&mut bytes),
            Out::from(&mut key),
            Out::from(&mut which),
            wait,
        );
        (found, which.cast_const(), key)
    };
    // SAFETY: the targets are local variables, and outlive the requests.
    unsafe {
        assert_eq!(ndw_WSAProviderConfigChange(InOut::NULL, null_mut(), None), -1);
        assert_eq!(last_error(), WSAEFAULT);
        let mut event = crate::api::event::ndw_CreateEventW(null(), 1, 0, Text::NULL);
        assert_eq!(ndw_WSAProviderConfigChange(InOut::from(&mut event), given(0), None), -1);
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
        assert_eq!(close_handle(event), 1);

        assert_eq!(ndw_WSAProviderConfigChange(InOut::from(&mut handle), null_mut(), None), 0);
        let port = ndw_CreateIoCompletionPort(handle, RawHandle::NULL, 5, 0);
        assert_ne!(port, RawHandle::NULL);
        assert_eq!(ndw_WSAProviderConfigChange(InOut::from(&mut handle), given(0), None), -1);
        assert_eq!(last_error(), WSA_IO_PENDING);
        assert_eq!(next(port, 0), (0, null(), 0));
        assert_eq!(install(&id(1), "/x.so", &[ProtocolInfo::network_direct("x")]), 0);
        assert_eq!(next(port, u32::MAX), (1, given(0).cast_const(), 5));
        // The next request ends with the handle.
        assert_eq!(ndw_WSAProviderConfigChange(InOut::from(&mut handle), given(1), None), -1);
        assert_eq!(next(port, 0), (0, null(), 0));
        assert_eq!(close_handle(handle), 1);
        assert_eq!(next(port, u32::MAX), (0, given(1).cast_const(), 5));
        assert_eq!(last_error(), ERROR_OPERATION_ABORTED);
        assert_eq!(close_handle(port), 1);
    }
    assert_eq!(deinstall(&id(1)), 0);
}
