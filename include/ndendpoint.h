/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What ndcompat adds to the NetworkDirect SPI: shared endpoints, and a Close that says when an address is free. In the
 * kernel of Windows NDKPI has both; the SPI has neither.
 *
 * Each interface extends one of the SPI by slots at its end and is asked of the same object:
 *
 *     INDCompatAdapter *extended;
 *     adapter->QueryInterface(IID_INDCompatAdapter, (void **)&extended);    (E_NOINTERFACE from any other provider)
 *
 * In C the base comes first in the vtable, under its own name: p->lpVtbl->IND2Adapter.Query(...).
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

/* A local address that several connectors connect from. */
#undef INTERFACE
#define INTERFACE INDCompatSharedEndpoint
ND_EXTENSION(INDCompatSharedEndpoint, IND2Overlapped)
{
    ND_BASE_SLOTS(IND2Overlapped)
    STDMETHOD(GetLocalAddress)(THIS_
        _Out_writes_bytes_to_opt_(*pcbAddress, *pcbAddress) struct sockaddr* pAddress,
        _Inout_ ULONG* pcbAddress) PURE;
    /*
     * Lets no further connector in, and completes when all that have connected from here are released. Release does the
     * same without saying when. ND_INVALID_DEVICE_STATE: it was closed before.
     */
    STDMETHOD(Close)(THIS_ _Inout_ OVERLAPPED* pOverlapped) PURE;
};

#undef INTERFACE
#define INTERFACE INDCompatAdapter
ND_EXTENSION(INDCompatAdapter, IND2Adapter)
{
    ND_BASE_SLOTS(IND2Adapter)
    /* Takes the address, with a free port if it has none. The statuses are those of IND2Connector::Bind. */
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
     * IND2Connector::Connect from the address of a shared endpoint, in place of Bind and Connect. The connector holds the
     * endpoint until it is released. Besides the statuses of Connect: ND_ADDRESS_ALREADY_EXISTS when another connector has
     * connected the endpoint with this destination, ND_ADDRESS_ALREADY_ASSOCIATED when this one has an address already,
     * ND_INVALID_DEVICE_STATE when the endpoint is closed.
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
     * Refuses newcomers from now on, and completes when all connectors accepted here are released: from then on the
     * address is free. Release does the same without saying when. ND_INVALID_DEVICE_STATE: it was closed before.
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
