//! A child made by `fork` uses the library for itself.

use crate::turn;
use ndcompat::{Buffer, Connection, Offer, Provider, Session, Status, Transfer};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use support::client::{Client, Ov, connect, listen_on, messages_pass, open};

/// How long the child may take.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Opens an adapter, connects, and makes a second connection for which no thread of the program waits.
pub fn use_the_library() {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    drop(connect(&active, &passive));
    messages_pass(&active, &passive);
    let (asks, asked) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, asked.file);
    let (mut request, mut call) = (Ov::new(), Ov::new());
    assert_eq!(asks.bind(), Status::SUCCESS);
    let connector = asked.connector.as_ptr();
    // SAFETY: the OVERLAPPED lives until it completes.
    assert_eq!(unsafe { listener.get_connection_request(connector, request.ptr()) }, Status::PENDING);
    assert_eq!(asks.connect(at, b"", &mut call), Status::PENDING);
    while request.internal() == Status::PENDING {
        std::thread::yield_now();
    }
    assert_eq!(request.internal(), Status::SUCCESS);
    // The connection request ends with its connector.
    drop((listener, asked, asks));
    assert_ne!(call.internal(), Status::PENDING);
}

/// Runs `work` in a child; returns its status.
pub fn in_a_child(work: fn()) -> i32 {
    // SAFETY: the child uses nothing that threads of the parent may hold, but what the library sees to.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let done = std::panic::catch_unwind(work);
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(done.is_err().into()) };
    }
    let (deadline, mut status) = (Instant::now() + TIME_LIMIT, 0);
    // SAFETY: a child of this process.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > deadline {
            // SAFETY: the process is a child that has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    status
}

#[test]
fn a_child_opens_an_adapter_of_its_own() {
    let _turn = turn();
    use_the_library();
    assert_eq!(in_a_child(use_the_library), 0, "the parent has closed all that it had");
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    drop(connect(&active, &passive));
    for _ in 0..3 {
        assert_eq!(in_a_child(use_the_library), 0, "the child's status");
        messages_pass(&active, &passive);
    }
    let with_a_child = || {
        let adapter = open();
        let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
        drop(connect(&active, &passive));
        assert_eq!(in_a_child(use_the_library), 0, "a child's child");
        messages_pass(&active, &passive);
    };
    assert_eq!(in_a_child(with_a_child), 0, "a child that has a child");
    messages_pass(&active, &passive);
}

/// The number of wake-ups of a task.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Both ends of a connection within a session, and a receive on the second.
fn connected() -> (Session, Connection, Connection, Transfer<Buffer>) {
    let session = Session::new(&Provider::open_any().unwrap()).unwrap();
    let acceptor = session.listen(Provider::addresses().unwrap()[0]).unwrap();
    let at = acceptor.local_address().unwrap();
    let (client, server, receiving) = std::thread::scope(|threads| {
        let asking = threads.spawn(|| {
            let pair = session.queue_pair().build().unwrap();
            session.wait(session.connect(pair, at, Offer::default())).unwrap()
        });
        let pair = session.queue_pair().build().unwrap();
        let receiving = pair.receive(session.buffer(8).unwrap());
        let incoming = session.wait(acceptor.request()).unwrap();
        let server = session.wait(incoming.accept(pair, Offer::default())).unwrap();
        (asking.join().unwrap(), server, receiving)
    });
    (session, client, server, receiving)
}

/// A task waits for a message that the library's own thread delivers. `meanwhile` is called before the message is sent.
fn a_task_gets_its_message(meanwhile: impl FnOnce()) {
    let (session, client, _server, receiving) = connected();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut context = Context::from_waker(&waker);
    let mut receiving = pin!(receiving);
    assert!(receiving.as_mut().poll(&mut context).is_pending());
    meanwhile();
    assert_eq!(count.0.load(Ordering::SeqCst), 0, "nothing was sent");
    drop(client.send(session.buffer(5).unwrap()));
    let begin = Instant::now();
    while count.0.load(Ordering::SeqCst) == 0 {
        assert!(begin.elapsed() < TIME_LIMIT, "the task is not woken");
        std::thread::yield_now();
    }
    match receiving.as_mut().poll(&mut context) {
        Poll::Ready((_, received)) => assert_eq!(received.unwrap().bytes, 5),
        Poll::Pending => panic!("woken for nothing"),
    }
}

#[test]
fn a_child_leaves_its_parents_futures_alone_and_has_its_own() {
    let _turn = turn();
    a_task_gets_its_message(|| {
        for _ in 0..2 {
            assert_eq!(in_a_child(|| a_task_gets_its_message(|| {})), 0, "the child's status");
        }
    });
}
