/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Extensions of ndcompat to the NetworkDirect SPI: shared endpoints, and a Close that completes when an address is free.
 * Windows has both in its kernel interface, NDKPI, but not in the SPI.
 *
 * Each interface appends methods to one of the SPI. The same object returns it:
 *
 *     INDCompatAdapter *extended;
 *     adapter->QueryInterface(IID_INDCompatAdapter, (void **)&extended);    (E_NOINTERFACE from any other provider)
 *
 * In C the base's vtable is the first member of the extended one: p->lpVtbl->IND2Adapter.Query(...).
 */
#ifndef NDENDPOINT_H
#define NDENDPOINT_H

#include "ndspi.h"

ND_INTERFACE_ID(INDCompatAdapter, "1391109C-D0E3-4A8F-9004-F167E96C17E3",
    0x1391109C, 0xD0E3, 0x4A8F, 0x90, 0x04, 0xF1, 0x67, 0xE9, 0x6C, 0x17, 0xE3);
ND_INTERFACE_ID(INDCompatSharedEndpoint, "F1CB7DB9-0623-47E9-9E9A-EC93154E03D2",
    0xF1CB7DB9, 0x0623, 0x47E9, 0x9E, 0x9A, 0xEC, 0x93, 0x15, 0x4E, 0x03, 0xD2);
ND_INTERFACE_ID(INDCompatConnector, "CBED1ED1-5C9B-42EC-B186-5E61FEC90A18",
    0xCBED1ED1, 0x5C9B, 0x42EC, 0xB1, 0x86, 0x5E, 0x61, 0xFE, 0xC9, 0x0A, 0x18);
ND_INTERFACE_ID(INDCompatListener, "84D033DB-41AB-42E9-BA16-884EA5CAAA38",
    0x84D033DB, 0x41AB, 0x42E9, 0xBA, 0x16, 0x88, 0x4E, 0xA5, 0xCA, 0xAA, 0x38);

#if defined(__cplusplus) && !defined(CINTERFACE)
#define ND_BASE_SLOTS(base)
#define ND_EXTENSION(iface, base) DECLARE_INTERFACE_(iface, base)
#else
#define ND_BASE_SLOTS(base)       base##Vtbl base;
#define ND_EXTENSION(iface, base) DECLARE_INTERFACE(iface)
#endif

#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#endif

/* A local address and port from which several connectors connect. */
#undef INTERFACE
#define INTERFACE INDCompatSharedEndpoint
ND_EXTENSION(INDCompatSharedEndpoint, IND2Overlapped)
{
    ND_BASE_SLOTS(IND2Overlapped)
    STDMETHOD(GetLocalAddress)(THIS_
        _Out_writes_bytes_to_opt_(*pcbAddress, *pcbAddress) struct sockaddr* pAddress,
        _Inout_ ULONG* pcbAddress) PURE;
    /*
     * Refuses further connectors, and completes when all that have connected from this endpoint are released. Release
     * does the same without a completion. ND_INVALID_DEVICE_STATE: already closed.
     */
    STDMETHOD(Close)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
};

#undef INTERFACE
#define INTERFACE INDCompatAdapter
ND_EXTENSION(INDCompatAdapter, IND2Adapter)
{
    ND_BASE_SLOTS(IND2Adapter)
    /* Reserves the address; port 0 is replaced by a free one. Returns the statuses of IND2Connector::Bind. */
    STDMETHOD(CreateSharedEndpoint)(THIS_
        _In_ REFIID iid,
        _In_ HANDLE hOverlappedFile,
        _In_reads_bytes_(cbAddress) const struct sockaddr* pAddress,
        _In_ ULONG cbAddress,
        _COM_Outptr_ VOID** ppSharedEndpoint) PURE;
};

#undef INTERFACE
#define INTERFACE INDCompatConnector
ND_EXTENSION(INDCompatConnector, IND2Connector)
{
    ND_BASE_SLOTS(IND2Connector)
    /*
     * Replaces Bind and Connect: connects from the address of a shared endpoint. The connector refers to the endpoint until
     * the connector is released. In addition to the statuses of Connect:
     *   ND_ADDRESS_ALREADY_EXISTS           another connector has connected from the endpoint to this destination
     *   STATUS_ADDRESS_ALREADY_ASSOCIATED   this connector has an address already
     *   ND_INVALID_DEVICE_STATE             the endpoint is closed
     */
    STDMETHOD(ConnectWithSharedEndpoint)(THIS_
        _In_ IUnknown* pQueuePair,
        _In_ IUnknown* pSharedEndpoint,
        _In_reads_bytes_(cbDestinationAddress) const struct sockaddr* pDestinationAddress,
        _In_ ULONG cbDestinationAddress,
        _In_ ULONG inboundReadLimit,
        _In_ ULONG outboundReadLimit,
        _In_reads_bytes_opt_(cbPrivateData) const VOID* pPrivateData,
        _In_ ULONG cbPrivateData,
        _Inout_ OVERLAPPED* pOverlapped) PURE;
};

#undef INTERFACE
#define INTERFACE INDCompatListener
ND_EXTENSION(INDCompatListener, IND2Listener)
{
    ND_BASE_SLOTS(IND2Listener)
    /*
     * Rejects new connection requests, and completes when all connectors accepted by this listener are released: the address
     * is then free. Release does the same without a completion. ND_INVALID_DEVICE_STATE: already closed.
     */
    STDMETHOD(Close)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
};

#undef INTERFACE
#undef ND_BASE_SLOTS
#undef ND_EXTENSION

#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

#endif /* NDENDPOINT_H */
