//! Notifications when the device's completion events are early, late or spurious.

use double::{raise_completion_event, turn};
use ndcompat::Status;
use ndcompat::types::RequestFlags;
use support::client::{Client, Ov, connect, connected, open};
use support::library::CancelIoEx;

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;
/// `ND_CQ_NOTIFY_SOLICITED`
const SOLICITED: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A message arrives.
    Message,
    /// The device raises a spurious completion event.
    Event,
    /// The program starts a `Notify`, if none is pending.
    Notify,
    /// The program takes a result, if there is one.
    Take,
}

const STEPS: [Step; 4] = [Step::Message, Step::Event, Step::Notify, Step::Take];
const LENGTH: u32 = 5;

/// The model: a notification completes if there is a result that was not there when the previous one completed, and not
/// otherwise, unless the device has raised a spurious event.
struct Program<'a> {
    peer: &'a Client,
    own: &'a Client,
    ov: Ov,
    pending: bool,
    /// The number of results in the queue,
    queued: usize,
    /// and how many of them there were when the last notification completed.
    announced: usize,
    lied: bool,
}

impl Program<'_> {
    fn step(&mut self, step: Step) {
        match step {
            Step::Message => {
                assert_eq!(self.own.receive(1, 8), Status::SUCCESS);
                assert_eq!(self.peer.send(2, 8, RequestFlags::empty()), Status::SUCCESS);
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

    /// Whether the notification has completed as the model says.
    fn is_right(&mut self) -> bool {
        if !self.pending {
            return true;
        }
        // SAFETY: the OVERLAPPED lives.
        let status = unsafe { self.own.completion_queue.get_overlapped_result(self.ov.ptr(), 0) };
        let fresh = self.queued > self.announced;
        // The library's own thread may be about to complete it.
        let status = match status {
            Status::PENDING if fresh => self.ov.wait(&self.own.completion_queue),
            Status::PENDING => return true,
            status => status,
        };
        self.pending = false;
        self.announced = self.queued;
        if !fresh {
            // The program takes results, as programs do.
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
        // New objects, as a spurious event may still be in flight.
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

/// A result that was not solicited completes requests of both kinds, but not the one for solicited results alone, even if
/// the device is still armed for any.
#[test]
fn a_cancelled_any_leaves_the_solicited_request_to_solicited_results() {
    let _turn = turn();
    let (peer, own) = connected();
    let (mut any, mut solicited) = (Ov::new(), Ov::new());
    for (kind, ov) in [(ANY, &mut any), (SOLICITED, &mut solicited)] {
        // SAFETY: the OVERLAPPED lives until it completes.
        assert_eq!(unsafe { own.completion_queue.notify(kind, ov.ptr()) }, Status::PENDING);
    }
    // SAFETY: the handle is the file's, and the OVERLAPPED lives.
    assert_eq!(unsafe { CancelIoEx(own.file, any.ptr()) }, 1);
    assert_eq!(any.wait(&own.completion_queue), Status::CANCELED);
    for context in 0..2 {
        assert_eq!(peer.receive(context, 8), Status::SUCCESS);
        assert_eq!(own.send(context, 8, RequestFlags::empty()), Status::SUCCESS);
        // SAFETY: the OVERLAPPED lives.
        let status = unsafe { own.completion_queue.get_overlapped_result(solicited.ptr(), 0) };
        assert_eq!(status, Status::PENDING, "a send is not solicited");
    }
    assert_eq!(own.receive(2, 8), Status::SUCCESS);
    assert_eq!(peer.send(2, 8, RequestFlags::SOLICIT), Status::SUCCESS);
    assert_eq!(solicited.wait(&own.completion_queue), Status::SUCCESS);
}
