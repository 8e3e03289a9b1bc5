/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where kernel headers look which structures the C library has already: see to it that it has those of addresses, ours
 * (netinet/in.h says why). <linux/ipv6.h> and others ask here before they include <linux/in6.h>.
 */
#pragma GCC system_header
#include <netinet/in.h>
#include_next <linux/libc-compat.h>
