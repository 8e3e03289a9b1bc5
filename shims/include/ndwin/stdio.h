/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The printf family as in MSVC: %I64d, `l` for a 32-bit long, %s for wide text in wide formats, and wide and narrow output
 * on one stream.
 *
 * In C++ printf, fprintf, sprintf and snprintf are overloads of the C library's, which any call with more than the format
 * prefers: so members and functions of other namespaces have these names, too. An assembler label, as for sockets, will not do:
 * the compiler would warn of formats, and compute lengths, by the C library's rules, in which %I64d is 64 characters wide; and
 * with _FORTIFY_SOURCE these functions are inline already. A using-declaration outside of `std` (`using std::sprintf;` in a
 * namespace of the program's) brings the overloads that there are by then: one in front of this header has the C library's alone.
 *
 * The others, and all in C, are redirected by function-like macros. Those apply to calls only: `std::vprintf(...)` works, and
 * `&vprintf`, format(printf, ...) attributes and using-declarations are not affected. The standard headers are included
 * first, since <cstdio> undefines such macros. With NDCOMPAT_NATIVE_STDIO nothing is redirected.
 */
#ifndef NDWIN_STDIO_H
#define NDWIN_STDIO_H

#include <stdio.h>
#include <wchar.h>
#ifdef __cplusplus
#include <cstdio>
#include <cwchar>
#endif
#include "crt/stdio.h"

#ifdef __cplusplus
namespace std {
using ::ndw_printf;
using ::ndw_fprintf;
using ::ndw_sprintf;
using ::ndw_snprintf;
using ::ndw_wprintf;
using ::ndw_fwprintf;
using ::ndw_swprintf;
using ::ndw_vprintf;
using ::ndw_vfprintf;
using ::ndw_vsprintf;
using ::ndw_vsnprintf;
using ::ndw_vwprintf;
using ::ndw_vfwprintf;
using ::ndw_vswprintf;
using ::ndw_fputws;
using ::ndw_fputwc;
}
#endif

#ifndef NDCOMPAT_NATIVE_STDIO
#include "inttypes.h"
#undef printf
#undef fprintf
#undef sprintf
#undef snprintf
#ifdef __cplusplus
extern "C++" {
template <typename First_, typename... Rest_>
NDW_INLINE int printf(const char *format, First_ first, Rest_... rest)
{
    return ndw_printf(format, first, rest...);
}
template <typename First_, typename... Rest_>
NDW_INLINE int fprintf(FILE *stream, const char *format, First_ first, Rest_... rest)
{
    return ndw_fprintf(stream, format, first, rest...);
}
template <typename First_, typename... Rest_>
NDW_INLINE int sprintf(char *buffer, const char *format, First_ first, Rest_... rest)
{
    return ndw_sprintf(buffer, format, first, rest...);
}
template <typename First_, typename... Rest_>
NDW_INLINE int snprintf(char *buffer, size_t size, const char *format, First_ first, Rest_... rest)
{
    return ndw_snprintf(buffer, size, format, first, rest...);
}
}
namespace std {
using ::printf;
using ::fprintf;
using ::sprintf;
using ::snprintf;
}
#else
#define printf(...) ndw_printf(__VA_ARGS__)
#define fprintf(...) ndw_fprintf(__VA_ARGS__)
#define sprintf(...) ndw_sprintf(__VA_ARGS__)
#define snprintf(...) ndw_snprintf(__VA_ARGS__)
#endif
#undef wprintf
#define wprintf(...) ndw_wprintf(__VA_ARGS__)
#undef fwprintf
#define fwprintf(...) ndw_fwprintf(__VA_ARGS__)
#undef swprintf
#define swprintf(...) ndw_swprintf(__VA_ARGS__)
#undef vprintf
#define vprintf(...) ndw_vprintf(__VA_ARGS__)
#undef vfprintf
#define vfprintf(...) ndw_vfprintf(__VA_ARGS__)
#undef vsprintf
#define vsprintf(...) ndw_vsprintf(__VA_ARGS__)
#undef vsnprintf
#define vsnprintf(...) ndw_vsnprintf(__VA_ARGS__)
#undef vwprintf
#define vwprintf(...) ndw_vwprintf(__VA_ARGS__)
#undef vfwprintf
#define vfwprintf(...) ndw_vfwprintf(__VA_ARGS__)
#undef vswprintf
#define vswprintf(...) ndw_vswprintf(__VA_ARGS__)
#undef fputws
#define fputws(...) ndw_fputws(__VA_ARGS__)
#undef fputwc
#define fputwc(...) ndw_fputwc(__VA_ARGS__)
#undef putwc
#define putwc(...) ndw_fputwc(__VA_ARGS__)
#undef putwchar
#define putwchar(character) ndw_fputwc((character), stdout)
#define _putws(text) (ndw_fputws((text), stdout) < 0 ? -1 : ndw_fputws(L"\n", stdout))
#else
#define _putws(text) (fputws((text), stdout) < 0 ? -1 : fputws(L"\n", stdout))
#endif

#endif /* NDWIN_STDIO_H */
