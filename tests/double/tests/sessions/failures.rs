//! Requests, completion queues and devices that fail.

use super::*;

/// Peers fill all receives while nobody takes results: more than the completion queue has room for as it was made.
#[test]
fn peers_do_not_make_a_session_fail() {
    let _turn = turn();
    const RECEIVES: usize = 100;
    for resizes in [true, false] {
        if !resizes {
            // As the adapter is opened.
            fail("ibv_resize_cq", libc::EOPNOTSUPP);
        }
        let server = Session::builder(&Provider::open_any().unwrap()).depth(4).build().unwrap();
        let client = session();
        let mut receiving = Vec::new();
        let buffers: Vec<_> = (0..RECEIVES).map(|_| server.buffer(8).unwrap()).collect();
        let (active, passive) = connect_to(&client, &server, RECEIVES as u32, |pair| {
            receiving.extend(buffers.into_iter().map(|buffer| pair.receive(buffer)));
        });
        // A receive that is refused is done.
        let (done, mut posted): (Vec<_>, Vec<_>) =
            receiving.into_iter().partition(|receiving| receiving.is_done());
        for refused in done {
            let (buffer, result) = refused.wait();
            assert_eq!((buffer.len(), result), (8, Err(Status::NO_MORE_ENTRIES)));
        }
        assert!(if resizes { posted.len() == RECEIVES } else { (4..RECEIVES).contains(&posted.len()) });
        for _ in 0..posted.len() {
            active.send(client.buffer(8).unwrap()).wait().1.unwrap();
        }
        // With results taken there is room again.
        for _ in 0..2 {
            for receiving in posted.drain(..) {
                receiving.wait().1.unwrap();
            }
            posted.push(passive.receive(server.buffer(8).unwrap()));
            active.send(client.buffer(8).unwrap()).wait().1.unwrap();
        }
        server.queue_pair().build().unwrap();
    }
}

/// A completion thread may release a queue pair as soon as it has taken the last result.
#[test]
fn a_flush_goes_on_though_the_queue_pair_is_released() {
    let _turn = turn();
    let session = session();
    let queue = session.adapter().create_completion_queue(session.file(), 16, (0, 0)).unwrap();
    let pair = session.adapter().create_queue_pair(QueuePairConfig::new(&queue)).unwrap();
    // SAFETY: the list is empty.
    unsafe { pair.receive(7, &[]) }.unwrap();
    let flush = pair.flushing();
    drop(pair);
    flush();
    let mut results = [Completion::default(); 2];
    assert_eq!(queue.results(&mut results), 1);
    assert_eq!((results[0].status, results[0].request_context), (Status::CANCELED, 7));
}

#[test]
fn statuses_go_through_errors_of_the_standard_library() {
    let error = std::io::Error::from(Status::IO_TIMEOUT);
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(Status::from(error), Status::IO_TIMEOUT);
}

#[test]
fn no_message_is_written_to_memory_that_a_failed_session_has_given_back() {
    let _turn = turn();
    let (client, server) = (session(), session());
    let shared = server.shared_receives(8, 0).unwrap();
    let receiving = shared.receive(server.buffer(8).unwrap());
    let acceptor = server.listen(Provider::addresses().unwrap()[0]).unwrap();
    let address = acceptor.local_address().unwrap();
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = client.queue_pair().build().unwrap();
            client.wait(client.connect(pair, address, Offer::default())).unwrap()
        });
        let request = server.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let pair = server.queue_pair().shared_receives(&shared).build().unwrap();
        let _passive = server.wait(request.accept(pair, Offer::default())).unwrap();
        let active = connecting.join().unwrap();
        // The last completion queue that was made overruns.
        raise_async(IBV_EVENT_CQ_ERR);
        let (buffer, result) = receiving.wait();
        assert_eq!(result, Err(Status::BUFFER_OVERFLOW));
        let mut message = client.buffer(8).unwrap();
        message.copy_from_slice(b"too late");
        assert!(active.send(message).wait().1.is_err());
        assert_eq!(buffer[..], [0; 8]);
        assert_eq!(server.queue_pair().build().err(), Some(Status::BUFFER_OVERFLOW));
    });
}

