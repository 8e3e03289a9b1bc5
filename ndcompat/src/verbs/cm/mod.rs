//! Connection management: librdmacm's event channels, their events, and ids.
//!
//! Ids have no queue pair of librdmacm: the caller controls the two phases of a connection and the states of the queue
//! pair, whose number is in [`ConnectParam::qp_num`]. The behaviour depends on the transport (rxe and siw of Linux 6.1,
//! with its ib_cm and iw_cm):
//!
//! | | InfiniBand, RoCE | iWARP |
//! |---|---|---|
//! | queue pair before `connect` | any state; INIT to take receives | RESET, INIT or RTR |
//! | queue pair before `accept` | any state, but RTS before data comes: RTR and RTS by `init_qp_attr` | RESET, INIT or RTR |
//! | after `accept`, connecting side | `ConnectResponse`; RTR and RTS by `init_qp_attr`, then `establish` | `Established`, in RTS already |
//! | after `accept`, accepting side | `Established`, after the peer's `establish` | `Established` at once, in RTS already |
//! | `establish` | sends the last message; gives no event here | `EINVAL`: never call it |
//! | `modify` with `init_qp_attr`, when up | not allowed by the states | does nothing but reset the access flags |
//! | peer's queue pair number | in request and response | 0 |
//! | private data that fits: request, response, rejection | 56, 196, 148; padded to that when received | 251 each on siw, exact |
//! | too much of it in `connect` | `EINVAL`, the id can try again | siw: `Rejected`, the peer is not asked |
//! | too much of it in `accept` | `EINVAL`, and the peer is refused | siw: the peer gets `ConnectError`, this side `Established`, then `Disconnected` |
//! | nobody listens | `Rejected`, status 8 | `connect` says `ECONNREFUSED`, the id can try again |
//! | refused | `Rejected`, status 28 | `Rejected`, status -`ECONNRESET` |
//! | silent peer | `Unreachable` after 100 s | siw: `connect` blocks for two minutes |
//! | peer gone before `accept` | no event; `init_qp_attr`, `accept`: `EINVAL` | no event; `accept`: `ECONNRESET` |
//! | peer refuses or goes instead of `establish` | `Rejected`, status 28 | is up already: `Disconnected` |
//! | peer disconnects instead of `establish` | no event | `Disconnected` |
//! | `disconnect` before `accept` | success, nothing is sent | success, nothing is sent |
//! | `disconnect` when up | the peer gets `Disconnected`, this side when the peer answers by its own | both get `Disconnected` |
//! | receives after `disconnect` | stay; move the queue pair to ERR | flushed at both ends |
//! | queue pair moved to ERR or destroyed | no event, at either end | both get `Disconnected` |
//! | after the end | `TimewaitExit`, 2 s later on rxe | no further event |
//!
//! A call that blocks in the kernel (`connect` on siw) blocks every other call on the id, and the destruction of the id and
//! the queue pair. A signal to its thread ends it with `EINTR`, if the handler does not restart calls. After `Rejected`, an
//! id cannot connect again. The address of a closed listener can be bound again while its connections exist. Ids that
//! connect can share a port if all allow it ([`Id::set_reuse_addr`]); an id that listens cannot.

mod channel;
mod event;
mod id;

pub use channel::EventChannel;
pub use event::{Event, EventKind};
pub use id::{ConnectParam, Id};
