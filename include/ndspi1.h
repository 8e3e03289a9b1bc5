/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Version 1 of the NetworkDirect service provider interface (HPC Pack 2008). Included by ndspi.h, never alone.
 *
 * ndcompat implements version 2 only. These declarations are for code that supports both and must compile.
 */
#ifndef NDSPI1_H
#define NDSPI1_H

ND_INTERFACE_ID(INDOverlapped, "C859E15E-75E2-4FE3-8D6D-0DFF36F02442",
    0xC859E15E, 0x75E2, 0x4FE3, 0x8D, 0x6D, 0x0D, 0xFF, 0x36, 0xF0, 0x24, 0x42);
ND_INTERFACE_ID(INDProvider, "0C5DD316-5FDF-47E6-B2D0-2A6EDA8D39DD",
    0x0C5DD316, 0x5FDF, 0x47E6, 0xB2, 0xD0, 0x2A, 0x6E, 0xDA, 0x8D, 0x39, 0xDD);
ND_INTERFACE_ID(INDAdapter, "A023C5A0-5B73-43BC-8D20-33AA07E9510F",
    0xA023C5A0, 0x5B73, 0x43BC, 0x8D, 0x20, 0x33, 0xAA, 0x07, 0xE9, 0x51, 0x0F);
ND_INTERFACE_ID(INDCompletionQueue, "1245A633-2A32-473A-830C-E05D1F869D02",
    0x1245A633, 0x2A32, 0x473A, 0x83, 0x0C, 0xE0, 0x5D, 0x1F, 0x86, 0x9D, 0x02);
ND_INTERFACE_ID(INDMemoryWindow, "070FE1F5-0AB5-4361-88DB-974BA704D4B9",
    0x070FE1F5, 0x0AB5, 0x4361, 0x88, 0xDB, 0x97, 0x4B, 0xA7, 0x04, 0xD4, 0xB9);
ND_INTERFACE_ID(INDEndpoint, "DBD00EAB-B679-44A9-BD65-E82F3DE12D1A",
    0xDBD00EAB, 0xB679, 0x44A9, 0xBD, 0x65, 0xE8, 0x2F, 0x3D, 0xE1, 0x2D, 0x1A);
ND_INTERFACE_ID(INDConnector, "1BCAF2D1-E274-4AEB-AC57-CD5D4376E0B7",
    0x1BCAF2D1, 0xE274, 0x4AEB, 0xAC, 0x57, 0xCD, 0x5D, 0x43, 0x76, 0xE0, 0xB7);
ND_INTERFACE_ID(INDListen, "BB902588-BA3F-4441-9FE1-3B6795E4E668",
    0xBB902588, 0xBA3F, 0x4441, 0x9F, 0xE1, 0x3B, 0x67, 0x95, 0xE4, 0xE6, 0x68);

DECLARE_HANDLE(ND_MR_HANDLE);

#define _ND_ADAPTER_INFO1  ND_ADAPTER_INFO1
#define _ND_RESULT         ND_RESULT
#define _ND_MW_DESCRIPTOR  ND_MW_DESCRIPTOR
#define _ND_SGE            ND_SGE
#define ND_ADAPTER_INFO    ND_ADAPTER_INFO1

typedef struct ND_ADAPTER_INFO1 {
    UINT32 VendorId;
    UINT32 DeviceId;
    SIZE_T MaxInboundSge;
    SIZE_T MaxInboundRequests;
    SIZE_T MaxInboundLength;
    SIZE_T MaxOutboundSge;
    SIZE_T MaxOutboundRequests;
    SIZE_T MaxOutboundLength;
    SIZE_T MaxInlineData;
    SIZE_T MaxInboundReadLimit;
    SIZE_T MaxOutboundReadLimit;
    SIZE_T MaxCqEntries;
    SIZE_T MaxRegistrationSize;
    SIZE_T MaxWindowSize;
    SIZE_T LargeRequestThreshold;
    SIZE_T MaxCallerData;
    SIZE_T MaxCalleeData;
} ND_ADAPTER_INFO1;

typedef struct ND_RESULT {
    HRESULT Status;
    SIZE_T BytesTransferred;
} ND_RESULT;

#pragma pack(push, 1)
typedef struct ND_MW_DESCRIPTOR {
    UINT64 Base;
    UINT64 Length;
    UINT32 Token;
} ND_MW_DESCRIPTOR;
#pragma pack(pop)

typedef struct ND_SGE {
    VOID* pAddr;
    SIZE_T Length;
    ND_MR_HANDLE hMr;
} ND_SGE;

#if defined(__cplusplus) && !defined(CINTERFACE)
#define ND_OVERLAPPED_SLOTS
#else
#define ND_OVERLAPPED_SLOTS                         \
    ND_UNKNOWN_SLOTS                                \
    STDMETHOD(CancelOverlappedRequests)(THIS) PURE; \
    STDMETHOD(GetOverlappedResult)(THIS_            \
        _Inout_ OVERLAPPED* pOverlapped,            \
        _Out_ SIZE_T* pNumberOfBytesTransferred,    \
        _In_ BOOL bWait) PURE;
