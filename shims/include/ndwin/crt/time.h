/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <time.h>. */
#ifndef NDWIN_CRT_TIME_H
#define NDWIN_CRT_TIME_H

#include "base.h"

struct tm;
typedef long long __time64_t;
/*
 * The time since the process was started, as on Windows: that of the C library is the processor time, by which no wait ends.
 * Not where that was declared alone, and may have been used, before these additions.
 */
#ifdef NDCOMPAT_NATIVE_CRT
#elif defined(__cplusplus)
NDW_LIBC(clock_t, clock, (void) noexcept, "ndw_clock");
#else
NDW_LIBC(clock_t, clock, (void), "ndw_clock");
#endif
/* Microsoft's `#`: %#d without leading zeros, %#x and %#c in long form. */
#ifdef NDCOMPAT_NATIVE_CRT
#elif defined(__cplusplus)
NDW_LIBC(size_t, strftime, (char *buffer, size_t size, const char *format, const struct tm *time) noexcept, "ndw_strftime");
#else
NDW_LIBC(size_t, strftime, (char *buffer, size_t size, const char *format, const struct tm *time), "ndw_strftime");
#endif
NDW_API(errno_t, localtime_s, (struct tm *result, const time_t *time));
NDW_API(errno_t, gmtime_s, (struct tm *result, const time_t *time));
NDW_API(errno_t, asctime_s, (char *buffer, size_t size, const struct tm *time));
NDW_API(errno_t, ctime_s, (char *buffer, size_t size, const time_t *time));
NDW_LIBC(time_t, _mkgmtime, (struct tm *time), "timegm");
NDW_LIBC(__time64_t, _time64, (__time64_t *time), "time");
NDW_LIBC(__time64_t, _mktime64, (struct tm *time), "mktime");
NDW_LIBC(__time64_t, _mkgmtime64, (struct tm *time), "timegm");
NDW_LIBC(errno_t, _localtime64_s, (struct tm *result, const __time64_t *time), "ndw_localtime_s");
NDW_LIBC(errno_t, _gmtime64_s, (struct tm *result, const __time64_t *time), "ndw_gmtime_s");
NDW_LIBC(struct tm *, _localtime64, (const __time64_t *time), "localtime");
NDW_LIBC(struct tm *, _gmtime64, (const __time64_t *time), "gmtime");
NDW_LIBC(char *, _ctime64, (const __time64_t *time), "ctime");
NDW_LIBC(errno_t, _ctime64_s, (char *buffer, size_t size, const __time64_t *time), "ndw_ctime_s");
/* Times of 32 bits, up to 2038. */
typedef int __time32_t;
NDW_INLINE __time32_t ndw_time32(long long time) { return time < 0 || time > 0x7FFFFFFF ? -1 : (__time32_t)time; }
NDW_INLINE __time32_t _time32(__time32_t *time)
{
    const __time32_t now = ndw_time32(_time64((__time64_t *)0));
    return time ? *time = now : now;
}
NDW_INLINE __time32_t _mktime32(struct tm *time) { return ndw_time32(_mktime64(time)); }
NDW_INLINE __time32_t _mkgmtime32(struct tm *time) { return ndw_time32(_mkgmtime64(time)); }
#define NDW_TIME32(result, name, parameters, ...)                       \
    NDW_INLINE result name parameters                                   \
    {                                                                   \
        const __time64_t wide = time ? *time : 0;                       \
        const __time64_t *const given = time ? &wide : (__time64_t *)0; \
        return __VA_ARGS__;                                             \
    }
