//! Compares the binary interface of the Rust code with `tests/headers/abi.def`, which is also compared with C and C++
//! compilers. Both sides must list the same things.

use crate::guid::*;
use crate::*;
use ndcompat::Status;
use ndcompat::types::*;
use std::collections::BTreeMap;
use std::mem::offset_of;
use win32::api::completion_port::OverlappedEntry;
use win32::api::console_screen::ScreenBufferInfo;
use win32::api::file_information::{
    BasicInformation, IdInformation, RenameInformation, StandardInformation, StorageInformation,
};
use win32::api::files::FileInformation;
use win32::api::multimedia_timer::Capabilities;
use win32::api::process_memory::MemoryCounters;
use win32::calendar::SystemTime;
use win32::io::Overlapped;
use win32::memory::heap::contents::HeapEntry;
use win32::memory::system::{MemoryStatus, SystemInfo};
use win32::memory::virtual_memory::MemoryInformation;
use win32::object::RawHandle;
use win32::sync::barrier::Barrier;
use win32::sync::condition::ConditionVariable;
use win32::sync::critical::CriticalSection;
use win32::sync::once::InitOnce;
use win32::sync::srw::SrwLock;
use win32::time::FileTime;
use win32::winsock::address_info::AddrInfoEx;
use win32::winsock::catalogue::ProtocolInfo;
use win32::winsock::interface_change::IpInterfaceRow;
use win32::winsock::interface_table::{self, AddressRow, Ipv4Row};
use win32::winsock::startup::WsaData;
use win32::winsock::transmit_file::Buffers;

