/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of Microsoft's C library that the C library of Linux has under another name, or not at all. */
#ifndef NDWIN_CRT_H
#define NDWIN_CRT_H

#include <errno.h>
#include <strings.h>
#include "memory.h"
#include "stdio.h"
#include "types.h"

#define _TRUNCATE ((size_t)-1)
#define STRUNCATE 80

NDW_API(errno_t, strcpy_s, (char *target, rsize_t size, const char *source));
NDW_API(errno_t, strncpy_s, (char *target, rsize_t size, const char *source, rsize_t count));
NDW_API(errno_t, strcat_s, (char *target, rsize_t size, const char *source));
NDW_API(errno_t, strncat_s, (char *target, rsize_t size, const char *source, rsize_t count));
NDW_API(errno_t, wcscpy_s, (wchar_t *target, rsize_t size, const wchar_t *source));
NDW_API(errno_t, wcsncpy_s, (wchar_t *target, rsize_t size, const wchar_t *source, rsize_t count));
NDW_API(errno_t, wcscat_s, (wchar_t *target, rsize_t size, const wchar_t *source));
NDW_API(errno_t, wcsncat_s, (wchar_t *target, rsize_t size, const wchar_t *source, rsize_t count));
NDW_API(errno_t, memcpy_s, (void *target, rsize_t size, const void *source, rsize_t count));
NDW_API(errno_t, memmove_s, (void *target, rsize_t size, const void *source, rsize_t count));

#ifdef __cplusplus
/* The array forms know the size of the buffer. */
extern "C++" {
template <size_t N> inline errno_t strcpy_s(char (&target)[N], const char *source)
{
    return strcpy_s(target, N, source);
}
template <size_t N> inline errno_t strncpy_s(char (&target)[N], const char *source, rsize_t count)
{
    return strncpy_s(target, N, source, count);
}
template <size_t N> inline errno_t strcat_s(char (&target)[N], const char *source)
{
    return strcat_s(target, N, source);
}
template <size_t N> inline errno_t strncat_s(char (&target)[N], const char *source, rsize_t count)
{
    return strncat_s(target, N, source, count);
}
template <size_t N> inline errno_t wcscpy_s(wchar_t (&target)[N], const wchar_t *source)
{
    return wcscpy_s(target, N, source);
}
template <size_t N> inline errno_t wcsncpy_s(wchar_t (&target)[N], const wchar_t *source, rsize_t count)
{
    return wcsncpy_s(target, N, source, count);
}
template <size_t N> inline errno_t wcscat_s(wchar_t (&target)[N], const wchar_t *source)
{
    return wcscat_s(target, N, source);
}
template <size_t N> inline errno_t wcsncat_s(wchar_t (&target)[N], const wchar_t *source, rsize_t count)
{
    return wcsncat_s(target, N, source, count);
}
}
#endif

NDW_API(int, _stricmp, (const char *a, const char *b));
NDW_API(int, _strnicmp, (const char *a, const char *b, size_t count));
NDW_API(int, _wcsicmp, (const wchar_t *a, const wchar_t *b));
NDW_API(int, _wcsnicmp, (const wchar_t *a, const wchar_t *b, size_t count));
NDW_API(char *, _strdup, (const char *text));
NDW_API(wchar_t *, _wcsdup, (const wchar_t *text));
NDW_API(int, _wtoi, (const wchar_t *text));
NDW_API(LONG, _wtol, (const wchar_t *text));
NDW_API(LONGLONG, _wtoi64, (const wchar_t *text));
NDW_API(wchar_t *, _itow, (int value, wchar_t *buffer, int radix));
NDW_API(errno_t, _itow_s, (int value, wchar_t *buffer, size_t size, int radix));
NDW_API(errno_t, _itoa_s, (int value, char *buffer, size_t size, int radix));
NDW_API(errno_t, _ultow_s, (ULONG value, wchar_t *buffer, size_t size, int radix));
NDW_API(errno_t, _ultoa_s, (ULONG value, char *buffer, size_t size, int radix));
NDW_API(errno_t, _i64tow_s, (LONGLONG value, wchar_t *buffer, size_t size, int radix));
NDW_API(errno_t, _i64toa_s, (LONGLONG value, char *buffer, size_t size, int radix));
NDW_API(errno_t, _ui64tow_s, (ULONGLONG value, wchar_t *buffer, size_t size, int radix));
NDW_API(errno_t, _ui64toa_s, (ULONGLONG value, char *buffer, size_t size, int radix));
#define _ltow_s _itow_s
#define _ltoa_s _itoa_s
NDW_API(errno_t, _wfopen_s, (FILE **stream, const wchar_t *file, const wchar_t *mode));
#ifdef __cplusplus
extern "C++" {
template <size_t N> inline errno_t _itow_s(int value, wchar_t (&buffer)[N], int radix)
{
    return _itow_s(value, buffer, N, radix);
}
template <size_t N> inline errno_t _itoa_s(int value, char (&buffer)[N], int radix)
{
    return _itoa_s(value, buffer, N, radix);
}
}
#endif
NDW_INLINE errno_t fopen_s(FILE **stream, const char *file, const char *mode)
{
    if (!stream || !file || !mode)
        return errno = EINVAL;
    *stream = fopen(file, mode);
    return *stream ? 0 : errno;
}
NDW_API(FILE *, _wfopen, (const wchar_t *file, const wchar_t *mode));
NDW_API(FILE *, _wfreopen, (const wchar_t *file, const wchar_t *mode, FILE *stream));
NDW_API(int, _fcloseall, (void));

#define _atoi64(text)                   strtoll((text), NULL, 10)
#define _strtoi64(text, end, radix)     strtoll((text), (end), (radix))
#define _strtoui64(text, end, radix)    strtoull((text), (end), (radix))
#define _wcstoi64(text, end, radix)     wcstoll((text), (end), (radix))
#define _wcstoui64(text, end, radix)    wcstoull((text), (end), (radix))
#define strtok_s(text, separators, state) strtok_r((text), (separators), (state))
#define wcstok_s(text, separators, state) wcstok((text), (separators), (state))
#define _byteswap_ushort(value)         __builtin_bswap16(value)
#define _byteswap_ulong(value)          __builtin_bswap32(value)
#define _byteswap_uint64(value)         __builtin_bswap64(value)
#define _alloca(size)                   __builtin_alloca(size)
#define _malloca(size)                  malloc(size)
#define _freea(block)                   free(block)

#define _MAX_PATH  260
#define _MAX_DRIVE 3
#define _MAX_DIR   256
#define _MAX_FNAME 256
#define _MAX_EXT   256

#endif /* NDWIN_CRT_H */
