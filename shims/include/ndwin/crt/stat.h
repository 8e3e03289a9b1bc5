/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <sys/stat.h>. All sizes are 64 bits. */
#ifndef NDWIN_CRT_STAT_H
#define NDWIN_CRT_STAT_H

#include "wide_path.h"

#define _stat     stat
#define _stat64   stat
#define _stati64  stat
#define _stat64i32 stat
#define _fstat    fstat
#define _fstat64  fstat
#define _fstati64 fstat
#define _fstat64i32 fstat
/* The C library's values, whose names it leaves out for -std=c11 and its kin. */
#define _S_IFMT   0170000
#define _S_IFDIR  0040000
#define _S_IFCHR  0020000
#define _S_IFIFO  0010000
#define _S_IFREG  0100000
#define _S_IREAD  S_IRUSR
#define _S_IWRITE S_IWUSR
#define _S_IEXEC  S_IXUSR

NDW_INLINE int _wstat(const wchar_t *path, struct stat *found)
{
    char narrow[4097];
    return ndw_narrow_path(path, narrow) ? stat(narrow, found) : -1;
}
#define _wstat64 _wstat
#define _wstati64 _wstat
#define _wstat64i32 _wstat

#endif /* NDWIN_CRT_STAT_H */
