//! The pending `Notify` requests of a completion queue.

use crate::status::Status;
use crate::types::NotifyType;
use smallvec::SmallVec;
use win32::io::Request;

/// Pending requests; one is the common case.
pub(crate) type Requests = SmallVec<[Request; 1]>;

/// Pending requests for results, with their kinds.
type Waiting<R> = SmallVec<[(NotifyType, R); 1]>;

/// The pending `Notify` requests of a completion queue, and what the device is armed for.
///
/// A verbs queue is armed for one event. ND allows any number of requests, which the next result completes together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notification<R = Request> {
    /// Requests for `Any` or `Solicited`, oldest first.
    waiting: Waiting<R>,
    /// Requests for `Errors`, that is, the failure of the queue.
    errors: Vec<R>,
    state: State,
}

impl<R> Default for Notification<R> {
    fn default() -> Self {
        Notification { waiting: SmallVec::new(), errors: Vec::new(), state: State::Idle }
    }
}

/// Whether requests for results are pending, and what the device is armed for.
///
/// `Any` is greater than `Solicited`. Requests of both kinds complete together, at the event of the greater kind. The
/// device is armed for that kind or a greater one.
///
/// | state | a request for `k` | event of the device | all are completed or cancelled | some are cancelled, `k` is left |
/// |---|---|---|---|---|
/// | `Idle` | arm `k`: `Waiting(k, k)` | - | - | - |
/// | `Armed(a)` | `Waiting(k, a)`; arm `Any` first if `a` is less than `k`: `Waiting(Any, Any)` | `Idle` | - | - |
/// | `Waiting(w, a)` | the same for the greater of `k` and `w` | `Disarmed(w)` | `Armed(a)` | `Waiting(k, a)` |
/// | `Disarmed(w)` | arm the greater of `k` and `w`: `Waiting` | - | `Idle` | `Disarmed(k)` |
/// | `Failed` | fails with its status | - | - | - |
///
/// The failure of the queue leads from any state to `Failed`, and completes all requests; those for `Errors` wait for it
/// alone, and change no other state.
///
/// After each arming, and after each event with requests pending, the queue is polled. A result of the kind waited for that
/// no notification has reported yet completes all requests. Without one, a disarmed device is armed again. Verbs cannot
/// arm for less: after a request for `Any` was cancelled, the device may signal an event that those for `Solicited` ignore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No request is pending, and the device is not armed.
    #[default]
    Idle,
    /// No request is pending; the device is still armed.
    Armed(NotifyType),
    /// Requests of the first kind are pending; the device is armed for the second.
    Waiting(NotifyType, NotifyType),
    /// Requests of this kind are pending; the device has signalled an event, and is not armed.
    Disarmed(NotifyType),
    /// The queue has failed: requests fail with this status.
    Failed(Status),
}

use NotifyType::{Any, Solicited};

/// The kind that includes both.
fn greater(one: NotifyType, other: NotifyType) -> NotifyType {
    if one == Any || other == Any { Any } else { Solicited }
}

impl State {
    /// The next state after a request for `kind`.
    fn requested(self, kind: NotifyType) -> State {
        match self {
            State::Idle => State::Disarmed(kind),
            State::Armed(armed) => State::Waiting(kind, armed),
            State::Waiting(waited, armed) => State::Waiting(greater(waited, kind), armed),
            State::Disarmed(waited) => State::Disarmed(greater(waited, kind)),
            State::Failed(_) => self,
        }
    }

    /// What the device must be armed for in this state; `None` if it is armed already, or need not be.
    fn to_arm(self) -> Option<NotifyType> {
        match self {
            State::Disarmed(waited) => Some(waited),
            State::Waiting(waited, armed) if greater(waited, armed) != armed => Some(waited),
            _ => None,
        }
    }

    /// The next state after arming the device for [`State::to_arm`].
    fn armed(self) -> State {
        match self {
            State::Disarmed(waited) | State::Waiting(waited, _) => State::Waiting(waited, waited),
            _ => self,
        }
    }

    /// Handles an event of the device.
    fn event(self) -> State {
        match self {
            State::Armed(_) => State::Idle,
            State::Waiting(waited, _) => State::Disarmed(waited),
            _ => self,
        }
    }

    /// The next state when requests of this kind are left pending, or none.
    fn left(self, kind: Option<NotifyType>) -> State {
        match (self, kind) {
            (State::Waiting(_, armed), Some(kind)) => State::Waiting(kind, armed),
            (State::Disarmed(_), Some(kind)) => State::Disarmed(kind),
            (_, None) => self.none_pending(),
            _ => self,
        }
    }

