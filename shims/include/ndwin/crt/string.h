/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <string.h> and <wchar.h>: bounded copies, comparison without case. */
#ifndef NDWIN_CRT_STRING_H
#define NDWIN_CRT_STRING_H

#include "base.h"

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
/* Overloads that take the size from an array. */
extern "C++" {
template <size_t N_> inline errno_t strcpy_s(char (&target)[N_], const char *source)
{
    return strcpy_s(target, N_, source);
}
template <size_t N_> inline errno_t strncpy_s(char (&target)[N_], const char *source, rsize_t count)
{
    return strncpy_s(target, N_, source, count);
}
template <size_t N_> inline errno_t strcat_s(char (&target)[N_], const char *source)
{
    return strcat_s(target, N_, source);
}
template <size_t N_> inline errno_t strncat_s(char (&target)[N_], const char *source, rsize_t count)
{
    return strncat_s(target, N_, source, count);
}
template <size_t N_> inline errno_t wcscpy_s(wchar_t (&target)[N_], const wchar_t *source)
{
    return wcscpy_s(target, N_, source);
}
template <size_t N_> inline errno_t wcsncpy_s(wchar_t (&target)[N_], const wchar_t *source, rsize_t count)
{
    return wcsncpy_s(target, N_, source, count);
}
template <size_t N_> inline errno_t wcscat_s(wchar_t (&target)[N_], const wchar_t *source)
{
    return wcscat_s(target, N_, source);
}
template <size_t N_> inline errno_t wcsncat_s(wchar_t (&target)[N_], const wchar_t *source, rsize_t count)
{
    return wcsncat_s(target, N_, source, count);
}
}
#endif

NDW_API(int, _stricmp, (const char *a, const char *b));
NDW_API(int, _strnicmp, (const char *a, const char *b, size_t count));
NDW_API(int, _wcsicmp, (const wchar_t *a, const wchar_t *b));
NDW_API(int, _wcsnicmp, (const wchar_t *a, const wchar_t *b, size_t count));
NDW_API(char *, _strdup, (const char *text));
NDW_API(wchar_t *, _wcsdup, (const wchar_t *text));
NDW_API(char *, _strlwr, (char *text));
NDW_API(char *, _strupr, (char *text));
NDW_API(wchar_t *, _wcslwr, (wchar_t *text));
NDW_API(wchar_t *, _wcsupr, (wchar_t *text));
NDW_API(errno_t, _strlwr_s, (char *text, size_t size));
NDW_API(errno_t, _strupr_s, (char *text, size_t size));
NDW_API(errno_t, _wcslwr_s, (wchar_t *text, size_t size));
NDW_API(errno_t, _wcsupr_s, (wchar_t *text, size_t size));
/* Comparisons by the locale are by characters here. */
NDW_LIBC(int, _strcmpi, (const char *a, const char *b), "ndw__stricmp");
NDW_LIBC(int, _stricoll, (const char *a, const char *b), "ndw__stricmp");
NDW_LIBC(int, _wcsicoll, (const wchar_t *a, const wchar_t *b), "ndw__wcsicmp");
NDW_LIBC(int, _strncoll, (const char *a, const char *b, size_t count), "strncmp");
/* The older names. */
NDW_LIBC(int, stricmp, (const char *a, const char *b), "ndw__stricmp");
NDW_LIBC(int, strcmpi, (const char *a, const char *b), "ndw__stricmp");
NDW_LIBC(int, strnicmp, (const char *a, const char *b, size_t count), "ndw__strnicmp");
NDW_LIBC(char *, strlwr, (char *text), "ndw__strlwr");
NDW_LIBC(char *, strupr, (char *text), "ndw__strupr");
NDW_LIBC(int, wcsicmp, (const wchar_t *a, const wchar_t *b), "ndw__wcsicmp");
NDW_LIBC(int, wcsnicmp, (const wchar_t *a, const wchar_t *b, size_t count), "ndw__wcsnicmp");
#define NDW_REVERSE_AND_SET(type, reverse, set, set_some)            \
    NDW_INLINE type *reverse(type *text)                             \
    {                                                                \
        type *first = text, *last = text;                            \
        while (*last)                                                \
            last++;                                                  \
        while (first < last) {                                       \
            const type swapped = *--last;                            \
            *last = *first;                                          \
            *first++ = swapped;                                      \
        }                                                            \
        return text;                                                 \
    }                                                                \
    NDW_INLINE type *set_some(type *text, int c, size_t count)       \
    {                                                                \
        type *at;                                                    \
        for (at = text; *at && count; at++, count--)                 \
            *at = (type)c;                                           \
        return text;                                                 \
    }                                                                \
    NDW_INLINE type *set(type *text, int c) { return set_some(text, c, (size_t)-1); }
NDW_REVERSE_AND_SET(char, _strrev, _strset, _strnset)
NDW_REVERSE_AND_SET(wchar_t, _wcsrev, _wcsset, _wcsnset)
#undef NDW_REVERSE_AND_SET
NDW_INLINE char *strrev(char *text) { return _strrev(text); }
NDW_INLINE char *strset(char *text, int c) { return _strset(text, c); }
NDW_INLINE char *strnset(char *text, int c, size_t count) { return _strnset(text, c, count); }
/* A text without an end in the buffer is emptied. */
NDW_INLINE errno_t _strset_s(char *text, size_t size, int c)
{
    size_t length = 0;
    if (!text || size == 0)
        return 22; /* EINVAL */
    while (length < size && text[length])
        length++;
    if (length == size) {
        text[0] = 0;
        return 22;
    }
    _strset(text, c);
    return 0;
}
NDW_INLINE errno_t wmemcpy_s(wchar_t *target, rsize_t size, const wchar_t *source, rsize_t count)
{
    return memcpy_s(target, size * sizeof *target, source, count * sizeof *target);
}
NDW_INLINE errno_t wmemmove_s(wchar_t *target, rsize_t size, const wchar_t *source, rsize_t count)
{
    return memmove_s(target, size * sizeof *target, source, count * sizeof *target);
}
NDW_API(int, _memicmp, (const void *a, const void *b, size_t count));
NDW_LIBC(int, memicmp, (const void *a, const void *b, size_t count), "ndw__memicmp");
NDW_LIBC(void *, _memccpy, (void *target, const void *source, int c, size_t count), "memccpy");
NDW_API(size_t, strnlen_s, (const char *text, size_t size));
NDW_API(size_t, wcsnlen_s, (const wchar_t *text, size_t size));
NDW_API(errno_t, strerror_s, (char *buffer, size_t size, int error));
NDW_API(char *, _strerror, (const char *prefix));
NDW_LIBC(char *, strtok_s, (char *text, const char *separators, char **state), "strtok_r");
NDW_LIBC(wchar_t *, wcstok_s, (wchar_t *text, const wchar_t *separators, wchar_t **state), "wcstok");

#ifdef __cplusplus
extern "C++" {
template <size_t N_> inline errno_t strerror_s(char (&buffer)[N_], int error)
{
    return strerror_s(buffer, N_, error);
}
}
#endif

#endif /* NDWIN_CRT_STRING_H */
