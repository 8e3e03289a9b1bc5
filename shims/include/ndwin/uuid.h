/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Making and comparing UUIDs, and converting them to text and back: the functions of <rpcdce.h> and of <combaseapi.h>. */
#ifndef NDWIN_UUID_H
#define NDWIN_UUID_H

#include <stdlib.h>
#include "error.h"
#include "guid.h"

typedef LONG RPC_STATUS;
#define RPC_ENTRY __stdcall
#define RPC_S_OK                   ERROR_SUCCESS
#define RPC_S_OUT_OF_MEMORY        ERROR_OUTOFMEMORY
#define RPC_S_INVALID_ARG          ERROR_INVALID_PARAMETER
#define RPC_S_INVALID_STRING_UUID  1705
#define RPC_S_UUID_LOCAL_ONLY      1824
#define RPC_S_UUID_NO_ADDRESS      1739
typedef unsigned char *RPC_CSTR;
typedef WCHAR *RPC_WSTR;

NDW_API(RPC_STATUS, UuidCreate, (UUID *uuid));
NDW_API(RPC_STATUS, UuidCreateNil, (UUID *uuid));
NDW_API(signed int, UuidCompare, (UUID *a, UUID *b, RPC_STATUS *status));
NDW_API(int, UuidEqual, (UUID *a, UUID *b, RPC_STATUS *status));
NDW_API(int, UuidIsNil, (UUID *uuid, RPC_STATUS *status));
NDW_API(RPC_STATUS, UuidToStringA, (const UUID *uuid, RPC_CSTR *text));
NDW_API(RPC_STATUS, UuidToStringW, (const UUID *uuid, RPC_WSTR *text));
NDW_API(RPC_STATUS, UuidFromStringA, (RPC_CSTR text, UUID *uuid));
NDW_API(RPC_STATUS, UuidFromStringW, (RPC_WSTR text, UUID *uuid));
NDW_API(RPC_STATUS, RpcStringFreeA, (RPC_CSTR *text));
NDW_API(RPC_STATUS, RpcStringFreeW, (RPC_WSTR *text));

#ifdef UNICODE
#define UuidToString   UuidToStringW
#define UuidFromString UuidFromStringW
#define RpcStringFree  RpcStringFreeW
#else
#define UuidToString   UuidToStringA
#define UuidFromString UuidFromStringA
#define RpcStringFree  RpcStringFreeA
#endif

/* The text has 38 characters, with the braces, and a NUL. */
NDW_API(int, StringFromGUID2, (REFGUID guid, LPWSTR text, int size));
NDW_API(HRESULT, CLSIDFromString, (LPCWSTR text, LPCLSID guid));
NDW_API(HRESULT, IIDFromString, (LPCWSTR text, LPIID guid));
NDW_API(HRESULT, CoCreateGuid, (GUID *guid));

/* For CoTaskMemFree. */
NDW_INLINE HRESULT StringFromCLSID(REFCLSID guid, LPWSTR *text)
{
    if (text == NULL)
        return E_INVALIDARG;
    *text = (LPWSTR)malloc(39 * sizeof **text);
    if (*text == NULL)
        return E_OUTOFMEMORY;
    StringFromGUID2(guid, *text, 39);
    return S_OK;
}
#define StringFromIID StringFromCLSID

NDW_INLINE RPC_STATUS UuidCreateSequential(UUID *uuid) { return UuidCreate(uuid); }
NDW_INLINE unsigned short UuidHash(UUID *uuid, RPC_STATUS *status)
{
    static const UUID nil = {0, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0}};
    const BYTE *const bytes = (const BYTE *)(uuid != NULL ? uuid : &nil);
    unsigned hash = 0;
    size_t i;
    for (i = 0; i < sizeof *uuid; i++)
        hash = hash * 31 + bytes[i];
    if (status != NULL)
        *status = RPC_S_OK;
    return (unsigned short)hash;
}

#endif /* NDWIN_UUID_H */