/// A thread is about to stop the device when another one finds that the completion queue has failed.
#[test]
fn memory_of_a_failed_session_comes_back_once_the_device_has_stopped() {
    let _turn = turn();
    let session = session();
    let (_active, passive) = connected(&session, |_| ());
    let receiving = passive.receive(session.buffer(8).unwrap());
    let stopping = hold("ibv_modify_qp");
    let returned = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let _ = session.wait(passive.disconnect());
        });
        while pending() > 0 {
            std::thread::yield_now();
        }
        raise_async(IBV_EVENT_CQ_ERR);
        threads.spawn(|| {
            assert_eq!(receiving.wait().1.err(), Some(Status::BUFFER_OVERFLOW));
            returned.store(1, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(returned.load(Ordering::SeqCst), 0, "the device has not stopped");
        drop(stopping);
    });
    assert_eq!(returned.load(Ordering::SeqCst), 1);
}

#[test]
fn memory_that_a_device_does_not_let_go_of_does_not_come_back() {
    let _turn = turn();
    let session = session();
    let pair = session.queue_pair().build().unwrap();
    let receiving = pair.receive(session.buffer(8).unwrap());
    fail("ibv_destroy_qp", libc::EIO);
    raise_async(IBV_EVENT_CQ_ERR);
    assert!(receiving.wait_for(Duration::from_millis(100)).is_err());
    assert_eq!(pending(), 0);
}

/// Who only looks is not told by a notification.
#[test]
fn who_spins_learns_that_the_completion_queue_has_failed() {
    let _turn = turn();
    let session = session();
    let pair = session.queue_pair().build().unwrap();
    let receiving = pair.receive(session.buffer(8).unwrap());
    raise_async(IBV_EVENT_CQ_ERR);
    let (_, result) = session.spin_for(SOON, receiving).expect("it ends");
    assert_eq!(result.err(), Some(Status::BUFFER_OVERFLOW));
}

#[test]
fn memory_of_dropped_requests_comes_back_when_the_completion_queue_fails() {
    let _turn = turn();
    let session = session();
    let before = heap();
    let pair = session.queue_pair().build().unwrap();
    let shared = session.shared_receives(4, 0).unwrap();
    drop(pair.receive(session.buffer(LENGTH).unwrap()));
    drop(shared.receive(session.buffer(LENGTH).unwrap()));
    let receiving = pair.receive(session.buffer(8).unwrap());
    assert!(is_kept(2 * LENGTH, before));
    raise_async(IBV_EVENT_CQ_ERR);
    assert_eq!(session.wait(receiving).1.err(), Some(Status::BUFFER_OVERFLOW));
    assert!(!is_kept(LENGTH, before), "nobody waits for them");
}

#[test]
fn a_failed_request_fails_and_the_others_are_cancelled() {
    let _turn = turn();
    let session = session();
    let (client, server) = connected(&session, |_| ());
    let waiting = client.receive(session.buffer(8).unwrap());
    let _ready = server.receive(session.buffer(8).unwrap());
    complete_with(Side::Initiator, 12);
    let (_, sent) = client.send(session.buffer(8).unwrap()).wait();
    assert!(sent.is_err());
    assert_eq!(waiting.wait().1, Err(Status::CANCELED));
}

#[test]
fn who_waits_hears_that_the_device_is_gone() {
    let _turn = turn();
    let session = session();
    let pair = session.queue_pair().build().unwrap();
    let receiving = pair.receive(session.buffer(8).unwrap());
    std::thread::scope(|threads| {
        let waiting = threads.spawn(move || receiving.wait().1);
        remove_device();
        let ended = waiting.join().unwrap();
        assert!(matches!(ended, Err(Status::CANCELED | Status::DEVICE_REMOVED)), "{ended:?}");
    });
    assert_eq!(session.buffer(8).unwrap_err(), Status::DEVICE_REMOVED);
}