NDW_TIME32(errno_t, _localtime32_s, (struct tm *result, const __time32_t *time), _localtime64_s(result, given))
NDW_TIME32(errno_t, _gmtime32_s, (struct tm *result, const __time32_t *time), _gmtime64_s(result, given))
NDW_TIME32(errno_t, _ctime32_s, (char *buffer, size_t size, const __time32_t *time), _ctime64_s(buffer, size, given))
NDW_TIME32(struct tm *, _localtime32, (const __time32_t *time), given ? _localtime64(given) : (struct tm *)0)
NDW_TIME32(struct tm *, _gmtime32, (const __time32_t *time), given ? _gmtime64(given) : (struct tm *)0)
NDW_TIME32(char *, _ctime32, (const __time32_t *time), given ? _ctime64(given) : (char *)0)
#undef NDW_TIME32
NDW_INLINE double _difftime32(__time32_t end, __time32_t begin) { return (double)end - (double)begin; }
NDW_INLINE double _difftime64(__time64_t end, __time64_t begin) { return (double)(end - begin); }
#define _timezone __timezone
#define _daylight __daylight
#define _tzname   __tzname
/* Seconds, to a `long` of either width. */
NDW_INLINE errno_t _get_timezone(long *seconds)
{
    if (!seconds)
        return 22; /* EINVAL */
    return *seconds = __timezone, 0;
}
NDW_LIBC(void, _tzset, (void), "tzset");
/* By how many seconds summer time differs. */
#define _dstbias (-3600)
NDW_INLINE errno_t _get_dstbias(long *seconds)
{
    if (!seconds)
        return 22; /* EINVAL */
    return *seconds = _dstbias, 0;
}
/* The zone's name, 0, or that of its summer time, 1. Without a buffer, the size that is needed. */
NDW_INLINE errno_t _get_tzname(size_t *needed, char *buffer, size_t size, int which)
{
    size_t i = 0, length;
    if (!needed || (buffer && size == 0) || (!buffer && size > 0) || which < 0 || which > 1)
        return 22;
    if (buffer)
        *buffer = 0;
    _tzset();
    length = __builtin_strlen(_tzname[which]);
    *needed = length + 1;
    if (!buffer)
        return 0;
    if (length >= size)
        return 34; /* ERANGE */
    for (; i <= length; i++)
        buffer[i] = _tzname[which][i];
    return 0;
}
NDW_INLINE errno_t _get_daylight(int *hours)
{
    if (!hours)
        return 22; /* EINVAL */
    return *hours = __daylight, 0;
}
#ifndef CLK_TCK
#define CLK_TCK CLOCKS_PER_SEC
#endif
#if !defined(__cplusplus) && !defined(__USE_POSIX)
extern struct tm *localtime_r(const time_t *, struct tm *); /* <time.h> leaves it out for -std=c11 and its kin */
#endif
/* The present date as MM/DD/YY, the present time as HH:MM:SS. */
NDW_INLINE errno_t ndw_present(char *buffer, size_t size, const char *format)
{
    struct tm present;
    const time_t now = time(NULL);
    if (!buffer || size == 0)
        return 22; /* EINVAL */
    if (size < 9)
        return *buffer = 0, 34; /* ERANGE */
    return localtime_r(&now, &present) && strftime(buffer, size, format, &present) ? 0 : 22;
}
NDW_INLINE errno_t _strdate_s(char *buffer, size_t size) { return ndw_present(buffer, size, "%m/%d/%y"); }
NDW_INLINE errno_t _strtime_s(char *buffer, size_t size) { return ndw_present(buffer, size, "%H:%M:%S"); }
NDW_INLINE errno_t ndw_wide_present(wchar_t *buffer, size_t size, const char *format)
{
    char narrow[9];
    int i = 0;
    if (!buffer || size == 0)
        return 22; /* EINVAL */
    if (size < 9)
        return *buffer = 0, 34; /* ERANGE */
    if (ndw_present(narrow, sizeof narrow, format) != 0)
        return 22;
    do
        buffer[i] = (wchar_t)narrow[i];
    while (narrow[i++]);
    return 0;
}
NDW_INLINE errno_t _wstrdate_s(wchar_t *buffer, size_t size) { return ndw_wide_present(buffer, size, "%m/%d/%y"); }
NDW_INLINE errno_t _wstrtime_s(wchar_t *buffer, size_t size) { return ndw_wide_present(buffer, size, "%H:%M:%S"); }
NDW_INLINE wchar_t *_wstrdate(wchar_t *buffer) { return _wstrdate_s(buffer, 9) == 0 ? buffer : (wchar_t *)0; }
NDW_INLINE wchar_t *_wstrtime(wchar_t *buffer) { return _wstrtime_s(buffer, 9) == 0 ? buffer : (wchar_t *)0; }
NDW_INLINE char *_strdate(char *buffer) { return _strdate_s(buffer, 9) == 0 ? buffer : (char *)0; }
NDW_INLINE char *_strtime(char *buffer) { return _strtime_s(buffer, 9) == 0 ? buffer : (char *)0; }
/* As wide text. */
NDW_INLINE errno_t ndw_wide_time(wchar_t *buffer, size_t size, const char *narrow, errno_t error)
{
    size_t i = 0;
    if (!buffer || size == 0)
        return 22; /* EINVAL */
    *buffer = 0;
    if (error)
        return error;
    if (size < 26)
        return 34; /* ERANGE */
    do
        buffer[i] = (wchar_t)narrow[i];
    while (narrow[i++]);
    return 0;
}
NDW_INLINE errno_t _wasctime_s(wchar_t *buffer, size_t size, const struct tm *time)
{
    char narrow[26];
    return ndw_wide_time(buffer, size, narrow, asctime_s(narrow, sizeof narrow, time));
}
NDW_INLINE errno_t _wctime_s(wchar_t *buffer, size_t size, const time_t *time)
{
    char narrow[26];
    return ndw_wide_time(buffer, size, narrow, ctime_s(narrow, sizeof narrow, time));
}
NDW_INLINE errno_t _wctime64_s(wchar_t *buffer, size_t size, const __time64_t *time)
{
    char narrow[26];
    return ndw_wide_time(buffer, size, narrow, _ctime64_s(narrow, sizeof narrow, time));
}
/* The text stays until the next call of the thread. */
NDW_INLINE wchar_t *_wasctime(const struct tm *time)
{
    static __thread wchar_t text[26];
    return _wasctime_s(text, 26, time) == 0 ? text : (wchar_t *)0;
}
NDW_INLINE wchar_t *_wctime64(const __time64_t *time)
{
    static __thread wchar_t text[26];
    return _wctime64_s(text, 26, time) == 0 ? text : (wchar_t *)0;
}
NDW_INLINE wchar_t *_wctime(const time_t *time)
{
    const __time64_t wide = time ? (__time64_t)*time : 0;
    return _wctime64(time ? &wide : (const __time64_t *)0);
}

