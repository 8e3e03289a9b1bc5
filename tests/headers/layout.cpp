// SPDX-License-Identifier: MIT OR Apache-2.0
// The facts of abi.def as C++ sees them. Compiling is half of the test; the script reads the entries and GUIDs from
// what the compiler made of them.
#include <stddef.h>
#include <winsock2.h>
#include <ws2tcpip.h>
#include <mswsock.h>
#include <ifdef.h>
#include <iphlpapi.h>
#include <psapi.h>
#include <timeapi.h>
#include <unknwn.h>
#include <initguid.h>
#include <ndendpoint.h>
#include <ndsupport.h>

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#endif

// A pointer to a virtual member function holds 1 + 8 * entry, which the compiler writes into the object. QueryInterface
// is overloaded in some SDKs, so its type is named.
typedef HRESULT (STDMETHODCALLTYPE IUnknown::*QueryInterface)(REFIID, void**);

#define ND_SIZE(type, size)           static_assert(sizeof(type) == (size), #type);
#define ND_FIELD(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field);
#define ND_VALUE(name, value)         static_assert(static_cast<unsigned>(name) == (value), #name);
#define ND_IID(iface, bytes)
#define ND_ENTRIES(iface, count)                                             \
    static_assert(sizeof(iface) == sizeof(void*), #iface);                   \
    extern "C" {                                                             \
    extern QueryInterface entry_##iface##_QueryInterface;                    \
    QueryInterface entry_##iface##_QueryInterface = &iface::QueryInterface;  \
    }
#define ND_ENTRY(iface, method, entry)                                       \
    extern "C" {                                                             \
    extern decltype(&iface::method) entry_##iface##_##method;                \
    decltype(&iface::method) entry_##iface##_##method = &iface::method;      \
    }
#include "abi.def"
