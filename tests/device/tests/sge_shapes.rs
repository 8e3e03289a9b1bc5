//! Lists of SGEs of every shape: up to four entries, each without bytes, without an address, short or long.

use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat::types::{RequestFlags, RequestType, Sge};
use support::{End, Pair, adapter, address};

/// The most entries of a list.
const ENTRIES: u32 = 4;
/// The room for each entry in the memory of an end, in bytes.
const ROOM: usize = 4096;
/// Where in the memory of an end the lists of requests are, where those of receives, and where peers write to and read from.
const REQUEST: usize = 0;
const RECEIVE: usize = 4 * ROOM;
const REMOTE: usize = 8 * ROOM;
/// Where a message is that only follows others.
const LAST: usize = 15 * ROOM;

/// An entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// No bytes at a valid address.
    Empty,
    /// No bytes, no address, no token.
    Null,
    Short,
    Long,
}

impl Entry {
    fn length(self) -> usize {
        match self {
            Entry::Empty | Entry::Null => 0,
            Entry::Short => 10,
            Entry::Long => 3000,
        }
    }
}

/// All lists.
fn lists() -> impl Iterator<Item = Vec<Entry>> {
    const KINDS: [Entry; 4] = [Entry::Empty, Entry::Null, Entry::Short, Entry::Long];
    (0..=ENTRIES).flat_map(|count| {
        (0..KINDS.len().pow(count)).map(move |number| {
            (0..count).map(|at| KINDS[number / KINDS.len().pow(at) % KINDS.len()]).collect()
        })
    })
}

fn length(list: &[Entry]) -> usize {
    list.iter().map(|entry| entry.length()).sum()
}

/// The list in the memory of `end`, from `start` on.
fn sges(end: &End, start: usize, list: &[Entry]) -> Vec<Sge> {
    let places = list.iter().zip((start..).step_by(ROOM));
    let sge = places.map(|(entry, at)| match entry {
        Entry::Null => Sge::default(),
        _ => end.memory.sge(at..at + entry.length()),
    });
    sge.collect()
}

/// The bytes of the list in the memory of `end`, from `start` on.
fn bytes(end: &End, start: usize, list: &[Entry]) -> Vec<u8> {
    let places = list.iter().zip((start..).step_by(ROOM));
    places.flat_map(|(entry, at)| end.memory.bytes[at..at + entry.length()].to_vec()).collect()
}

struct Shapes {
    pair: Pair,
    inline: usize,
    /// A number for each request, from which its data and its context come.
    number: u64,
}

