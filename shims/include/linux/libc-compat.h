/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tells kernel headers which structures the C library has defined already. Includes our <netinet/in.h> first, so that
 * they leave out theirs. <linux/ipv6.h> and others include this before <linux/in6.h>.
 */
#pragma GCC system_header
#include <netinet/in.h>
#include_next <linux/libc-compat.h>
