//! What tshark makes of the device's traffic: no malformed frame, no bad CRC, and each kind of message by its name.

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use softiwarp::memory::{Binding, Rights};
use softiwarp::queue_pair::Work;
use softiwarp::socket::{Ended, Event};
use softiwarp::startup::Offer;
use softiwarp::wire::SendKind;
use support::device::*;
use support::{ALL, Block};

/// What passed, in its order: whether from the side that connected, and the bytes.
type Record = Arc<Mutex<Vec<(bool, Vec<u8>)>>>;

/// Hands on what comes, and records it.
fn relay(mut from: TcpStream, mut to: TcpStream, connects: bool, record: &Record) {
    let mut bytes = vec![0; 16_000];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let mut record = record.lock();
        record.push((connects, bytes[..count].to_vec()));
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// An address that leads to another, with everything recorded.
fn recorded(to: SocketAddr, record: &Record) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let record = Arc::clone(record);
    thread::spawn(move || {
        let near = listener.accept().unwrap().0;
        let far = TcpStream::connect(to).unwrap();
        let (near_out, far_out, other) =
            (near.try_clone().unwrap(), far.try_clone().unwrap(), Arc::clone(&record));
        thread::spawn(move || relay(far, near_out, false, &other));
        relay(near, far_out, true, &record);
    });
    address
}

/// A file of packets, as if they had been captured. Checksums are left out, as adapters leave them out.
fn write_capture(path: &Path, record: &[(bool, Vec<u8>)]) {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 0x0004_0000, 101] {
        out.extend(word.to_ne_bytes());
    }
    let mut next = [1000u32, 2000];
    let mut time = 0u32;
    let mut packet = |connects: bool, flags: u8, bytes: &[u8], next: &mut [u32; 2]| {
        let (who, other) = if connects { (0, 1) } else { (1, 0) };
        let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let ports = [40_000u16, 5_000];
        let length = 40 + bytes.len();
        time += 1;
        for word in [1_700_000_000, time, length as u32, length as u32] {
            out.extend(word.to_ne_bytes());
        }
        out.extend([0x45, 0]);
        out.extend((length as u16).to_be_bytes());
        out.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        out.extend(addresses[who]);
        out.extend(addresses[other]);
        out.extend(ports[who].to_be_bytes());
        out.extend(ports[other].to_be_bytes());
        out.extend(next[who].to_be_bytes());
        out.extend(next[other].to_be_bytes());
        out.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        out.extend_from_slice(bytes);
        next[who] += bytes.len() as u32 + u32::from(flags & 3 != 0);
    };
    packet(true, 0x02, b"", &mut next);
    packet(false, 0x12, b"", &mut next);
    packet(true, 0x10, b"", &mut next);
    for (connects, bytes) in record {
        packet(*connects, 0x18, bytes, &mut next);
    }
    packet(true, 0x11, b"", &mut next);
    packet(false, 0x11, b"", &mut next);
    std::fs::write(path, out).unwrap();
}