    /// The next state after all requests were completed or cancelled.
    fn none_pending(self) -> State {
        match self {
            State::Waiting(_, armed) => State::Armed(armed),
            State::Disarmed(_) => State::Idle,
            _ => self,
        }
    }

    /// The kind that pending requests wait for, if there are any.
    fn waited(self) -> Option<NotifyType> {
        match self {
            State::Waiting(waited, _) | State::Disarmed(waited) => Some(waited),
            _ => None,
        }
    }
}

impl<R> Notification<R> {
    /// The status that the queue has failed with.
    pub(crate) fn failure(&self) -> Option<Status> {
        match self.state {
            State::Failed(status) => Some(status),
            _ => None,
        }
    }

    /// Adds a request.
    pub(crate) fn add(&mut self, kind: NotifyType, request: R) {
        if kind == NotifyType::Errors {
            return self.errors.push(request);
        }
        self.waiting.push((kind, request));
        self.state = self.state.requested(kind);
    }

    /// The kind that pending requests wait for, if there are any.
    pub(crate) fn waited(&self) -> Option<NotifyType> {
        self.state.waited()
    }

    /// What the device must be armed for in this state; `None` if it is armed already, or need not be.
    pub(crate) fn to_arm(&self) -> Option<NotifyType> {
        self.state.to_arm()
    }

    /// Notes that the device has been armed for [`Notification::to_arm`].
    pub(crate) fn armed(&mut self) {
        self.state = self.state.armed();
    }

    /// Handles an event of the device.
    pub(crate) fn event(&mut self) {
        self.state = self.state.event();
    }

    /// Whether requests for `Solicited` are pending, perhaps beside others for `Any`.
    pub(crate) fn has_solicited(&self) -> bool {
        self.waiting.iter().any(|(kind, _)| *kind == Solicited)
    }

    /// Takes the requests that wait for a result, oldest first, to be completed.
    pub(crate) fn take(&mut self) -> Waiting<R> {
        self.state = self.state.none_pending();
        std::mem::take(&mut self.waiting)
    }

    /// Takes the chosen requests, oldest first, to be cancelled.
    pub(crate) fn cancel(&mut self, chosen: impl Fn(&R) -> bool) -> Vec<R> {
        let (cancelled, left) = self.waiting.drain(..).partition::<Vec<_>, _>(|(_, request)| chosen(request));
        let mut cancelled: Vec<R> = cancelled.into_iter().map(|(_, request)| request).collect();
        self.state = self.state.left(left.iter().map(|(kind, _)| *kind).reduce(greater));
        self.waiting.extend(left);
        cancelled.extend(self.errors.extract_if(.., |request| chosen(request)));
        cancelled
    }

    /// The queue has failed: takes all requests, to be completed with `status`, which later ones get at once.
    pub(crate) fn fail(&mut self, status: Status) -> Vec<R> {
        let mut requests: Vec<R> = self.take().into_iter().map(|(_, request)| request).collect();
        self.state = State::Failed(status);
        requests.append(&mut self.errors);
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NotifyType::Errors;
    use std::collections::HashSet;

    /// A result that no notification has reported yet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum News {
        None,
        Unsolicited,
        Solicited,
    }

