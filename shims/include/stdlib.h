/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C library's <stdlib.h> with Microsoft's additions, unless NDCOMPAT_NATIVE_CRT is defined. */
#pragma GCC system_header
#include_next <stdlib.h>
#ifndef NDCOMPAT_NATIVE_CRT
#include "ndwin/crt/stdlib.h"
#include "ndwin/crt/malloc.h"
#endif
