/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <sys/stat.h>. All sizes are 64 bits. */
#ifndef NDWIN_CRT_STAT_H
#define NDWIN_CRT_STAT_H

#include "wide_path.h"

#define _stat     stat
#define _stat64   stat
#define _stati64  stat
#define _fstat    fstat
#define _fstat64  fstat
#define _fstati64 fstat
#define _S_IFMT   S_IFMT
#define _S_IFDIR  S_IFDIR
#define _S_IFCHR  S_IFCHR
#define _S_IFIFO  S_IFIFO
#define _S_IFREG  S_IFREG
#define _S_IREAD  S_IRUSR
#define _S_IWRITE S_IWUSR
#define _S_IEXEC  S_IXUSR

NDW_INLINE int _wstat(const wchar_t *path, struct stat *found)
{
    char narrow[4097];
    return ndw_narrow_path(path, narrow) ? stat(narrow, found) : -1;
}
#define _wstat64 _wstat

#endif /* NDWIN_CRT_STAT_H */
