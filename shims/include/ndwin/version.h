/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The version of Windows that programs ask for: 10. */
#ifndef NDWIN_VERSION_H
#define NDWIN_VERSION_H

#include "types.h"

#define NDW_OSVERSIONINFO(character) \
    DWORD dwOSVersionInfoSize;       \
    DWORD dwMajorVersion;            \
    DWORD dwMinorVersion;            \
    DWORD dwBuildNumber;             \
    DWORD dwPlatformId;              \
    character szCSDVersion[128];
#define NDW_OSVERSIONINFOEX \
    WORD wServicePackMajor; \
    WORD wServicePackMinor; \
    WORD wSuiteMask;        \
    BYTE wProductType;      \
    BYTE wReserved;
typedef struct _OSVERSIONINFOA {
    NDW_OSVERSIONINFO(CHAR)
} OSVERSIONINFOA, *POSVERSIONINFOA, *LPOSVERSIONINFOA;
typedef struct _OSVERSIONINFOW {
    NDW_OSVERSIONINFO(WCHAR)
} OSVERSIONINFOW, *POSVERSIONINFOW, *LPOSVERSIONINFOW, RTL_OSVERSIONINFOW, *PRTL_OSVERSIONINFOW;
typedef struct _OSVERSIONINFOEXA {
    NDW_OSVERSIONINFO(CHAR)
    NDW_OSVERSIONINFOEX
} OSVERSIONINFOEXA, *POSVERSIONINFOEXA, *LPOSVERSIONINFOEXA;
typedef struct _OSVERSIONINFOEXW {
    NDW_OSVERSIONINFO(WCHAR)
    NDW_OSVERSIONINFOEX
} OSVERSIONINFOEXW, *POSVERSIONINFOEXW, *LPOSVERSIONINFOEXW;

#define VER_PLATFORM_WIN32_WINDOWS 1
#define VER_PLATFORM_WIN32_NT 2
#define VER_NT_WORKSTATION       1
#define VER_NT_DOMAIN_CONTROLLER 2
#define VER_NT_SERVER            3
#define VER_EQUAL         1
#define VER_GREATER       2
#define VER_GREATER_EQUAL 3
#define VER_LESS          4
#define VER_LESS_EQUAL    5
#define VER_AND           6
#define VER_OR            7
#define VER_MINORVERSION     0x0000001
#define VER_MAJORVERSION     0x0000002
#define VER_BUILDNUMBER      0x0000004
#define VER_PLATFORMID       0x0000008
#define VER_SERVICEPACKMINOR 0x0000010
#define VER_SERVICEPACKMAJOR 0x0000020
#define VER_SUITENAME        0x0000040
#define VER_PRODUCT_TYPE     0x0000080

NDW_API(ULONGLONG, VerSetConditionMask, (ULONGLONG mask, DWORD what, BYTE condition));
NDW_API(BOOL, VerifyVersionInfoA, (LPOSVERSIONINFOEXA wanted, DWORD what, DWORDLONG mask));
NDW_API(BOOL, VerifyVersionInfoW, (LPOSVERSIONINFOEXW wanted, DWORD what, DWORDLONG mask));
NDW_API(BOOL, GetVersionExA, (LPOSVERSIONINFOA info));
NDW_API(BOOL, GetVersionExW, (LPOSVERSIONINFOW info));
NDW_API(DWORD, GetVersion, (void));
NDW_API(NTSTATUS, RtlGetVersion, (LPOSVERSIONINFOW info));
NDW_API(BOOL, IsWow64Process, (HANDLE process, PBOOL answer));
#define VER_SET_CONDITION(mask, what, condition) ((mask) = VerSetConditionMask((mask), (what), (condition)))

#ifdef UNICODE
typedef OSVERSIONINFOW OSVERSIONINFO, *POSVERSIONINFO, *LPOSVERSIONINFO;
typedef OSVERSIONINFOEXW OSVERSIONINFOEX, *POSVERSIONINFOEX, *LPOSVERSIONINFOEX;
#define VerifyVersionInfo VerifyVersionInfoW
#define GetVersionEx      GetVersionExW
#else
typedef OSVERSIONINFOA OSVERSIONINFO, *POSVERSIONINFO, *LPOSVERSIONINFO;
typedef OSVERSIONINFOEXA OSVERSIONINFOEX, *POSVERSIONINFOEX, *LPOSVERSIONINFOEX;
#define VerifyVersionInfo VerifyVersionInfoA
#define GetVersionEx      GetVersionExA
#endif

#endif /* NDWIN_VERSION_H */
