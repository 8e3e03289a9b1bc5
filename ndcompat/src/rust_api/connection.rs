//! Connections of a session: listening, connecting, disconnecting.

use crate::cause::Cause;
use crate::control::connector::{Connector, Offer};
use crate::control::listener::Listener;
use crate::device::adapter::Adapter;
use crate::device::provider;
use crate::rust_api::operation::Operation;
use crate::rust_api::pair::Pair;
use crate::rust_api::session::Session;
use crate::status::{Result, Status};
use crate::verbs::SockAddr;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

/// How many peers are queued by default.
const BACKLOG: u32 = 128;

/// A connection: a queue pair that is connected to a peer's. Dropping it disconnects.
///
/// ```
#[doc = include_str!("connected.txt")]
/// use ndcompat::{Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (client, server, _) = connected(&session, |_| Ok(()))?;
/// assert_eq!(client.peer_address()?, server.local_address()?);
/// let gone = server.disconnected()?;
/// session.wait(client.disconnect())?;
/// gone.wait()?; // the server is notified
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct Connection {
    connector: Arc<Connector>,
    pair: Pair,
    private_data: Vec<u8>,
}

impl Session {
    /// Connects `pair` to the peer that listens at `to`. Post receives for the peer's first messages before.
    ///
    /// # Errors
    /// `ND_NETWORK_UNREACHABLE` or `ND_HOST_UNREACHABLE` without a route; `ND_CONNECTION_REFUSED` if nobody listens or the
    /// peer refuses; `ND_IO_TIMEOUT` if the peer does not answer, which on some devices takes minutes: see
    /// [`Session::wait_for`]; `ND_INVALID_BUFFER_SIZE` for more private data than
    /// [`max_caller_data`](crate::types::AdapterInfo::max_caller_data); `ND_DEVICE_REMOVED` once the device is gone; the
    /// others of [`Connector::connect`]. A peer that refuses may send a reason: [`ConnectError::private_data`].
    pub async fn connect(
        &self,
        pair: Pair,
        to: SocketAddr,
        offer: Offer<'_>,
    ) -> std::result::Result<Connection, ConnectError> {
        let local = provider::local_address_for(to.into()).map_err(ConnectError::of_call)?;
        self.connect_from(local.into(), pair, to, offer).await
    }

    /// As [`connect`](Self::connect), from this local address of the session's adapter; with port 0, from a free port.
    ///
    /// ```
    #[doc = include_str!("device.txt")]
    /// use ndcompat::{Offer, Provider, Session, Status};
    ///
    /// let session = Session::new(&Provider::open_any()?)?;
    /// let own = Provider::addresses()?[0];
    /// let acceptor = session.listen(own)?;
    /// let at = acceptor.local_address()?;
    /// std::thread::scope(|threads| {
    ///     let client = threads.spawn(|| {
    ///         let pair = session.queue_pair().build()?;
    ///         session.wait(session.connect_from(own, pair, at, Offer::new())).map_err(Status::from)
    ///     });
    ///     let incoming = session.wait(acceptor.request())?;
    ///     assert_eq!(incoming.peer_address()?.ip(), own.ip());
    ///     let server = session.wait(incoming.accept(session.queue_pair().build()?, Offer::new()))?;
    ///     client.join().unwrap()?;
    ///     Ok::<(), Status>(())
    /// })?;
    /// # Ok::<(), ndcompat::Status>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect); `ND_INVALID_ADDRESS` if `local` is not the adapter's; `ND_SHARING_VIOLATION` if its
    /// port is taken.
    pub async fn connect_from(
        &self,
        local: SocketAddr,
        pair: Pair,
        to: SocketAddr,
        offer: Offer<'_>,
    ) -> std::result::Result<Connection, ConnectError> {
        let connector = self.connector_at(local).map_err(ConnectError::of_call)?;
        let begun = connector.begin_connect(&pair.pair, to.into(), offer).map_err(ConnectError::of_call)?;
        if let Err(status) = begun.await {
            // Only a refusal carries private data.
            let private_data = connector.private_data().unwrap_or_default();
            return Err(ConnectError { status, cause: connector.cause(), private_data });
        }
        // The peer may have left meanwhile, which `CompleteConnect` tells.
        let private_data = connector.private_data().unwrap_or_default();
        connector.begin_complete_connect().map_err(ConnectError::of_call)?.await?;
        Ok(Connection { connector, pair, private_data })
    }

    /// A connector at a local address.
    fn connector_at(&self, local: SocketAddr) -> Result<Arc<Connector>> {
        let connector = self.new_connector()?;
        connector.bind(local.into())?;
        Ok(connector)
    }

