/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The time with milliseconds: <sys/timeb.h>. */
#ifndef NDWIN_TIMEB_H
#define NDWIN_TIMEB_H

#include <errno.h>
#include <time.h>
#include "crt/base.h"

struct _timeb {
    time_t time;
    unsigned short millitm;
    short timezone;
    short dstflag;
};
#define __timeb64 _timeb
NDW_INLINE errno_t _ftime_s(struct _timeb *now)
{
    struct timespec time;
    struct tm split;
    if (now == NULL)
        return EINVAL;
    timespec_get(&time, TIME_UTC);
    localtime_s(&split, &time.tv_sec);
    now->time = time.tv_sec;
    now->millitm = (unsigned short)(time.tv_nsec / 1000000);
    now->timezone = (short)(__timezone / 60);
    now->dstflag = (short)(split.tm_isdst > 0);
    return 0;
}
NDW_INLINE void _ftime(struct _timeb *now)
{
    _ftime_s(now);
}
#define _ftime64   _ftime
#define _ftime64_s _ftime_s

#endif /* NDWIN_TIMEB_H */
