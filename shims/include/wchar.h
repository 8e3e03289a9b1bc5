/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C library's <wchar.h> with Microsoft's additions, unless NDCOMPAT_NATIVE_CRT is defined. */
#pragma GCC system_header
#include_next <wchar.h>
#ifndef NDCOMPAT_NATIVE_CRT
#include <stdio.h>
#include "ndwin/crt/stdlib.h"
#include "ndwin/crt/string.h"
#endif
