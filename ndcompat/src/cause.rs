//! What is beneath a status: the call that failed, with its errno, or the event of the connection manager.

use crate::verbs::{EventKind, last_failed_call};
use std::fmt;
use std::io;
use std::sync::Mutex;

/// What is beneath a status: the call that failed, or the event of the connection manager that told of the failure.
///
/// ```
#[doc = include_str!("rust_api/device.txt")]
/// use ndcompat::{Offer, Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let acceptor = session.listen(Provider::addresses()?[0])?;
/// let at = acceptor.local_address()?;
/// drop(acceptor);
/// let error = session.wait(session.connect(session.queue_pair().build()?, at, Offer::default())).unwrap_err();
/// // Nobody listens: over TCP that is ECONNREFUSED.
/// let cause = error.cause.unwrap();
/// assert_eq!((cause.what, cause.errno), ("RDMA_CM_EVENT_REJECTED", Some(111)));
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// The call of rdma-core, `ibv_reg_mr`, or of the system, or the event, `RDMA_CM_EVENT_REJECTED`.
    pub what: &'static str,
    /// The errno.
    pub errno: Option<i32>,
    /// The reason of a rejection, over RoCE and InfiniBand: 8 if nobody listens, 28 if the program there has refused.
    pub reason: Option<i32>,
}

impl Cause {
    /// A failed call of rdma-core, or of the system.
    fn of_call(error: &io::Error) -> Option<Cause> {
        let errno = error.raw_os_error()?;
        let what = last_failed_call(errno).map_or("a call of the system", |failed| failed.call);
        Some(Cause { what, errno: Some(errno), reason: None })
    }

    /// An event with its status: a negative errno, or the reason of a rejection.
    pub(crate) fn of_event(kind: EventKind, status: i32) -> Cause {
        let (errno, reason) = ((status < 0).then_some(-status), (status > 0).then_some(status));
        Cause { what: kind.name(), errno, reason }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if let Some(errno) = self.errno {
            write!(f, ": {}", io::Error::from_raw_os_error(errno))?;
        }
        self.reason.map_or(Ok(()), |reason| write!(f, ", reason {reason}"))
    }
}

impl std::error::Error for Cause {}

/// The last cause of each status in this process. Few statuses have causes, so the list is short.
static CAUSES: Mutex<Vec<(i32, Cause)>> = Mutex::new(Vec::new());

/// Keeps the cause of a status. Only for [`last`]: a child of a fork may find the list locked for ever, and goes without.
#[cold]
pub(crate) fn keep(status: i32, cause: Cause) {
    let Ok(mut causes) = CAUSES.try_lock() else { return };
    causes.retain(|(known, _)| *known != status);
    causes.push((status, cause));
}

/// As [`keep`], for an error of a call.
#[cold]
pub(crate) fn keep_call(status: i32, error: &io::Error) {
    if let Some(cause) = Cause::of_call(error) {
        keep(status, cause);
    }
}

/// The last cause of a status.
pub(crate) fn last(status: i32) -> Option<Cause> {
    let causes = CAUSES.try_lock().ok()?;
    causes.iter().find(|(known, _)| *known == status).map(|(_, cause)| *cause)
}