    /// A connector. A receive that is waited for must end with the connection: it has the memory, and often a thread.
    fn new_connector(&self) -> Result<Arc<Connector>> {
        let connector = self.adapter().create_connector(self.file())?;
        connector.always_flush();
        Ok(connector)
    }

    /// Listens at an address of the session's adapter. With port 0, a free port is chosen. Up to 128 peers are queued until
    /// [`Acceptor::request`] takes them; the device refuses others.
    ///
    /// # Errors
    /// `ND_INVALID_ADDRESS` if it is not the adapter's; `ND_SHARING_VIOLATION` if it is taken; `ND_DEVICE_REMOVED` once the
    /// device is gone; `ND_INSUFFICIENT_RESOURCES`.
    pub fn listen(&self, at: SocketAddr) -> Result<Acceptor> {
        self.listen_with(at, BACKLOG)
    }

    /// As [`listen`](Self::listen), with a queue of up to `backlog` peers. 0 is for no limit: then peers decide how much memory the queue
    /// takes.
    ///
    /// ```
    #[doc = include_str!("device.txt")]
    /// use ndcompat::{Provider, Session};
    ///
    /// let session = Session::new(&Provider::open_any()?)?;
    /// let acceptor = session.listen_with(Provider::addresses()?[0], 16)?;
    /// # drop(acceptor);
    /// # Ok::<(), ndcompat::Status>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`listen`](Self::listen).
    pub fn listen_with(&self, at: SocketAddr, backlog: u32) -> Result<Acceptor> {
        let listener = self.adapter().create_listener(self.file())?;
        listener.bind(SockAddr::from(at))?;
        listener.listen(backlog)?;
        Ok(Acceptor { session: self.clone(), listener })
    }
}

/// The error of [`Session::connect`].
///
/// `?` converts it to a [`Status`] in functions that return one.
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Offer, Provider, Session, Status};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let acceptor = session.listen(Provider::addresses()?[0])?;
/// let at = acceptor.local_address()?;
/// drop(acceptor);
/// let pair = session.queue_pair().build()?;
/// let error = session.wait(session.connect(pair, at, Offer::default())).unwrap_err();
/// assert_eq!(error.status, Status::CONNECTION_REFUSED);
/// // Nobody listens, so there is no private data.
/// assert!(error.private_data.is_empty());
/// // The event beneath.
/// assert!(std::error::Error::source(&error).is_some());
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectError {
    /// The status of the failed attempt.
    pub status: Status,
    /// The private data of the peer's [`Incoming::reject`]. Some transports pad it with zeros. Empty if no program has
    /// refused.
    pub private_data: Vec<u8>,
    /// What is beneath the status: the connection manager's event or the call that failed, with its errno. `None` if the attempt
    /// failed otherwise, as by an argument, or by a cancellation.
    pub cause: Option<Cause>,
}

/// Without a cause: this may be a status that no call has given.
impl From<Status> for ConnectError {
    fn from(status: Status) -> ConnectError {
        ConnectError { status, private_data: Vec::new(), cause: None }
    }
}

impl ConnectError {
    /// Of a call in [`Session::connect`] itself.
    fn of_call(status: Status) -> ConnectError {
        ConnectError { cause: status.cause(), ..status.into() }
    }
}

impl From<ConnectError> for Status {
    fn from(error: ConnectError) -> Status {
        error.status
    }
}

/// The status. What is beneath it is the [`source`](std::error::Error::source).
impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(f)
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> io::Error {
        io::Error::new(error.status.io_kind(), error)
    }
}

/// Listens for connection requests. Dropping it rejects those that are queued.
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Provider, Session};
/// use std::time::Duration;
///
/// let session = Session::new(&Provider::open_any()?)?;
/// // Port 0 is a free one.
/// let acceptor = session.listen(Provider::addresses()?[0])?;
/// println!("listening on {}", acceptor.local_address()?);
/// // There is no request within a millisecond.
/// assert!(session.wait_for(Duration::from_millis(1), acceptor.request()).is_none());
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct Acceptor {
    session: Session,
    listener: Arc<Listener>,
}

impl Acceptor {
    /// The address and port that it listens at.
    ///
    /// # Errors
    /// `ND_INVALID_DEVICE_STATE` once the listener is closed, which only dropping it does.
    pub fn local_address(&self) -> Result<SocketAddr> {
        self.listener.local_address().map(SocketAddr::from)
    }

    /// Waits for the next connection request. A peer that comes when the future has been dropped, or just before, waits for the
    /// next one. One that has given up again is passed over.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_INSUFFICIENT_RESOURCES`.
    pub async fn request(&self) -> Result<Incoming> {
        loop {
            let connector = self.session.new_connector()?;
            let operation = self.listener.begin_connection_request(&connector)?;
            let mut pending = PendingRequest { listener: &self.listener, connector, operation, ended: false };
            let result = (&mut pending.operation).await;
            pending.ended = true;
            result?;
            let connector = pending.connector.clone();
            // Otherwise the peer has given up since.
            if let Some(private_data) = connector.asked_with() {
                return Ok(Incoming { connector, private_data });
            }
        }
    }
}

