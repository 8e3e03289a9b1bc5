//! How threads and tasks wait.

use super::*;

/// The future of a timer that wakes its task each time it is asked, as those of some executors do.
fn restless() -> impl Future<Output = ()> {
    poll_fn(|context| {
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

#[test]
fn a_port_keeps_its_limit_though_the_future_wakes_itself() {
    let _turn = turn();
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut port = Port::new().unwrap();
        let session = session();
        port.add(&session).unwrap();
        let limit = Duration::from_millis(10);
        done.send(port.wait_for(limit, restless()).is_none()).unwrap();
        // The session is served meanwhile: a peer comes.
        let acceptor = session.listen(own()).unwrap();
        let address = acceptor.local_address().unwrap();
        let pair = session.queue_pair().build().unwrap();
        let mut connecting = Box::pin(session.connect(pair, address, Offer::default()));
        let mut request = Box::pin(acceptor.request());
        let peer = port.wait(poll_fn(|context| {
            context.waker().wake_by_ref();
            assert!(connecting.as_mut().poll(context).is_pending());
            request.as_mut().poll(context)
        }));
        done.send(peer.is_ok()).unwrap();
    });
    for _ in 0..2 {
        assert_eq!(ended.recv_timeout(SOON), Ok(true));
    }
}

/// Its completions leave no packets that nobody takes.
#[test]
fn a_session_of_a_port_may_be_waited_for_otherwise() {
    let _turn = turn();
    let grown = [false, true].map(|bound| {
        let session = session();
        let port = Port::new().unwrap();
        if bound {
            port.add(&session).unwrap();
        }
        let buffer = session.buffer(8).unwrap();
        let mut receiving = None;
        let (client, server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
        let (mut receiving, mut message) = (receiving, Some(session.buffer(8).unwrap()));
        let waker = Waker::from(Arc::new(Count::default()));
        let mut exchange = |times| {
            for _ in 0..times {
                // With a notification.
                let mut next = receiving.take().unwrap();
                assert!(Pin::new(&mut next).poll(&mut Context::from_waker(&waker)).is_pending());
                let (back, sent) = client.send(message.take().unwrap()).wait();
                sent.unwrap();
                message = Some(back);
                let (buffer, received) = next.wait();
                received.unwrap();
                receiving = Some(server.receive(buffer));
                // Other operations.
                assert!(session.wait_for(Duration::ZERO, server.disconnected().unwrap()).is_none());
            }
        };
        exchange(100);
        let before = heap();
        exchange(10_000);
        heap() - before
    });
    assert!(grown[1] < grown[0] + 100_000, "{grown:?} bytes more");
}

#[test]
fn a_thread_waits_no_longer_than_it_wants_to() {
    let _turn = turn();
    let session = session();
    let pair = session.queue_pair().build().unwrap();
    let receiving = pair.receive(session.buffer(8).unwrap());
    let receiving = receiving.wait_for(Duration::from_millis(1)).unwrap_err();
    assert!(session.wait_for(Duration::from_millis(1), receiving).is_none());
    let endless = std::future::pending::<()>();
    assert!(session.spin_for(Duration::from_millis(1), endless).is_none());
}

#[test]
fn threads_that_wait_for_different_requests_each_hear_of_theirs() {
    let _turn = turn();
    let session = session();
    const MESSAGES: usize = 16;
    let mut receiving = Vec::new();
    let buffers: Vec<_> = (0..MESSAGES).map(|_| session.buffer(8).unwrap()).collect();
    let (client, _server) = connected(&session, |pair| {
        receiving.extend(buffers.into_iter().map(|buffer| pair.receive(buffer)));
    });
    std::thread::scope(|threads| {
        let waiting: Vec<_> = receiving
            .into_iter()
            .map(|receiving| threads.spawn(move || receiving.wait().1.unwrap().bytes))
            .collect();
        for length in 1..=8 {
            for _ in 0..MESSAGES / 8 {
                client.send(session.buffer(length).unwrap()).wait().1.unwrap();
            }
        }
        let mut lengths: Vec<_> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
        lengths.sort_unstable();
        assert_eq!(lengths, (1..=8).flat_map(|length| [length; MESSAGES / 8]).collect::<Vec<_>>());
    });
}

#[test]
fn a_task_is_woken_though_no_thread_waits() {
    let _turn = turn();
    let session = session();
    let mut receiving = None;
    let buffer = session.buffer(8).unwrap();
    let (client, _server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut context = Context::from_waker(&waker);
    let mut receiving = std::pin::pin!(receiving.unwrap());
    assert!(receiving.as_mut().poll(&mut context).is_pending());
    drop(client.send(session.buffer(1).unwrap()));
    while count.0.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert!(matches!(receiving.as_mut().poll(&mut context), Poll::Ready((_, Ok(_)))));
}

/// A waker that panics.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics, as the test wants it");
    }
}

#[test]
fn a_waker_that_panics_keeps_no_other_task_from_being_woken() {
    let _turn = turn();
    let session = session();
    let (panics, count) = (Waker::from(Arc::new(Panics)), Arc::new(Count::default()));
    let waker = Waker::from(count.clone());
    let woken = |times| {
        while count.0.load(Ordering::SeqCst) < times {
            std::thread::yield_now();
        }
    };
    // Transfers: their wakers are called by the session. The second round shows that the library's thread is still there.
    let mut receiving = Vec::new();
    let buffers: Vec<_> = (0..4).map(|_| session.buffer(8).unwrap()).collect();
    let (client, server) = connected(&session, |pair| {
        receiving.extend(buffers.into_iter().map(|buffer| pair.receive(buffer)));
    });
    for round in [1, 2] {
        let (mut first, mut second) = (receiving.remove(0), receiving.remove(0));
        assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&panics)).is_pending());
        assert!(Pin::new(&mut second).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(client.send(session.buffer(1).unwrap()));
        drop(client.send(session.buffer(1).unwrap()));
        woken(round);
        assert!(first.is_done() && second.is_done());
    }
    // Other operations: theirs are called as the request completes.
    let (mut first, mut second) = (server.disconnected().unwrap(), server.disconnected().unwrap());
    assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&panics)).is_pending());
    assert!(Pin::new(&mut second).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(client);
    woken(3);
    assert_eq!((first.status(), second.status()), (Status::SUCCESS, Status::SUCCESS));
}

