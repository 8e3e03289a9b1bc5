//! The log of failures whose cause the status does not tell, and the log at finer levels.

use double::{CmEvent, fail, remove_device, replace_event, turn};
use ndcompat::SockAddr;
use ndcompat::Status;
use ndcompat::types::RegionFlags;
use ndcompat::verbs::bindings::*;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use support::address;
use support::client::{Client, Ov, connected, listen_on, open};
use support::com::{self, Listener, create};
use support::library::{NdCheckAddress, NdStartup};
use support::log::{assert_one_warning, logged};

/// An address that no interface of the machine has.
fn elsewhere() -> SockAddr {
    SocketAddr::from(([192, 0, 2, 1], 0)).into()
}

fn resolve(address: SockAddr) -> Status {
    let (raw, length) = address.to_raw();
    let mut id = 0;
    // SAFETY: the address is as long as said, the result is writable.
    unsafe { com::provider().resolve_address(raw.as_ptr().cast(), length, &mut id) }
}

fn check(address: SockAddr) -> Status {
    let (raw, length) = address.to_raw();
    // SAFETY: the address is as long as said.
    unsafe {
        assert_eq!(NdStartup(), Status::SUCCESS);
        NdCheckAddress(raw.as_ptr().cast(), length as usize)
    }
}

#[test]
fn an_address_of_no_device() {
    let _turn = turn();
    let log = logged("an_address_of_no_device", None, || {
        assert_eq!(resolve(elsewhere()), Status::INVALID_ADDRESS);
    });
    let own = address().ip().to_string();
    assert_one_warning(&log, &["device: ", "address=192.0.2.1", "no RDMA device has this address", &own]);
}

#[test]
fn an_address_that_no_provider_has() {
    let _turn = turn();
    let log = logged("an_address_that_no_provider_has", None, || {
        assert_eq!(check(elsewhere()), Status::INVALID_ADDRESS);
        assert_eq!(check(address()), Status::SUCCESS, "of which nothing is said");
    });
    assert_one_warning(&log, &["address=192.0.2.1"]);
}

#[test]
fn a_port_that_is_taken() {
    let _turn = turn();
    let log = logged("a_port_that_is_taken", None, || {
        let client = Client::new();
        let (_listener, at) = listen_on(&client.adapter, client.file);
        let (raw, length) = at.to_raw();
        // SAFETY: `create` passes an id and a place for the object; the address has the length told.
        unsafe {
            let second: com::Com<Listener> =
                create(|iid, out| client.adapter.create_listener(iid, client.file, out)).unwrap();
            assert_eq!(second.bind(raw.as_ptr().cast(), length), Status::SHARING_VIOLATION);
        }
    });
    assert_one_warning(
        &log,
        &["connection: ", "the port is taken", "ND_SHARING_VIOLATION (0xC0000043)", "device="],
    );
}

#[test]
fn an_address_of_another_device_to_bind_to() {
    let _turn = turn();
    let log = logged("an_address_of_another_device_to_bind_to", None, || {
        let client = Client::new();
        let (raw, length) = elsewhere().to_raw();
        // SAFETY: the address has the length told.
        assert_eq!(unsafe { client.connector.bind(raw.as_ptr().cast(), length) }, Status::INVALID_ADDRESS);
    });
    assert_one_warning(&log, &["no address of the device", "192.0.2.1", "ND_INVALID_ADDRESS"]);
}

#[test]
fn a_port_where_nobody_listens() {
    let _turn = turn();
    let log = logged("a_port_where_nobody_listens", None, || {
        let (client, mut ov) = (Client::new(), Ov::new());
        assert_eq!(client.bind(), Status::SUCCESS);
        assert_eq!(client.connect(address().with_port(9), b"", &mut ov), Status::PENDING);
        assert_eq!(ov.wait(&client.connector), Status::CONNECTION_REFUSED);
    });
    let to = format!("connecting to {} failed", address().with_port(9));
    let status = "ND_CONNECTION_REFUSED (0xC0000236)";
    assert_one_warning(&log, &[&to, "nobody listens there", status, "event=Rejected code=8"]);
}

