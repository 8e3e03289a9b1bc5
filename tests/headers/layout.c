/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The facts of abi.def as C sees them. Compiling is the test. */
#include <stddef.h>
#include <winsock2.h>
#include <ws2ipdef.h>
#include <ifdef.h>
#include <ndendpoint.h>
#include <ndsupport.h>

#define ND_SIZE(type, size)           _Static_assert(sizeof(type) == (size), #type);
#define ND_FIELD(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field);
#define ND_VALUE(name, value)         _Static_assert((unsigned)(name) == (value), #name);
#define ND_SLOT(iface, method, slot)  _Static_assert(offsetof(struct iface##Vtbl, method) == 8 * (slot), #method);
#define ND_SLOTS(iface, count)        _Static_assert(sizeof(struct iface##Vtbl) == 8 * (count), #iface); \
                                      _Static_assert(offsetof(struct iface##Vtbl, QueryInterface) == 0, #iface);
#define ND_IID(iface, bytes)
#include "abi.def"
