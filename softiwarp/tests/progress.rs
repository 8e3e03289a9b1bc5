//! Which thread drives the sockets, with how many system calls: a polling thread, a waiting one, or the background thread.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use softiwarp::completion::{self, Arm, CompletionQueue, Status};
use softiwarp::queue_pair::{Cause, Payload, QueuePair, QueuePairConfig, SendRequest, Work};
use softiwarp::socket::{Background, Connection, Ended, Event};
use softiwarp::startup::{Asked, Offer};
use softiwarp::wire::startup::Parsed;
use softiwarp::wire::{Header, ReadRequest, SendKind, StartFrame, StartKind};
use support::ALL;
use support::device::*;

/// A device that is connected to a socket of the test.
fn connected_to_a_socket(device: &Device, end: &End) -> (Arc<Connection>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let offer = Offer { peer_to_peer: false, ..OFFER };
    let connection = device.connect(listener.local_addr().unwrap(), offer, b"", end);
    let mut stream = listener.accept().unwrap().0;
    stream.set_nodelay(true).unwrap();
    let mut request = vec![0; 24];
    device.poller.drive(Some(Duration::from_secs(1)));
    stream.read_exact(&mut request).unwrap();
    let Ok(Parsed::Frame(frame, _)) = StartFrame::parse(&request, StartKind::Request) else {
        panic!("{request:?}")
    };
    let (reply, _) = Asked::new(&frame).accept(&offer, b"").unwrap();
    stream.write_all(&reply).unwrap();
    let (_, event) = event(&[device], device);
    assert!(matches!(event, Event::Established { .. }));
    (connection, stream)
}

fn post_inline(connection: &Connection, id: u64) {
    let payload = Payload::Inline(&[b"12345678"]);
    let work = Work::Send(SendKind::default());
    connection.post_send(&SendRequest { id, work, payload, signaled: true, fence: false }).unwrap();
}

/// How many segments with data TCP has received.
fn segments(stream: &TcpStream) -> u32 {
    // The field comes after those that the structure of the C library has.
    let mut bytes = [0u8; 256];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: there is room for as many bytes as said.
    let result = unsafe {
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        libc::getsockopt(stream.as_raw_fd(), level, name, bytes.as_mut_ptr().cast(), &raw mut length)
    };
    assert_eq!(result, 0);
    // tcpi_data_segs_in of linux/tcp.h
    u32::from_ne_bytes(bytes[152..156].try_into().unwrap())
}

const FRAME: usize = 2 + 18 + 8 + 4;

#[test]
fn small_requests_that_are_posted_one_by_one_go_together() {
    let device = Device::new();
    let end = device.end(1);
    let (connection, mut stream) = connected_to_a_socket(&device, &end);
    let _background = Background::start(Arc::clone(&device.poller)).unwrap();
    // On a busy machine the program may be away for so long that the background takes over, and nothing waits.
    let together = (0..1000).any(|_| {
        device.poller.drive(Some(Duration::ZERO));
        let before = segments(&stream);
        for id in 0..64 {
            post_inline(&connection, id);
        }
        assert_eq!(completions(&[&device], &end.sent, 64).len(), 64);
        stream.read_exact(&mut [0; 64 * FRAME]).unwrap();
        segments(&stream) - before <= 8
    });
    assert!(together);
}

#[test]
fn batched_requests_are_sent_also_if_the_program_never_polls() {
    let device = Device::new();
    let end = device.end(1);
    let (connection, mut stream) = connected_to_a_socket(&device, &end);
    let _background = Background::start(Arc::clone(&device.poller)).unwrap();
    for _ in 0..20 {
        device.poller.progress(&end.sent);
        for id in 0..5 {
            post_inline(&connection, id);
        }
        stream.read_exact(&mut [0; 5 * FRAME]).unwrap();
    }
}

#[test]
fn nothing_is_batched_while_a_thread_of_the_program_sleeps_in_drive() {
    let device = Device::new();
    let end = device.end(1);
    let (connection, mut stream) = connected_to_a_socket(&device, &end);
    let _background = Background::start(Arc::clone(&device.poller)).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let poller = Arc::clone(&device.poller);
    let driver = std::thread::spawn(move || {
        // The thread in the background is off duty from here on.
        poller.drive(Some(Duration::ZERO));
        tell.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
        poller.drive(None);
    });
    let stat = std::path::Path::new("/proc").join(told.recv().unwrap()).join("stat");
    while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
        std::thread::yield_now();
    }
    for id in 0..5 {
        post_inline(&connection, id);
    }
    // Less than the time after which the timer of the start-up, which is over, wakes the thread once.
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let arrived = stream.read_exact(&mut [0; 5 * FRAME]);
    // Its end wakes the thread.
    drop(stream);
    driver.join().unwrap();
    arrived.expect("all five requests");
}

