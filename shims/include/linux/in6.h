/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernel's in6_addr steps back once the C library's is there: see to it that ours is (netinet/in.h says why). */
#pragma GCC system_header
#include <netinet/in.h>
#include_next <linux/in6.h>
