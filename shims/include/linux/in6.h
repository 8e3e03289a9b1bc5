/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Includes our <netinet/in.h> first: the kernel's header then leaves out its in6_addr. */
#pragma GCC system_header
#include <netinet/in.h>
#include_next <linux/in6.h>
