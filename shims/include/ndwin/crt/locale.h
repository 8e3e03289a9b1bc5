/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Microsoft's additions to <locale.h>: locales as objects, and functions that take one. The names of locales are Linux's; "C" and ""
 * are the same on both.
 */
#ifndef NDWIN_CRT_LOCALE_H
#define NDWIN_CRT_LOCALE_H

#include <errno.h>
#include <stdarg.h>
#include "base.h"
#include "wide_path.h"

typedef struct __locale_struct *_locale_t;
NDW_LIBC(_locale_t, ndw_new_locale, (int mask, const char *name, _locale_t base), "newlocale");
NDW_LIBC(_locale_t, ndw_copy_locale, (_locale_t locale), "duplocale");
NDW_LIBC(_locale_t, ndw_use_locale, (_locale_t locale), "uselocale");
NDW_LIBC(void, ndw_free_locale, (_locale_t locale), "freelocale");
/* Categories that are not asked for are those of "C". */
NDW_INLINE _locale_t _create_locale(int category, const char *name)
{
    return name && category >= 0 && category <= LC_ALL
               ? ndw_new_locale(category == LC_ALL ? 0x1FBF /* LC_ALL_MASK */ : 1 << category, name, (_locale_t)0)
               : (_locale_t)0;
}
NDW_INLINE _locale_t _wcreate_locale(int category, const wchar_t *name)
{
    char narrow[4097];
    return ndw_narrow_path(name, narrow) ? _create_locale(category, narrow) : (_locale_t)0;
}
NDW_INLINE _locale_t _get_current_locale(void) { return ndw_copy_locale(ndw_use_locale((_locale_t)0)); }
NDW_INLINE void _free_locale(_locale_t locale)
{
    if (locale)
        ndw_free_locale(locale);
}

/* setlocale is for the whole process: no thread can have one of its own. */
#define _ENABLE_PER_THREAD_LOCALE  1
#define _DISABLE_PER_THREAD_LOCALE 2
NDW_INLINE int _configthreadlocale(int how)
{
    if (how == 0 || how == _DISABLE_PER_THREAD_LOCALE)
        return _DISABLE_PER_THREAD_LOCALE;
    errno = EINVAL;
    return -1;
}
NDW_LIBC(char *, ndw_set_locale, (int category, const char *name), "ndw_setlocale");
/* The name stays until the next call of the thread. */
NDW_INLINE wchar_t *_wsetlocale(int category, const wchar_t *name)
{
    static __thread wchar_t text[256];
    char narrow[4097];
    const char *found;
    int i = 0;
    if (name && !ndw_narrow_path(name, narrow))
        return (wchar_t *)0;
    found = ndw_set_locale(category, name ? narrow : (const char *)0);
    if (!found)
        return (wchar_t *)0;
    for (; found[i] && i < 255; i++)
        text[i] = (wchar_t)(unsigned char)found[i];
    text[i] = 0;
    return text;
}

/* Functions in a locale; without one, in the present one. */
#define NDW_IN_LOCALE(result, name, parameters, ...)                                             \
    NDW_INLINE result name parameters                                                            \
    {                                                                                            \
        const _locale_t former = ndw_use_locale(locale);                                         \
        const result value = __VA_ARGS__;                                                        \
        if (locale)                                                                              \
            ndw_use_locale(former);                                                              \
        return value;                                                                            \
    }
