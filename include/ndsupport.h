/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The NetworkDirect helper functions: find the adapters of this machine by their IP addresses and open one.
 */
#ifndef _NETDIRECT_H_
#define _NETDIRECT_H_

#include "ndspi.h"

#define ND_HELPER_API __stdcall

/* NdQueryAddressList, flags */
#define ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES 0x00000001
#define ND_QUERY_EXCLUDE_NDv1_ADDRESSES     0x00000002
#define ND_QUERY_EXCLUDE_NDv2_ADDRESSES     0x00000004

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Calls are counted: each is undone by one NdCleanup. While the count is 0, every other function except NdFlushProviders
 * fails with ND_DEVICE_NOT_READY.
 */
HRESULT ND_HELPER_API NdStartup(VOID);

HRESULT ND_HELPER_API NdCleanup(VOID);

VOID ND_HELPER_API NdFlushProviders(VOID);

/* ND_BUFFER_OVERFLOW if the buffer is NULL or too small; *pcbAddressList is then the size needed, in bytes. */
HRESULT ND_HELPER_API NdQueryAddressList(
    _In_ DWORD flags,
    _Out_writes_bytes_to_opt_(*pcbAddressList, *pcbAddressList) SOCKET_ADDRESS_LIST* pAddressList,
    _Inout_ SIZE_T* pcbAddressList);

/* Finds the address of the local adapter that reaches a remote address. Its port is 0. */
HRESULT ND_HELPER_API NdResolveAddress(
    _In_reads_bytes_(cbRemoteAddress) const struct sockaddr* pRemoteAddress,
    _In_ SIZE_T cbRemoteAddress,
    _Out_writes_bytes_to_opt_(*pcbLocalAddress, *pcbLocalAddress) struct sockaddr* pLocalAddress,
    _Inout_ SIZE_T* pcbLocalAddress);

/* ND_SUCCESS if the address belongs to an adapter of this machine. The port is ignored. */
HRESULT ND_HELPER_API NdCheckAddress(
    _In_reads_bytes_(cbAddress) const struct sockaddr* pAddress,
    _In_ SIZE_T cbAddress);

HRESULT ND_HELPER_API NdOpenAdapter(
    _In_ REFIID iid,
    _In_reads_bytes_(cbAddress) const struct sockaddr* pAddress,
    _In_ SIZE_T cbAddress,
    _COM_Outptr_ VOID** ppIAdapter);

HRESULT ND_HELPER_API NdOpenV1Adapter(
    _In_reads_bytes_(cbAddress) const struct sockaddr* pAddress,
    _In_ SIZE_T cbAddress,
    _COM_Outptr_ INDAdapter** ppIAdapter);

#ifdef __cplusplus
}
#endif

#endif /* _NETDIRECT_H_ */
