//! The messages for a program that cannot use the RDMA device: no permission, no module, no device files, no lockable memory. The
//! tests take these away from the lab's virtual machine, each in a process of its own.

use ndcompat::SockAddr;
use ndcompat::Status;
use ndcompat::types::RegionFlags;
use std::ffi::CString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::client::{Client, Ov, open};
use support::com::{self, create};
use support::log::{assert_one_warning, logged};
use support::{address, is_emulator};

/// A user without any rights.
const NOBODY: u32 = 65534;
const CONNECTION_MANAGER: &str = "/dev/infiniband/rdma_cm";

/// A test's turn. The tests change the whole machine, so they run one at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURNS: Mutex<()> = Mutex::new(());
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the mode of a file until dropped.
struct Mode(&'static str);

impl Mode {
    fn set(path: &'static str, mode: u32) -> Mode {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        Mode(path)
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        let _ = std::fs::set_permissions(self.0, std::fs::Permissions::from_mode(0o666));
    }
}

/// Drops all privileges. The library is loaded and the log file is created before, because that may fail afterwards.
fn become_nobody() {
    let _ = com::provider();
    let log = std::env::var_os("NDCOMPAT_LOG_FILE").unwrap();
    std::fs::write(&log, "").unwrap();
    std::fs::set_permissions(&log, std::fs::Permissions::from_mode(0o666)).unwrap();
    // SAFETY: takes a number.
    assert_eq!(unsafe { libc::setgid(NOBODY) }, 0);
    // SAFETY: takes a number.
    assert_eq!(unsafe { libc::setuid(NOBODY) }, 0);
}

/// Mounts an empty folder over one of the system's, for this process alone.
fn hide(folder: &str) {
    let (folder, kind) = (CString::new(folder).unwrap(), c"tmpfs");
    // SAFETY: the arguments are strings or numbers.
    unsafe {
        assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0);
        let private = libc::MS_REC | libc::MS_PRIVATE;
        let none = std::ptr::null();
        assert_eq!(libc::mount(none, c"/".as_ptr(), none, private, none.cast()), 0);
        assert_eq!(libc::mount(kind.as_ptr(), folder.as_ptr(), kind.as_ptr(), 0, none.cast()), 0);
    }
}

fn limit(what: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: the limit is a local, which is only read.
    assert_eq!(unsafe { libc::setrlimit(what, &limit) }, 0);
}

fn resolve(address: SockAddr) -> Status {
    let (raw, length) = address.to_raw();
    let mut id = 0;
    // SAFETY: the address is as long as said, the result is writable.
    unsafe { com::provider().resolve_address(raw.as_ptr().cast(), length, &mut id) }
}

/// The device file of the device under test.
fn device_file() -> &'static str {
    let files = ndcompat::verbs::nodes::device_files();
    assert_eq!(files.len(), 1, "the lab has one device");
    files[0].clone().leak()
}

#[test]
fn no_permission_on_the_device() {
    if is_emulator() {
        return; // it has no files
    }
    let _turn = turn();
    let file = device_file();
    let _mode = Mode::set(file, 0o600);
    let log = logged("no_permission_on_the_device", None, || {
        become_nobody();
        assert_eq!(resolve(address()), Status::INVALID_ADDRESS);
        assert_eq!(resolve(address()), Status::INVALID_ADDRESS);
    });
    assert!(log.contains(&format!("no RDMA device: no permission on {file}")), "{log}");
    assert_eq!(log.matches("no RDMA device: ").count(), 1, "told once: {log}");
}

#[test]
fn no_permission_on_the_connection_manager() {
    if is_emulator() {
        return; // it has no files
    }
    let _turn = turn();
    let _mode = Mode::set(CONNECTION_MANAGER, 0o600);
    let log = logged("no_permission_on_the_connection_manager", None, || {
        become_nobody();
        assert_eq!(resolve(address()), Status::ACCESS_DENIED);
    });
    assert_one_warning(&log, &["no permission on /dev/infiniband/rdma_cm"]);
}