#endif

#undef INTERFACE
#define INTERFACE INDOverlapped
DECLARE_INTERFACE_(INDOverlapped, IUnknown)
{
    ND_UNKNOWN_SLOTS
    STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
    STDMETHOD(GetOverlappedResult)(THIS_
        _Inout_ OVERLAPPED* pOverlapped,
        _Out_ SIZE_T* pNumberOfBytesTransferred,
        _In_ BOOL bWait) PURE;
};

#undef INTERFACE
#define INTERFACE INDCompletionQueue
DECLARE_INTERFACE_(INDCompletionQueue, INDOverlapped)
{
    ND_OVERLAPPED_SLOTS
    STDMETHOD(Resize)(THIS_ _In_ SIZE_T nEntries) PURE;
    STDMETHOD(Notify)(THIS_ _In_ DWORD Type, _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD_(SIZE_T, GetResults)(THIS_
        _Out_writes_to_(nResults, return) ND_RESULT* pResults[],
        _In_ SIZE_T nResults) PURE;
};

#undef INTERFACE
#define INTERFACE INDMemoryWindow
DECLARE_INTERFACE_(INDMemoryWindow, IUnknown)
{
    ND_UNKNOWN_SLOTS
};

#undef INTERFACE
#define INTERFACE INDEndpoint
DECLARE_INTERFACE_(INDEndpoint, IUnknown)
{
    ND_UNKNOWN_SLOTS
    STDMETHOD(Flush)(THIS) PURE;
    STDMETHOD_(void, StartRequestBatch)(THIS) PURE;
    STDMETHOD_(void, SubmitRequestBatch)(THIS) PURE;
    STDMETHOD(Send)(THIS_
        _Out_ ND_RESULT* pResult,
        _In_reads_opt_(nSge) const ND_SGE* pSgl,
        _In_ SIZE_T nSge,
        _In_ DWORD Flags) PURE;
    STDMETHOD(SendAndInvalidate)(THIS_
        _Out_ ND_RESULT* pResult,
        _In_reads_opt_(nSge) const ND_SGE* pSgl,
        _In_ SIZE_T nSge,
        _In_ const ND_MW_DESCRIPTOR* pRemoteMwDescriptor,
        _In_ DWORD Flags) PURE;
    STDMETHOD(Receive)(THIS_
        _Out_ ND_RESULT* pResult,
        _In_reads_opt_(nSge) const ND_SGE* pSgl,
        _In_ SIZE_T nSge) PURE;
    STDMETHOD(Bind)(THIS_
        _Out_ ND_RESULT* pResult,
        _In_ ND_MR_HANDLE hMr,
        _In_ INDMemoryWindow* pMw,
        _In_reads_bytes_(BufferSize) const void* pBuffer,
        _In_ SIZE_T BufferSize,
        _In_ DWORD Flags,
        _Out_ ND_MW_DESCRIPTOR* pMwDescriptor) PURE;
    STDMETHOD(Invalidate)(THIS_
        _Out_ ND_RESULT* pResult,
        _In_ INDMemoryWindow* pMw,
        _In_ DWORD Flags) PURE;
    STDMETHOD(Read)(THIS_
        _Out_ ND_RESULT* pResult,
        _In_reads_opt_(nSge) const ND_SGE* pSgl,
        _In_ SIZE_T nSge,
        _In_ const ND_MW_DESCRIPTOR* pRemoteMwDescriptor,
        _In_ ULONGLONG Offset,
        _In_ DWORD Flags) PURE;
    STDMETHOD(Write)(THIS_
        _Out_ ND_RESULT* pResult,
        _In_reads_opt_(nSge) const ND_SGE* pSgl,
        _In_ SIZE_T nSge,
        _In_ const ND_MW_DESCRIPTOR* pRemoteMwDescriptor,
        _In_ ULONGLONG Offset,
        _In_ DWORD Flags) PURE;
};

#undef INTERFACE
#define INTERFACE INDConnector
DECLARE_INTERFACE_(INDConnector, INDOverlapped)
{
    ND_OVERLAPPED_SLOTS
    STDMETHOD(CreateEndpoint)(THIS_
        _In_ INDCompletionQueue* pInboundCq,
        _In_ INDCompletionQueue* pOutboundCq,
        _In_ SIZE_T nInboundEntries,
        _In_ SIZE_T nOutboundEntries,
        _In_ SIZE_T nInboundSge,
        _In_ SIZE_T nOutboundSge,
        _In_ SIZE_T InboundReadLimit,
        _In_ SIZE_T OutboundReadLimit,
        _Out_opt_ SIZE_T* pMaxInlineData,
        _COM_Outptr_ INDEndpoint** ppEndpoint) PURE;
    STDMETHOD(Connect)(THIS_
        _In_ INDEndpoint* pEndpoint,
        _In_reads_bytes_(AddressLength) const struct sockaddr* pAddress,
        _In_ SIZE_T AddressLength,
        _In_ INT Protocol,
        _In_ USHORT LocalPort,
        _In_reads_bytes_opt_(PrivateDataLength) const void* pPrivateData,
        _In_ SIZE_T PrivateDataLength,
        _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(CompleteConnect)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(Accept)(THIS_
        _In_ INDEndpoint* pEndpoint,
        _In_reads_bytes_opt_(PrivateDataLength) const void* pPrivateData,
        _In_ SIZE_T PrivateDataLength,
        _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(Reject)(THIS_
        _In_reads_bytes_opt_(PrivateDataLength) const void* pPrivateData,
        _In_ SIZE_T PrivateDataLength) PURE;
    STDMETHOD(GetConnectionData)(THIS_
        _Out_opt_ SIZE_T* pInboundReadLimit,
        _Out_opt_ SIZE_T* pOutboundReadLimit,
        _Out_writes_bytes_to_opt_(*pPrivateDataLength, *pPrivateDataLength) void* pPrivateData,
        _Inout_opt_ SIZE_T* pPrivateDataLength) PURE;
    STDMETHOD(GetLocalAddress)(THIS_
        _Out_writes_bytes_to_opt_(*pAddressLength, *pAddressLength) struct sockaddr* pAddress,
        _Inout_ SIZE_T* pAddressLength) PURE;
    STDMETHOD(GetPeerAddress)(THIS_
        _Out_writes_bytes_to_opt_(*pAddressLength, *pAddressLength) struct sockaddr* pAddress,
        _Inout_ SIZE_T* pAddressLength) PURE;
    STDMETHOD(NotifyDisconnect)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(Disconnect)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
};

#undef INTERFACE
#define INTERFACE INDListen
DECLARE_INTERFACE_(INDListen, INDOverlapped)
{
    ND_OVERLAPPED_SLOTS
    STDMETHOD(GetConnectionRequest)(THIS_
        _Inout_ INDConnector* pConnector,
        _Inout_ OVERLAPPED* pOverlapped) PURE;
};

#undef INTERFACE
#define INTERFACE INDAdapter
DECLARE_INTERFACE_(INDAdapter, INDOverlapped)
{
    ND_OVERLAPPED_SLOTS
    STDMETHOD_(HANDLE, GetFileHandle)(THIS) PURE;
    STDMETHOD(Query)(THIS_
        _In_ DWORD VersionRequested,
        _Out_writes_bytes_to_opt_(*pBufferSize, *pBufferSize) ND_ADAPTER_INFO* pInfo,
        _Inout_opt_ SIZE_T* pBufferSize) PURE;
    STDMETHOD(Control)(THIS_
        _In_ DWORD IoControlCode,
        _In_reads_bytes_opt_(InBufferSize) const void* pInBuffer,
        _In_ SIZE_T InBufferSize,
        _Out_writes_bytes_to_opt_(OutBufferSize, *pBytesReturned) void* pOutBuffer,
        _In_ SIZE_T OutBufferSize,
        _Out_ SIZE_T* pBytesReturned,
        _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(CreateCompletionQueue)(THIS_
        _In_ SIZE_T nEntries,
        _COM_Outptr_ INDCompletionQueue** ppCq) PURE;
    STDMETHOD(RegisterMemory)(THIS_
        _In_reads_bytes_(BufferSize) const void* pBuffer,
        _In_ SIZE_T BufferSize,
        _Inout_ OVERLAPPED* pOverlapped,
        _Out_ ND_MR_HANDLE* phMr) PURE;
    STDMETHOD(DeregisterMemory)(THIS_ _In_ ND_MR_HANDLE hMr, _Inout_ OVERLAPPED* pOverlapped) PURE;
    STDMETHOD(CreateMemoryWindow)(THIS_
        _Out_ ND_RESULT* pInvalidateResult,
        _COM_Outptr_ INDMemoryWindow** ppMw) PURE;
    STDMETHOD(CreateConnector)(THIS_ _COM_Outptr_ INDConnector** ppConnector) PURE;
    STDMETHOD(Listen)(THIS_
        _In_ SIZE_T Backlog,
        _In_ INT Protocol,
        _In_ USHORT Port,
        _Out_opt_ USHORT* pAssignedPort,
        _COM_Outptr_ INDListen** ppListen) PURE;
};

#undef INTERFACE
#define INTERFACE INDProvider
DECLARE_INTERFACE_(INDProvider, IUnknown)
{
    ND_UNKNOWN_SLOTS
    STDMETHOD(QueryAddressList)(THIS_
        _Out_writes_bytes_to_opt_(*pBufferSize, *pBufferSize) SOCKET_ADDRESS_LIST* pAddressList,
        _Inout_ SIZE_T* pBufferSize) PURE;
    STDMETHOD(OpenAdapter)(THIS_
        _In_reads_bytes_(AddressLength) const struct sockaddr* pAddress,
        _In_ SIZE_T AddressLength,
        _COM_Outptr_ INDAdapter** ppAdapter) PURE;
};

#endif /* NDSPI1_H */
