/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C library's <math.h> with Microsoft's additions, unless NDCOMPAT_NATIVE_CRT is defined. */
#pragma GCC system_header
#include_next <math.h>
#ifndef NDCOMPAT_NATIVE_CRT
#include "ndwin/crt/float.h"
#endif
