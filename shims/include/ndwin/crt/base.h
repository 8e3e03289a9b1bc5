/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Common to the files of this folder. They use no Windows type, as the headers of the C library include them. */
#ifndef NDWIN_CRT_BASE_H
#define NDWIN_CRT_BASE_H

#include <stddef.h>
#include "../config.h"

typedef int errno_t;
typedef size_t rsize_t;

#define _TRUNCATE ((size_t)-1)
#define STRUNCATE 80

/* A function of the C library under Microsoft's name. */
#define NDW_LIBC(result, name, parameters, symbol) EXTERN_C result name parameters __asm__(symbol)

#endif /* NDWIN_CRT_BASE_H */
