//! The COM interfaces, method by method, in the order of `ndspi.h` and `ndendpoint.h`: the one list of them in Rust.
//!
//! In this library, `interfaces!` defines for each its id, its virtual table, and a trait of its methods, which the objects
//! implement (see `com` and `object`). The tests include this file to generate callers. `abi.rs` compares it with the
//! headers.
//!
//! A panic in a method is returned as `ND_INTERNAL_ERROR`. Methods marked `bare` have no boundary: those of the data path,
//! and other short ones that cannot panic. Those marked `quick` do not disable thread cancellation: the functions that they
//! call do, where necessary.

use crate::com::{Guid, HResult, Out, Pointer, interfaces};
use ndcompat::types::{AdapterInfo, Completion, RegionFlags, RequestFlags, Sge};
use std::ffi::c_void;
use win32::io::Overlapped;
use win32::object::RawHandle;

interfaces! {
    /// `IUnknown`
    IUnknown(IUnknownVtbl) IID_IUnknown = 0x00000000_0000_0000_C000_000000000046 {
        fn query_interface(iid: *const Guid, out: Out) -> HResult;
        #[bare] fn add_ref() -> u32;
        #[bare] fn release() -> u32;
    }
    /// `IClassFactory`
    IClassFactory(IClassFactoryVtbl: IUnknownVtbl) IID_IClassFactory = 0x00000001_0000_0000_C000_000000000046 {
        fn create_instance(outer: Pointer, iid: *const Guid, out: Out) -> HResult;
        fn lock_server(lock: i32) -> HResult;
    }
    /// `IND2Provider`
    IND2Provider(IND2ProviderVtbl: IUnknownVtbl) IID_IND2Provider = 0x49EAE6C1_76C4_46D0_8003_5C2EAA2C9A8E {
        fn query_address_list(list: Pointer, length: *mut u32) -> HResult;
        fn resolve_address(address: *const c_void, length: u32, id: *mut u64) -> HResult;
        fn open_adapter(iid: *const Guid, id: u64, out: Out) -> HResult;
    }
    /// `IND2Adapter`
    IND2Adapter(IND2AdapterVtbl: IUnknownVtbl) IID_IND2Adapter = 0xD89C798C_4823_4D69_846C_DFDCCFF9E5F3 {
        fn create_overlapped_file(file: *mut RawHandle) -> HResult;
        fn query(info: *mut AdapterInfo, length: *mut u32) -> HResult;
        fn query_address_list(list: Pointer, length: *mut u32) -> HResult;
        fn create_completion_queue(
            iid: *const Guid, file: RawHandle, depth: u32, group: u16, affinity: usize, out: Out
        ) -> HResult;
        fn create_memory_region(iid: *const Guid, file: RawHandle, out: Out) -> HResult;
        fn create_memory_window(iid: *const Guid, out: Out) -> HResult;
        fn create_shared_receive_queue(
            iid: *const Guid, file: RawHandle, depth: u32, max_sge: u32, threshold: u32, group: u16, affinity: usize,
            out: Out
        ) -> HResult;
        fn create_queue_pair(
            iid: *const Guid, receive_queue: Pointer, initiator_queue: Pointer, context: Pointer, receive_depth: u32,
            initiator_depth: u32, max_receive_sge: u32, max_initiator_sge: u32, inline_size: u32, out: Out
        ) -> HResult;
        fn create_queue_pair_with_srq(
            iid: *const Guid, receive_queue: Pointer, initiator_queue: Pointer, shared_queue: Pointer, context: Pointer,
            initiator_depth: u32, max_initiator_sge: u32, inline_size: u32, out: Out
        ) -> HResult;
        fn create_connector(iid: *const Guid, file: RawHandle, out: Out) -> HResult;
        fn create_listener(iid: *const Guid, file: RawHandle, out: Out) -> HResult;
    }
    /// `IND2Overlapped`
    IND2Overlapped(IND2OverlappedVtbl: IUnknownVtbl) IID_IND2Overlapped = 0xABF72719_B016_4A40_A6F7_622791A7044C {
        fn cancel_overlapped_requests() -> HResult;
        #[quick] fn get_overlapped_result(ov: *mut Overlapped, wait: i32) -> HResult;
    }
    /// `IND2CompletionQueue`
    IND2CompletionQueue(IND2CompletionQueueVtbl: IND2OverlappedVtbl)
        IID_IND2CompletionQueue = 0x20CC445E_64A0_4CBB_AA75_F6A7251FDA9E {
        fn get_notify_affinity(group: *mut u16, affinity: *mut usize) -> HResult;
        fn resize(depth: u32) -> HResult;
        fn notify(kind: u32, ov: *mut Overlapped) -> HResult;
        #[bare] fn get_results(results: *mut Completion, count: u32) -> u32;
    }
    /// `IND2SharedReceiveQueue`
    IND2SharedReceiveQueue(IND2SharedReceiveQueueVtbl: IND2OverlappedVtbl)
        IID_IND2SharedReceiveQueue = 0xAABD67DC_459A_4DB1_826B_56CFCC278883 {
        fn get_notify_affinity(group: *mut u16, affinity: *mut usize) -> HResult;
        fn modify(depth: u32, threshold: u32) -> HResult;
        fn notify(ov: *mut Overlapped) -> HResult;
        #[bare] fn receive(context: Pointer, sge: *const Sge, count: u32) -> HResult;
    }
    /// `IND2MemoryRegion`
    IND2MemoryRegion(IND2MemoryRegionVtbl: IND2OverlappedVtbl)
        IID_IND2MemoryRegion = 0x55DFEA2F_BC56_4982_8A45_0301BE46C413 {
        fn register(buffer: *const c_void, length: usize, flags: RegionFlags, ov: *mut Overlapped) -> HResult;
        fn deregister(ov: *mut Overlapped) -> HResult;
        #[bare] fn get_local_token() -> u32;
        #[bare] fn get_remote_token() -> u32;
    }
    /// `IND2MemoryWindow`
    IND2MemoryWindow(IND2MemoryWindowVtbl: IUnknownVtbl)
        IID_IND2MemoryWindow = 0x070FE1F5_0AB5_4361_88DB_974BA704D4B9 {
        #[bare] fn get_remote_token() -> u32;
    }
    /// `IND2QueuePair`
    IND2QueuePair(IND2QueuePairVtbl: IUnknownVtbl) IID_IND2QueuePair = 0xEEF2F332_B75D_4063_BCE3_3A0BAD2D02CE {
        fn flush() -> HResult;
        #[bare] fn send(context: Pointer, sge: *const Sge, count: u32, flags: RequestFlags) -> HResult;
        #[bare] fn receive(context: Pointer, sge: *const Sge, count: u32) -> HResult;
        fn bind(
            context: Pointer, region: Pointer, window: Pointer, buffer: *const c_void, length: usize, flags: RequestFlags
        ) -> HResult;
        fn invalidate(context: Pointer, window: Pointer, flags: RequestFlags) -> HResult;
        #[bare] fn read(
            context: Pointer, sge: *const Sge, count: u32, address: u64, token: u32, flags: RequestFlags
        ) -> HResult;
        #[bare] fn write(
            context: Pointer, sge: *const Sge, count: u32, address: u64, token: u32, flags: RequestFlags
        ) -> HResult;
    }
    /// `IND2Connector`
    IND2Connector(IND2ConnectorVtbl: IND2OverlappedVtbl)
        IID_IND2Connector = 0x7DD615C4_6B4C_4866_950C_F3B1D25A5302 {
        fn bind(address: *const c_void, length: u32) -> HResult;
        fn connect(
            queue_pair: Pointer, address: *const c_void, length: u32, inbound_limit: u32, outbound_limit: u32,
            data: *const c_void, data_length: u32, ov: *mut Overlapped
        ) -> HResult;
        fn complete_connect(ov: *mut Overlapped) -> HResult;
        fn accept(
            queue_pair: Pointer, inbound_limit: u32, outbound_limit: u32, data: *const c_void, data_length: u32,
            ov: *mut Overlapped
        ) -> HResult;
        fn reject(data: *const c_void, length: u32) -> HResult;
        fn get_read_limits(inbound: *mut u32, outbound: *mut u32) -> HResult;
        fn get_private_data(data: Pointer, length: *mut u32) -> HResult;
        fn get_local_address(address: Pointer, length: *mut u32) -> HResult;
        fn get_peer_address(address: Pointer, length: *mut u32) -> HResult;
        fn notify_disconnect(ov: *mut Overlapped) -> HResult;
        fn disconnect(ov: *mut Overlapped) -> HResult;
    }
    /// `IND2Listener`
    IND2Listener(IND2ListenerVtbl: IND2OverlappedVtbl) IID_IND2Listener = 0x65D23D83_3A57_4E02_86A4_350165C2D130 {
        fn bind(address: *const c_void, length: u32) -> HResult;
        fn listen(backlog: u32) -> HResult;
        fn get_local_address(address: Pointer, length: *mut u32) -> HResult;
        fn get_connection_request(connector: Pointer, ov: *mut Overlapped) -> HResult;
    }
    /// `INDCompatAdapter`
    INDCompatAdapter(INDCompatAdapterVtbl: IND2AdapterVtbl)
        IID_INDCompatAdapter = 0x1391109C_D0E3_4A8F_9004_F167E96C17E3 {
        fn create_shared_endpoint(
            iid: *const Guid, file: RawHandle, address: *const c_void, length: u32, out: Out
        ) -> HResult;
    }
    /// `INDCompatSharedEndpoint`
    INDCompatSharedEndpoint(INDCompatSharedEndpointVtbl: IND2OverlappedVtbl)
        IID_INDCompatSharedEndpoint = 0xF1CB7DB9_0623_47E9_9E9A_EC93154E03D2 {
        fn get_local_address(address: Pointer, length: *mut u32) -> HResult;
        fn close(ov: *mut Overlapped) -> HResult;
    }
    /// `INDCompatConnector`
    INDCompatConnector(INDCompatConnectorVtbl: IND2ConnectorVtbl)
        IID_INDCompatConnector = 0xCBED1ED1_5C9B_42EC_B186_5E61FEC90A18 {
        fn connect_with_shared_endpoint(
            queue_pair: Pointer, endpoint: Pointer, address: *const c_void, length: u32, inbound_limit: u32,
            outbound_limit: u32, data: *const c_void, data_length: u32, ov: *mut Overlapped
        ) -> HResult;
    }
    /// `INDCompatListener`
    INDCompatListener(INDCompatListenerVtbl: IND2ListenerVtbl)
        IID_INDCompatListener = 0x84D033DB_41AB_42E9_BA16_884EA5CAAA38 {
        fn close(ov: *mut Overlapped) -> HResult;
    }
}
