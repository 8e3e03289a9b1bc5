//! The state of a slot, which passes the slot between posting and reaping.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | free | no request | posted; unposted |
//! | posted | the device has the request | completed; free, if it is unsignalled and a later one completed |
//! | unposted | accepted on a failed queue pair, never posted to the device; reported as cancelled | free |
//! | completed | the device has reported it, or is assumed to have lost it | free |

use super::atomic::{AtomicU32, Ordering};
use crate::types::RequestType;
use crate::verbs::bindings::{IBV_WC_WR_FLUSH_ERR, ibv_wc_status};

/// The completion status of a cancelled request.
pub(crate) const CANCELED: ibv_wc_status = IBV_WC_WR_FLUSH_ERR;

/// The state of a slot: the request's type, flags, and the status of its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(u32);

/// The state of a slot, shared by posting and reaping. Its memory order also synchronises the rest of the slot; the
/// [model](super::model) checks that under loom.
pub(crate) struct AtomicState(AtomicU32);

impl State {
    /// No request.
    pub const FREE: State = State(0);
    /// Never free: the only slot of a queue of depth 0.
    pub const UNUSABLE: State = State(1 << 31);

    /// The bits of the [`RequestType`].
    const KIND: u32 = 7;
    const TAKEN: u32 = 1 << 3;
    /// The device reports the request's success.
    const SIGNALLED: u32 = 1 << 4;
    /// The program wants a result only if the request fails (`ND_OP_FLAG_SILENT_SUCCESS`).
    const SILENT: u32 = 1 << 5;
    /// Never posted to the device.
    const UNPOSTED: u32 = 1 << 6;
    const COMPLETED: u32 = 1 << 7;
    /// A clock has seen the request; see [`AtomicState::mark`].
    const MARKED: u32 = 1 << 8;
    /// The lowest bit of the `ibv_wc_status`.
    const STATUS: u32 = 9;

    #[inline(always)]
    pub fn posted(kind: RequestType, silent: bool, signalled: bool) -> State {
        let silent = if silent { State::SILENT } else { 0 };
        let signalled = if signalled { State::SIGNALLED } else { 0 };
        State(kind as u32 | State::TAKEN | silent | signalled)
    }

    /// A request that is cancelled without having been posted to the device.
    pub fn unposted(kind: RequestType) -> State {
        State(kind as u32 | State::TAKEN | State::UNPOSTED).completed(CANCELED)
    }

    pub fn completed(self, status: ibv_wc_status) -> State {
        State(self.0 | State::COMPLETED | status << State::STATUS)
    }

    fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    pub fn is_taken(self) -> bool {
        self.has(State::TAKEN)
    }

    pub fn is_completed(self) -> bool {
        self.has(State::COMPLETED)
    }

    /// Whether the device has the request and has not reported it.
    pub fn is_outstanding(self) -> bool {
        self.is_taken() && !self.is_completed()
    }

    /// Whether the device has the request and will not report its success.
    pub fn is_unsignalled(self) -> bool {
        self.is_outstanding() && !self.has(State::SIGNALLED)
    }

    /// Whether the device has reported the request.
    pub fn is_reported(self) -> bool {
        self.is_completed() && !self.has(State::UNPOSTED)
    }

    pub fn is_silent(self) -> bool {
        self.has(State::SILENT)
    }

    /// Whether the request has been marked.
    pub fn is_marked(self) -> bool {
        self.has(State::MARKED)
    }

    pub fn status(self) -> ibv_wc_status {
        self.0 >> State::STATUS
    }

    /// Whether the completed request yields a result.
    pub fn is_visible(self) -> bool {
        !self.is_silent() || self.status() != 0
    }

    #[inline(always)]
    pub fn kind(self) -> RequestType {
        // SAFETY: `posted` and `unposted` store a `RequestType` in these bits.
        unsafe { std::mem::transmute(self.0 & State::KIND) }
    }

    /// Whether the request is posted, signalled and not silent: only those are reported by the fast path.
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        // True for any type, with exactly these two flags.
        self.0.wrapping_sub(State::TAKEN | State::SIGNALLED) <= State::KIND
    }
}

impl AtomicState {
    pub fn new(state: State) -> AtomicState {
        AtomicState(AtomicU32::new(state.0))
    }

    /// The state. The caller may then read the slot as the other side has written it.
    #[inline(always)]
    pub fn load(&self) -> State {
        State(self.0.load(Ordering::Acquire))
    }

    /// The state of a request that the device has completed. Relaxed is enough: the device's completion orders it after
    /// posting.
    #[inline(always)]
    pub fn of_completed(&self) -> State {
        State(self.0.load(Ordering::Relaxed))
    }

    /// The state alone; it does not allow access to the slot.
    pub fn peek(&self) -> State {
        State(self.0.load(Ordering::Relaxed))
    }

    /// Whether posting may fill the slot.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        self.load() == State::FREE
    }

    /// Marks a filled slot whose request is about to be posted. The device passes it to reaping.
    #[inline(always)]
    pub fn post(&self, state: State) {
        self.0.store(state.0, Ordering::Relaxed);
    }

    /// Marks a slot filled with a request that is not posted to the device.
    pub fn flush(&self, kind: RequestType) {
        self.0.store(State::unposted(kind).0, Ordering::Release);
    }

    /// Frees a slot whose request the device has refused: reaping has not seen it.
    pub fn take_back(&self) {
        self.0.store(State::FREE.0, Ordering::Relaxed);
    }

    /// Marks the outstanding request in `state`, for reaping alone. Posting may take the slot back meanwhile.
    pub fn mark(&self, state: State) {
        let marked = state.0 | State::MARKED;
        let _ = self.0.compare_exchange(state.0, marked, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Records the completion of a request, for reaping alone.
    pub fn complete(&self, state: State, status: ibv_wc_status) {
        self.0.store(state.completed(status).0, Ordering::Relaxed);
    }

    /// Frees a slot whose result was reported: posting may fill it again.
    #[inline(always)]
    pub fn free(&self) {
        self.0.store(State::FREE.0, Ordering::Release);
    }
}
