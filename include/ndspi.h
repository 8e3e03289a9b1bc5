/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The NetworkDirect service provider interface, version 2.
 *
 * The file serves Windows (MSVC, mingw-w64) and Linux (with ndcompat's headers in place of the Windows SDK's). In C++ the
 * interfaces are abstract structs; in C they are structs with a vtable pointer `lpVtbl`, and macros such as
 * `IND2Adapter_Query(p, ...)` call them. The order of the methods is the ABI.
 *
 * Includes version 1 (ndspi1.h), as Microsoft's ndspi.h does.
 */
#ifndef _NDSPI_H_
#define _NDSPI_H_

#include <winsock2.h>
#include <unknwn.h>
#include "ndstatus.h"
#include "nddef.h"

/* Second names of completion statuses. */
#define ND_LOCAL_LENGTH       ND_DATA_OVERRUN
#define ND_INVALIDATION_ERROR ND_INVALID_DEVICE_REQUEST

/*
 * ND_INTERFACE_ID(I, text, numbers...) declares IID_I, or defines it if INITGUID is defined. In C++ it also declares the
 * struct I, so that __uuidof(I) works.
 */
#if defined(__cplusplus) && defined(_MSC_VER)
#define ND_INTERFACE_ID(iface, text, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) \
    struct __declspec(uuid(text)) iface;                                        \
    DEFINE_GUID(IID_##iface, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)
#elif defined(__cplusplus)
#define ND_INTERFACE_ID(iface, text, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) \
    struct iface;                                                               \
    __CRT_UUID_DECL(iface, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)           \
    DEFINE_GUID(IID_##iface, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)
#else
#define ND_INTERFACE_ID(iface, text, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) \
    DEFINE_GUID(IID_##iface, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)
#endif

ND_INTERFACE_ID(IND2Overlapped, "ABF72719-B016-4A40-A6F7-622791A7044C",
    0xABF72719, 0xB016, 0x4A40, 0xA6, 0xF7, 0x62, 0x27, 0x91, 0xA7, 0x04, 0x4C);
ND_INTERFACE_ID(IND2Provider, "49EAE6C1-76C4-46D0-8003-5C2EAA2C9A8E",
    0x49EAE6C1, 0x76C4, 0x46D0, 0x80, 0x03, 0x5C, 0x2E, 0xAA, 0x2C, 0x9A, 0x8E);
ND_INTERFACE_ID(IND2Adapter, "D89C798C-4823-4D69-846C-DFDCCFF9E5F3",
    0xD89C798C, 0x4823, 0x4D69, 0x84, 0x6C, 0xDF, 0xDC, 0xCF, 0xF9, 0xE5, 0xF3);
ND_INTERFACE_ID(IND2CompletionQueue, "20CC445E-64A0-4CBB-AA75-F6A7251FDA9E",
    0x20CC445E, 0x64A0, 0x4CBB, 0xAA, 0x75, 0xF6, 0xA7, 0x25, 0x1F, 0xDA, 0x9E);
ND_INTERFACE_ID(IND2SharedReceiveQueue, "AABD67DC-459A-4DB1-826B-56CFCC278883",
    0xAABD67DC, 0x459A, 0x4DB1, 0x82, 0x6B, 0x56, 0xCF, 0xCC, 0x27, 0x88, 0x83);
ND_INTERFACE_ID(IND2MemoryRegion, "55DFEA2F-BC56-4982-8A45-0301BE46C413",
    0x55DFEA2F, 0xBC56, 0x4982, 0x8A, 0x45, 0x03, 0x01, 0xBE, 0x46, 0xC4, 0x13);
/* Shared with INDMemoryWindow of version 1. */
ND_INTERFACE_ID(IND2MemoryWindow, "070FE1F5-0AB5-4361-88DB-974BA704D4B9",
    0x070FE1F5, 0x0AB5, 0x4361, 0x88, 0xDB, 0x97, 0x4B, 0xA7, 0x04, 0xD4, 0xB9);
ND_INTERFACE_ID(IND2QueuePair, "EEF2F332-B75D-4063-BCE3-3A0BAD2D02CE",
    0xEEF2F332, 0xB75D, 0x4063, 0xBC, 0xE3, 0x3A, 0x0B, 0xAD, 0x2D, 0x02, 0xCE);
ND_INTERFACE_ID(IND2Connector, "7DD615C4-6B4C-4866-950C-F3B1D25A5302",
    0x7DD615C4, 0x6B4C, 0x4866, 0x95, 0x0C, 0xF3, 0xB1, 0xD2, 0x5A, 0x53, 0x02);
ND_INTERFACE_ID(IND2Listener, "65D23D83-3A57-4E02-86A4-350165C2D130",
    0x65D23D83, 0x3A57, 0x4E02, 0x86, 0xA4, 0x35, 0x01, 0x65, 0xC2, 0xD1, 0x30);

/* The vtable entries of the base. C has no inheritance, so each interface repeats them; C++ inherits them. */
#if defined(__cplusplus) && !defined(CINTERFACE)
#define ND_UNKNOWN_SLOTS
#define ND2_OVERLAPPED_SLOTS
#else
#define ND_UNKNOWN_SLOTS                                                             \
    STDMETHOD(QueryInterface)(THIS_ _In_ REFIID riid, _COM_Outptr_ LPVOID* ppvObj) PURE; \
    STDMETHOD_(ULONG, AddRef)(THIS) PURE;                                            \
    STDMETHOD_(ULONG, Release)(THIS) PURE;
#define ND2_OVERLAPPED_SLOTS                                                         \
    ND_UNKNOWN_SLOTS                                                                 \
    STDMETHOD(CancelOverlappedRequests)(THIS) PURE;                                  \
    STDMETHOD(GetOverlappedResult)(THIS_ _In_ OVERLAPPED* pOverlapped, _In_ BOOL wait) PURE;
#endif

/* COM interfaces have no virtual destructor by design: Release destroys the object. */
#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#endif

/* Base of the objects that run overlapped requests. */
#undef INTERFACE
#define INTERFACE IND2Overlapped
DECLARE_INTERFACE_(IND2Overlapped, IUnknown)
{
    ND_UNKNOWN_SLOTS
    STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
    STDMETHOD(GetOverlappedResult)(THIS_ _In_ OVERLAPPED* pOverlapped, _In_ BOOL wait) PURE;
};

/* Returned by a provider's DllGetClassObject. */
#undef INTERFACE
#define INTERFACE IND2Provider
DECLARE_INTERFACE_(IND2Provider, IUnknown)
{
    ND_UNKNOWN_SLOTS
    STDMETHOD(QueryAddressList)(THIS_
        _Out_writes_bytes_to_opt_(*pcbAddressList, *pcbAddressList) SOCKET_ADDRESS_LIST* pAddressList,
        _Inout_ ULONG* pcbAddressList) PURE;
    STDMETHOD(ResolveAddress)(THIS_
        _In_reads_bytes_(cbAddress) const struct sockaddr* pAddress,
        _In_ ULONG cbAddress,
        _Out_ UINT64* pAdapterId) PURE;
    STDMETHOD(OpenAdapter)(THIS_
        _In_ REFIID iid,
        _In_ UINT64 adapterId,
        _COM_Outptr_ VOID** ppAdapter) PURE;
};

#undef INTERFACE
#define INTERFACE IND2Adapter
DECLARE_INTERFACE_(IND2Adapter, IUnknown)
{
    ND_UNKNOWN_SLOTS
    STDMETHOD(CreateOverlappedFile)(THIS_ _Out_ HANDLE* phOverlappedFile) PURE;
    STDMETHOD(Query)(THIS_
        _Out_writes_bytes_to_opt_(*pcbInfo, *pcbInfo) ND2_ADAPTER_INFO* pInfo,
        _Inout_ ULONG* pcbInfo) PURE;
    STDMETHOD(QueryAddressList)(THIS_
        _Out_writes_bytes_to_opt_(*pcbAddressList, *pcbAddressList) SOCKET_ADDRESS_LIST* pAddressList,
        _Inout_ ULONG* pcbAddressList) PURE;
    STDMETHOD(CreateCompletionQueue)(THIS_
        _In_ REFIID iid,
        _In_ HANDLE hOverlappedFile,
        _In_ ULONG queueDepth,
        _In_ USHORT group,
        _In_ KAFFINITY affinity,
        _COM_Outptr_ VOID** ppCompletionQueue) PURE;
    STDMETHOD(CreateMemoryRegion)(THIS_
        _In_ REFIID iid,
        _In_ HANDLE hOverlappedFile,
        _COM_Outptr_ VOID** ppMemoryRegion) PURE;
    STDMETHOD(CreateMemoryWindow)(THIS_
        _In_ REFIID iid,
        _COM_Outptr_ VOID** ppMemoryWindow) PURE;
    STDMETHOD(CreateSharedReceiveQueue)(THIS_
        _In_ REFIID iid,
        _In_ HANDLE hOverlappedFile,
        _In_ ULONG queueDepth,
        _In_ ULONG maxRequestSge,
        _In_ ULONG notifyThreshold,
        _In_ USHORT group,
        _In_ KAFFINITY affinity,
        _COM_Outptr_ VOID** ppSharedReceiveQueue) PURE;
    STDMETHOD(CreateQueuePair)(THIS_
        _In_ REFIID iid,
        _In_ IUnknown* pReceiveCompletionQueue,
        _In_ IUnknown* pInitiatorCompletionQueue,
        _In_opt_ VOID* context,
        _In_ ULONG receiveQueueDepth,
        _In_ ULONG initiatorQueueDepth,
        _In_ ULONG maxReceiveRequestSge,
        _In_ ULONG maxInitiatorRequestSge,
        _In_ ULONG inlineDataSize,
        _COM_Outptr_ VOID** ppQueuePair) PURE;
    STDMETHOD(CreateQueuePairWithSrq)(THIS_
        _In_ REFIID iid,
        _In_ IUnknown* pReceiveCompletionQueue,
        _In_ IUnknown* pInitiatorCompletionQueue,
        _In_ IUnknown* pSharedReceiveQueue,
        _In_opt_ VOID* context,
        _In_ ULONG initiatorQueueDepth,
        _In_ ULONG maxInitiatorRequestSge,
        _In_ ULONG inlineDataSize,
        _COM_Outptr_ VOID** ppQueuePair) PURE;
    STDMETHOD(CreateConnector)(THIS_
        _In_ REFIID iid,
        _In_ HANDLE hOverlappedFile,
        _COM_Outptr_ VOID** ppConnector) PURE;
    STDMETHOD(CreateListener)(THIS_
        _In_ REFIID iid,
        _In_ HANDLE hOverlappedFile,
        _COM_Outptr_ VOID** ppListener) PURE;
};

#undef INTERFACE
#define INTERFACE IND2CompletionQueue
DECLARE_INTERFACE_(IND2CompletionQueue, IND2Overlapped)
{
    ND2_OVERLAPPED_SLOTS
    STDMETHOD(GetNotifyAffinity)(THIS_ _Out_ USHORT* pGroup, _Out_ KAFFINITY* pAffinity) PURE;
    STDMETHOD(Resize)(THIS_ _In_ ULONG queueDepth) PURE;
    STDMETHOD(Notify)(THIS_ _In_ ULONG type, _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD_(ULONG, GetResults)(THIS_
        _Out_writes_to_(nResults, return) ND2_RESULT results[],
        _In_ ULONG nResults) PURE;
};

#undef INTERFACE
#define INTERFACE IND2SharedReceiveQueue
DECLARE_INTERFACE_(IND2SharedReceiveQueue, IND2Overlapped)
{
    ND2_OVERLAPPED_SLOTS
    STDMETHOD(GetNotifyAffinity)(THIS_ _Out_ USHORT* pGroup, _Out_ KAFFINITY* pAffinity) PURE;
    STDMETHOD(Modify)(THIS_ _In_ ULONG queueDepth, _In_ ULONG notifyThreshold) PURE;
    STDMETHOD(Notify)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(Receive)(THIS_
        _In_opt_ VOID* requestContext,
        _In_reads_opt_(nSge) const ND2_SGE sge[],
        _In_ ULONG nSge) PURE;
};

#undef INTERFACE
#define INTERFACE IND2MemoryRegion
DECLARE_INTERFACE_(IND2MemoryRegion, IND2Overlapped)
{
    ND2_OVERLAPPED_SLOTS
    STDMETHOD(Register)(THIS_
        _In_reads_bytes_(cbBuffer) const VOID* pBuffer,
        _In_ SIZE_T cbBuffer,
        _In_ ULONG flags,
        _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(Deregister)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD_(UINT32, GetLocalToken)(THIS) PURE;
    STDMETHOD_(UINT32, GetRemoteToken)(THIS) PURE;
};

#undef INTERFACE
#define INTERFACE IND2MemoryWindow
DECLARE_INTERFACE_(IND2MemoryWindow, IUnknown)
{
    ND_UNKNOWN_SLOTS
    STDMETHOD_(UINT32, GetRemoteToken)(THIS) PURE;
};

#undef INTERFACE
#define INTERFACE IND2QueuePair
DECLARE_INTERFACE_(IND2QueuePair, IUnknown)
{
    ND_UNKNOWN_SLOTS
    STDMETHOD(Flush)(THIS) PURE;
    STDMETHOD(Send)(THIS_
        _In_opt_ VOID* requestContext,
        _In_reads_opt_(nSge) const ND2_SGE sge[],
        _In_ ULONG nSge,
        _In_ ULONG flags) PURE;
    STDMETHOD(Receive)(THIS_
        _In_opt_ VOID* requestContext,
        _In_reads_opt_(nSge) const ND2_SGE sge[],
        _In_ ULONG nSge) PURE;
    STDMETHOD(Bind)(THIS_
        _In_opt_ VOID* requestContext,
        _In_ IUnknown* pMemoryRegion,
        _Inout_ IUnknown* pMemoryWindow,
        _In_reads_bytes_(cbBuffer) const VOID* pBuffer,
        _In_ SIZE_T cbBuffer,
        _In_ ULONG flags) PURE;
    STDMETHOD(Invalidate)(THIS_
        _In_opt_ VOID* requestContext,
        _In_ IUnknown* pMemoryWindow,
        _In_ ULONG flags) PURE;
    STDMETHOD(Read)(THIS_
        _In_opt_ VOID* requestContext,
        _In_reads_opt_(nSge) const ND2_SGE sge[],
        _In_ ULONG nSge,
        _In_ UINT64 remoteAddress,
        _In_ UINT32 remoteToken,
        _In_ ULONG flags) PURE;
    STDMETHOD(Write)(THIS_
        _In_opt_ VOID* requestContext,
        _In_reads_opt_(nSge) const ND2_SGE sge[],
        _In_ ULONG nSge,
        _In_ UINT64 remoteAddress,
        _In_ UINT32 remoteToken,
        _In_ ULONG flags) PURE;
};

#undef INTERFACE
#define INTERFACE IND2Connector
DECLARE_INTERFACE_(IND2Connector, IND2Overlapped)
{
    ND2_OVERLAPPED_SLOTS
    STDMETHOD(Bind)(THIS_
        _In_reads_bytes_(cbAddress) const struct sockaddr* pAddress,
        _In_ ULONG cbAddress) PURE;
    STDMETHOD(Connect)(THIS_
        _In_ IUnknown* pQueuePair,
        _In_reads_bytes_(cbDestAddress) const struct sockaddr* pDestAddress,
        _In_ ULONG cbDestAddress,
        _In_ ULONG inboundReadLimit,
        _In_ ULONG outboundReadLimit,
        _In_reads_bytes_opt_(cbPrivateData) const VOID* pPrivateData,
        _In_ ULONG cbPrivateData,
        _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(CompleteConnect)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(Accept)(THIS_
        _In_ IUnknown* pQueuePair,
        _In_ ULONG inboundReadLimit,
        _In_ ULONG outboundReadLimit,
        _In_reads_bytes_opt_(cbPrivateData) const VOID* pPrivateData,
        _In_ ULONG cbPrivateData,
        _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(Reject)(THIS_
        _In_reads_bytes_opt_(cbPrivateData) const VOID* pPrivateData,
        _In_ ULONG cbPrivateData) PURE;
    STDMETHOD(GetReadLimits)(THIS_
        _Out_opt_ ULONG* pInboundReadLimit,
        _Out_opt_ ULONG* pOutboundReadLimit) PURE;
    STDMETHOD(GetPrivateData)(THIS_
        _Out_writes_bytes_to_opt_(*pcbPrivateData, *pcbPrivateData) VOID* pPrivateData,
        _Inout_ ULONG* pcbPrivateData) PURE;
    STDMETHOD(GetLocalAddress)(THIS_
        _Out_writes_bytes_to_opt_(*pcbAddress, *pcbAddress) struct sockaddr* pAddress,
        _Inout_ ULONG* pcbAddress) PURE;
    STDMETHOD(GetPeerAddress)(THIS_
        _Out_writes_bytes_to_opt_(*pcbAddress, *pcbAddress) struct sockaddr* pAddress,
        _Inout_ ULONG* pcbAddress) PURE;
    STDMETHOD(NotifyDisconnect)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(Disconnect)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
};

#undef INTERFACE
#define INTERFACE IND2Listener
DECLARE_INTERFACE_(IND2Listener, IND2Overlapped)
{
    ND2_OVERLAPPED_SLOTS
    STDMETHOD(Bind)(THIS_
        _In_reads_bytes_(cbAddress) const struct sockaddr* pAddress,
        _In_ ULONG cbAddress) PURE;
    STDMETHOD(Listen)(THIS_ _In_ ULONG backlog) PURE;
    STDMETHOD(GetLocalAddress)(THIS_
        _Out_writes_bytes_to_opt_(*pcbAddress, *pcbAddress) struct sockaddr* pAddress,
        _Inout_ ULONG* pcbAddress) PURE;
    STDMETHOD(GetConnectionRequest)(THIS_
        _Inout_ IUnknown* pConnector,
        _Inout_ OVERLAPPED* pOverlapped) PURE;
};

#include "ndspi1.h"

#undef INTERFACE

#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

#if !defined(__cplusplus) || defined(CINTERFACE)
#include "ndcobj.h"
#endif

#endif /* _NDSPI_H_ */
