/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C library's <string.h> with Microsoft's additions, unless NDCOMPAT_NATIVE_CRT is defined. */
#pragma GCC system_header
#include_next <string.h>
#ifndef NDCOMPAT_NATIVE_CRT
#include "ndwin/crt/string.h"
#endif