/// An [`Acceptor::request`] under way. Dropping it withdraws the request, which would take a peer from the next one.
struct PendingRequest<'a> {
    listener: &'a Listener,
    connector: Arc<Connector>,
    operation: Operation,
    ended: bool,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // First, as a task that gives up is not woken for that.
            self.operation.forget_task();
            self.listener.abandon(&self.connector);
        }
    }
}

/// A peer's connection request. Dropping it rejects the peer.
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Offer, Provider, Session, Status};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let acceptor = session.listen(Provider::addresses()?[0])?;
/// let at = acceptor.local_address()?;
/// std::thread::scope(|threads| {
///     let client = threads.spawn(|| {
///         let offer = Offer::new().private_data(b"let me in");
///         session.wait(session.connect(session.queue_pair().build()?, at, offer))
///     });
///     let incoming = session.wait(acceptor.request())?;
///     assert!(incoming.private_data().starts_with(b"let me in"));
///     incoming.reject(b"no")?;
///     let refused = client.join().unwrap().unwrap_err();
///     assert_eq!(refused.status, Status::CONNECTION_REFUSED);
///     assert!(refused.private_data.starts_with(b"no"));
///     Ok::<(), Status>(())
/// })?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct Incoming {
    connector: Arc<Connector>,
    private_data: Vec<u8>,
}

impl Incoming {
    /// The adapter that the request arrived on.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.connector.adapter()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` if the peer has given up.
    pub fn peer_address(&self) -> Result<SocketAddr> {
        self.connector.peer_address().map(SocketAddr::from)
    }

    /// The private data of the request. Some transports pad it with zeros.
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// The read limits of the connection, inbound and outbound: how many reads the peer and this side may have outstanding.
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` if the peer has given up.
    pub fn read_limits(&self) -> Result<(u32, u32)> {
        self.connector.read_limits()
    }

    /// Accepts the connection with `pair`. Post receives for the peer's first messages before.
    ///
    /// # Errors
    /// `ND_CONNECTION_ABORTED` or `ND_IO_TIMEOUT` if the peer has given up; `ND_INVALID_BUFFER_SIZE` for more private data
    /// than [`max_callee_data`](crate::types::AdapterInfo::max_callee_data); `ND_DEVICE_REMOVED` once the device is gone;
    /// the others of [`Connector::accept`].
    pub async fn accept(self, pair: Pair, offer: Offer<'_>) -> Result<Connection> {
        let Incoming { connector, private_data } = self;
        connector.begin_accept(&pair.pair, offer)?.await?;
        Ok(Connection { connector, pair, private_data })
    }

    /// Rejects the peer. It gets `private_data`, up to the adapter's limit.
    ///
    /// # Errors
    /// Those of [`Connector::reject`].
    pub fn reject(self, private_data: &[u8]) -> Result<()> {
        self.connector.reject(private_data)
    }
}

impl Connection {
    /// The queue pair.
    pub fn queue_pair(&self) -> &Pair {
        &self.pair
    }

    /// The private data of the peer's request or answer. Some transports pad it with zeros.
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// The peer's address.
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` once the connection has ended.
    pub fn peer_address(&self) -> Result<SocketAddr> {
        self.connector.peer_address().map(SocketAddr::from)
    }

    /// This side's address.
    ///
    /// # Errors
    /// `ND_INVALID_DEVICE_STATE` once the connection has ended.
    pub fn local_address(&self) -> Result<SocketAddr> {
        self.connector.local_address().map(SocketAddr::from)
    }

    /// Completes when the peer has ended the connection, or at once if it has done so already. Receives end then with `ND_CANCELED`,
    /// whether or not this is waited for.
    ///
    /// # Errors
    /// None: a connection that there is was established. The operation fails with `STATUS_CONNECTION_DISCONNECTED` if this side ends
    /// the connection.
    pub fn disconnected(&self) -> Result<Operation> {
        self.connector.begin_notify_disconnect()
    }

    /// Ends the connection. What is outstanding is cancelled.
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` if it has ended already; `ND_DEVICE_REMOVED` once the device is gone.
    pub async fn disconnect(self) -> Result<()> {
        self.connector.begin_disconnect()?.await
    }
}

impl Deref for Connection {
    type Target = Pair;

    fn deref(&self) -> &Pair {
        &self.pair
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer_address()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").field("address", &self.local_address()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("peer", &self.peer_address()).finish_non_exhaustive()
    }
}
