//! Notifications, when the device's completion events come early, late, or for nothing.

use double::{raise_completion_event, turn};
use ndcompat::Status;
use ndcompat_tests::client::{Client, Ov, connect, open};

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A message arrives.
    Message,
    /// The device reports a completion event for nothing.
    Event,
    /// The program asks for a notification, if none is pending.
    Notify,
    /// The program takes a result, or learns that there is none.
    Take,
}

const STEPS: [Step; 4] = [Step::Message, Step::Event, Step::Notify, Step::Take];
const LENGTH: u32 = 5;

/// What a program may rely on: a notification completes when a result is there that was not when the one before completed;
/// and not without one, unless the device has lied.
struct Program<'a> {
    peer: &'a Client,
    own: &'a Client,
    ov: Ov,
    pending: bool,
    /// Results that are there, ...
    queued: usize,
    /// ... and how many of them were when a notification completed last.
    announced: usize,
    lied: bool,
}

impl Program<'_> {
    fn step(&mut self, step: Step) {
        match step {
            Step::Message => {
                assert_eq!(self.own.receive(1, 8), Status::SUCCESS);
                assert_eq!(self.peer.send(2, 8, 0), Status::SUCCESS);
                assert_eq!(self.peer.result().status, Status::SUCCESS);
                self.queued += 1;
            }
            Step::Event => {
                raise_completion_event();
                self.lied = true;
            }
            Step::Notify if self.pending => {}
            Step::Notify => {
                // SAFETY: the OVERLAPPED lives until it completes.
                let asked = unsafe { self.own.completion_queue.notify(ANY, self.ov.ptr()) };
                assert_eq!(asked, Status::PENDING);
                self.pending = true;
            }
            Step::Take => {
                assert_eq!(self.own.try_result().is_some(), self.queued > 0);
                self.queued = self.queued.saturating_sub(1);
                self.announced = self.announced.saturating_sub(1);
            }
        }
    }

    /// Whether the notification has completed as it must.
    fn is_right(&mut self) -> bool {
        if !self.pending {
            return true;
        }
        // SAFETY: the OVERLAPPED lives.
        let status = unsafe { self.own.completion_queue.get_overlapped_result(self.ov.ptr(), 0) };
        let fresh = self.queued > self.announced;
        if status == Status::PENDING {
            return !fresh;
        }
        self.pending = false;
        self.announced = self.queued;
        if !fresh {
            // It looks what there is, as programs do.
            self.step(Step::Take);
        }
        status == Status::SUCCESS && (fresh || self.lied)
    }
}

/// Every order of steps.
#[test]
fn no_result_goes_unnoticed() {
    let _turn = turn();
    let adapter = open();
    for order in 0..STEPS.len().pow(LENGTH) {
        // New ones, as a lie may yet be on its way.
        let (peer, own) = &(Client::on(&adapter), Client::on(&adapter));
        connect(peer, own);
        let mut program =
            Program { peer, own, ov: Ov::new(), pending: false, queued: 0, announced: 0, lied: false };
        for at in 0..LENGTH {
            program.step(STEPS[order / STEPS.len().pow(at) % STEPS.len()]);
            if !program.is_right() {
                let steps: Vec<_> =
                    (0..=at).map(|at| STEPS[order / STEPS.len().pow(at) % STEPS.len()]).collect();
                panic!("{steps:?}: the notification is wrong");
            }
        }
        // SAFETY: no arguments.
        unsafe { own.completion_queue.cancel_overlapped_requests() };
    }
}
