/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C library's <search.h> with Microsoft's additions, unless NDCOMPAT_NATIVE_CRT is defined. */
#pragma GCC system_header
#include_next <search.h>
#ifndef NDCOMPAT_NATIVE_CRT
#include "ndwin/crt/search.h"
#endif