#define NDW_CHARACTER(kind)                                                                      \
    NDW_LIBC(int, ndw_##kind, (int c), #kind);                                                   \
    NDW_IN_LOCALE(int, _##kind##_l, (int c, _locale_t locale), ndw_##kind(c))
#define NDW_WIDE_CHARACTER(type, kind)                                                           \
    NDW_LIBC(type, ndw_##kind, (unsigned c), #kind);                                             \
    NDW_IN_LOCALE(type, _##kind##_l, (unsigned c, _locale_t locale), ndw_##kind(c))
NDW_CHARACTER(isalnum)
NDW_CHARACTER(isalpha)
NDW_CHARACTER(iscntrl)
NDW_CHARACTER(isdigit)
NDW_CHARACTER(isgraph)
NDW_CHARACTER(islower)
NDW_CHARACTER(isprint)
NDW_CHARACTER(ispunct)
NDW_CHARACTER(isspace)
NDW_CHARACTER(isupper)
NDW_CHARACTER(isxdigit)
NDW_CHARACTER(toupper)
NDW_CHARACTER(tolower)
NDW_WIDE_CHARACTER(int, iswalnum)
NDW_WIDE_CHARACTER(int, iswalpha)
NDW_WIDE_CHARACTER(int, iswcntrl)
NDW_WIDE_CHARACTER(int, iswdigit)
NDW_WIDE_CHARACTER(int, iswgraph)
NDW_WIDE_CHARACTER(int, iswlower)
NDW_WIDE_CHARACTER(int, iswprint)
NDW_WIDE_CHARACTER(int, iswpunct)
NDW_WIDE_CHARACTER(int, iswspace)
NDW_WIDE_CHARACTER(int, iswupper)
NDW_WIDE_CHARACTER(int, iswxdigit)
NDW_WIDE_CHARACTER(unsigned, towupper)
NDW_WIDE_CHARACTER(unsigned, towlower)
#undef NDW_CHARACTER
#undef NDW_WIDE_CHARACTER
NDW_LIBC(double, ndw_strtod, (const char *text, char **end), "strtod");
NDW_LIBC(float, ndw_strtof, (const char *text, char **end), "strtof");
NDW_LIBC(double, ndw_wide_strtod, (const wchar_t *text, wchar_t **end), "wcstod");
NDW_LIBC(int, ndw_strcoll, (const char *a, const char *b), "strcoll");
NDW_LIBC(int, ndw_wcscoll, (const wchar_t *a, const wchar_t *b), "wcscoll");
NDW_IN_LOCALE(double, _strtod_l, (const char *text, char **end, _locale_t locale), ndw_strtod(text, end))
NDW_IN_LOCALE(float, _strtof_l, (const char *text, char **end, _locale_t locale), ndw_strtof(text, end))
NDW_IN_LOCALE(double, _wcstod_l, (const wchar_t *text, wchar_t **end, _locale_t locale), ndw_wide_strtod(text, end))
NDW_IN_LOCALE(double, _atof_l, (const char *text, _locale_t locale), ndw_strtod(text, (char **)0))
NDW_IN_LOCALE(int, _strcoll_l, (const char *a, const char *b, _locale_t locale), ndw_strcoll(a, b))
NDW_IN_LOCALE(int, _wcscoll_l, (const wchar_t *a, const wchar_t *b, _locale_t locale), ndw_wcscoll(a, b))
NDW_LIBC(int, ndw_print_filling, (char *buffer, size_t size, const char *format, va_list arguments), "ndw__vsnprintf");
NDW_LIBC(int, ndw_print_whole, (char *buffer, size_t size, const char *format, va_list arguments), "ndw_vsprintf_s");
NDW_LIBC(int, ndw_print_counted, (char *buffer, size_t size, size_t count, const char *format, va_list arguments), "ndw__vsnprintf_s");
NDW_IN_LOCALE(int, _vsnprintf_l, (char *buffer, size_t size, const char *format, _locale_t locale, va_list arguments),
    ndw_print_filling(buffer, size, format, arguments))
NDW_IN_LOCALE(int, _vsprintf_s_l, (char *buffer, size_t size, const char *format, _locale_t locale, va_list arguments),
    ndw_print_whole(buffer, size, format, arguments))
NDW_IN_LOCALE(int, _vsnprintf_s_l,
    (char *buffer, size_t size, size_t count, const char *format, _locale_t locale, va_list arguments),
    ndw_print_counted(buffer, size, count, format, arguments))
#undef NDW_IN_LOCALE
NDW_INLINE int _snprintf_l(char *buffer, size_t size, const char *format, _locale_t locale, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, locale);
    length = _vsnprintf_l(buffer, size, format, locale, arguments);
    va_end(arguments);
    return length;
}
NDW_INLINE int _sprintf_s_l(char *buffer, size_t size, const char *format, _locale_t locale, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, locale);
    length = _vsprintf_s_l(buffer, size, format, locale, arguments);
    va_end(arguments);
    return length;
}
NDW_INLINE int _snprintf_s_l(char *buffer, size_t size, size_t count, const char *format, _locale_t locale, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, locale);
    length = _vsnprintf_s_l(buffer, size, count, format, locale, arguments);
    va_end(arguments);
    return length;
}
/* Case is folded for A to Z in any locale. */
NDW_LIBC(int, ndw_compare_folded, (const char *a, const char *b), "ndw__stricmp");
NDW_LIBC(int, ndw_compare_some_folded, (const char *a, const char *b, size_t count), "ndw__strnicmp");
NDW_LIBC(int, ndw_wide_compare_folded, (const wchar_t *a, const wchar_t *b), "ndw__wcsicmp");
NDW_INLINE int _stricmp_l(const char *a, const char *b, _locale_t locale) { return (void)locale, ndw_compare_folded(a, b); }
NDW_INLINE int _strnicmp_l(const char *a, const char *b, size_t count, _locale_t locale)
{
    return (void)locale, ndw_compare_some_folded(a, b, count);
}
NDW_INLINE int _wcsicmp_l(const wchar_t *a, const wchar_t *b, _locale_t locale)
{
    return (void)locale, ndw_wide_compare_folded(a, b);
}

#endif /* NDWIN_CRT_LOCALE_H */
