/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The facts of abi.def as C sees them. Compiling is the test. */
#include <stddef.h>
#include <winsock2.h>
#include <ws2tcpip.h>
#include <mswsock.h>
#include <ifdef.h>
#include <iphlpapi.h>
#include <psapi.h>
#include <timeapi.h>
#include <ndendpoint.h>
#include <ndsupport.h>

#define ND_SIZE(type, size)           _Static_assert(sizeof(type) == (size), #type);
#define ND_FIELD(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field);
#define ND_VALUE(name, value)         _Static_assert((unsigned)(name) == (value), #name);
#define ND_ENTRY(iface, method, entry) _Static_assert(offsetof(struct iface##Vtbl, method) == 8 * (entry), #method);
#define ND_ENTRIES(iface, count)      _Static_assert(sizeof(struct iface##Vtbl) == 8 * (count), #iface); \
                                      _Static_assert(offsetof(struct iface##Vtbl, QueryInterface) == 0, #iface);
#define ND_IID(iface, bytes)
#include "abi.def"

/* Declared for the newest Windows, unless the program asks for another. */
_Static_assert(_WIN32_WINNT == 0x0A00 && WINVER >= 0x0A00, "_WIN32_WINNT");

/* The entries of WSAPoll, by either of their names. */
int poll_by_either_name(struct pollfd *a, WSAPOLLFD *b);
int poll_by_either_name(struct pollfd *a, WSAPOLLFD *b)
{
    return WSAPoll(a, 1, 0) + WSAPoll(b, 1, 0);
}
