//! Memory windows over [`SharedMemory`].

use crate::memory::memory_window::MemoryWindow;
use crate::rust_api::memory::{IntoPart, Memory, RemoteMemory, SharedMemory};
use crate::rust_api::pair::Pair;
use crate::rust_api::request_table::Queue;
use crate::rust_api::session::Session;
use crate::rust_api::transfer::Transfer;
use crate::status::Result;
use crate::types::{RequestFlags, RequestType};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A memory window: gives peers access to a part of [`SharedMemory`], and takes it back, without a new registration.
///
/// Created by [`Session::window`], bound by [`Pair::bind`]. Dropping it revokes the access.
///
/// ```
#[doc = include_str!("connected.txt")]
/// use ndcompat::types::{RegionFlags, RequestFlags};
/// use ndcompat::{Memory, Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (client, server, _) = connected(&session, |_| Ok(()))?;
/// // Nothing of it is open to peers.
/// let memory = session.shared_memory(4096, RegionFlags::empty())?;
/// let mut window = session.window()?;
/// server.bind(&mut window, memory.clone().part(1000..1100), RequestFlags::ALLOW_WRITE).wait().1?;
///
/// // 12 bytes for the peer, which may write to these 100.
/// let there = window.remote(0);
/// let mut message = session.buffer(5)?;
/// message.copy_from_slice(b"hello");
/// client.write(message, there).wait().1?;
/// let mut bytes = [0; 5];
/// # while bytes != *b"hello" { // the write has arrived before its completion over RoCE only
/// memory.load(1000, &mut bytes);
/// # }
/// assert_eq!(&bytes, b"hello");
///
/// server.invalidate(&mut window).wait().1?;
/// // Bound anew, it has another token.
/// server.bind(&mut window, memory, RequestFlags::ALLOW_READ).wait().1?;
/// assert_ne!(window.remote(0), there);
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct Window {
    window: Arc<MemoryWindow>,
    /// What it was last bound to, and the memory, which stays registered for that.
    bound: Option<(SharedMemory, Range<usize>)>,
}

impl Session {
    /// Creates a memory window that is not bound.
    ///
    /// # Errors
    /// `ND_NOT_SUPPORTED` or `ND_INSUFFICIENT_RESOURCES` if the device has none left; `ND_DEVICE_REMOVED` once it is gone.
    pub fn window(&self) -> Result<Window> {
        Ok(Window { window: self.adapter().create_memory_window()?, bound: None })
    }
}

impl Window {
    /// The address and token for a peer to access from `offset` on, counted from the beginning of the window. The token is that of
    /// the last [`Pair::bind`].
    ///
    /// # Panics
    /// If the window has never been bound, or `offset` is beyond its end.
    pub fn remote(&self, offset: usize) -> RemoteMemory {
        let (memory, range) = self.bound.as_ref().expect("the window was bound");
        assert!(offset <= range.len(), "{offset} of {} bytes", range.len());
        RemoteMemory { token: self.window.remote_token(), ..memory.remote(range.start + offset) }
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = self.bound.as_ref().map(|(_, range)| range);
        f.debug_struct("Window").field("range", &range).finish_non_exhaustive()
    }
}

impl Pair {
    /// Binds a window to shared memory or a part of it, for the accesses [`ALLOW_READ`](RequestFlags::ALLOW_READ) and
    /// [`ALLOW_WRITE`](RequestFlags::ALLOW_WRITE) in `access`, also with [`READ_FENCE`](RequestFlags::READ_FENCE). Peers use it by
    /// [`Window::remote`], once this has completed.
    ///
    /// Fails with `ND_INVALID_PARAMETER_6` for other flags; `ND_INVALID_PARAMETER_3` for a window of another adapter;
    /// `ND_CONNECTION_INVALID` before the queue pair is connected; `ND_INVALID_DEVICE_STATE` if the window is bound;
    /// `ND_INSUFFICIENT_RESOURCES` if the device has no more; `ND_NO_MORE_ENTRIES` if the queue is full.
    pub fn bind<P: IntoPart<Memory = SharedMemory>>(
        &self,
        window: &mut Window,
        to: P,
        access: RequestFlags,
    ) -> Transfer<SharedMemory> {
        let part = to.into_part();
        let (memory, range) = (part.memory.clone(), part.range.clone());
        let queue = Queue::Window(self.pair.clone(), window.window.clone());
        let flags = access.difference(RequestFlags::SILENT_SUCCESS);
        let bound = &mut window.bound;
        let object = &window.window;
        Transfer::begin(self.dispatcher(), RequestType::Bind, part, queue, |context, sge| {
            let start = sge.buffer as usize;
            let addresses = start..start + sge.length as usize;
            // SAFETY: there are no references to shared memory, which peers may access at any time. It stays registered while the
            // window is bound: the region counts it.
            unsafe { self.pair.bind(context, memory.region(), object, addresses, flags) }?;
            *bound = Some((memory.clone(), range.clone()));
            Ok(())
        })
    }

    /// Unbinds a window: when this has completed, accesses by its token fail, and it may be bound again.
    ///
    /// Fails with `ND_INVALID_PARAMETER_2` for a window of another adapter; `ND_CONNECTION_INVALID` before the queue pair is connected;
    /// `ND_INVALID_DEVICE_REQUEST` if the window is not bound; `ND_NO_MORE_ENTRIES` if the queue is full.
    ///
    /// # Panics
    /// If the window has never been bound.
    pub fn invalidate(&self, window: &mut Window) -> Transfer<SharedMemory> {
        let (memory, range) = window.bound.clone().expect("the window was bound");
        let queue = Queue::Window(self.pair.clone(), window.window.clone());
        let part = memory.part(range);
        Transfer::begin(self.dispatcher(), RequestType::Invalidate, part, queue, |context, _| {
            self.pair.invalidate(context, &window.window, RequestFlags::empty())
        })
    }
}