impl Shapes {
    fn new() -> Shapes {
        let adapter = adapter();
        let [active, passive] = [1, 2].map(|context| End::with_sge(&adapter, context, ENTRIES));
        let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: b"" };
        let inline = adapter.info().unwrap().inline_request_threshold as usize;
        Shapes { pair: Pair::connect(active, passive, address(), offer, offer), inline, number: 1 }
    }

    /// Data that no request had before, in the memory of an end from `start` on.
    fn fill(&mut self, active: bool, start: usize) {
        self.number += 1;
        let mut random = fastrand::Rng::with_seed(self.number);
        let end = if active { &mut self.pair.active } else { &mut self.pair.passive };
        random.fill(&mut end.memory.bytes[start..start + ENTRIES as usize * ROOM]);
    }

    /// The flags with which a request of `list` is tried: all of them, or, of the many long lists, one in turn.
    fn flags(&self, list: &[Entry]) -> Vec<RequestFlags> {
        let mut flags = vec![RequestFlags::empty(), RequestFlags::SILENT_SUCCESS, RequestFlags::READ_FENCE];
        if length(list) <= self.inline {
            flags.push(RequestFlags::INLINE);
        }
        if list.len() > 2 { vec![flags[self.number as usize % flags.len()]] } else { flags }
    }

    /// Takes the result of the active end's request of that many bytes, if there is one.
    fn result(&self, kind: RequestType, bytes: usize, flags: RequestFlags, case: &str) {
        if flags.contains(RequestFlags::SILENT_SUCCESS) {
            return;
        }
        let result = self.pair.active.completion();
        let seen = (result.status, result.request_type, result.request_context);
        assert_eq!(seen, (Status::SUCCESS, kind, self.number), "{case}");
        let read = if kind == RequestType::Read { bytes } else { 0 };
        assert_eq!(result.bytes_transferred as usize, read, "{case}");
    }

    /// Sends `list`, and receives it with `into`, which has room for it.
    fn send(&mut self, list: &[Entry], into: &[Entry], flags: RequestFlags) {
        let case = format!("Send {list:?} to {into:?}, {flags:?}");
        self.fill(true, REQUEST);
        let Pair { active, passive } = &self.pair;
        // SAFETY: the memory of the ends lives until the requests are done.
        unsafe {
            passive.queue_pair.receive(self.number, &sges(passive, RECEIVE, into)).expect(&case);
            active.queue_pair.send(self.number, &sges(active, REQUEST, list), flags).expect(&case);
        }
        let result = passive.completion();
        assert_eq!((result.status, result.request_context), (Status::SUCCESS, self.number), "{case}");
        assert_eq!(result.bytes_transferred as usize, length(list), "{case}");
        self.result(RequestType::Send, length(list), flags, &case);
        let (sent, received) = (bytes(active, REQUEST, list), bytes(passive, RECEIVE, into));
        assert!(received[..sent.len()] == sent, "{case}");
    }

    /// Lets a message follow, so that the peer has all that was written before. The memory of a silent request may still be read.
    fn settle(&mut self) {
        self.number += 1;
        let Pair { active, passive } = &self.pair;
        passive.receive(self.number, RECEIVE..RECEIVE + 1).unwrap();
        active.send(self.number, LAST..LAST + 1, RequestFlags::empty()).unwrap();
        for end in [passive, active] {
            let result = end.completion();
            assert_eq!((result.status, result.request_context), (Status::SUCCESS, self.number));
        }
    }

    fn write(&mut self, list: &[Entry], flags: RequestFlags) {
        let case = format!("Write {list:?}, {flags:?}");
        self.fill(true, REQUEST);
        let Pair { active, passive } = &self.pair;
        let (at, token) = (passive.memory.remote_address(REMOTE), passive.memory.region.remote_token());
        let sent = bytes(active, REQUEST, list);
        // SAFETY: the memory of the ends lives until the request is done.
        unsafe {
            active
                .queue_pair
                .write(self.number, &sges(active, REQUEST, list), at, token, flags)
                .expect(&case);
        }
        self.result(RequestType::Write, length(list), flags, &case);
        self.settle();
        assert!(self.pair.passive.memory.bytes[REMOTE..][..sent.len()] == sent, "{case}");
    }

    fn read(&mut self, list: &[Entry], flags: RequestFlags) {
        let case = format!("Read {list:?}, {flags:?}");
        self.fill(false, REMOTE);
        let Pair { active, passive } = &self.pair;
        let (at, token) = (passive.memory.remote_address(REMOTE), passive.memory.region.remote_token());
        // SAFETY: the memory of the ends lives until the request is done.
        unsafe {
            active.queue_pair.read(self.number, &sges(active, REQUEST, list), at, token, flags).expect(&case);
        }
        self.result(RequestType::Read, length(list), flags, &case);
        if flags.contains(RequestFlags::SILENT_SUCCESS) {
            // A read that comes later has a result.
            self.number += 1;
            // SAFETY: the memory of the ends lives until the request is done.
            unsafe {
                let last = [active.memory.sge(RECEIVE..RECEIVE + 1)];
                active.queue_pair.read(self.number, &last, at, token, RequestFlags::empty()).expect(&case);
            }
            self.result(RequestType::Read, 1, RequestFlags::empty(), &case);
        }
        let (active, passive) = (&self.pair.active, &self.pair.passive);
        let read = bytes(active, REQUEST, list);
        assert!(passive.memory.bytes[REMOTE..][..read.len()] == read, "{case}");
    }
}

#[test]
fn lists_of_every_shape_are_sent_and_received() {
    let mut shapes = Shapes::new();
    for list in lists() {
        for flags in shapes.flags(&list) {
            // By a list of the same shape, and by one whose empty entries are elsewhere.
            let turned: Vec<_> = list.iter().rev().copied().collect();
            shapes.send(&list, &list, flags);
            shapes.send(&list, &turned, flags);
        }
    }
}

#[test]
fn lists_of_every_shape_are_written() {
    let mut shapes = Shapes::new();
    shapes.settle();
    for list in lists() {
        for flags in shapes.flags(&list) {
            shapes.write(&list, flags);
        }
    }
}

#[test]
fn lists_of_every_shape_are_read() {
    let mut shapes = Shapes::new();
    shapes.settle();
    for list in lists() {
        for flags in shapes.flags(&list) {
            shapes.read(&list, flags);
        }
    }
}
