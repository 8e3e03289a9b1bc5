/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The printf family with its MSVC meaning: %I64d, `l` for a 32-bit long, %s for wide text in wide formats, and wide
 * and narrow output on one stream.
 *
 * A name that the C library has too is redirected by a function-like macro: only calls are touched, so that
 * `std::printf(...)` works, and `&printf`, format(printf, ...) attributes and using-declarations stay what they were.
 * The standard headers come first, since <cstdio> takes such macros away. NDCOMPAT_NATIVE_STDIO turns it off: then the
 * names of the C library are the C library's.
 */
#ifndef NDWIN_STDIO_H
#define NDWIN_STDIO_H

#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>
#ifdef __cplusplus
#include <cstdio>
#include <cwchar>
#endif
#include "types.h"

/* The library has the va_list forms only. */
EXTERN_C_START
int ndw_vprintf(const char *format, va_list arguments);
int ndw_vfprintf(FILE *stream, const char *format, va_list arguments);
int ndw_vsprintf(char *buffer, const char *format, va_list arguments);
int ndw_vsnprintf(char *buffer, size_t size, const char *format, va_list arguments);
int ndw_vwprintf(const wchar_t *format, va_list arguments);
int ndw_vfwprintf(FILE *stream, const wchar_t *format, va_list arguments);
int ndw_vswprintf(wchar_t *buffer, size_t size, const wchar_t *format, va_list arguments);
int ndw__vsnprintf(char *buffer, size_t size, const char *format, va_list arguments);
int ndw__vsnwprintf(wchar_t *buffer, size_t size, const wchar_t *format, va_list arguments);
int ndw__vscprintf(const char *format, va_list arguments);
int ndw__vscwprintf(const wchar_t *format, va_list arguments);
int ndw_vsprintf_s(char *buffer, size_t size, const char *format, va_list arguments);
int ndw_vswprintf_s(wchar_t *buffer, size_t size, const wchar_t *format, va_list arguments);
int ndw__vsnprintf_s(char *buffer, size_t size, size_t count, const char *format, va_list arguments);
int ndw__vsnwprintf_s(wchar_t *buffer, size_t size, size_t count, const wchar_t *format, va_list arguments);
int ndw_fputws(const wchar_t *text, FILE *stream);
EXTERN_C_END

