/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <string.h> and <wchar.h>: bounded copies, comparison without case. */
#ifndef NDWIN_CRT_STRING_H
#define NDWIN_CRT_STRING_H

#include "base.h"

struct tm;
/* As strftime in time.h. */
#ifdef NDCOMPAT_NATIVE_CRT
#elif defined(__cplusplus)
NDW_LIBC(size_t, wcsftime, (wchar_t *buffer, size_t size, const wchar_t *format, const struct tm *time) noexcept, "ndw_wcsftime");
#else
NDW_LIBC(size_t, wcsftime, (wchar_t *buffer, size_t size, const wchar_t *format, const struct tm *time), "ndw_wcsftime");
#endif
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

#if !defined(__cplusplus) && !defined(__USE_XOPEN2K8)
/* The C library leaves them out for -std=c11 and its kin. */
extern size_t strnlen(const char *, size_t);
extern size_t wcsnlen(const wchar_t *, size_t);
#endif

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
NDW_LIBC(int, _strnicoll, (const char *a, const char *b, size_t count), "ndw__strnicmp");
NDW_LIBC(int, _wcsnicoll, (const wchar_t *a, const wchar_t *b, size_t count), "ndw__wcsnicmp");
NDW_LIBC(int, _wcsncoll, (const wchar_t *a, const wchar_t *b, size_t count), "wcsncmp");
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
#define NDW_SET_BOUNDED(type, character, set, set_some, some)              \
    NDW_INLINE errno_t set_some(type *text, size_t size, character c, size_t count) \
    {                                                                      \
        size_t length = 0;                                                 \
        if (!text && size == 0 && count == 0)                              \
            return 0;                                                      \
        if (!text || size == 0)                                            \
            return 22; /* EINVAL */                                        \
        while (length < size && text[length])                              \
            length++;                                                      \
        if (length == size) {                                              \
            text[0] = 0;                                                   \
            return 22;                                                     \
        }                                                                  \
        some(text, c, count);                                              \
        return 0;                                                          \
    }                                                                      \
    NDW_INLINE errno_t set(type *text, size_t size, character c)           \
    {                                                                      \
        return set_some(text, size, c, (size_t)-1);                        \
    }
NDW_SET_BOUNDED(char, int, _strset_s, _strnset_s, _strnset)
NDW_SET_BOUNDED(wchar_t, wchar_t, _wcsset_s, _wcsnset_s, _wcsnset)
#undef NDW_SET_BOUNDED
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
/* The same as wide text. The text of _wcserror stays until the next call of the thread. */
NDW_LIBC(errno_t, ndw_widen, (size_t *converted, wchar_t *target, size_t size, const char *source, size_t count), "ndw_mbstowcs_s");
NDW_INLINE errno_t _wcserror_s(wchar_t *buffer, size_t size, int error)
{
    char narrow[256];
    errno_t result;
    if (!buffer || size == 0)
        return 22; /* EINVAL */
    result = strerror_s(narrow, sizeof narrow, error);
    if (result == 0)
        result = ndw_widen((size_t *)0, buffer, size, narrow, _TRUNCATE);
    return result == STRUNCATE ? 0 : result;
}
NDW_INLINE wchar_t *_wcserror(int error)
{
    static __thread wchar_t text[256];
    return _wcserror_s(text, 256, error) == 0 ? text : (wchar_t *)0;
}
/* The next and the previous character. */
NDW_INLINE wchar_t *_wcsinc(const wchar_t *at) { return (wchar_t *)(size_t)(at + 1); }
NDW_INLINE wchar_t *_wcsdec(const wchar_t *start, const wchar_t *at)
{
    return at > start ? (wchar_t *)(size_t)(at - 1) : (wchar_t *)0;
}
NDW_INLINE char *_strinc(const char *at) { return (char *)(size_t)(at + 1); }
NDW_INLINE char *_strdec(const char *start, const char *at) { return at > start ? (char *)(size_t)(at - 1) : (char *)0; }
NDW_LIBC(char *, strtok_s, (char *text, const char *separators, char **state), "strtok_r");
NDW_LIBC(wchar_t *, wcstok_s, (wchar_t *text, const wchar_t *separators, wchar_t **state), "wcstok");
/* The state is the thread's, whichever file calls. In C++ wcstok has this form, too. */
EXTERN_C wchar_t *ndw_wcstok(wchar_t *text, const wchar_t *separators);

#ifdef __cplusplus
extern "C++" {
NDW_INLINE wchar_t *wcstok(wchar_t *text, const wchar_t *separators) { return ndw_wcstok(text, separators); }
template <size_t N_> inline errno_t _strlwr_s(char (&text)[N_]) { return _strlwr_s(text, N_); }
template <size_t N_> inline errno_t _strupr_s(char (&text)[N_]) { return _strupr_s(text, N_); }
template <size_t N_> inline errno_t _wcslwr_s(wchar_t (&text)[N_]) { return _wcslwr_s(text, N_); }
template <size_t N_> inline errno_t _wcsupr_s(wchar_t (&text)[N_]) { return _wcsupr_s(text, N_); }
template <size_t N_> inline errno_t _strset_s(char (&text)[N_], int c) { return _strset_s(text, N_, c); }
template <size_t N_> inline errno_t _wcsset_s(wchar_t (&text)[N_], wchar_t c) { return _wcsset_s(text, N_, c); }
template <size_t N_> inline errno_t _strnset_s(char (&text)[N_], int c, size_t count)
{
    return _strnset_s(text, N_, c, count);
}
template <size_t N_> inline errno_t _wcsnset_s(wchar_t (&text)[N_], wchar_t c, size_t count)
{
    return _wcsnset_s(text, N_, c, count);
}
template <size_t N_> inline errno_t _wcserror_s(wchar_t (&buffer)[N_], int error)
{
    return _wcserror_s(buffer, N_, error);
}
template <size_t N_> inline errno_t strerror_s(char (&buffer)[N_], int error)
{
    return strerror_s(buffer, N_, error);
}
}
#endif

#endif /* NDWIN_CRT_STRING_H */
