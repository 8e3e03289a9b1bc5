/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Paths in wide characters, for functions that the C library has with narrow ones. */
#ifndef NDWIN_CRT_WIDE_PATH_H
#define NDWIN_CRT_WIDE_PATH_H

#include <errno.h>
#include "base.h"

/* The character in UTF-8; the number of bytes. */
NDW_INLINE int ndw_utf8(unsigned c, char *target)
{
    if (c < 0x80)
        return target[0] = (char)c, 1;
    if (c < 0x800)
        return target[0] = (char)(0xC0 | c >> 6), target[1] = (char)(0x80 | (c & 0x3F)), 2;
    if (c < 0x10000)
        return target[0] = (char)(0xE0 | c >> 12), target[1] = (char)(0x80 | (c >> 6 & 0x3F)),
               target[2] = (char)(0x80 | (c & 0x3F)), 3;
    return target[0] = (char)(0xF0 | c >> 18), target[1] = (char)(0x80 | (c >> 12 & 0x3F)),
           target[2] = (char)(0x80 | (c >> 6 & 0x3F)), target[3] = (char)(0x80 | (c & 0x3F)), 4;
}

/* Into 4097 bytes; 0, and errno, for NULL and for what is too long. */
NDW_INLINE int ndw_narrow_path(const wchar_t *path, char *target)
{
    int length = 0;
    if (!path)
        return errno = EINVAL, 0;
    for (; *path; path++) {
        if (length > 4092)
            return errno = ENAMETOOLONG, 0;
        length += ndw_utf8((unsigned)*path, target + length);
    }
    target[length] = 0;
    return 1;
}

#endif /* NDWIN_CRT_WIDE_PATH_H */
