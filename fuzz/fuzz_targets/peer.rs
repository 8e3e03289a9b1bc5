//! What a peer may do to a server: private data of any length, answers that do not fit the question, refusals and ends at any
//! time, messages longer than the receives, accesses with any token to any address, failures of its requests. Every
//! request of the server ends, its memory is as it was, and the next peer is served.

#![no_main]

use double::{CmEvent, Side, complete_with, raise_event, replace_event};
use ndcompat::Status;
use ndcompat::types::{RequestFlags, Sge};
use std::time::Instant;
use support::chance::Chance;
use support::client::{Client, Ov, TIME_LIMIT, connected, listen_on, messages_pass};
use support::library::CancelIoEx;

/// Any, those that no request has included.
fn flags(chance: &mut Chance) -> RequestFlags {
    RequestFlags::from_bits_retain(chance.u32(..64))
}

/// `RDMA_CM_EVENT_CONNECT_REQUEST`
const REQUEST: u32 = 4;
/// `RDMA_CM_EVENT_CONNECT_RESPONSE`, `CONNECT_ERROR`, `UNREACHABLE`, `REJECTED`, `ESTABLISHED`, `DISCONNECTED`, `TIMEWAIT_EXIT`
const EVENTS: [u32; 7] = [5, 6, 7, 8, 9, 10, 15];
/// Bytes of the server's memory that messages go to.
const RECEIVED: u32 = 64;

fn data(chance: &mut Chance) -> Vec<u8> {
    let length = [0, 56, 148, 196, 255, chance.usize(..256)][chance.usize(..6)];
    (0..length).map(|_| chance.u8(..)).collect()
}

fn event(chance: &mut Chance) -> CmEvent {
    let status = [0, -110, -104, 28, -(chance.u8(..) as i32), chance.u8(..).into()][chance.usize(..6)];
    CmEvent { kind: EVENTS[chance.usize(..EVENTS.len())], status, data: data(chance) }
}

/// Waits until the requests have ended or nothing more can come, then cancels them: so each ends.
fn end(server: &Client, requests: &[&Ov]) {
    let pending = || requests.iter().any(|request| request.internal() == Status::PENDING);
    if pending() {
        // SAFETY: an open file.
        unsafe { CancelIoEx(server.file, std::ptr::null_mut()) };
    }
    let deadline = Instant::now() + TIME_LIMIT;
    while pending() {
        assert!(Instant::now() < deadline, "a request never ends");
        std::thread::yield_now();
    }
    for request in requests {
        assert!(request.internal().name().is_some(), "{:#x}", request.internal().0);
    }
}

/// One peer, from its request for a connection to its end.
fn visit(server: &Client, chance: &mut Chance) {
    let peer = Client::on(&support::client::open());
    let (listener, at) = listen_on(&server.adapter, server.file);
    if chance.bool() {
        replace_event(REQUEST, Some(CmEvent { kind: REQUEST, status: 0, data: data(chance) }));
    }
    for _ in 0..chance.usize(..3) {
        let with = (chance.u8(..8) > 0).then(|| event(chance));
        replace_event(EVENTS[chance.usize(..EVENTS.len())], with);
    }
    let [mut request, mut connect, mut accept, mut complete, mut left, mut end_of_peer] =
        std::array::from_fn(|_| {
            let mut ov = Ov::new();
            // SAFETY: it is this function's own; one that was never begun is not pending.
            unsafe { (*ov.ptr()).internal = 0.into() };
            ov
        });
    // SAFETY: pointers are to locals, with the lengths told; every request has ended before its OVERLAPPED goes.
    unsafe {
        let connector = server.connector.as_ptr();
        assert_eq!(listener.get_connection_request(connector, request.ptr()), Status::PENDING);
        assert_eq!(peer.bind(), Status::SUCCESS);
        let said: Vec<u8> = (0..chance.usize(..=56)).map(|_| chance.u8(..)).collect();
        peer.connect(at, &said, &mut connect);
        let deadline = Instant::now() + TIME_LIMIT;
        while request.internal() == Status::PENDING {
            assert!(Instant::now() < deadline, "no connection request");
            std::thread::yield_now();
        }
        let mut heard = [0_u8; 300];
        let mut room = chance.u32(..300);
        server.connector.get_private_data(heard.as_mut_ptr().cast(), &mut room);
        assert!(room <= 255, "{room} bytes of private data");
        server.receive(1, RECEIVED);
        match chance.u32(..8) {
            0 => drop(server.connector.reject(heard.as_ptr().cast(), chance.u32(..200))),
            1 => {}
            _ => drop(server.accept(&heard[..chance.usize(..200)], &mut accept)),
        }
        if chance.bool() {
            server.connector.notify_disconnect(left.ptr());
        }
        for _ in 0..chance.usize(..12) {
            match chance.u32(..8) {
                0 => raise_event(at.port(), event(chance)),
                1 => complete_with(Side::Initiator, chance.u32(..23)),
                2 => drop(peer.connector.complete_connect(complete.ptr())),
                3 => drop(peer.send(2, chance.u32(..=2 * RECEIVED), flags(chance))),
                4 | 5 => {
                    let token = server.region.get_remote_token().wrapping_add(chance.u32(1..));
                    let sge = Sge { length: chance.u32(..100), ..peer.sge(0, 0) };
                    let address = (server.memory.as_ptr() as u64).wrapping_add(chance.u64(..));
                    let pair = &peer.queue_pair;
                    if chance.bool() {
                        pair.write(std::ptr::null_mut(), &sge, 1, address, token, flags(chance));
                    } else {
                        pair.read(std::ptr::null_mut(), &sge, 1, address, token, flags(chance));
                    }
                }
                6 => drop(server.try_result()),
                _ => drop(peer.try_result()),
            }
        }
        if chance.bool() {
            peer.disconnect(&mut end_of_peer);
        }
        assert!(server.memory[RECEIVED as usize..].iter().all(|&byte| byte == 0), "a write by no right");
    }
    end(server, &[&request, &accept, &left]);
    end(&peer, &[&connect, &complete, &end_of_peer]);
    drop(listener);
    drop(peer);
}

thread_local! {
    static LASTING: (double::Turn, (Client, Client)) = (double::turn(), connected());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    LASTING.with(|(_turn, (active, passive))| {
        let server = Client::new();
        visit(&server, &mut Chance::with_bytes(data));
        double::forget_all();
        drop(server);
        messages_pass(active, passive);
    });
});
