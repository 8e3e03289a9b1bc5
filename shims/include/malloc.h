/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C library's <malloc.h> with Microsoft's additions, unless NDCOMPAT_NATIVE_CRT is defined. */
#pragma GCC system_header
#include_next <malloc.h>
#ifndef NDCOMPAT_NATIVE_CRT
#include "ndwin/crt/malloc.h"
#endif