#[test]
fn a_program_that_refuses_is_no_fault() {
    let _turn = turn();
    let log = logged("a_program_that_refuses_is_no_fault", None, || {
        let (client, passive, mut ov, mut asked) = (Client::new(), Client::new(), Ov::new(), Ov::new());
        let (listener, at) = listen_on(&passive.adapter, passive.file);
        assert_eq!(client.bind(), Status::SUCCESS);
        assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
        // SAFETY: the OVERLAPPED outlives the request.
        unsafe {
            let connector = passive.connector.as_ptr().cast();
            assert!(listener.get_connection_request(connector, asked.ptr()).is_success());
            assert_eq!(asked.wait(&listener), Status::SUCCESS);
            assert_eq!(passive.connector.reject(std::ptr::null(), 0), Status::SUCCESS);
        }
        assert_eq!(ov.wait(&client.connector), Status::CONNECTION_REFUSED);
    });
    assert_eq!(log, "");
}

/// The log of a connection attempt in which the connection manager's event is replaced by this one.
fn failing(
    test: &str,
    instead_of: rdma_cm_event_type,
    kind: rdma_cm_event_type,
    errno: i32,
    status: Status,
) -> String {
    logged(test, None, || {
        let (client, mut ov) = (Client::new(), Ov::new());
        let (_listener, at) = listen_on(&client.adapter, client.file);
        assert_eq!(client.bind(), Status::SUCCESS);
        replace_event(instead_of, Some(CmEvent { kind, status: -errno, data: Vec::new() }));
        assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
        assert_eq!(ov.wait(&client.connector), status);
    })
}

#[test]
fn a_network_without_a_route() {
    let _turn = turn();
    let log = failing(
        "a_network_without_a_route",
        RDMA_CM_EVENT_ADDR_RESOLVED,
        RDMA_CM_EVENT_ADDR_ERROR,
        libc::ENETUNREACH,
        Status::NETWORK_UNREACHABLE,
    );
    assert_one_warning(&log, &["no route leads there", "ND_NETWORK_UNREACHABLE"]);
}

#[test]
fn a_host_that_does_not_answer() {
    let _turn = turn();
    let log = failing(
        "a_host_that_does_not_answer",
        RDMA_CM_EVENT_ADDR_RESOLVED,
        RDMA_CM_EVENT_ADDR_ERROR,
        libc::ETIMEDOUT,
        Status::HOST_UNREACHABLE,
    );
    assert_one_warning(&log, &["the host does not answer", "ND_HOST_UNREACHABLE"]);
}

#[test]
fn a_peer_that_is_silent() {
    let _turn = turn();
    let log = failing(
        "a_peer_that_is_silent",
        RDMA_CM_EVENT_ROUTE_RESOLVED,
        RDMA_CM_EVENT_UNREACHABLE,
        libc::ETIMEDOUT,
        Status::IO_TIMEOUT,
    );
    assert_one_warning(&log, &["the peer is silent", "ND_IO_TIMEOUT"]);
}

#[test]
fn files_that_run_out() {
    let _turn = turn();
    let log = logged("files_that_run_out", None, || {
        fail("rdma_create_event_channel", libc::EMFILE);
        assert_eq!(resolve(address()), Status::INSUFFICIENT_RESOURCES);
    });
    assert_one_warning(&log, &["EMFILE", "ulimit -n", "limit="]);
}

#[test]
fn no_permission_on_the_connection_manager() {
    let _turn = turn();
    let log = logged("no_permission_on_the_connection_manager", None, || {
        fail("rdma_create_event_channel", libc::EACCES);
        assert_eq!(resolve(address()), Status::ACCESS_DENIED);
        fail("rdma_create_event_channel", libc::EACCES);
        assert_eq!(check(address()), Status::ACCESS_DENIED);
    });
    assert!(log.lines().all(|line| line.contains(" WARN device: no permission")), "{log}");
    assert_eq!(log.lines().count(), 2, "{log}");
}

