//! Requests that move data, as futures.

use crate::rust_api::dispatcher::Dispatcher;
use crate::rust_api::memory::{AnyMemory, Memory, Part};
use crate::rust_api::request_table::{Done, Queue};
use crate::rust_api::waiting;
use crate::status::{Result, Status};
use crate::types::{RequestType, Sge};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A Send, Receive, Read or Write. It owns its memory, and returns it with the result.
///
/// It is a future; [`wait`](Self::wait) blocks instead. Dropping it does not cancel the request: its memory is freed soon after it has
/// completed. A receive that is dropped still takes the peer's next message, which is lost then: a program that waits for a limited
/// time, or for one of several things, keeps the transfer, and passes `&mut` to what would drop it.
///
/// If the request could not be posted, the result is the error, and the memory is returned as well.
///
/// ```
#[doc = include_str!("connected.txt")]
/// use ndcompat::{Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (client, server, receiving) = connected(&session, |pair| Ok(pair.receive(session.buffer(64)?)))?;
/// // In a task of any executor; here it is tokio's.
/// let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// runtime.block_on(async {
///     let sending = client.send(session.buffer(64)?);
///     let (buffer, received) = receiving.await;
///     assert_eq!(received?.bytes, buffer.len());
///     sending.await.1?;
///     Ok::<(), ndcompat::Status>(())
/// })?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
///
/// The right form in a `select!`, and with a limit:
///
/// ```
#[doc = include_str!("connected.txt")]
/// use ndcompat::{Provider, Session};
/// use std::time::Duration;
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (client, server, mut receiving) = connected(&session, |pair| Ok(pair.receive(session.buffer(64)?)))?;
/// let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// runtime.block_on(async {
///     tokio::select! {
///         biased;
///         _ = &mut receiving => unreachable!("nobody has sent anything"),
///         () = std::future::ready(()) => {} // here usually a timer
///     }
/// });
/// // By the session, and by the transfer, which gives itself back.
/// assert!(session.wait_for(Duration::from_millis(1), &mut receiving).is_none());
/// let receiving = receiving.wait_for(Duration::from_millis(1)).unwrap_err();
/// // The receive is still there for the peer's first message.
/// let sending = client.send(session.buffer(5)?);
/// assert_eq!(receiving.wait().1?.bytes, 5);
/// sending.wait().1?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[must_use = "the request has only begun; its memory comes back with its result"]
pub struct Transfer<M> {
    dispatcher: Arc<Dispatcher>,
    state: State,
    memory: PhantomData<fn() -> M>,
}

enum State {
    Posted(usize),
    Refused(AnyMemory, Status),
    Taken,
}

impl<M: Memory> Transfer<M> {
    /// Posts a request on `part` to `queue`, by `post`, which gets the request's context and its SGE.
    pub(crate) fn begin(
        dispatcher: &Arc<Dispatcher>,
        kind: RequestType,
        part: Part<M>,
        queue: Queue,
        mut post: impl FnMut(u64, Sge) -> Result<()>,
    ) -> Transfer<M> {
        let (length, memory) = (part.range.len(), part.memory.into_any());
        let posted = match memory.sge(part.range) {
            Ok(sge) => dispatcher.post(kind, (memory, length), queue, |context| post(context, sge)),
            Err(status) => Err((memory, status)),
        };
        let state = posted.map_or_else(|(memory, status)| State::Refused(memory, status), State::Posted);
        Transfer { dispatcher: dispatcher.clone(), state, memory: PhantomData }
    }

    /// Blocks until the request has completed, and returns its memory and its result.
    ///
    /// # Errors
    /// The result is the status of a request that has failed or could not be posted.
    pub fn wait(self) -> (M, Result<Done>) {
        let dispatcher = self.dispatcher.clone();
        waiting::wait(dispatcher.file(), None, self).expect("there is no limit")
    }

    /// As [`wait`](Self::wait), but for no longer than `limit`.
    ///
    /// # Errors
    /// The transfer itself, still outstanding, if it has not completed by then.
    pub fn wait_for(mut self, limit: Duration) -> std::result::Result<(M, Result<Done>), Transfer<M>> {
        let dispatcher = self.dispatcher.clone();
        waiting::wait(dispatcher.file(), Some(limit), &mut self).ok_or(self)
    }

    /// As [`wait`](Self::wait), but polls without sleeping.
    pub fn spin(self) -> (M, Result<Done>) {
        waiting::spin(None, self).expect("there is no limit")
    }

    /// Whether the request has completed. Takes results that have arrived, without sleeping.
    pub fn is_done(&self) -> bool {
        match self.state {
            State::Posted(key) => self.dispatcher.is_done(key),
            _ => true,
        }
    }
}

impl<M: Memory> Future for Transfer<M> {
    type Output = (M, Result<Done>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (memory, result) = match std::mem::replace(&mut self.state, State::Taken) {
            State::Posted(key) => match self.dispatcher.poll(key, context) {
                Poll::Ready(result) => result,
                Poll::Pending => {
                    self.state = State::Posted(key);
                    return Poll::Pending;
                }
            },
            State::Refused(memory, status) => (memory, Err(status)),
            State::Taken => panic!("polled after it was done"),
        };
        Poll::Ready((M::from_any(memory), result))
    }
}

impl<M> Drop for Transfer<M> {
    fn drop(&mut self) {
        if let State::Posted(key) = self.state {
            self.dispatcher.forget(key);
        }
    }
}

impl<M> fmt::Debug for Transfer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfer").finish_non_exhaustive()
    }
}
