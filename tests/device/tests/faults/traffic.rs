//! Connections over the wire, and messages whose contents are compared.

use crate::BOUND;
use fastrand::Rng;
use ndcompat::connector::Offer;
use ndcompat::types::{RequestFlags, RequestType};
use ndcompat::{Status, provider};
use std::net::SocketAddr;
use std::time::Instant;
use support::lab::Wire;
use support::{End, Pair, listen};

/// The number of messages in flight in each direction, and the size of their slots.
pub const WINDOW: usize = 8;
pub const ROOM: usize = 4096;

/// Reads may be outstanding in both directions.
const OFFER: Offer<'static> = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: &[] };

/// An end at `address`.
pub fn end_at(address: SocketAddr, context: u64) -> End {
    let id = provider::resolve_address(address.into()).unwrap();
    End::new(&provider::open_adapter(id).unwrap(), context)
}

/// Connects `end` from `from` to a listener at `to`.
pub fn connect(end: &End, from: SocketAddr, to: SocketAddr) -> Result<(), Status> {
    let (mut connect, mut complete) = (end.operation(), end.operation());
    end.connector.bind(from.into())?;
    // SAFETY: both are waited for.
    unsafe {
        end.connector.connect(&end.queue_pair, to.into(), OFFER, connect.ov())?;
        succeeded(connect.wait())?;
        end.connector.complete_connect(complete.ov())?;
    }
    succeeded(complete.wait())
}

pub fn succeeded(status: Status) -> Result<(), Status> {
    if status == Status::SUCCESS { Ok(()) } else { Err(status) }
}

/// The address of one end of the wire, with port 0.
pub fn address_of(wire: &Wire, end: usize) -> SocketAddr {
    SocketAddr::new(wire.ends[end].address.ip(), 0)
}

/// Two connected ends on the two ends of the wire, with receives posted at the passive one.
pub fn over(wire: &Wire) -> Result<Pair, Status> {
    let (active, passive) = (end_at(address_of(wire, 0), 1), end_at(address_of(wire, 1), 2));
    receive_window(&passive)?;
    join(wire, active, passive)
}

/// Connects two ends over the wire.
pub fn join(wire: &Wire, active: End, passive: End) -> Result<Pair, Status> {
    let (from, to) = (address_of(wire, 0), address_of(wire, 1));
    let (listener, at) = listen(&passive.adapter, &passive.file, to.into());
    let at = SocketAddr::new(at.ip(), at.port());
    let (mut request, mut accept) = (passive.operation(), passive.operation());
    // SAFETY: both are waited for, or end with the listener and the connector.
    unsafe {
        listener.connection_request(&passive.connector, request.ov())?;
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| connect(&active, from, at));
            while request.status() == Status::PENDING && !asking.is_finished() {
                std::thread::yield_now();
            }
            if request.status() == Status::SUCCESS {
                passive.connector.accept(&passive.queue_pair, OFFER, accept.ov())?;
            }
            asking.join().expect("no panic")
        })?;
    }
    succeeded(accept.wait())?;
    Ok(Pair { active, passive })
}

/// The offset of the slot of the `number`-th message to send.
pub fn sent(number: usize) -> usize {
    number % WINDOW * ROOM
}

pub fn received(number: usize) -> usize {
    WINDOW * ROOM + sent(number)
}

/// Posts a receive for each message of a window.
pub fn receive_window(end: &End) -> Result<(), Status> {
    (0..WINDOW).try_for_each(|number| end.receive(number as u64, received(number)..received(number) + ROOM))
}

/// Copies into the registered memory.
pub fn fill(end: &mut End, at: usize, bytes: &[u8]) {
    end.memory.bytes[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Sends `count` messages, one window after the other, and compares what arrives. Fails with the status of the first failed
/// request.
pub fn exchange(pair: &mut Pair, random: &mut Rng, count: usize) -> Result<(), Status> {
    let mut messages = vec![Vec::new(); WINDOW];
    for batch in 0..count.div_ceil(WINDOW) {
        for (number, message) in messages.iter_mut().enumerate() {
            message.resize(random.usize(1..=ROOM), 0);
            random.fill(message);
            fill(&mut pair.active, sent(number), message);
            pair.active.send(
                number as u64,
                sent(number)..sent(number) + message.len(),
                RequestFlags::empty(),
            )?;
        }
        let deadline = Instant::now() + BOUND;
        let (mut done, mut next) = (0, 0);
        while done < WINDOW || next < WINDOW {
            assert!(Instant::now() < deadline, "batch {batch} does not end");
            if let Some(result) = pair.active.try_completion() {
                succeeded(result.status)?;
                assert_eq!((result.request_context, result.request_type), (done as u64, RequestType::Send));
                done += 1;
            }
            if let Some(result) = pair.passive.try_completion() {
                succeeded(result.status)?;
                assert_eq!(
                    (result.request_context, result.request_type),
                    (next as u64, RequestType::Receive)
                );
                let (message, at) = (&messages[next], received(next));
                assert_eq!(result.bytes_transferred as usize, message.len());
                assert!(
                    pair.passive.memory.bytes[at..at + message.len()] == message[..],
                    "the contents differ"
                );
                pair.passive.receive(next as u64, at..at + ROOM)?;
                next += 1;
            }
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Reads from the passive end's memory, a window at once, and compares. Fails with the status of the first failed request.
pub fn read(pair: &mut Pair, random: &mut Rng) -> Result<(), Status> {
    // No message is under way: the slots to send from there and to receive into here are free.
    let mut expected = vec![0; WINDOW * ROOM];
    random.fill(&mut expected);
    fill(&mut pair.passive, 0, &expected);
    let token = pair.passive.memory.region.remote_token();
    for number in 0..WINDOW {
        let sge = pair.active.memory.sge(received(number)..received(number) + ROOM);
        let source = pair.passive.memory.remote_address(sent(number));
        // SAFETY: the memory of both ends lives as long as the pair.
        unsafe { pair.active.queue_pair.read(number as u64, &[sge], source, token, RequestFlags::empty())? };
    }
    let deadline = Instant::now() + BOUND;
    let mut done = 0;
    while done < WINDOW {
        assert!(Instant::now() < deadline, "a read does not end");
        let Some(result) = pair.active.try_completion() else {
            std::thread::yield_now();
            continue;
        };
        succeeded(result.status)?;
        assert_eq!((result.request_context, result.request_type), (done as u64, RequestType::Read));
        let found = &pair.active.memory.bytes[received(done)..received(done) + ROOM];
        assert!(found == &expected[sent(done)..sent(done) + ROOM], "the contents of read {done} differ");
        done += 1;
    }
    Ok(())
}
