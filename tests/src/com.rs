//! The interfaces as a C program sees them: tables of functions in the built library, found by `DllGetClassObject`.
//!
//! Written down here anew rather than shared with the library, so that a slot or an id that moves is noticed.

use crate::library::DllGetClassObject;
use ndcompat::Status;
use ndcompat::types::{AdapterInfo, Completion, Sge};
use std::ffi::c_void;
use std::fmt;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use win32::io::Overlapped;
use win32::object::RawHandle;

/// A Windows `GUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid(u32, u16, u16, [u8; 8]);

impl Guid {
    /// The id whose digits, read as one number, are `value`.
    pub const fn new(value: u128) -> Guid {
        Guid((value >> 96) as u32, (value >> 80) as u16, (value >> 64) as u16, (value as u64).to_be_bytes())
    }
}

/// A COM interface.
pub trait Interface {
    /// Its table of methods.
    type Table: 'static;
    /// Its id.
    const IID: Guid;
}

/// A reference to an object; dropping it releases it.
pub struct Com<I: Interface>(NonNull<I>);

// SAFETY: all methods of all interfaces are thread-safe.
unsafe impl<I: Interface> Send for Com<I> {}
// SAFETY: as above.
unsafe impl<I: Interface> Sync for Com<I> {}

/// The object that `make` creates, which takes the interface's id and where to put the result.
pub fn create<I: Interface>(
    make: impl FnOnce(*const Guid, *mut *mut c_void) -> Status,
) -> Result<Com<I>, Status> {
    let mut out = ptr::dangling_mut();
    let status = make(&I::IID, &mut out);
    if status == Status::SUCCESS {
        return Ok(Com(NonNull::new(out.cast()).expect("a success without an object")));
    }
    assert!(out.is_null(), "{status}, and the result was left as it was");
    Err(status)
}

impl<I: Interface> Com<I> {
    /// Releases this reference; returns how many are left.
    pub fn release(self) -> u32 {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the reference is this one's, and not used again.
        unsafe { this.unknown().release() }
    }

    /// As methods take other objects.
    pub fn as_ptr(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    /// As `IUnknown`.
    pub fn unknown(&self) -> &Unknown {
        // SAFETY: every interface begins with the methods of IUnknown.
        unsafe { self.0.cast().as_ref() }
    }

    /// Asks the object for another interface.
    pub fn cast<J: Interface>(&self) -> Result<Com<J>, Status> {
        // SAFETY: the arguments are valid.
        create(|iid, out| unsafe { self.unknown().query_interface(iid, out) })
    }
}

impl<I: Interface> Deref for Com<I> {
    type Target = I;

    fn deref(&self) -> &I {
        // SAFETY: the object lives while it is referenced.
        unsafe { self.0.as_ref() }
    }
}

impl<I: Interface> Drop for Com<I> {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's.
        unsafe { self.unknown().release() };
    }
}

impl<I: Interface> fmt::Debug for Com<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.0)
    }
}

/// The provider, as `DllGetClassObject` gives it.
pub fn provider() -> Com<Provider> {
    // SAFETY: the arguments are valid.
    create(|iid, out| unsafe { DllGetClassObject(&Guid::new(0), iid, out) }).expect("a provider")
}

macro_rules! interfaces {
    ($(
        $(#[$doc:meta])*
        $name:ident($table:ident: $base:ident) = $iid:literal {
            $(fn $method:ident($($argument:ident: $type:ty),*) -> $result:ty;)*
        }
    )*) => {$(
        #[doc = concat!("The methods of [`", stringify!($name), "`].")]
        #[repr(C)]
        pub struct $table {
            base: <$base as Interface>::Table,
            $($method: unsafe extern "C" fn(*const $name, $($type),*) -> $result,)*
        }

        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            table: *const $table,
        }

        impl Interface for $name {
            type Table = $table;
            const IID: Guid = Guid::new($iid);
        }

        impl Deref for $name {
            type Target = $base;

            fn deref(&self) -> &$base {
                // SAFETY: the table begins with that of the base.
                unsafe { &*ptr::from_ref(self).cast() }
            }
        }

        impl $name {
            $(
                #[doc = concat!("`", stringify!($method), "`, spelt as the SPI does not.")]
                ///
                /// # Safety
                /// What the SPI asks of the arguments.
                #[allow(clippy::too_many_arguments)] // the SPI's signatures
                pub unsafe fn $method(&self, $($argument: $type),*) -> $result {
                    // SAFETY: passed on to the caller.
                    unsafe { ((*self.table).$method)(self, $($argument),*) }
                }
            )*
        }
    )*};
}