fn tshark(path: &Path, arguments: &[&str]) -> String {
    let out = Command::new("tshark")
        .arg("-r")
        .arg(path)
        // Its guess at RPC over RDMA finds fault with messages that are none.
        .args(["--disable-protocol", "rpcordma"])
        .args(arguments)
        .output()
        .expect("tshark, which ci/setup installs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// One of each message, both ways, and a write out of bounds at the end.
fn converse(crc: bool) -> Vec<(bool, Vec<u8>)> {
    let record = Record::default();
    let (near, far) = (Device::new(), Device::new());
    let both = [&near, &far];
    let (_listener, address) = far.listen("127.0.0.1:0");
    let ends = (near.end(1), far.end(2));
    let ours = near.connect(recorded(address, &record), Offer { crc, ..OFFER }, b"hello", &ends.0);
    let (theirs, _) = event(&both, &far);
    theirs.accept(&OFFER, b"come in", Arc::clone(&ends.1.pair)).unwrap();
    event(&both, &near);
    let (mine, yours) = (Block::new(&near.domain, 100_000, ALL), Block::new(&far.domain, 100_000, ALL));
    mine.set(0, &[0x5a; 100_000]);
    let window = near.domain.window().unwrap();
    let rights = Rights { remote_write: true, ..Rights::default() };
    let binding =
        Binding { token: window.token(), region: mine.token(), offset: mine.at(0), length: 100, rights };
    for (connection, block, other, from, to) in
        [(&ours, &mine, &yours, &ends.0, &ends.1), (&theirs, &yours, &mine, &ends.1, &ends.0)]
    {
        let invalidates = Arc::ptr_eq(connection, &theirs);
        let kind = |solicited, invalidate: bool| SendKind {
            solicited,
            invalidate: invalidate.then_some(window.token()),
        };
        let sends = [kind(false, false), kind(true, false), kind(false, invalidates)];
        for id in 0..4 {
            to.pair.lock().post_receive(id, &[other.piece(0, 50_000)]).unwrap();
        }
        if !invalidates {
            post(connection, 0, Work::Bind(binding), &[]);
        }
        let (token, offset) = (other.token(), other.at(7));
        for size in [0, 1, 2, 3, 1000, 30_000] {
            post(connection, 1, Work::Write { token, offset }, &[block.piece(0, size)]);
            post(connection, 2, Work::Read { token, offset }, &[block.piece(0, size)]);
        }
        for (kind, size) in sends.into_iter().zip([5, 14, 2_000]) {
            post(connection, 3, Work::Send(kind), &[block.piece(0, size)]);
        }
        if invalidates {
            post(connection, 4, Work::Write { token, offset: offset - 8 }, &[block.piece(0, 1)]);
        } else {
            completions(&both, &from.sent, 1 + 12 + 3);
            completions(&both, &to.received, 3);
        }
    }
    let (_, end) = event(&both, &near);
    assert!(matches!(end, Event::Ended(Ended::Disconnected(_))), "{end:?}");
    // The relay ends when both sides have.
    until(&both, || (Arc::strong_count(&record) == 1).then_some(()));
    Arc::into_inner(record).map(Mutex::into_inner).unwrap_or_default()
}

#[test]
fn tshark_finds_no_fault() {
    for crc in [false, true] {
        let record = converse(crc);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("iwarp-{}-{crc}.pcap", std::process::id()));
        write_capture(&path, &record);
        let fields = |filter: &str, fields: &[&str]| {
            let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "occurrence=a"];
            for field in fields {
                arguments.extend(["-e", field]);
            }
            let out = tshark(&path, &arguments);
            let words = out.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(fields("_ws.malformed || iwarp_mpa.bad_length", &["frame.number"]), [""; 0]);
        let opcodes: BTreeSet<_> = fields("iwarp_rdma", &["iwarp_rdma.opcode"]).into_iter().collect();
        let all = ["0x00", "0x01", "0x02", "0x03", "0x04", "0x05", "0x07"];
        assert_eq!(opcodes, all.map(str::to_owned).into(), "with CRCs: {crc}");
        // Each byte of TCP is of a frame.
        let number = |word: String| word.parse::<usize>().expect("a number");
        let lengths = fields("iwarp_mpa.ulpdulength", &["iwarp_mpa.ulpdulength"]);
        let frames: usize = lengths.into_iter().map(number).map(softiwarp::wire::fpdu::size).sum();
        let starts: usize =
            fields("iwarp_mpa.pdlength", &["iwarp_mpa.pdlength"]).into_iter().map(|n| 20 + number(n)).sum();
        assert_eq!(frames + starts, record.iter().map(|(_, bytes)| bytes.len()).sum::<usize>());
        let layer = fields("iwarp_rdma.terminate", &["iwarp_rdma.term_layer"]);
        assert_eq!(layer, ["0x01"], "DDP");
        let words = tshark(&path, &["-V"]);
        assert!(!words.contains("Bad CRC32"));
        assert!(words.contains("Tagged Buffer Error") && words.contains("Base or bounds violation"));
        assert_eq!(words.contains("Good CRC32"), crc);
        std::fs::remove_file(&path).unwrap();
    }
}
