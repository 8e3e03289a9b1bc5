/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <mbstring.h>. Multibyte text is UTF-8, and is compared and copied byte by byte. */
#ifndef NDWIN_MBSTRING_H
#define NDWIN_MBSTRING_H

#include <string.h>
#include "ndwin/crt/base.h"

NDW_LIBC(unsigned char *, _mbscpy, (unsigned char *target, const unsigned char *source), "strcpy");
NDW_LIBC(unsigned char *, _mbscat, (unsigned char *target, const unsigned char *source), "strcat");
NDW_LIBC(int, _mbscmp, (const unsigned char *a, const unsigned char *b), "strcmp");
NDW_LIBC(int, _mbsicmp, (const unsigned char *a, const unsigned char *b), "ndw__stricmp");
NDW_LIBC(unsigned char *, _mbsdup, (const unsigned char *text), "ndw__strdup");
NDW_LIBC(unsigned char *, _mbsstr, (const unsigned char *text, const unsigned char *part), "strstr");
NDW_LIBC(errno_t, _mbscpy_s, (unsigned char *target, size_t size, const unsigned char *source), "ndw_strcpy_s");
NDW_LIBC(errno_t, _mbscat_s, (unsigned char *target, size_t size, const unsigned char *source), "ndw_strcat_s");
#ifdef __cplusplus
extern "C++" {
template <size_t N_> inline errno_t _mbscpy_s(unsigned char (&target)[N_], const unsigned char *source)
{
    return _mbscpy_s(target, N_, source);
}
template <size_t N_> inline errno_t _mbscat_s(unsigned char (&target)[N_], const unsigned char *source)
{
    return _mbscat_s(target, N_, source);
}
}
#endif
/* What is no character of ASCII is not found. */
NDW_LIBC(unsigned char *, ndw_find_byte, (const unsigned char *text, int c), "strchr");
NDW_LIBC(unsigned char *, ndw_find_last_byte, (const unsigned char *text, int c), "strrchr");
NDW_INLINE unsigned char *_mbschr(const unsigned char *text, unsigned c)
{
    return c < 0x80 ? ndw_find_byte(text, (int)c) : (unsigned char *)0;
}
NDW_INLINE unsigned char *_mbsrchr(const unsigned char *text, unsigned c)
{
    return c < 0x80 ? ndw_find_last_byte(text, (int)c) : (unsigned char *)0;
}
/* The next and the previous character. */
NDW_INLINE unsigned char *_mbsinc(const unsigned char *at)
{
    for (at++; (*at & 0xC0) == 0x80; at++) {}
    return (unsigned char *)(size_t)at;
}
NDW_INLINE unsigned char *_mbsdec(const unsigned char *start, const unsigned char *at)
{
    if (at <= start)
        return (unsigned char *)0;
    for (at--; at > start && (*at & 0xC0) == 0x80; at--) {}
    return (unsigned char *)(size_t)at;
}
NDW_INLINE int _ismbblead(unsigned c) { return c >= 0xC2 && c <= 0xF4; }
NDW_INLINE size_t _mbslen(const unsigned char *text)
{
    size_t length = 0;
    for (; *text; text++)
        length += (*text & 0xC0) != 0x80;
    return length;
}

#endif /* NDWIN_MBSTRING_H */