    /// The completion queue of the model: the requests, named by their kinds and by which of two they are, and the device.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct World {
        notification: Notification<(NotifyType, u8)>,
        armed: Option<NotifyType>,
        events: u8,
        news: News,
    }

    impl World {
        /// Whether the device, or the poll after an event, may tell of a result to those that wait for `kind`.
        fn is_told(kind: NotifyType, news: News) -> bool {
            news == News::Solicited || news == News::Unsolicited && kind == Any
        }

        /// Arms the device and polls, as the queue does after a request and after an event.
        fn arm_and_poll(&mut self) {
            if let Some(kind) = self.notification.to_arm() {
                // A verbs queue that is armed for any completion stays so.
                self.armed = Some(self.armed.map_or(kind, |armed| greater(armed, kind)));
                self.notification.armed();
            }
            self.poll();
        }

        fn poll(&mut self) {
            if self.notification.waited().is_some_and(|kind| World::is_told(kind, self.news)) {
                self.news = News::None;
                let all = self.pending();
                let told = self.notification.take();
                assert_eq!(told.len(), all.iter().filter(|(kind, _)| *kind != Errors).count());
            }
        }

        fn pending(&self) -> Vec<(NotifyType, u8)> {
            let waiting = self.notification.waiting.iter().map(|(_, request)| request);
            waiting.chain(&self.notification.errors).copied().collect()
        }

        /// Everything that can happen next.
        fn steps(&self) -> Vec<World> {
            let mut steps = Vec::new();
            let mut step = |change: &dyn Fn(&mut World)| {
                let mut next = self.clone();
                change(&mut next);
                steps.push(next);
            };
            let pending = self.pending();
            let failed = self.notification.failure().is_some();
            for request in [Any, Solicited, Errors].into_iter().flat_map(|kind| [(kind, 0), (kind, 1)]) {
                if pending.contains(&request) {
                    step(&|next| assert_eq!(next.notification.cancel(|one| *one == request), [request]));
                    step(&|next| {
                        next.notification.cancel(|one| one.0 == request.0);
                        assert!(next.pending().iter().all(|one| one.0 != request.0));
                    });
                } else if !failed {
                    step(&|next| {
                        next.notification.add(request.0, request);
                        if request.0 != Errors {
                            next.arm_and_poll();
                        }
                    });
                }
            }
            step(&|next| {
                let all = next.notification.cancel(|_| true);
                assert_eq!(all, pending);
            });
            for news in [News::Unsolicited, News::Solicited] {
                step(&|next| {
                    next.news = next.news.max(news);
                    if next.events < 3 && next.armed.is_some_and(|armed| World::is_told(armed, news)) {
                        (next.armed, next.events) = (None, next.events + 1);
                    }
                });
            }
            // The program takes all results.
            step(&|next| next.news = News::None);
            if self.events > 0 {
                step(&|next| {
                    next.events -= 1;
                    next.notification.event();
                    if next.notification.waited().is_some() {
                        next.poll();
                    }
                    if next.notification.waited().is_some() {
                        next.arm_and_poll();
                    }
                });
            }
            if !failed {
                step(&|next| assert_eq!(next.notification.fail(Status::BUFFER_OVERFLOW), pending));
            }
            steps
        }

        /// What must be true in every state.
        fn check(&self) {
            let pending = self.pending();
            if self.notification.failure().is_some() {
                assert!(pending.is_empty() && self.notification.to_arm().is_none(), "{self:?}");
            }
            let kinds = pending.iter().map(|(kind, _)| *kind).filter(|kind| *kind != Errors);
            let waited = kinds.reduce(greater);
            assert_eq!(self.notification.waited(), waited, "{self:?}");
            assert_eq!(self.notification.has_solicited(), pending.iter().any(|(kind, _)| *kind == Solicited));
            if let Some(waited) = waited {
                let armed = self.armed.is_some_and(|armed| greater(armed, waited) == armed);
                assert!(armed || self.events > 0, "the next result will be missed: {self:?}");
            }
        }
    }

    /// Visits every reachable state of two requests of each kind: the next result of the kind waited for completes those
    /// pending, and no other does.
    #[test]
    fn every_request_is_completed_by_the_next_result_of_its_kind() {
        let start = World { notification: Notification::default(), armed: None, events: 0, news: News::None };
        let (mut seen, mut next) = (HashSet::from([format!("{start:?}")]), vec![start]);
        while let Some(world) = next.pop() {
            world.check();
            next.extend(world.steps().into_iter().filter(|world| seen.insert(format!("{world:?}"))));
        }
        for state in ["Idle", "Armed(Solicited)", "Waiting(Solicited, Any)", "Failed"] {
            assert!(seen.iter().any(|world| world.contains(state)), "{state} is not reached");
        }
    }

    #[test]
    fn a_request_for_solicited_results_outlives_a_cancelled_one_for_any() {
        let mut notification = Notification::default();
        for kind in [Any, Solicited] {
            notification.add(kind, kind);
            assert_eq!(notification.to_arm(), (kind == Any).then_some(Any));
            notification.armed();
        }
        assert_eq!(notification.waited(), Some(Any));
        assert_eq!(notification.cancel(|kind| *kind == Any), [Any]);
        assert_eq!((notification.waited(), notification.to_arm()), (Some(Solicited), None));
        // The event of an unsolicited result.
        notification.event();
        assert_eq!((notification.waited(), notification.to_arm()), (Some(Solicited), Some(Solicited)));
    }
}
