/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C library's <errno.h> with Microsoft's additions, unless NDCOMPAT_NATIVE_CRT is defined. */
#pragma GCC system_header
#include_next <errno.h>
#if !defined(NDCOMPAT_NATIVE_CRT) && !defined(__ASSEMBLER__)
#include "ndwin/crt/errno.h"
#endif