/// The value of each fact, by macro and name: `ND_SIZE`, `ND2_SGE` or `ND_ENTRY`, `IND2Provider.OpenAdapter`.
type Facts = BTreeMap<(&'static str, String), String>;

/// What is in the headers only: ND v1 except for its ids, definitions for programs, and structures without a name in Rust.
const IN_HEADERS_ONLY: &[&str] = &[
    "INDAdapter INDCompletionQueue INDConnector INDEndpoint INDListen INDMemoryWindow INDOverlapped INDProvider",
    "ND_ADAPTER_INFO1 ND_RESULT ND_SGE ND_MW_DESCRIPTOR ND_MR_HANDLE ND2_ADAPTER_INFO32",
    "BOOL INT LONG ULONG DWORD HRESULT UINT32 USHORT UINT16 WORD BYTE BOOLEAN UINT64 ULONGLONG LONGLONG SIZE_T",
    "ULONG_PTR KAFFINITY SOCKET SOCKET_ADDRESS SOCKET_ADDRESS_LIST SOCKADDR_INET WSABUF LARGE_INTEGER LIST_ENTRY",
    "GROUP_AFFINITY SECURITY_ATTRIBUTES IF_PHYSICAL_ADDRESS NDVER ND_VERSION_1 ND_LOCAL_LENGTH ND_INVALIDATION_ERROR",
    "ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED ND_MR_FLAG_DO_NOT_SECURE_VM",
    "ND_QUERY_EXCLUDE_NDv1_ADDRESSES FLOWSPEC QOS INTERFACE_INFO SCOPE_ID",
    "SLIST_HEADER SLIST_ENTRY TP_CALLBACK_ENVIRON CRITICAL_SECTION_DEBUG CRITICAL_SECTION_NO_DEBUG_INFO INIT_ONCE_CHECK_ONLY INIT_ONCE_ASYNC INIT_ONCE_INIT_FAILED",
    "PROCESSOR_RELATIONSHIP NUMA_NODE_RELATIONSHIP CACHE_RELATIONSHIP GROUP_RELATIONSHIP PROCESSOR_GROUP_INFO",
    "SYSTEM_LOGICAL_PROCESSOR_INFORMATION SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX WIN32_FIND_DATAA PROCESS_MEMORY_COUNTERS",
    "WIN32_FILE_ATTRIBUTE_DATA OSVERSIONINFOA OSVERSIONINFOEXA CSTR_GREATER_THAN ComputerNamePhysicalDnsFullyQualified",
    "FILE_ALIGNMENT_INFO FILE_DISPOSITION_INFO FILE_SEGMENT_ELEMENT MSG_BCAST MSG_MCAST VER_PLATFORM_WIN32_WINDOWS PERFORMANCE_INFORMATION RECT POINT SIZE",
    "COLORREF ERROR_PIPE_LISTENING FIND_FIRST_EX_LARGE_FETCH GMEM_LOCKCOUNT LMEM_INVALID_HANDLE MAXIMUM_ALLOWED NUMA_NO_PREFERRED_NODE",
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

/// The subject of a fact: its name up to the first dot.
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

macro_rules! values {
    ($facts:ident: $($name:literal = $value:expr),* $(,)?) => {
        $($facts.insert(("ND_VALUE", $name.into()), ($value as u64).to_string());)*
    };
}

/// The bytes of an id in memory.
fn bytes(id: &Guid) -> String {
    // SAFETY: a GUID is 16 bytes without padding.
    let bytes = unsafe { &*std::ptr::from_ref(id).cast::<[u8; 16]>() };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `create_queue_pair` is `CreateQueuePair` in C.
fn in_c(method: &str) -> String {
    method.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

fn interfaces(facts: &mut Facts) {
    let all = interfaces::all();
    // Interfaces of COM are not in the headers of NetworkDirect.
    for interface in all.iter().filter(|interface| !["IUnknown", "IClassFactory"].contains(&interface.name)) {
        facts.insert(("ND_IID", interface.name.into()), bytes(interface.id));
        // The structure of an extension contains that of its base: the headers list its own entries only.
        let extension = interface.name.starts_with("INDCompat");
        if !extension {
            facts.insert(("ND_ENTRIES", interface.name.into()), interface.entries.to_string());
        }
        let mut part = Some(interface);
        while let Some(table) = part {
            // The first entry is checked with the number of entries.
            for (method, index) in table.methods.iter().filter(|(method, _)| *method != "query_interface") {
                let name = format!("{}.{}", interface.name, in_c(method));
                facts.insert(("ND_ENTRY", name), index.to_string());
            }
            part = all.iter().find(|other| !extension && other.vtbl == table.base);
        }
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
        "PROCESS_HEAP_ENTRY" HeapEntry { "wFlags" = flags, "Region" = details };
        "SYSTEMTIME" SystemTime { "wDayOfWeek" = day_of_week, "wMilliseconds" = milliseconds };
        "MEMORYSTATUSEX" MemoryStatus { "ullTotalPhys" = total_physical };
        "PROCESS_MEMORY_COUNTERS_EX" MemoryCounters { "WorkingSetSize" = working_set, "PrivateUsage" = private };
        "TIMECAPS" Capabilities {};
        "MIB_IPINTERFACE_ROW" IpInterfaceRow { "InterfaceLuid" = luid, "InterfaceIndex" = index };
        "MIB_UNICASTIPADDRESS_ROW" AddressRow {
            "InterfaceLuid" = luid, "OnLinkPrefixLength" = prefix_length, "DadState" = dad_state,
            "CreationTimeStamp" = created
        };
        "MIB_IPADDRROW" Ipv4Row {};
        "MEMORY_BASIC_INFORMATION" MemoryInformation { "RegionSize" = region_size };
        "ADDRINFOEXW" AddrInfoEx<u32> { "ai_addr" = address, "ai_next" = next };
        "TRANSMIT_FILE_BUFFERS" Buffers { "Tail" = tail };
        "WSADATA" WsaData { "lpVendorInfo" = vendor_info, "szDescription" = description };
        "WSAPROTOCOL_INFOW" ProtocolInfo {
            "ProviderId" = provider_id, "iVersion" = version, "szProtocol" = name
        };
        "FILETIME" FileTime {};
        "CONSOLE_SCREEN_BUFFER_INFO" ScreenBufferInfo {
            "wAttributes" = attributes, "dwMaximumWindowSize" = largest_window
        };
        "BY_HANDLE_FILE_INFORMATION" FileInformation {
            "dwVolumeSerialNumber" = volume, "nFileIndexLow" = index_low
        };
        "FILE_BASIC_INFO" BasicInformation { "FileAttributes" = attributes };
        "FILE_STANDARD_INFO" StandardInformation { "NumberOfLinks" = links, "Directory" = directory };
        "FILE_RENAME_INFO" RenameInformation { "RootDirectory" = root, "FileName" = name };
        "FILE_STORAGE_INFO" StorageInformation { "Flags" = flags };
        "FILE_ID_INFO" IdInformation { "FileId" = file };
        "CRITICAL_SECTION" CriticalSection {
            "LockCount" = lock_count, "RecursionCount" = recursion, "OwningThread" = owner,
            "LockSemaphore" = semaphore, "SpinCount" = spins
        };
        "SRWLOCK" SrwLock {};
        "SYNCHRONIZATION_BARRIER" Barrier {};
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
    // Its size differs from Windows, as the name has wide characters.
    facts.remove(&("ND_SIZE", "WSAPROTOCOL_INFOW".into()));
}

fn values(facts: &mut Facts) {
    values! { facts:
        "ND_VERSION_2" = VERSION_2,
        "ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED" = AdapterFlags::IN_ORDER_DMA.bits(),
        "ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED" = AdapterFlags::MULTI_ENGINE.bits(),
        "ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED" = AdapterFlags::CQ_RESIZE.bits(),
        "ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED" = AdapterFlags::LOOPBACK.bits(),
        "ND_MR_FLAG_ALLOW_LOCAL_WRITE" = RegionFlags::ALLOW_LOCAL_WRITE.bits(),
        "ND_MR_FLAG_ALLOW_REMOTE_READ" = RegionFlags::ALLOW_REMOTE_READ.bits(),
        "ND_MR_FLAG_ALLOW_REMOTE_WRITE" = RegionFlags::ALLOW_REMOTE_WRITE.bits(),
        "ND_MR_FLAG_RDMA_READ_SINK" = RegionFlags::RDMA_READ_SINK.bits(),
        "ND_OP_FLAG_SILENT_SUCCESS" = RequestFlags::SILENT_SUCCESS.bits(),
        "ND_OP_FLAG_READ_FENCE" = RequestFlags::READ_FENCE.bits(),
        "ND_OP_FLAG_SEND_AND_SOLICIT_EVENT" = RequestFlags::SOLICIT.bits(),
        "ND_OP_FLAG_ALLOW_READ" = RequestFlags::ALLOW_READ.bits(),
        "ND_OP_FLAG_ALLOW_WRITE" = RequestFlags::ALLOW_WRITE.bits(),
        "ND_OP_FLAG_INLINE" = RequestFlags::INLINE.bits(),
        "ND_CQ_NOTIFY_ERRORS" = NotifyType::Errors,
        "ND_CQ_NOTIFY_ANY" = NotifyType::Any,
        "ND_CQ_NOTIFY_SOLICITED" = NotifyType::Solicited,
        "ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES" = helper::EXCLUDE_EMULATOR,
        "ND_QUERY_EXCLUDE_NDv2_ADDRESSES" = helper::EXCLUDE_ND2,
        "NdisMedium802_3" = interface_table::MEDIUM_802_3,
        "NdisMediumInfiniBand" = interface_table::MEDIUM_INFINIBAND,
        "NdisMediumLoopback" = interface_table::MEDIUM_LOOPBACK,
        "NdisPhysicalMediumUnspecified" = interface_table::PHYSICAL_MEDIUM_UNSPECIFIED,
        "NdisPhysicalMediumInfiniband" = interface_table::PHYSICAL_MEDIUM_INFINIBAND,
        "NdisPhysicalMedium802_3" = interface_table::PHYSICAL_MEDIUM_802_3,
        "Nd2RequestTypeReceive" = RequestType::Receive,
        "Nd2RequestTypeSend" = RequestType::Send,
        "Nd2RequestTypeBind" = RequestType::Bind,
        "Nd2RequestTypeInvalidate" = RequestType::Invalidate,
        "Nd2RequestTypeRead" = RequestType::Read,
        "Nd2RequestTypeWrite" = RequestType::Write,
    }
    // Only `ND_*` names are in `ndstatus.h`.
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
    structures(&mut rust);
    values(&mut rust);
    for (what, value) in &rust {
        assert_eq!(headers.get(what), Some(value), "{what:?}: headers, Rust");
    }
    let only: Vec<_> = IN_HEADERS_ONLY.iter().flat_map(|names| names.split(' ')).collect();
    let missing: Vec<_> = headers
        .iter()
        .filter(|(what, _)| !rust.contains_key(what) && !only.contains(&subject(&what.1)))
        .collect();
    assert!(missing.is_empty(), "Rust has nothing for {missing:?}");
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
