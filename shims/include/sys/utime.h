/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <sys/utime.h>: the times of files. */
#ifndef NDWIN_SYS_UTIME_H
#define NDWIN_SYS_UTIME_H

#include <sys/stat.h>
#include <time.h>
#include <utime.h>
#include "../ndwin/crt/base.h"
#include "../ndwin/crt/wide_path.h"

#define _utimbuf   utimbuf
#define __utimbuf64 utimbuf
/* Without times it is now. */
NDW_LIBC(int, _utime, (const char *path, const struct utimbuf *times), "utime");
NDW_INLINE int _wutime(const wchar_t *path, const struct utimbuf *times)
{
    char narrow[4097];
    return ndw_narrow_path(path, narrow) ? utime(narrow, times) : -1;
}
NDW_LIBC(int, ndw_set_times, (int file, const struct timespec *times), "futimens");
NDW_INLINE int _futime(int file, const struct utimbuf *times)
{
    struct timespec both[2];
    if (times == NULL)
        return ndw_set_times(file, (const struct timespec *)0);
    both[0].tv_sec = times->actime;
    both[1].tv_sec = times->modtime;
    both[0].tv_nsec = both[1].tv_nsec = 0;
    return ndw_set_times(file, both);
}
#define _utime64  _utime
#define _wutime64 _wutime
#define _futime64 _futime

#endif /* NDWIN_SYS_UTIME_H */
