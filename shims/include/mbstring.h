/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <mbstring.h>. Multibyte text is UTF-8, and is compared and copied byte by byte. */
#ifndef NDWIN_MBSTRING_H
#define NDWIN_MBSTRING_H

#include <string.h>
#include "ndwin/crt/base.h"

NDW_LIBC(unsigned char *, _mbscpy, (unsigned char *target, const unsigned char *source), "strcpy");
NDW_LIBC(unsigned char *, _mbscat, (unsigned char *target, const unsigned char *source), "strcat");
NDW_LIBC(int, _mbscmp, (const unsigned char *a, const unsigned char *b), "strcmp");
NDW_INLINE int _ismbblead(unsigned c) { return c >= 0xC2 && c <= 0xF4; }
NDW_INLINE size_t _mbslen(const unsigned char *text)
{
    size_t length = 0;
    for (; *text; text++)
        length += (*text & 0xC0) != 0x80;
    return length;
}

#endif /* NDWIN_MBSTRING_H */
