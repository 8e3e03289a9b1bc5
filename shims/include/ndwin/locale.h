/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C library's setlocale knows Windows' names of locales, too: ".UTF8", "en-US". How names are redirected: stdio.h. */
#ifndef NDWIN_LOCALE_H
#define NDWIN_LOCALE_H

#include <locale.h>
#include "crt/base.h"

#ifdef __cplusplus
#include <clocale>
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
#ifdef __cplusplus
#ifdef __clang__
NDW_LIBC(char *, ndw_setlocale, (int category, const char *name), "ndw_setlocale");
#pragma clang diagnostic ignored "-Wgcc-compat"
extern "C++" {
NDW_INLINE __attribute__((enable_if(true, ""))) char *setlocale(int category, const char *name) noexcept
{
    return ndw_setlocale(category, name);
}
}
namespace std {
using ::setlocale;
}
#else
NDW_LIBC(char *, setlocale, (int category, const char *name) noexcept, "ndw_setlocale");
#endif
#else
NDW_LIBC(char *, setlocale, (int category, const char *name), "ndw_setlocale");
#endif
#pragma GCC diagnostic pop

#endif /* NDWIN_LOCALE_H */