/// What interfaces without a base begin with: nothing.
pub struct Nothing;

impl Interface for Nothing {
    type Table = ();
    const IID: Guid = Guid::new(0);
}

type Out = *mut *mut c_void;
type Pointer = *mut c_void;

interfaces! {
    /// `IUnknown`
    Unknown(UnknownTable: Nothing) = 0x00000000_0000_0000_C000_000000000046 {
        fn query_interface(iid: *const Guid, out: Out) -> Status;
        fn add_ref() -> u32;
        fn release() -> u32;
    }
    /// `IClassFactory`
    ClassFactory(ClassFactoryTable: Unknown) = 0x00000001_0000_0000_C000_000000000046 {
        fn create_instance(outer: Pointer, iid: *const Guid, out: Out) -> Status;
        fn lock_server(lock: i32) -> Status;
    }
    /// `IND2Provider`
    Provider(ProviderTable: Unknown) = 0x49EAE6C1_76C4_46D0_8003_5C2EAA2C9A8E {
        fn query_address_list(list: Pointer, length: *mut u32) -> Status;
        fn resolve_address(address: *const c_void, length: u32, id: *mut u64) -> Status;
        fn open_adapter(iid: *const Guid, id: u64, out: Out) -> Status;
    }
    /// `IND2Adapter`
    Adapter(AdapterTable: Unknown) = 0xD89C798C_4823_4D69_846C_DFDCCFF9E5F3 {
        fn create_overlapped_file(file: *mut RawHandle) -> Status;
        fn query(info: *mut AdapterInfo, length: *mut u32) -> Status;
        fn query_address_list(list: Pointer, length: *mut u32) -> Status;
        fn create_completion_queue(
            iid: *const Guid, file: RawHandle, depth: u32, group: u16, affinity: usize, out: Out
        ) -> Status;
        fn create_memory_region(iid: *const Guid, file: RawHandle, out: Out) -> Status;
        fn create_memory_window(iid: *const Guid, out: Out) -> Status;
        fn create_shared_receive_queue(
            iid: *const Guid, file: RawHandle, depth: u32, sge: u32, threshold: u32, group: u16, affinity: usize, out: Out
        ) -> Status;
        fn create_queue_pair(
            iid: *const Guid, receive: Pointer, initiator: Pointer, context: Pointer, receive_depth: u32,
            initiator_depth: u32, receive_sge: u32, initiator_sge: u32, inline: u32, out: Out
        ) -> Status;
        fn create_queue_pair_with_srq(
            iid: *const Guid, receive: Pointer, initiator: Pointer, shared: Pointer, context: Pointer,
            initiator_depth: u32, initiator_sge: u32, inline: u32, out: Out
        ) -> Status;
        fn create_connector(iid: *const Guid, file: RawHandle, out: Out) -> Status;
        fn create_listener(iid: *const Guid, file: RawHandle, out: Out) -> Status;
    }
    /// `IND2Overlapped`
    Overlapping(OverlappingTable: Unknown) = 0xABF72719_B016_4A40_A6F7_622791A7044C {
        fn cancel_overlapped_requests() -> Status;
        fn get_overlapped_result(ov: *mut Overlapped, wait: i32) -> Status;
    }
    /// `IND2CompletionQueue`
    CompletionQueue(CompletionQueueTable: Overlapping) = 0x20CC445E_64A0_4CBB_AA75_F6A7251FDA9E {
        fn get_notify_affinity(group: *mut u16, affinity: *mut usize) -> Status;
        fn resize(depth: u32) -> Status;
        fn notify(kind: u32, ov: *mut Overlapped) -> Status;
        fn get_results(results: *mut Completion, count: u32) -> u32;
    }
    /// `IND2SharedReceiveQueue`
    SharedReceiveQueue(SharedReceiveQueueTable: Overlapping) = 0xAABD67DC_459A_4DB1_826B_56CFCC278883 {
        fn get_notify_affinity(group: *mut u16, affinity: *mut usize) -> Status;
        fn modify(depth: u32, threshold: u32) -> Status;
        fn notify(ov: *mut Overlapped) -> Status;
        fn receive(context: Pointer, sge: *const Sge, count: u32) -> Status;
    }
    /// `IND2MemoryRegion`
    MemoryRegion(MemoryRegionTable: Overlapping) = 0x55DFEA2F_BC56_4982_8A45_0301BE46C413 {
        fn register(buffer: *const c_void, length: usize, flags: u32, ov: *mut Overlapped) -> Status;
        fn deregister(ov: *mut Overlapped) -> Status;
        fn get_local_token() -> u32;
        fn get_remote_token() -> u32;
    }
    /// `IND2MemoryWindow`
    MemoryWindow(MemoryWindowTable: Unknown) = 0x070FE1F5_0AB5_4361_88DB_974BA704D4B9 {
        fn get_remote_token() -> u32;
    }
    /// `IND2QueuePair`
    QueuePair(QueuePairTable: Unknown) = 0xEEF2F332_B75D_4063_BCE3_3A0BAD2D02CE {
        fn flush() -> Status;
        fn send(context: Pointer, sge: *const Sge, count: u32, flags: u32) -> Status;
        fn receive(context: Pointer, sge: *const Sge, count: u32) -> Status;
        fn bind(
            context: Pointer, region: Pointer, window: Pointer, buffer: *const c_void, length: usize, flags: u32
        ) -> Status;
        fn invalidate(context: Pointer, window: Pointer, flags: u32) -> Status;
        fn read(context: Pointer, sge: *const Sge, count: u32, address: u64, token: u32, flags: u32) -> Status;
        fn write(context: Pointer, sge: *const Sge, count: u32, address: u64, token: u32, flags: u32) -> Status;
    }
    /// `IND2Connector`
    Connector(ConnectorTable: Overlapping) = 0x7DD615C4_6B4C_4866_950C_F3B1D25A5302 {
        fn bind(address: *const c_void, length: u32) -> Status;
        fn connect(
            queue_pair: Pointer, address: *const c_void, length: u32, inbound: u32, outbound: u32,
            data: *const c_void, data_length: u32, ov: *mut Overlapped
        ) -> Status;
        fn complete_connect(ov: *mut Overlapped) -> Status;
        fn accept(
            queue_pair: Pointer, inbound: u32, outbound: u32, data: *const c_void, data_length: u32,
            ov: *mut Overlapped
        ) -> Status;
        fn reject(data: *const c_void, length: u32) -> Status;
        fn get_read_limits(inbound: *mut u32, outbound: *mut u32) -> Status;
        fn get_private_data(data: Pointer, length: *mut u32) -> Status;
        fn get_local_address(address: Pointer, length: *mut u32) -> Status;
        fn get_peer_address(address: Pointer, length: *mut u32) -> Status;
        fn notify_disconnect(ov: *mut Overlapped) -> Status;
        fn disconnect(ov: *mut Overlapped) -> Status;
    }
    /// `IND2Listener`
    Listener(ListenerTable: Overlapping) = 0x65D23D83_3A57_4E02_86A4_350165C2D130 {
        fn bind(address: *const c_void, length: u32) -> Status;
        fn listen(backlog: u32) -> Status;
        fn get_local_address(address: Pointer, length: *mut u32) -> Status;
        fn get_connection_request(connector: Pointer, ov: *mut Overlapped) -> Status;
    }
    /// `INDCompatAdapter`
    ExtendedAdapter(ExtendedAdapterTable: Adapter) = 0x1391109C_D0E3_4A8F_9004_F167E96C17E3 {
        fn create_shared_endpoint(
            iid: *const Guid, file: RawHandle, address: *const c_void, length: u32, out: Out
        ) -> Status;
    }
    /// `INDCompatSharedEndpoint`
    SharedEndpoint(SharedEndpointTable: Overlapping) = 0xF1CB7DB9_0623_47E9_9E9A_EC93154E03D2 {
        fn get_local_address(address: Pointer, length: *mut u32) -> Status;
        fn close(ov: *mut Overlapped) -> Status;
    }
    /// `INDCompatConnector`
    ExtendedConnector(ExtendedConnectorTable: Connector) = 0xCBED1ED1_5C9B_42EC_B186_5E61FEC90A18 {
        fn connect_with_shared_endpoint(
            queue_pair: Pointer, endpoint: Pointer, address: *const c_void, length: u32, inbound: u32,
            outbound: u32, data: *const c_void, data_length: u32, ov: *mut Overlapped
        ) -> Status;
    }
    /// `INDCompatListener`
    ExtendedListener(ExtendedListenerTable: Listener) = 0x84D033DB_41AB_42E9_BA16_884EA5CAAA38 {
        fn close(ov: *mut Overlapped) -> Status;
    }
}