#ifdef __cplusplus
extern "C++" {
template <size_t N_> inline errno_t _wasctime_s(wchar_t (&buffer)[N_], const struct tm *time)
{
    return _wasctime_s(buffer, N_, time);
}
template <size_t N_> inline errno_t _wctime_s(wchar_t (&buffer)[N_], const time_t *time)
{
    return _wctime_s(buffer, N_, time);
}
template <size_t N_> inline errno_t _wctime64_s(wchar_t (&buffer)[N_], const __time64_t *time)
{
    return _wctime64_s(buffer, N_, time);
}
template <size_t N_> inline errno_t _ctime64_s(char (&buffer)[N_], const __time64_t *time)
{
    return _ctime64_s(buffer, N_, time);
}
template <size_t N_> inline errno_t asctime_s(char (&buffer)[N_], const struct tm *time)
{
    return asctime_s(buffer, N_, time);
}
template <size_t N_> inline errno_t ctime_s(char (&buffer)[N_], const time_t *time)
{
    return ctime_s(buffer, N_, time);
}
template <size_t N_> inline errno_t _strdate_s(char (&buffer)[N_]) { return _strdate_s(buffer, N_); }
template <size_t N_> inline errno_t _strtime_s(char (&buffer)[N_]) { return _strtime_s(buffer, N_); }
template <size_t N_> inline errno_t _wstrdate_s(wchar_t (&buffer)[N_]) { return _wstrdate_s(buffer, N_); }
template <size_t N_> inline errno_t _wstrtime_s(wchar_t (&buffer)[N_]) { return _wstrtime_s(buffer, N_); }
}
#endif

#endif /* NDWIN_CRT_TIME_H */