#[test]
fn a_stream_without_end_keeps_no_other_connection_waiting() {
    let device = Device::new();
    let (busy, other) = (device.end(1), device.end(2));
    let (_busy, mut stream) = connected_to_a_socket(&device, &busy);
    let (_other, mut waiting) = connected_to_a_socket(&device, &other);
    let send = |stream: &mut TcpStream, header: Header| {
        let mut frame = (header.size() as u16).to_be_bytes().to_vec();
        header.put(&mut frame);
        frame.extend([0; 4]);
        stream.write_all(&frame).unwrap();
    };
    // Empty writes, which take no receive.
    let write = Header::Write { token: 0, offset: 0, last: true };
    send(&mut stream, write);
    // Its socket is read directly from now on.
    device.poller.drive(Some(Duration::from_secs(30)));
    let request = ReadRequest { sink: (7, 0), length: 0, source: (0, 0) };
    send(&mut waiting, Header::ReadRequest { number: 1, request });
    waiting.set_nonblocking(true).unwrap();
    let answered = (0..10_000).any(|_| {
        send(&mut stream, write);
        device.poller.progress(&busy.received);
        waiting.read_exact(&mut [0; 20]).is_ok()
    });
    assert!(answered);
}

#[test]
fn what_was_posted_is_sent_before_the_end() {
    let device = Device::new();
    let end = device.end(1);
    let (connection, mut stream) = connected_to_a_socket(&device, &end);
    let _background = Background::start(Arc::clone(&device.poller)).unwrap();
    device.poller.progress(&end.sent);
    for id in 0..5 {
        post_inline(&connection, id);
    }
    connection.disconnect();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 5 * FRAME);
    let done: Vec<_> = std::iter::from_fn(|| end.sent.poll()).collect();
    assert_eq!(seen(&done), [0, 1, 2, 3, 4].map(|id| (id, Status::Success)));
}

/// How often the threads in the background have gone to sleep.
fn naps() -> u64 {
    let mut count = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
        if status.starts_with("Name:\tsoftiwarp\n") {
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
            count += line.split_whitespace().last().unwrap().parse::<u64>().unwrap();
        }
    }
    count
}

/// In a process of its own, as there is one thread of each background that a test has.
#[test]
fn the_background_does_not_wake_up_while_the_program_attends_or_waits() {
    const INSIDE: &str = "SOFTIWARP_TEST_BACKGROUND";
    if std::env::var_os(INSIDE).is_none() {
        let name = "the_background_does_not_wake_up_while_the_program_attends_or_waits";
        let ended = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(INSIDE, "1")
            .status();
        assert!(ended.unwrap().success());
        return;
    }
    let device = Device::new();
    let end = device.end(1);
    let (_connection, _stream) = connected_to_a_socket(&device, &end);
    let _background = Background::start(Arc::clone(&device.poller)).unwrap();
    let begin = naps();
    let until = Instant::now() + Duration::from_millis(200);
    let (mut last, mut away) = (Instant::now(), 0);
    while last < until {
        device.poller.progress(&end.received);
        let now = Instant::now();
        // The machine may keep the program from running for so long that the background has to take over.
        away += u64::from(now - last > Duration::from_millis(1));
        last = now;
    }
    let polling = naps();
    // It may fall asleep once when it begins.
    assert!(polling - begin <= 2 + away, "{} {away}", polling - begin);
    device.poller.drive(Some(Duration::from_millis(200)));
    assert!(naps() - polling <= 3, "{}", naps() - polling);
}

#[test]
fn a_wait_ends_when_something_else_is_readable() {
    let device = Device::new();
    // SAFETY: no pointer is passed, and the descriptor is nobody else's.
    let other = unsafe { OwnedFd::from_raw_fd(libc::eventfd(1, 0)) };
    assert!(!device.poller.drive_or(other.as_fd(), None));
}

#[test]
fn the_descriptor_says_when_there_is_something_to_move() {
    let one = connected("127.0.0.1:0", OFFER);
    let both = [&one.devices.0, &one.devices.1];
    one.ends.1.pair.lock().post_receive(7, &[]).unwrap();
    while both.iter().any(|device| device.poller.drive(Some(Duration::from_millis(20)))) {}
    let readable = |wait| {
        let fd = one.devices.1.poller.descriptor().as_raw_fd();
        let mut set = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which is there while the call lasts.
        unsafe { libc::poll(&raw mut set, 1, wait) == 1 }
    };
    assert!(!readable(0));
    post(&one.connections.0, 1, Work::Send(SendKind::default()), &[]);
    assert!(readable(10_000));
    one.devices.1.poller.drive(Some(Duration::ZERO));
    assert_eq!(seen(&completions(&both, &one.ends.1.received, 1)), [(7, Status::Success)]);
}

