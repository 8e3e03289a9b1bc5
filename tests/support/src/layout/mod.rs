//! The ways in which programs distribute objects over adapters, overlapped files and completion ports, and a program that runs
//! with any of them.
//!
//! A layout is determined by its number: [`Layout::new`] makes the same layout of the same number.

mod delivery;
mod program;

pub use program::{Devices, run};

use fastrand::Rng;

/// An object that runs its requests on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Connector,
    Listener,
    InitiatorQueue,
    ReceiveQueue,
    Region,
}

/// How many kinds of object there are.
const OBJECTS: usize = 5;

/// Where the completions of a file's requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    /// To `GetOverlappedResult` alone.
    Nowhere,
    /// To a completion port of its own.
    OwnPort,
    /// To a completion port that all such files share.
    SharedPort,
    /// To a callback (`BindIoCompletionCallback`).
    Callback,
}

/// The destinations of files, in turn: the same for all, or each of them.
const DESTINATIONS: [&[Destination]; 5] = {
    use Destination::*;
    [&[Nowhere], &[OwnPort], &[SharedPort], &[Callback], &[SharedPort, Callback, Nowhere, OwnPort]]
};

/// When files are bound to their destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    /// Before anything is created on them.
    First,
    /// When all is created, and nothing asked of it.
    Created,
    /// When connections are up, and nothing is pending.
    Connected,
}

const BINDINGS: [Binding; 3] = [Binding::First, Binding::Created, Binding::Connected];

/// What the two connections share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Adapters {
    /// One adapter; all four ends use the same files.
    One,
    /// One adapter; the connecting ends share files, and so do the listening ends.
    OneFilesApart,
    /// The listening ends use a second open of the adapter, with files of its own.
    TwoOpenings,
    /// The same, with the files of the first open.
    BorrowedFiles,
    /// Each connection is on a device of its own.
    TwoDevices,
}

const ADAPTERS: [Adapters; 5] = [
    Adapters::One,
    Adapters::OneFilesApart,
    Adapters::TwoOpenings,
    Adapters::BorrowedFiles,
    Adapters::TwoDevices,
];

/// The value of `hEvent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    None,
    /// An event.
    Plain,
    /// An event with the low bit set: no completion packet.
    Tagged,
}

/// How the program waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// It polls each port and file in turn.
    Polling,
    /// It blocks where the completion it wants will arrive.
    Blocking,
    /// Threads block on the ports for it.
    Threads,
}

/// A layout.
#[derive(Clone, Debug)]
pub struct Layout {
    number: u64,
    /// Which file of its end each [`Object`] is on.
    places: [usize; OBJECTS],
    /// Both queues of a queue pair have one completion queue.
    one_queue: bool,
    destinations: &'static [Destination],
    binding: Binding,
    adapters: Adapters,
    waiting: Waiting,
    /// Random choices, where there are too many values to try all: the events of requests, the order of releases.
    choices: Rng,
}

/// All ways to place the objects on files, with one completion queue or two.
fn placements() -> Vec<([usize; OBJECTS], bool)> {
    // Files are interchangeable, so an object is on the file of an earlier object or on the next new one.
    let mut ways = vec![Vec::new()];
    for _ in 0..OBJECTS {
        let longer = |way: &Vec<usize>| {
            let next = way.iter().max().map_or(0, |last| last + 1);
            let way = way.clone();
            (0..=next).map(move |file| [way.clone(), vec![file]].concat())
        };
        ways = ways.iter().flat_map(longer).collect();
    }
    let ways: Vec<[usize; OBJECTS]> = ways.into_iter().map(|way| way.try_into().expect("five")).collect();
    let on_one =
        |way: &&[usize; OBJECTS]| way[Object::InitiatorQueue as usize] == way[Object::ReceiveQueue as usize];
    let one_queue: Vec<_> = ways.iter().filter(on_one).map(|way| (*way, true)).collect();
    ways.into_iter().map(|way| (way, false)).chain(one_queue).collect()
}

impl Layout {
    /// The number of layouts, random choices not counted.
    pub fn count() -> u64 {
        (placements().len() * DESTINATIONS.len() * BINDINGS.len() * ADAPTERS.len()) as u64
    }

    /// The layout with this number. Numbers from [`Layout::count`] on repeat the layouts with other random choices. `None` if the
    /// layout is equivalent to another one.
    pub fn new(number: u64) -> Option<Layout> {
        let mut rest = number as usize;
        let mut digit = |radix: usize| {
            let digit = rest % radix;
            rest /= radix;
            digit
        };
        let adapters = ADAPTERS[digit(ADAPTERS.len())];
        let destinations = DESTINATIONS[digit(DESTINATIONS.len())];
        let binding = BINDINGS[digit(BINDINGS.len())];
        let placements = placements();
        let (places, one_queue) = placements[digit(placements.len())];
        let mut choices = Rng::with_seed(number);
        let waiting = *choices.choice(&[Waiting::Polling, Waiting::Blocking, Waiting::Threads])?;
        let nothing_to_bind = destinations == [Destination::Nowhere];
        (!nothing_to_bind || binding == Binding::First).then_some(Layout {
            number,
            places,
            one_queue,
            destinations,
            binding,
            adapters,
            waiting,
            choices,
        })
    }

    /// Whether it needs a second device.
    pub fn needs_two_devices(&self) -> bool {
        self.adapters == Adapters::TwoDevices
    }
}