#[test]
fn memory_that_cannot_be_locked() {
    let _turn = turn();
    let log = logged("memory_that_cannot_be_locked", None, || {
        let limit = libc::rlimit { rlim_cur: 65536, rlim_max: 65536 };
        // SAFETY: the limit is a local, which is only read.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) }, 0);
        let (client, mut ov) = (Client::new(), Ov::new());
        // SAFETY: the client's memory stays.
        unsafe {
            let region: com::Com<com::MemoryRegion> =
                create(|iid, out| client.adapter.create_memory_region(iid, client.file, out)).unwrap();
            fail("ibv_reg_mr", libc::ENOMEM);
            let memory = client.memory.as_ptr().cast();
            assert_eq!(
                region.register(memory, client.memory.len(), RegionFlags::empty(), ov.ptr()),
                Status::PENDING
            );
            assert_eq!(ov.wait(&region), Status::INSUFFICIENT_RESOURCES);
        }
    });
    let device = format!("device=\"{}\"", double::NAME);
    assert_one_warning(
        &log,
        &["memory: ", "ulimit -l", "memlock=65536", "bytes=16384", "call=\"ibv_reg_mr\"", &device],
    );
}

#[test]
fn a_device_that_goes() {
    let _turn = turn();
    let log = logged("a_device_that_goes", None, || {
        let (client, mut ov) = (Client::new(), Ov::new());
        remove_device();
        // SAFETY: the memory and the OVERLAPPED stay.
        let status = unsafe { client.region.deregister(ov.ptr()) };
        assert!(status.is_success(), "cleaning up works: {status}");
        let anything = || client.bind();
        let begin = std::time::Instant::now();
        while anything() != Status::DEVICE_REMOVED {
            assert!(begin.elapsed() < support::client::TIME_LIMIT);
        }
    });
    let name = format!("device=\"{}\"", double::NAME);
    assert_one_warning(&log, &["the device is gone", &name]);
}

#[test]
fn descriptions_of_providers_that_cannot_be_used() {
    let _turn = turn();
    let folder = std::env::temp_dir().join(format!("ndcompat-log-providers-{}", std::process::id()));
    let is_parent = std::env::var_os("NDCOMPAT_PROVIDERS").is_none();
    if is_parent {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("broken.provider"), "what is this\n").unwrap();
        std::fs::write(folder.join("open.provider"), "").unwrap();
        let everybody = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(folder.join("open.provider"), everybody).unwrap();
        // SAFETY: only Rust code reads the environment here, under std's lock.
        unsafe { std::env::set_var("NDCOMPAT_PROVIDERS", &folder) };
    }
    let log = logged("descriptions_of_providers_that_cannot_be_used", None, || {
        for _ in 0..3 {
            assert_eq!(check(elsewhere()), Status::INVALID_ADDRESS);
        }
    });
    std::fs::remove_dir_all(&folder).unwrap();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("WARN providers: ")).collect();
    assert_eq!(lines.len(), 2, "each once: {log}");
    assert!(lines[0].contains("broken.provider:1: "), "{log}");
    assert!(lines[1].contains("open.provider: its group or others may write to it"), "{log}");
}

#[test]
fn a_call_that_fails_is_named_with_its_errno() {
    let _turn = turn();
    let log = logged("a_call_that_fails_is_named_with_its_errno", Some("off,verbs=debug"), || {
        let adapter = open();
        let file = support::client::file(&adapter);
        fail("ibv_create_cq", libc::ENOMEM);
        // SAFETY: `create` passes an id and a place for the object; the file is the test's own.
        let queue = unsafe {
            create::<com::CompletionQueue>(|iid, out| {
                // With the first vector, as there is a second try else.
                adapter.create_completion_queue(iid, file, 8, 0, 1, out)
            })
        };
        assert!(queue.is_err());
    });
    let device = format!("device=\"{}\"", double::NAME);
    let words = ["DEBUG verbs: ibv_create_cq: Cannot allocate memory", "errno=12", &device];
    assert!(log.lines().any(|line| words.iter().all(|word| line.contains(word))), "{log}");
    assert!(log.lines().all(|line| line.contains(" verbs: ")), "{log}");
}

