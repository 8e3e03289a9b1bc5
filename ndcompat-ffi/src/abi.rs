//! The binary interface as Rust has it, compared with `tests/headers/abi.def`, which C and C++ compilers are compared
//! with. Neither side may know what the other does not.

use crate::guid::*;
use crate::*;
use ndcompat::Status;
use ndcompat::types::*;
use std::collections::BTreeMap;
use std::mem::offset_of;
use win32::filesystem::FileInformation;
use win32::io::Overlapped;
use win32::io::port::OverlappedEntry;
use win32::memory::system::{MemoryStatus, SystemInfo};
use win32::memory::virtual_memory::MemoryInformation;
use win32::object::RawHandle;
use win32::sync::condition::ConditionVariable;
use win32::sync::critical::CriticalSection;
use win32::sync::once::InitOnce;
use win32::sync::srw::SrwLock;
use win32::time::FileTime;
use win32::winsock::catalogue::ProtocolInfo;
use win32::winsock::startup::WsaData;

/// What is known of each thing, by macro and name: `ND_SIZE`, `ND2_SGE` or `ND_SLOT`, `IND2Provider.OpenAdapter`.
type Facts = BTreeMap<(&'static str, String), String>;

/// What the headers have and Rust has no use for: ND v1 but for its ids, and things that only programs deal with.
const IN_HEADERS_ONLY: &[&str] = &[
    "INDAdapter INDCompletionQueue INDConnector INDEndpoint INDListen INDMemoryWindow INDOverlapped INDProvider",
    "ND_ADAPTER_INFO1 ND_RESULT ND_SGE ND_MW_DESCRIPTOR ND_MR_HANDLE ND2_ADAPTER_INFO32",
    "BOOL INT LONG ULONG DWORD HRESULT UINT32 USHORT UINT16 WORD BYTE BOOLEAN UINT64 ULONGLONG LONGLONG SIZE_T",
    "ULONG_PTR KAFFINITY SOCKET SOCKET_ADDRESS SOCKET_ADDRESS_LIST SOCKADDR_INET WSABUF LARGE_INTEGER LIST_ENTRY",
    "GROUP_AFFINITY SECURITY_ATTRIBUTES IF_PHYSICAL_ADDRESS NDVER ND_VERSION_1 ND_LOCAL_LENGTH ND_INVALIDATION_ERROR",
    "ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED ND_MR_FLAG_DO_NOT_SECURE_VM",
    "ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES ND_QUERY_EXCLUDE_NDv1_ADDRESSES",
];

/// The facts of `abi.def`, numbers in decimal.
fn facts_of_the_headers() -> Facts {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap().to_string(),
        None => text.trim_matches('"').to_string(),
    };
    let fact = |line: &'static str| {
        let (kind, arguments) = line.strip_suffix(')')?.split_once('(')?;
        let (name, value) = arguments.rsplit_once(", ")?;
        Some(((kind, name.replace(", ", ".")), number(value)))
    };
    let lines = include_str!("../../tests/headers/abi.def").lines().filter(|line| line.starts_with("ND_"));
    lines.map(|line| fact(line).unwrap_or_else(|| panic!("not understood: {line}"))).collect()
}

