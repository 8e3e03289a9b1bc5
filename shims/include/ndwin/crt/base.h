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

#define _CRT_STRINGIZE_(text)      #text
#define _CRT_STRINGIZE(text)       _CRT_STRINGIZE_(text)
#define _CRT_WIDE_(text)           L##text
#define _CRT_WIDE(text)            _CRT_WIDE_(text)
#define _CRT_CONCATENATE_(a, b)    a##b
#define _CRT_CONCATENATE(a, b)     _CRT_CONCATENATE_(a, b)
#define _CRT_UNUSED(name)          ((void)(name))

/* A function of the C library under Microsoft's name. */
#define NDW_LIBC(result, name, parameters, symbol) EXTERN_C result name parameters __asm__(symbol)

#endif /* NDWIN_CRT_BASE_H */
