/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <timeapi.h>, also included by <mmsystem.h>: the time in milliseconds, the resolution of timers. */
#ifndef NDWIN_MULTIMEDIA_H
#define NDWIN_MULTIMEDIA_H

#include "types.h"

typedef UINT MMRESULT;

#define MMSYSERR_NOERROR 0
#define TIMERR_NOERROR   0
#define TIMERR_NOCANDO   97
#define TIMERR_STRUCT    129

typedef struct timecaps_tag {
    UINT wPeriodMin;
    UINT wPeriodMax;
} TIMECAPS, *PTIMECAPS, *LPTIMECAPS;

NDW_API(DWORD, timeGetTime, (void));
NDW_API(MMRESULT, timeBeginPeriod, (UINT period));
NDW_API(MMRESULT, timeEndPeriod, (UINT period));
NDW_API(MMRESULT, timeGetDevCaps, (LPTIMECAPS capabilities, UINT size));

#endif /* NDWIN_MULTIMEDIA_H */