#[test]
fn control_calls_are_told_with_the_objects_they_are_about() {
    let _turn = turn();
    let log = logged("control_calls_are_told_with_the_objects_they_are_about", Some("trace"), || {
        let (active, passive) = connected();
        support::client::messages_pass(&active, &passive);
        let (mut gone, mut waiting) = (Ov::new(), Ov::new());
        // SAFETY: the OVERLAPPEDs outlive their requests.
        unsafe {
            assert!(active.connector.notify_disconnect(gone.ptr()).is_success());
            active.connector.cancel_overlapped_requests();
            assert_eq!(gone.wait(&active.connector), Status::CANCELED);
            assert_eq!(passive.completion_queue.resize(64), Status::SUCCESS);
            assert_eq!(passive.completion_queue.notify(0, waiting.ptr()), Status::PENDING);
            passive.completion_queue.cancel_overlapped_requests();
            assert_eq!(waiting.wait(&passive.completion_queue), Status::CANCELED);
            assert!(passive.region.deregister(gone.ptr()).is_success());
        }
    });
    for wanted in [
        "INFO device: adapter opened device=",
        "DEBUG queue: CreateCompletionQueue device=\"double0\" cq=",
        "DEBUG queue: CreateQueuePair device=\"double0\" qp=",
        "DEBUG queue: Resize cq=",
        "DEBUG queue: Cancel cq=",
        "DEBUG memory: Deregister lkey=",
        "DEBUG connection: GetConnectionRequest listener=",
        "DEBUG connection: NotifyDisconnect connector=",
        "DEBUG connection: Cancel connector=",
        "TRACE connection: released listener=",
        "TRACE connection: released connector=",
        "TRACE queue: released qp=",
        "TRACE queue: released cq=",
        "DEBUG memory: Register address=0x",
        "DEBUG connection: Listen listener=",
        "DEBUG connection: Connect connector=",
        "DEBUG connection: Accept connector=",
        "DEBUG connection: connected connector=",
        "DEBUG connection: event of the connection manager connector=",
    ] {
        assert!(log.contains(wanted), "no '{wanted}' in:\n{log}");
    }
    assert!(!log.contains("Some("), "addresses are plain:\n{log}");
    assert!(!log.contains(" WARN "), "all went well:\n{log}");
}

#[test]
fn nothing_is_told_when_all_goes_well() {
    let _turn = turn();
    let log = logged("nothing_is_told_when_all_goes_well", None, || {
        let (active, passive) = connected();
        support::client::messages_pass(&active, &passive);
    });
    assert_eq!(log, "");
}

#[test]
fn off_is_off() {
    let _turn = turn();
    let log = logged("off_is_off", Some("off"), || {
        assert_eq!(resolve(elsewhere()), Status::INVALID_ADDRESS);
        remove_device();
    });
    assert_eq!(log, "");
}

#[test]
fn a_module_that_is_none_is_told() {
    let _turn = turn();
    // Even if nothing but that module was to speak.
    let log = logged("a_module_that_is_none_is_told", Some("off,banana=debug"), || {
        assert_eq!(resolve(address()), Status::SUCCESS);
    });
    assert_one_warning(
        &log,
        &["logging: ", "NDCOMPAT_LOG=off,banana=debug", "'banana'", "connection, device"],
    );
}

#[test]
fn a_level_that_is_none_is_told() {
    let _turn = turn();
    let log = logged("a_level_that_is_none_is_told", Some("loud"), || {
        assert_eq!(resolve(address()), Status::SUCCESS);
    });
    assert_one_warning(&log, &["logging: ", "NDCOMPAT_LOG=loud", "taken as warn"]);
}
