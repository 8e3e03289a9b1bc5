/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Dates, times of day, time zones. */
#ifndef NDWIN_CALENDAR_H
#define NDWIN_CALENDAR_H

#include "types.h"

typedef struct _SYSTEMTIME {
    WORD wYear;
    WORD wMonth;
    WORD wDayOfWeek;
    WORD wDay;
    WORD wHour;
    WORD wMinute;
    WORD wSecond;
    WORD wMilliseconds;
} SYSTEMTIME, *PSYSTEMTIME, *LPSYSTEMTIME;

typedef struct _TIME_ZONE_INFORMATION {
    LONG Bias;
    WCHAR StandardName[32];
    SYSTEMTIME StandardDate;
    LONG StandardBias;
    WCHAR DaylightName[32];
    SYSTEMTIME DaylightDate;
    LONG DaylightBias;
} TIME_ZONE_INFORMATION, *PTIME_ZONE_INFORMATION, *LPTIME_ZONE_INFORMATION;

#define TIME_ZONE_ID_UNKNOWN  0
#define TIME_ZONE_ID_STANDARD 1
#define TIME_ZONE_ID_DAYLIGHT 2
#define TIME_ZONE_ID_INVALID  ((DWORD)0xFFFFFFFF)

NDW_API(void, GetSystemTime, (LPSYSTEMTIME time));
NDW_API(void, GetLocalTime, (LPSYSTEMTIME time));
NDW_API(BOOL, SystemTimeToFileTime, (const SYSTEMTIME *time, LPFILETIME fileTime));
NDW_API(BOOL, FileTimeToSystemTime, (const FILETIME *fileTime, LPSYSTEMTIME time));
NDW_API(BOOL, FileTimeToLocalFileTime, (const FILETIME *fileTime, LPFILETIME local));
NDW_API(BOOL, LocalFileTimeToFileTime, (const FILETIME *local, LPFILETIME fileTime));
NDW_API(LONG, CompareFileTime, (const FILETIME *a, const FILETIME *b));
NDW_API(DWORD, GetTimeZoneInformation, (LPTIME_ZONE_INFORMATION zone));

typedef struct _TIME_DYNAMIC_ZONE_INFORMATION {
    LONG Bias;
    WCHAR StandardName[32];
    SYSTEMTIME StandardDate;
    LONG StandardBias;
    WCHAR DaylightName[32];
    SYSTEMTIME DaylightDate;
    LONG DaylightBias;
    WCHAR TimeZoneKeyName[128];
    BOOLEAN DynamicDaylightTimeDisabled;
} DYNAMIC_TIME_ZONE_INFORMATION, *PDYNAMIC_TIME_ZONE_INFORMATION;

/* The zone has no key in a registry: that name is empty. */
NDW_INLINE DWORD GetDynamicTimeZoneInformation(PDYNAMIC_TIME_ZONE_INFORMATION zone)
{
    TIME_ZONE_INFORMATION found;
    const DWORD kind = GetTimeZoneInformation(&found);
    if (kind != TIME_ZONE_ID_INVALID) {
        __builtin_memcpy(zone, &found, sizeof found);
        zone->TimeZoneKeyName[0] = 0;
        zone->DynamicDaylightTimeDisabled = 0;
    }
    return kind;
}

#endif /* NDWIN_CALENDAR_H */
