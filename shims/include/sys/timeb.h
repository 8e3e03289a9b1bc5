/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <sys/timeb.h>, beside the C library's. */
#pragma GCC system_header
#include_next <sys/timeb.h>
#ifndef NDCOMPAT_NATIVE_CRT
#include "../ndwin/timeb.h"
#endif