fn pair_with(device: &Device, number: u32, queue: &Arc<CompletionQueue>) -> End {
    let pair = QueuePair::new(QueuePairConfig {
        number,
        domain: device.domain.clone(),
        send_completions: Arc::clone(queue),
        receive_completions: Arc::clone(queue),
        send_depth: 16,
        receive_depth: 16,
        shared_receives: None,
        pieces_max: 4,
        inline_max: 64,
    });
    End { pair: Arc::new(Mutex::new(pair)), sent: Arc::clone(queue), received: Arc::clone(queue) }
}

#[test]
fn a_queue_that_overflows_tells_it_once_and_ends_all_its_connections() {
    let device = Device::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let small = Arc::new(CompletionQueue::new(2, move |event| telling.lock().push(event)));
    let (one, two, other) = (pair_with(&device, 1, &small), pair_with(&device, 2, &small), device.end(3));
    let (first, _a) = connected_to_a_socket(&device, &one);
    let (_second, mut b) = connected_to_a_socket(&device, &two);
    let (third, mut c) = connected_to_a_socket(&device, &other);
    for id in 0..3 {
        post_inline(&first, id);
    }
    let mut ended = Vec::new();
    for _ in 0..2 {
        let (connection, event) = event(&[&device], &device);
        assert_eq!(event, Event::Ended(Ended::Disconnected(Some(Cause::Overflow))));
        ended.push(connection.local_address().ok());
    }
    assert_ne!(ended[0], ended[1]);
    assert_eq!(*told.lock(), [completion::Event::Overflow]);
    assert!(small.has_overflowed());
    let mut last = Vec::new();
    b.read_to_end(&mut last).unwrap();
    assert_eq!(last[2..4], [0x41, 0x47], "a Terminate, and the end");
    post_inline(&third, 9);
    c.read_exact(&mut [0; FRAME]).unwrap();
    assert_eq!(seen(&completions(&[&device], &other.sent, 1)), [(9, Status::Success)]);
}

/// Nothing moves on the other connection.
#[test]
fn a_queue_that_overflows_when_a_connection_is_ended_ends_the_others() {
    let device = Device::new();
    let small = Arc::new(CompletionQueue::new(4, |_| {}));
    let (one, two) = (pair_with(&device, 1, &small), pair_with(&device, 2, &small));
    let (first, _a) = connected_to_a_socket(&device, &one);
    let (_second, mut b) = connected_to_a_socket(&device, &two);
    for id in 0..5 {
        one.pair.lock().post_receive(id, &[]).unwrap();
    }
    first.disconnect();
    assert!(small.has_overflowed());
    for cause in [Cause::Overflow, Cause::Local] {
        let event = event(&[&device], &device).1;
        assert_eq!(event, Event::Ended(Ended::Disconnected(Some(cause))));
    }
    let mut last = Vec::new();
    b.read_to_end(&mut last).unwrap();
    assert_eq!(last[2..4], [0x41, 0x47], "a Terminate, and the end");
}

#[test]
fn a_queue_armed_for_solicited_ones_is_told_of_them_and_of_failures() {
    let one = connected("127.0.0.1:0", OFFER);
    let both = [&one.devices.0, &one.devices.1];
    let told = Arc::new(Mutex::new(0));
    let telling = Arc::clone(&told);
    let queue = Arc::new(CompletionQueue::new(16, move |_| *telling.lock() += 1));
    let end = pair_with(&one.devices.1, 9, &queue);
    let (_listener, address) = one.devices.1.listen("127.0.0.1:0");
    let near = one.devices.0.end(8);
    let ours = one.devices.0.connect(address, OFFER, b"", &near);
    let (theirs, _) = event(&both, &one.devices.1);
    theirs.accept(&OFFER, b"", Arc::clone(&end.pair)).unwrap();
    let (_, established) = event(&both, &one.devices.0);
    assert!(matches!(established, Event::Established { .. }));
    for id in 0..4 {
        end.pair.lock().post_receive(id, &[]).unwrap();
    }
    queue.arm(Arm::Solicited);
    let solicited = SendKind { solicited: true, invalidate: None };
    for (kind, expected) in [(SendKind::default(), 0), (solicited, 1), (solicited, 1)] {
        post(&ours, 1, Work::Send(kind), &[]);
        assert_eq!(completions(&both, &queue, 1)[0].status, Status::Success);
        assert_eq!(*told.lock(), expected, "once for each time it was armed");
    }
    queue.arm(Arm::Solicited);
    ours.disconnect();
    assert_eq!(seen(&completions(&both, &queue, 1)), [(3, Status::Flushed)]);
    assert_eq!(*told.lock(), 2);
}

