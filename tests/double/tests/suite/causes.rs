//! What is beneath a status, and what the library finds out of a device when it opens it.

use double::{CmEvent, fail, replace_event, turn};
use ndcompat::types::AdapterFlags;
use ndcompat::verbs::bindings::{RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_UNREACHABLE};
use ndcompat::{Offer, Provider, Session, Status};

fn session() -> Session {
    Session::new(&Provider::open_any().unwrap()).unwrap()
}

#[test]
fn a_call_that_fails_is_known_beneath_its_status() {
    let _turn = turn();
    let session = session();
    for (call, errno, wanted, make) in [
        ("ibv_create_qp", libc::ENOSPC, Status::INSUFFICIENT_RESOURCES, |session: &Session| {
            session.queue_pair().build().map(drop)
        }),
        ("ibv_create_cq", libc::EIO, Status::DEVICE_REMOVED, |session: &Session| {
            Session::new(session.adapter()).map(drop)
        }),
        // Registered on another thread, if it is much.
        ("ibv_reg_mr", libc::ENOMEM, Status::INSUFFICIENT_RESOURCES, |session: &Session| {
            session.buffer(64 << 20).map(drop)
        }),
    ] as [(_, _, _, fn(&Session) -> ndcompat::Result<()>); 3]
    {
        fail(call, errno);
        let status = make(&session).unwrap_err();
        assert_eq!(status, wanted);
        let cause = status.cause().unwrap();
        assert_eq!((cause.what, cause.errno), (call, Some(errno)));
    }
    let refused = Session::builder(session.adapter()).depth(u32::MAX).build().unwrap_err();
    assert_eq!((refused, refused.cause()), (Status::INVALID_PARAMETER_3, None), "no call was made");
}

#[test]
fn an_attempt_to_connect_knows_what_ended_it() {
    let _turn = turn();
    let session = session();
    let at = Provider::addresses().unwrap()[0];
    let connect = || {
        let pair = session.queue_pair().build().unwrap();
        session.wait(session.connect(pair, (at.ip(), 9).into(), Offer::default())).unwrap_err()
    };
    let nobody = connect().cause.unwrap();
    assert_eq!((nobody.what, nobody.errno, nobody.reason), ("RDMA_CM_EVENT_REJECTED", None, Some(8)));
    let silence = CmEvent { kind: RDMA_CM_EVENT_UNREACHABLE, status: -libc::ETIMEDOUT, data: Vec::new() };
    replace_event(RDMA_CM_EVENT_REJECTED, Some(silence));
    let silent = connect();
    assert_eq!(silent.status, Status::IO_TIMEOUT);
    assert_eq!(
        silent.cause.unwrap().to_string(),
        "RDMA_CM_EVENT_UNREACHABLE: Connection timed out (os error 110)"
    );
    fail("rdma_resolve_route", libc::ENODEV);
    let routeless = connect().cause.unwrap();
    assert_eq!((routeless.what, routeless.errno), ("rdma_resolve_route", Some(libc::ENODEV)));
}

#[test]
fn a_driver_that_cannot_resize_does_not_say_that_it_can() {
    let _turn = turn();
    let resizes = || {
        let session = session();
        let queue = session.adapter().create_completion_queue(session.file(), 16, (0, 0)).unwrap();
        let says = session.adapter().info().unwrap().adapter_flags.contains(AdapterFlags::CQ_RESIZE);
        (says, queue.resize(32))
    };
    assert_eq!(resizes(), (true, Ok(())));
    fail("ibv_resize_cq", libc::EOPNOTSUPP);
    assert_eq!(resizes(), (false, Err(Status::NOT_SUPPORTED)));
    // A failure of the moment says nothing about the driver.
    fail("ibv_resize_cq", libc::ENOMEM);
    assert_eq!(resizes(), (true, Ok(())));
}

/// In a file whose other tests may open adapters only in their turns.
#[test]
fn a_kind_of_windows_that_there_is_not_is_refused() {
    let _turn = turn();
    let open = |kind| {
        // SAFETY: only Rust code reads the environment here, under std's lock.
        unsafe { std::env::set_var("NDCOMPAT_MEMORY_WINDOWS", kind) };
        let opened = Provider::open_any().map(drop);
        // SAFETY: only Rust code reads the environment, under std's lock.
        unsafe { std::env::remove_var("NDCOMPAT_MEMORY_WINDOWS") };
        opened
    };
    for kind in ["emulated", "1", "2", ""] {
        assert_eq!(open(kind), Ok(()), "{kind}");
    }
    for kind in ["7", "Emulated", "on"] {
        assert_eq!(open(kind), Err(Status::INVALID_PARAMETER), "{kind}");
    }
}