#ifdef __cplusplus
extern "C++" {
#endif

/* NDW_PRINTF(name, v form, (parameters), arguments) defines name(parameters, ...). */
#define NDW_PRINTF(name, form, parameters, ...)            \
    NDW_INLINE int name(NDW_EXPAND parameters, ...)        \
    {                                                      \
        va_list arguments;                                 \
        va_start(arguments, format);                       \
        const int result = form(__VA_ARGS__, arguments);   \
        va_end(arguments);                                 \
        return result;                                     \
    }
#define NDW_EXPAND(...) __VA_ARGS__

NDW_PRINTF(ndw_printf, ndw_vprintf, (const char *format), format)
NDW_PRINTF(ndw_fprintf, ndw_vfprintf, (FILE *stream, const char *format), stream, format)
NDW_PRINTF(ndw_sprintf, ndw_vsprintf, (char *buffer, const char *format), buffer, format)
NDW_PRINTF(ndw_snprintf, ndw_vsnprintf, (char *buffer, size_t size, const char *format), buffer, size, format)
NDW_PRINTF(ndw_wprintf, ndw_vwprintf, (const wchar_t *format), format)
NDW_PRINTF(ndw_fwprintf, ndw_vfwprintf, (FILE *stream, const wchar_t *format), stream, format)
NDW_PRINTF(ndw_swprintf, ndw_vswprintf, (wchar_t *buffer, size_t size, const wchar_t *format), buffer, size, format)
NDW_PRINTF(_snprintf, ndw__vsnprintf, (char *buffer, size_t size, const char *format), buffer, size, format)
NDW_PRINTF(_snwprintf, ndw__vsnwprintf, (wchar_t *buffer, size_t size, const wchar_t *format), buffer, size, format)
NDW_PRINTF(_scprintf, ndw__vscprintf, (const char *format), format)
NDW_PRINTF(_scwprintf, ndw__vscwprintf, (const wchar_t *format), format)
NDW_PRINTF(sprintf_s, ndw_vsprintf_s, (char *buffer, size_t size, const char *format), buffer, size, format)
NDW_PRINTF(swprintf_s, ndw_vswprintf_s, (wchar_t *buffer, size_t size, const wchar_t *format), buffer, size, format)
NDW_PRINTF(_snprintf_s, ndw__vsnprintf_s,
           (char *buffer, size_t size, size_t count, const char *format), buffer, size, count, format)
NDW_PRINTF(_snwprintf_s, ndw__vsnwprintf_s,
           (wchar_t *buffer, size_t size, size_t count, const wchar_t *format), buffer, size, count, format)

#undef NDW_PRINTF
#undef NDW_EXPAND

#define _vsnprintf    ndw__vsnprintf
#define _vsnwprintf   ndw__vsnwprintf
#define _vscprintf    ndw__vscprintf
#define _vscwprintf   ndw__vscwprintf
#define vsprintf_s    ndw_vsprintf_s
#define vswprintf_s   ndw_vswprintf_s
#define _vsnprintf_s  ndw__vsnprintf_s
#define _vsnwprintf_s ndw__vsnwprintf_s
#define printf_s      ndw_printf
#define fprintf_s     ndw_fprintf
#define wprintf_s     ndw_wprintf
#define fwprintf_s    ndw_fwprintf

#ifdef __cplusplus
/* The array forms know the size of the buffer. */
template <size_t N, typename... Arguments>
inline int sprintf_s(char (&buffer)[N], const char *format, Arguments... arguments)
{
    return (sprintf_s)(static_cast<char *>(buffer), N, format, arguments...);
}
template <size_t N, typename... Arguments>
inline int swprintf_s(wchar_t (&buffer)[N], const wchar_t *format, Arguments... arguments)
{
    return (swprintf_s)(static_cast<wchar_t *>(buffer), N, format, arguments...);
}
template <size_t N, typename... Arguments>
inline int _snprintf_s(char (&buffer)[N], size_t count, const char *format, Arguments... arguments)
{
    return (_snprintf_s)(static_cast<char *>(buffer), N, count, format, arguments...);
}
template <size_t N, typename... Arguments>
inline int _snwprintf_s(wchar_t (&buffer)[N], size_t count, const wchar_t *format, Arguments... arguments)
{
    return (_snwprintf_s)(static_cast<wchar_t *>(buffer), N, count, format, arguments...);
}
template <size_t N> inline int ndw_vsprintf_s(char (&buffer)[N], const char *format, va_list arguments)
{
    return ndw_vsprintf_s(buffer, N, format, arguments);
}
template <size_t N> inline int ndw_vswprintf_s(wchar_t (&buffer)[N], const wchar_t *format, va_list arguments)
{
    return ndw_vswprintf_s(buffer, N, format, arguments);
}
template <size_t N> inline int ndw__vsnprintf_s(char (&buffer)[N], size_t count, const char *format, va_list arguments)
{
    return ndw__vsnprintf_s(buffer, N, count, format, arguments);
}
template <size_t N>
inline int ndw__vsnwprintf_s(wchar_t (&buffer)[N], size_t count, const wchar_t *format, va_list arguments)
{
    return ndw__vsnwprintf_s(buffer, N, count, format, arguments);
}
}

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
}
#endif

#ifndef NDCOMPAT_NATIVE_STDIO
#include "inttypes.h"
#undef printf
#define printf(...) ndw_printf(__VA_ARGS__)
#undef fprintf
#define fprintf(...) ndw_fprintf(__VA_ARGS__)
#undef sprintf
#define sprintf(...) ndw_sprintf(__VA_ARGS__)
#undef snprintf
#define snprintf(...) ndw_snprintf(__VA_ARGS__)
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
#define _putws(text) (ndw_fputws((text), stdout) < 0 ? -1 : ndw_fputws(L"\n", stdout))
#endif

#endif /* NDWIN_STDIO_H */