/// What a fact is about: the part of its name before the first dot.
fn subject(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

macro_rules! structures {
    ($facts:ident: $($c:literal $rust:ty { $($field:literal = $($member:ident).+),* };)*) => {$(
        $facts.insert(("ND_SIZE", $c.into()), size_of::<$rust>().to_string());
        $($facts.insert(
            ("ND_FIELD", concat!($c, ".", $field).into()),
            offset_of!($rust, $($member).+).to_string(),
        );)*
    )*};
}

macro_rules! interfaces {
    ($facts:ident: $($c:literal $id:ident $methods:ty { $($method:literal = $($member:ident).+),* };)*) => {$(
        $facts.insert(("ND_IID", $c.into()), bytes(&$id));
        $facts.insert(("ND_SLOTS", $c.into()), (size_of::<$methods>() / 8).to_string());
        $($facts.insert(
            ("ND_SLOT", concat!($c, ".", $method).into()),
            (offset_of!($methods, $($member).+) / 8).to_string(),
        );)*
    )*};
}

macro_rules! values {
    ($facts:ident: $($name:literal = $value:expr),* $(,)?) => {
        $($facts.insert(("ND_VALUE", $name.into()), ($value as u64).to_string());)*
    };
}

macro_rules! extensions {
    ($facts:ident: $($c:literal $id:ident $methods:ty { $method:literal = $($member:ident).+ };)*) => {$(
        $facts.insert(("ND_IID", $c.into()), bytes(&$id));
        $facts.insert(
            ("ND_SLOT", concat!($c, ".", $method).into()),
            (offset_of!($methods, $($member).+) / 8).to_string(),
        );
    )*};
}

/// The bytes of an id in memory.
fn bytes(id: &Guid) -> String {
    // SAFETY: a GUID is 16 bytes without padding.
    let bytes = unsafe { &*std::ptr::from_ref(id).cast::<[u8; 16]>() };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn interfaces(facts: &mut Facts) {
    interfaces! { facts:
        "IND2Overlapped" IID_IND2Overlapped overlapped::OverlappedMethods {
            "AddRef" = unknown.add_ref, "Release" = unknown.release,
            "CancelOverlappedRequests" = cancel_overlapped_requests, "GetOverlappedResult" = get_overlapped_result
        };
        "IND2Provider" IID_IND2Provider provider::Methods {
            "AddRef" = unknown.add_ref, "Release" = unknown.release, "QueryAddressList" = query_address_list,
            "ResolveAddress" = resolve_address, "OpenAdapter" = open_adapter
        };
        "IND2Adapter" IID_IND2Adapter adapter::Methods {
            "AddRef" = unknown.add_ref, "Release" = unknown.release,
            "CreateOverlappedFile" = create_overlapped_file, "Query" = query,
            "QueryAddressList" = query_address_list, "CreateCompletionQueue" = create_completion_queue,
            "CreateMemoryRegion" = create_memory_region, "CreateMemoryWindow" = create_memory_window,
            "CreateSharedReceiveQueue" = create_shared_receive_queue, "CreateQueuePair" = create_queue_pair,
            "CreateQueuePairWithSrq" = create_queue_pair_with_srq, "CreateConnector" = create_connector,
            "CreateListener" = create_listener
        };
        "IND2CompletionQueue" IID_IND2CompletionQueue completion_queue::Methods {
            "AddRef" = overlapped.unknown.add_ref, "Release" = overlapped.unknown.release,
            "CancelOverlappedRequests" = overlapped.cancel_overlapped_requests,
            "GetOverlappedResult" = overlapped.get_overlapped_result,
            "GetNotifyAffinity" = get_notify_affinity, "Resize" = resize, "Notify" = notify,
            "GetResults" = get_results
        };
        "IND2SharedReceiveQueue" IID_IND2SharedReceiveQueue shared_receive_queue::Methods {
            "AddRef" = overlapped.unknown.add_ref, "Release" = overlapped.unknown.release,
            "CancelOverlappedRequests" = overlapped.cancel_overlapped_requests,
            "GetOverlappedResult" = overlapped.get_overlapped_result,
            "GetNotifyAffinity" = get_notify_affinity, "Modify" = modify, "Notify" = notify, "Receive" = receive
        };
        "IND2MemoryRegion" IID_IND2MemoryRegion memory_region::Methods {
            "AddRef" = overlapped.unknown.add_ref, "Release" = overlapped.unknown.release,
            "CancelOverlappedRequests" = overlapped.cancel_overlapped_requests,
            "GetOverlappedResult" = overlapped.get_overlapped_result,
            "Register" = register, "Deregister" = deregister, "GetLocalToken" = get_local_token,
            "GetRemoteToken" = get_remote_token
        };
        "IND2MemoryWindow" IID_IND2MemoryWindow memory_window::Methods {
            "AddRef" = unknown.add_ref, "Release" = unknown.release, "GetRemoteToken" = get_remote_token
        };
        "IND2QueuePair" IID_IND2QueuePair queue_pair::Methods {
            "AddRef" = unknown.add_ref, "Release" = unknown.release, "Flush" = flush, "Send" = send,
            "Receive" = receive, "Bind" = bind, "Invalidate" = invalidate, "Read" = read, "Write" = write
        };
        "IND2Connector" IID_IND2Connector connector::Methods {
            "AddRef" = overlapped.unknown.add_ref, "Release" = overlapped.unknown.release,
            "CancelOverlappedRequests" = overlapped.cancel_overlapped_requests,
            "GetOverlappedResult" = overlapped.get_overlapped_result,
            "Bind" = bind, "Connect" = connect, "CompleteConnect" = complete_connect, "Accept" = accept,
            "Reject" = reject, "GetReadLimits" = get_read_limits, "GetPrivateData" = get_private_data,
            "GetLocalAddress" = get_local_address, "GetPeerAddress" = get_peer_address,
            "NotifyDisconnect" = notify_disconnect, "Disconnect" = disconnect
        };
        "IND2Listener" IID_IND2Listener listener::Methods {
            "AddRef" = overlapped.unknown.add_ref, "Release" = overlapped.unknown.release,
            "CancelOverlappedRequests" = overlapped.cancel_overlapped_requests,
            "GetOverlappedResult" = overlapped.get_overlapped_result,
            "Bind" = bind, "Listen" = listen, "GetLocalAddress" = get_local_address,
            "GetConnectionRequest" = get_connection_request
        };
    }
}

/// The interfaces of `ndendpoint.h`, without the slots of their bases.
fn extensions(facts: &mut Facts) {
    extensions! { facts:
        "INDCompatAdapter" IID_INDCompatAdapter adapter::ExtendedMethods {
            "CreateSharedEndpoint" = create_shared_endpoint
        };
        "INDCompatSharedEndpoint" IID_INDCompatSharedEndpoint shared_endpoint::Methods { "Close" = close };
        "INDCompatConnector" IID_INDCompatConnector connector::ExtendedMethods {
            "ConnectWithSharedEndpoint" = connect_with_shared_endpoint
        };
        "INDCompatListener" IID_INDCompatListener listener::ExtendedMethods { "Close" = close };
    }
}

fn structures(facts: &mut Facts) {
    structures! { facts:
        "ND2_SGE" Sge { "Buffer" = buffer, "BufferLength" = length, "MemoryRegionToken" = token };
        "ND2_RESULT" Completion {
            "Status" = status, "BytesTransferred" = bytes_transferred, "QueuePairContext" = queue_pair_context,
            "RequestContext" = request_context, "RequestType" = request_type
        };
        "ND2_REQUEST_TYPE" RequestType {};
        "ND2_ADAPTER_INFO" AdapterInfo {
            "InfoVersion" = info_version, "VendorId" = vendor_id, "DeviceId" = device_id, "AdapterId" = adapter_id,
            "MaxRegistrationSize" = max_registration_size, "MaxWindowSize" = max_window_size,
            "MaxInitiatorSge" = max_initiator_sge, "MaxReceiveSge" = max_receive_sge, "MaxReadSge" = max_read_sge,
            "MaxTransferLength" = max_transfer_length, "MaxInlineDataSize" = max_inline_data_size,
            "MaxInboundReadLimit" = max_inbound_read_limit, "MaxOutboundReadLimit" = max_outbound_read_limit,
            "MaxReceiveQueueDepth" = max_receive_queue_depth,
            "MaxInitiatorQueueDepth" = max_initiator_queue_depth,
            "MaxSharedReceiveQueueDepth" = max_shared_receive_queue_depth,
            "MaxCompletionQueueDepth" = max_completion_queue_depth,
            "InlineRequestThreshold" = inline_request_threshold,
            "LargeRequestThreshold" = large_request_threshold, "MaxCallerData" = max_caller_data,
            "MaxCalleeData" = max_callee_data, "AdapterFlags" = adapter_flags
        };
        "GUID" Guid { "Data2" = data2, "Data3" = data3, "Data4" = data4 };
        "HANDLE" RawHandle {};
        "OVERLAPPED" Overlapped {
            "Internal" = internal, "InternalHigh" = internal_high, "Offset" = offset, "Pointer" = offset,
            "hEvent" = event
        };
        "OVERLAPPED_ENTRY" OverlappedEntry {
            "lpCompletionKey" = key, "lpOverlapped" = overlapped, "Internal" = internal,
            "dwNumberOfBytesTransferred" = bytes
        };
        "SYSTEM_INFO" SystemInfo {
            "dwPageSize" = page_size, "dwNumberOfProcessors" = number_of_processors,
            "dwAllocationGranularity" = allocation_granularity
        };
        "MEMORYSTATUSEX" MemoryStatus { "ullTotalPhys" = total_physical };
        "MEMORY_BASIC_INFORMATION" MemoryInformation { "RegionSize" = region_size };
        "WSADATA" WsaData { "lpVendorInfo" = vendor_info, "szDescription" = description };
        "WSAPROTOCOL_INFOW" ProtocolInfo {
            "ProviderId" = provider_id, "iVersion" = version, "szProtocol" = name
        };
        "FILETIME" FileTime {};
        "BY_HANDLE_FILE_INFORMATION" FileInformation {
            "dwVolumeSerialNumber" = volume, "nFileIndexLow" = index_low
        };
        "CRITICAL_SECTION" CriticalSection {};
        "SRWLOCK" SrwLock {};
        "CONDITION_VARIABLE" ConditionVariable {};
        "INIT_ONCE" InitOnce {};
        "SOCKADDR" libc::sockaddr {};
        "SOCKADDR_IN" libc::sockaddr_in {
            "sin_family" = sin_family, "sin_port" = sin_port, "sin_addr" = sin_addr,
            "sin_addr.S_un.S_addr" = sin_addr.s_addr
        };
        "SOCKADDR_IN6" libc::sockaddr_in6 {
            "sin6_family" = sin6_family, "sin6_port" = sin6_port, "sin6_flowinfo" = sin6_flowinfo,
            "sin6_addr" = sin6_addr, "sin6_addr.u.Byte" = sin6_addr.s6_addr, "sin6_scope_id" = sin6_scope_id
        };
        "SOCKADDR_STORAGE" libc::sockaddr_storage {};
        "IN_ADDR" libc::in_addr {};
        "IN6_ADDR" libc::in6_addr {};
    }
    let high_half = offset_of!(Overlapped, offset) + 4;
    facts.insert(("ND_FIELD", "OVERLAPPED.OffsetHigh".into()), high_half.to_string());
    // Its size is not that of Windows: the name is of wide characters.
    facts.remove(&("ND_SIZE", "WSAPROTOCOL_INFOW".into()));
}

fn values(facts: &mut Facts) {
    values! { facts:
        "ND_VERSION_2" = VERSION_2,
        "ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED" = adapter_flags::IN_ORDER_DMA,
        "ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED" = adapter_flags::MULTI_ENGINE,
        "ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED" = adapter_flags::CQ_RESIZE,
        "ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED" = adapter_flags::LOOPBACK,
        "ND_MR_FLAG_ALLOW_LOCAL_WRITE" = mr_flags::ALLOW_LOCAL_WRITE,
        "ND_MR_FLAG_ALLOW_REMOTE_READ" = mr_flags::ALLOW_REMOTE_READ,
        "ND_MR_FLAG_ALLOW_REMOTE_WRITE" = mr_flags::REMOTE_WRITE_BIT | mr_flags::ALLOW_LOCAL_WRITE,
        "ND_MR_FLAG_RDMA_READ_SINK" = mr_flags::RDMA_READ_SINK,
        "ND_OP_FLAG_SILENT_SUCCESS" = op_flags::SILENT_SUCCESS,
        "ND_OP_FLAG_READ_FENCE" = op_flags::READ_FENCE,
        "ND_OP_FLAG_SEND_AND_SOLICIT_EVENT" = op_flags::SOLICIT,
        "ND_OP_FLAG_ALLOW_READ" = op_flags::ALLOW_READ,
        "ND_OP_FLAG_ALLOW_WRITE" = op_flags::ALLOW_WRITE,
        "ND_OP_FLAG_INLINE" = op_flags::INLINE,
        "ND_CQ_NOTIFY_ERRORS" = NotifyType::Errors,
        "ND_CQ_NOTIFY_ANY" = NotifyType::Any,
        "ND_CQ_NOTIFY_SOLICITED" = NotifyType::Solicited,
        "ND_QUERY_EXCLUDE_NDv2_ADDRESSES" = helper::EXCLUDE_ND2,
        "Nd2RequestTypeReceive" = RequestType::Receive,
        "Nd2RequestTypeSend" = RequestType::Send,
        "Nd2RequestTypeBind" = RequestType::Bind,
        "Nd2RequestTypeInvalidate" = RequestType::Invalidate,
        "Nd2RequestTypeRead" = RequestType::Read,
        "Nd2RequestTypeWrite" = RequestType::Write,
    }
    // Others than `ND_*` are not in `ndstatus.h`.
    for status in Status::NAMED {
        let name = status.name().filter(|name| name.starts_with("ND_"));
        facts.extend(name.map(|name| (("ND_VALUE", name.into()), (status.0 as u32).to_string())));
    }
}

#[test]
fn rust_and_the_headers_agree_in_every_fact() {
    let headers = facts_of_the_headers();
    let mut rust = Facts::new();
    interfaces(&mut rust);
    extensions(&mut rust);
    structures(&mut rust);
    values(&mut rust);
    for (what, value) in &rust {
        assert_eq!(headers.get(what), Some(value), "{what:?}: headers, Rust");
    }
    let only: Vec<_> = IN_HEADERS_ONLY.iter().flat_map(|names| names.split(' ')).collect();
    for (what, value) in headers.iter().filter(|(what, _)| !rust.contains_key(what)) {
        assert!(only.contains(&subject(&what.1)), "Rust has nothing for {what:?} = {value}");
    }
    for name in &only {
        assert!(headers.keys().any(|what| subject(&what.1) == *name), "{name} is not in abi.def");
    }
}

#[test]
fn ids_of_nd_v1_are_those_of_the_headers() {
    let headers = facts_of_the_headers();
    let v1 = [
        ("INDOverlapped", &IID_INDOverlapped),
        ("INDProvider", &IID_INDProvider),
        ("INDAdapter", &IID_INDAdapter),
        ("INDCompletionQueue", &IID_INDCompletionQueue),
        ("INDMemoryWindow", &IID_INDMemoryWindow),
        ("INDEndpoint", &IID_INDEndpoint),
        ("INDConnector", &IID_INDConnector),
        ("INDListen", &IID_INDListen),
    ];
    for (name, id) in v1 {
        assert_eq!(headers.get(&("ND_IID", name.into())), Some(&bytes(id)), "{name}");
    }
}
