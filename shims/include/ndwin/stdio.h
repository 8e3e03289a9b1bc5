/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The printf and scanf families as in MSVC: %I64d, `l` for a 32-bit long, %s for wide text in wide formats, and wide and narrow
 * input or output on one stream.
 *
 * In C++ printf, fprintf, sprintf, snprintf, scanf, fscanf and sscanf are overloads of the C library's, which any call with more
 * than the format prefers: so members and functions of other namespaces have these names, too. An assembler label, as for sockets, will not do:
 * the compiler would warn of formats, and compute lengths, by the C library's rules, in which %I64d is 64 characters wide; and
 * with _FORTIFY_SOURCE these functions are inline already. A using-declaration outside of `std` (`using std::sprintf;` in a
 * namespace of the program's) brings the overloads that there are by then: one in front of this header has the C library's alone.
 *
 * The others, and all in C, are redirected by function-like macros. Those apply to calls only: `std::vprintf(...)` works, and
 * `&vprintf`, format(printf, ...) attributes and using-declarations are not affected. The standard headers are included
 * first, since <cstdio> undefines such macros.
 *
 * rename and remove have names that members of others have, too (std::filesystem::rename), and parameters that no overload fits
 * better. They have a label, which clang refuses once the function was called, in an inline function say: for clang they are
 * overloads with an attribute by which they are preferred.
 *
 * With NDCOMPAT_NATIVE_STDIO nothing is redirected.
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
using ::ndw_wscanf;
using ::ndw_fwscanf;
using ::ndw_swscanf;
using ::ndw_vfscanf;
using ::ndw_vsscanf;
using ::ndw_vfwscanf;
using ::ndw_vswscanf;
using ::ndw_fgetwc;
using ::ndw_ungetwc;
using ::ndw_fgetws;
}
#endif

#ifndef NDCOMPAT_NATIVE_STDIO
#include "inttypes.h"
#undef printf
#undef fprintf
#undef sprintf
#undef snprintf
#undef scanf
#undef fscanf
#undef sscanf
#ifdef __cplusplus
extern "C++" {
template <typename First_, typename... Rest_>
NDW_INLINE int scanf(const char *format, First_ first, Rest_... rest)
{
    return ndw_scanf(format, first, rest...);
}
template <typename First_, typename... Rest_>
NDW_INLINE int fscanf(FILE *stream, const char *format, First_ first, Rest_... rest)
{
    return ndw_fscanf(stream, format, first, rest...);
}
template <typename First_, typename... Rest_>
NDW_INLINE int sscanf(const char *text, const char *format, First_ first, Rest_... rest)
{
    return ndw_sscanf(text, format, first, rest...);
}
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
using ::scanf;
using ::fscanf;
using ::sscanf;
}
#else
#define scanf(...) ndw_scanf(__VA_ARGS__)
#define fscanf(...) ndw_fscanf(__VA_ARGS__)
#define sscanf(...) ndw_sscanf(__VA_ARGS__)
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
#undef wscanf
#define wscanf(...) ndw_wscanf(__VA_ARGS__)
#undef fwscanf
#define fwscanf(...) ndw_fwscanf(__VA_ARGS__)
#undef swscanf
#define swscanf(...) ndw_swscanf(__VA_ARGS__)
#undef vscanf
#define vscanf(format, arguments) ndw_vfscanf(stdin, format, arguments)
#undef vfscanf
#define vfscanf(...) ndw_vfscanf(__VA_ARGS__)
#undef vsscanf
#define vsscanf(...) ndw_vsscanf(__VA_ARGS__)
#undef vwscanf
#define vwscanf(format, arguments) ndw_vfwscanf(stdin, format, arguments)
#undef vfwscanf
#define vfwscanf(...) ndw_vfwscanf(__VA_ARGS__)
#undef vswscanf
#define vswscanf(...) ndw_vswscanf(__VA_ARGS__)
#undef fgetws
#define fgetws(...) ndw_fgetws(__VA_ARGS__)
#undef fgetwc
#define fgetwc(...) ndw_fgetwc(__VA_ARGS__)
#undef getwc
#define getwc(...) ndw_fgetwc(__VA_ARGS__)
#undef getwchar
#define getwchar() ndw_fgetwc(stdin)
#undef ungetwc
#define ungetwc(...) ndw_ungetwc(__VA_ARGS__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
#if defined(__cplusplus) && defined(__clang__)
NDW_LIBC(int, ndw_rename, (const char *from, const char *to), "ndw_rename");
NDW_LIBC(int, ndw_remove, (const char *path), "ndw__unlink");
#pragma clang diagnostic ignored "-Wgcc-compat"
extern "C++" {
NDW_INLINE __attribute__((enable_if(true, ""))) int rename(const char *from, const char *to) noexcept
{
    return ndw_rename(from, to);
}
NDW_INLINE __attribute__((enable_if(true, ""))) int remove(const char *path) noexcept
{
    return ndw_remove(path);
}
}
namespace std {
using ::rename;
using ::remove;
}
#elif defined(__cplusplus)
NDW_LIBC(int, rename, (const char *from, const char *to) noexcept, "ndw_rename");
NDW_LIBC(int, remove, (const char *path) noexcept, "ndw__unlink");
#else
NDW_LIBC(int, rename, (const char *from, const char *to), "ndw_rename");
NDW_LIBC(int, remove, (const char *path), "ndw__unlink");
#endif
#pragma GCC diagnostic pop
#else
#define _putws(text) (fputws((text), stdout) < 0 ? -1 : fputws(L"\n", stdout))
#endif

#endif /* NDWIN_STDIO_H */