#[test]
fn a_device_that_is_removed_ends_what_it_has() {
    let one = connected("127.0.0.1:0", OFFER);
    let both = [&one.devices.0, &one.devices.1];
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, waiting) = (silent.local_addr().unwrap(), one.devices.0.end(5));
    let begun = one.devices.0.connect(address, OFFER, b"", &waiting);
    let (_listener, listens) = one.devices.0.listen("127.0.0.1:0");
    for id in 0..3 {
        one.ends.0.pair.lock().post_receive(id, &[]).unwrap();
    }
    one.devices.0.poller.remove_device();
    let flushed: Vec<_> = std::iter::from_fn(|| one.ends.0.received.poll()).collect();
    assert_eq!(seen(&flushed), [0, 1, 2].map(|id| (id, Status::Flushed)));
    for (connection, event) in one.devices.0.told.0.lock().drain(..) {
        let expected = if Arc::ptr_eq(&connection, &begun) {
            Ended::Removed
        } else {
            Ended::Disconnected(Some(Cause::Removed))
        };
        assert_eq!(event, Event::Ended(expected));
    }
    assert!(one.devices.0.poller.is_idle());
    let gone = Event::Ended(Ended::Disconnected(Some(Cause::Closed)));
    assert_eq!(event(&both, &one.devices.1).1, gone);
    assert!(TcpStream::connect(listens).is_err());
    let again = Connection::connect(
        &one.devices.0.poller,
        (None, address),
        (OFFER, b""),
        Arc::clone(&one.devices.0.end(6).pair),
        one.devices.0.handler(),
    );
    assert_eq!(again.err().and_then(|error| error.raw_os_error()), Some(libc::ENODEV));
}

#[test]
fn all_that_is_posted_at_once_goes_in_one_call() {
    let device = Device::new();
    let end = device.end(1);
    let (connection, mut stream) = connected_to_a_socket(&device, &end);
    let before = segments(&stream);
    let mut posting = connection.posting().unwrap();
    for id in 0..64 {
        let payload = Payload::Inline(&[b"12345678"]);
        let work = Work::Send(SendKind::default());
        posting.post_send(&SendRequest { id, work, payload, signaled: true, fence: false }).unwrap();
    }
    drop(posting);
    stream.read_exact(&mut [0; 64 * FRAME]).unwrap();
    assert_eq!(segments(&stream) - before, 1);
    assert_eq!(completions(&[&device], &end.sent, 64).len(), 64);
}

/// What a device is said to have: a message of 1 GiB, in memory that is the same 2 MiB again and again.
#[test]
fn a_message_of_1_gib_arrives() {
    const PART: usize = 2 << 20;
    const WHOLE: usize = 1 << 30;
    // SAFETY: memory of the test's own: a range of addresses, in which the parts of one file of memory are put, and which
    // is there to the end.
    let start = unsafe {
        let file = OwnedFd::from_raw_fd(libc::memfd_create(c"message".as_ptr(), 0));
        assert_eq!(libc::ftruncate(file.as_raw_fd(), PART as libc::off_t), 0);
        let reserve = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let start = libc::mmap(std::ptr::null_mut(), WHOLE, libc::PROT_NONE, reserve, -1, 0);
        for part in 0..WHOLE / PART {
            let (at, both) = (start.add(part * PART), libc::PROT_READ | libc::PROT_WRITE);
            let fixed = libc::MAP_SHARED | libc::MAP_FIXED;
            assert_eq!(libc::mmap(at, PART, both, fixed, file.as_raw_fd(), 0), at);
        }
        start.cast::<u8>()
    };
    let one = connected("127.0.0.1:0", OFFER);
    let both = [&one.devices.0, &one.devices.1];
    // SAFETY: the range stays mapped to the end of the program, and the test uses it by pointers alone.
    let regions = both.map(|device| unsafe { device.domain.register(start, WHOLE, 0, ALL).unwrap() });
    let piece = |number: usize| softiwarp::queue_pair::Piece {
        offset: 0,
        length: WHOLE as u32,
        token: regions[number].token(),
    };
    one.ends.1.pair.lock().post_receive(7, &[piece(1)]).unwrap();
    post(&one.connections.0, 1, Work::Send(SendKind::default()), &[piece(0)]);
    let done = completions(&both, &one.ends.1.received, 1);
    assert_eq!((done[0].status, done[0].length), (Status::Success, WHOLE as u32));
}