#[test]
fn a_limit_may_be_beyond_what_the_clock_counts() {
    let _turn = turn();
    let session = session();
    let ready = || std::future::ready(7);
    assert_eq!(session.spin_for(Duration::MAX, ready()), Some(7));
    assert_eq!(session.wait_for(Duration::MAX, ready()), Some(7));
}

#[test]
fn a_poll_loop_hears_of_completions_by_a_descriptor() {
    let _turn = turn();
    let session = session();
    let mut receiving = None;
    let buffer = session.buffer(8).unwrap();
    let (client, _server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
    let progress = session.progress();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut context = Context::from_waker(&waker);
    let mut receiving = std::pin::pin!(receiving.unwrap());
    let readable = |millis| {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&progress);
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, a local.
        unsafe { libc::poll(&mut poll, 1, millis) == 1 }
    };
    for _ in 0..3 {
        assert!(receiving.as_mut().poll(&mut context).is_pending());
        progress.turn();
        assert!(!readable(0));
        drop(client.send(session.buffer(1).unwrap()));
        let mut loops = 0;
        while count.0.load(Ordering::SeqCst) == 0 {
            assert!(readable(10_000));
            progress.turn();
            loops += 1;
        }
        assert!(loops > 0, "nobody else looks after the session");
        assert!(!readable(0), "all is served");
        assert!(matches!(receiving.as_mut().poll(&mut context), Poll::Ready((_, Ok(_)))));
        count.0.store(0, Ordering::SeqCst);
        receiving.set(_server.receive(session.buffer(8).unwrap()));
    }
}