#[test]
fn files_that_the_container_lacks() {
    if is_emulator() {
        return; // it has no files
    }
    let _turn = turn();
    let log = logged("files_that_the_container_lacks", None, || {
        let _ = com::provider(); // loaded before its file is out of reach
        hide("/dev/infiniband");
        assert_eq!(resolve(address()), Status::INVALID_ADDRESS);
    });
    assert!(log.contains("is missing") && log.contains("--device=/dev/infiniband"), "{log}");
}

#[test]
fn files_that_run_out() {
    let _turn = turn();
    let log = logged("files_that_run_out", None, || {
        let adapter = open();
        let mut files = Vec::new();
        limit(libc::RLIMIT_NOFILE, 64);
        while let Ok(file) = std::fs::File::open("/dev/null") {
            files.push(file);
        }
        let mut handle = win32::object::RawHandle::NULL;
        let raw = &mut handle;
        // SAFETY: the result is writable.
        let status = unsafe { adapter.create_overlapped_file(raw) };
        assert!(!status.is_success(), "{status}");
    });
    assert!(log.contains("EMFILE") && log.contains("ulimit -n") && log.contains("limit=64"), "{log}");
}

#[test]
fn memory_that_cannot_be_locked() {
    let _turn = turn();
    let log = logged("memory_that_cannot_be_locked", None, || {
        limit(libc::RLIMIT_MEMLOCK, 8 << 20);
        become_nobody();
        let (client, mut ov) = (Client::new(), Ov::new());
        let memory = vec![1u8; 32 << 20];
        // SAFETY: the memory stays.
        unsafe {
            let region: com::Com<com::MemoryRegion> =
                create(|iid, out| client.adapter.create_memory_region(iid, client.file, out)).unwrap();
            assert_eq!(
                region.register(memory.as_ptr().cast(), memory.len(), RegionFlags::empty(), ov.ptr()),
                Status::PENDING
            );
            // The emulator locks nothing.
            let limited = if is_emulator() { Status::SUCCESS } else { Status::INSUFFICIENT_RESOURCES };
            assert_eq!(ov.wait(&region), limited);
        }
    });
    if is_emulator() {
        return assert!(!log.contains("WARN"), "{log}");
    }
    assert_one_warning(&log, &["memory: ", "ulimit -l", "memlock=8388608", "bytes=33554432"]);
}

#[test]
fn a_privileged_program_reads_no_environment() {
    let _turn = turn();
    const PRIVILEGED: &str = "NDCOMPAT_TEST_PRIVILEGED";
    let nobody_has = || {
        let elsewhere = SockAddr::from(std::net::SocketAddr::from(([192, 0, 2, 1], 0)));
        assert_eq!(resolve(elsewhere), Status::INVALID_ADDRESS);
    };
    if std::env::var_os(PRIVILEGED).is_some() {
        assert!(win32::process::is_privileged());
        return nobody_has();
    }
    let folder = std::env::temp_dir().join(format!("ndcompat-privileged-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let own = std::env::current_exe().unwrap();
    let (program, log) = (folder.join("program"), folder.join("log"));
    std::fs::copy(&own, &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let library = own.ancestors().map(|folder| folder.join("ndcompat/lib/libndcompat.so.0"));
    let output = Command::new(&program)
        .args(["--exact", "a_privileged_program_reads_no_environment", "--nocapture"])
        .env(PRIVILEGED, "yes")
        .env("NDCOMPAT_LIBRARY", library.clone().find(|path| path.exists()).unwrap())
        .env("NDCOMPAT_LOG", "trace")
        .env("NDCOMPAT_LOG_FILE", &log)
        .uid(NOBODY)
        .output()
        .unwrap();
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{told}");
    assert!(!log.exists(), "a stranger names a file");
    assert_one_warning(&told, &["address=192.0.2.1"]);
    assert!(!told.contains(" DEBUG "), "and chooses how much is told: {told}");
    std::fs::remove_dir_all(&folder).unwrap();
}
