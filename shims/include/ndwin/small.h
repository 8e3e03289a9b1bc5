/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions of Windows that are a few lines on top of others. Included by <windows.h>, behind what they are made of. */
#ifndef NDWIN_SMALL_H
#define NDWIN_SMALL_H

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>
#include "calendar.h"
#include "crt/stdlib.h"
#include "file.h"
#include "memory.h"
#include "strings.h"
#include "sync.h"
#include "system.h"
#include "thread.h"

/* Narrow text is UTF-8. */
typedef struct _cpinfo {
    UINT MaxCharSize;
    BYTE DefaultChar[2];
    BYTE LeadByte[12];
} CPINFO, *LPCPINFO;
NDW_API(UINT, GetACP, (void));
NDW_API(UINT, GetOEMCP, (void));
NDW_INLINE BOOL IsValidCodePage(UINT page) { return page == CP_UTF8; }
NDW_INLINE BOOL AreFileApisANSI(void) { return TRUE; }
NDW_INLINE BOOL IsDBCSLeadByte(BYTE byte) { return (void)byte, FALSE; }
NDW_API(BOOL, GetCPInfo, (UINT page, LPCPINFO info));

/* Times of FAT: two seconds are the least, 1980 to 2107. */
NDW_INLINE BOOL DosDateTimeToFileTime(WORD date, WORD time, LPFILETIME fileTime)
{
    SYSTEMTIME split;
    memset(&split, 0, sizeof split);
    split.wYear = (WORD)(1980 + (date >> 9));
    split.wMonth = (WORD)(date >> 5 & 15);
    split.wDay = (WORD)(date & 31);
    split.wHour = (WORD)(time >> 11);
    split.wMinute = (WORD)(time >> 5 & 63);
    split.wSecond = (WORD)((time & 31) * 2);
    return SystemTimeToFileTime(&split, fileTime);
}
NDW_INLINE BOOL FileTimeToDosDateTime(const FILETIME *fileTime, LPWORD date, LPWORD time)
{
    SYSTEMTIME split;
    if (!FileTimeToSystemTime(fileTime, &split))
        return FALSE;
    if (split.wYear < 1980 || split.wYear > 2107 || date == NULL || time == NULL) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    *date = (WORD)((split.wYear - 1980) << 9 | split.wMonth << 5 | split.wDay);
    *time = (WORD)(split.wHour << 11 | split.wMinute << 5 | split.wSecond / 2);
    return TRUE;
}

/* Instead of a pointer they take a single character, and return it converted. Letters are folded as the C library's locale says. */
#define NDW_FOLD(name, character, fold)                                        \
    NDW_INLINE character *name(character *text)                                \
    {                                                                          \
        character *at = text;                                                  \
        if (((ULONG_PTR)text & ~(ULONG_PTR)0x1FFFFF) == 0)                      \
            return (character *)(ULONG_PTR)fold((ULONG_PTR)text);              \
        for (; *at; at++)                                                      \
            *at = (character)fold((ULONG_PTR)*at);                             \
        return text;                                                           \
    }
NDW_INLINE ULONG_PTR ndw_upper(ULONG_PTR c) { return c < 0x80 ? (ULONG_PTR)toupper((int)c) : c; }
NDW_INLINE ULONG_PTR ndw_lower(ULONG_PTR c) { return c < 0x80 ? (ULONG_PTR)tolower((int)c) : c; }
NDW_INLINE ULONG_PTR ndw_wide_upper(ULONG_PTR c) { return towupper((wint_t)c); }
NDW_INLINE ULONG_PTR ndw_wide_lower(ULONG_PTR c) { return towlower((wint_t)c); }
NDW_FOLD(CharUpperA, CHAR, ndw_upper)
NDW_FOLD(CharLowerA, CHAR, ndw_lower)
NDW_FOLD(CharUpperW, WCHAR, ndw_wide_upper)
NDW_FOLD(CharLowerW, WCHAR, ndw_wide_lower)
#undef NDW_FOLD
NDW_INLINE DWORD CharUpperBuffW(LPWSTR text, DWORD length)
{
    DWORD i;
    for (i = 0; i < length; i++)
        text[i] = (WCHAR)ndw_wide_upper((ULONG_PTR)text[i]);
    return length;
}
NDW_INLINE DWORD CharLowerBuffW(LPWSTR text, DWORD length)
{
    DWORD i;
    for (i = 0; i < length; i++)
        text[i] = (WCHAR)ndw_wide_lower((ULONG_PTR)text[i]);
    return length;
}
/* The next and the previous character. At the end or the beginning of the text the pointer stays where it is. */
NDW_INLINE LPWSTR CharNextW(LPCWSTR text) { return (LPWSTR)(ULONG_PTR)(*text ? text + 1 : text); }
NDW_INLINE LPWSTR CharPrevW(LPCWSTR start, LPCWSTR text) { return (LPWSTR)(ULONG_PTR)(text > start ? text - 1 : start); }
NDW_INLINE LPSTR CharNextA(LPCSTR text)
{
    if (*text)
        for (text++; ((BYTE)*text & 0xC0) == 0x80; text++) {}
    return (LPSTR)(ULONG_PTR)text;
}
NDW_INLINE LPSTR CharPrevA(LPCSTR start, LPCSTR text)
{
    if (text > start)
        for (text--; text > start && ((BYTE)*text & 0xC0) == 0x80; text--) {}
    return (LPSTR)(ULONG_PTR)text;
}

/* The answer may be out of date as soon as it is returned: another thread may have mapped or unmapped the memory. */
NDW_INLINE BOOL ndw_is_bad(const VOID *start, UINT_PTR size, DWORD rights)
{
    const BYTE *at = (const BYTE *)start;
    const BYTE *const end = at + size;
    if (size == 0)
        return FALSE;
    if (end < at)
        return TRUE;
    while (at < end) {
        MEMORY_BASIC_INFORMATION found;
        if (VirtualQuery(at, &found, sizeof found) == 0 || found.State != MEM_COMMIT || !(found.Protect & rights) ||
            (found.Protect & PAGE_GUARD))
            return TRUE;
        at = (const BYTE *)found.BaseAddress + found.RegionSize;
    }
    return FALSE;
}
NDW_INLINE BOOL IsBadReadPtr(const VOID *start, UINT_PTR size)
{
    return ndw_is_bad(start, size, PAGE_READONLY | PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READ |
                                       PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY);
}
NDW_INLINE BOOL IsBadWritePtr(LPVOID start, UINT_PTR size)
{
    return ndw_is_bad(start, size, PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY);
}

/* Returns the length of the path: without its NUL, or with it if the buffer is too small. The file need not exist. */
NDW_API(DWORD, GetFullPathNameA, (LPCSTR file, DWORD size, LPSTR buffer, LPSTR *part));
NDW_API(DWORD, GetFullPathNameW, (LPCWSTR file, DWORD size, LPWSTR buffer, LPWSTR *part));

/* Linux tells a process nothing of the kind. */
#define STARTF_USESHOWWINDOW 0x001
#define STARTF_USESTDHANDLES 0x100
#define NDW_STARTUP(name, pointer, text)                                                                 \
    typedef struct _##name {                                                                            \
        DWORD cb;                                                                                       \
        text lpReserved, lpDesktop, lpTitle;                                                            \
        DWORD dwX, dwY, dwXSize, dwYSize, dwXCountChars, dwYCountChars, dwFillAttribute, dwFlags;       \
        WORD wShowWindow, cbReserved2;                                                                  \
        LPBYTE lpReserved2;                                                                             \
        HANDLE hStdInput, hStdOutput, hStdError;                                                        \
    } name, *pointer;
NDW_STARTUP(STARTUPINFOA, LPSTARTUPINFOA, LPSTR)
NDW_STARTUP(STARTUPINFOW, LPSTARTUPINFOW, LPWSTR)
#undef NDW_STARTUP
NDW_API(VOID, GetStartupInfoA, (LPSTARTUPINFOA info));
NDW_API(VOID, GetStartupInfoW, (LPSTARTUPINFOW info));

#ifdef UNICODE
typedef STARTUPINFOW STARTUPINFO;
typedef LPSTARTUPINFOW LPSTARTUPINFO;
#define GetStartupInfo            GetStartupInfoW
#define QueryFullProcessImageName QueryFullProcessImageNameW
#else
typedef STARTUPINFOA STARTUPINFO;
typedef LPSTARTUPINFOA LPSTARTUPINFO;
#define GetStartupInfo            GetStartupInfoA
#define QueryFullProcessImageName QueryFullProcessImageNameA
#endif

/* Of this process only. */
#define PROCESS_NAME_NATIVE 1
NDW_API(BOOL, QueryFullProcessImageNameA, (HANDLE process, DWORD flags, LPSTR path, PDWORD size));
NDW_API(BOOL, QueryFullProcessImageNameW, (HANDLE process, DWORD flags, LPWSTR path, PDWORD size));

NDW_API(BOOL, FlushInstructionCache, (HANDLE process, LPCVOID address, SIZE_T size));

NDW_API(USHORT, RtlCaptureStackBackTrace, (DWORD skip, DWORD count, PVOID *frames, PDWORD hash));
#define CaptureStackBackTrace RtlCaptureStackBackTrace

NDW_INLINE __attribute__((noreturn)) VOID FreeLibraryAndExitThread(HMODULE module, DWORD code)
{
    FreeLibrary(module);
    ExitThread(code);
    __builtin_unreachable();
}

/* There are no window messages: these wait for the objects only. */
#define MWMO_WAITALL        0x0001
#define MWMO_ALERTABLE      0x0002
#define MWMO_INPUTAVAILABLE 0x0004
#define QS_ALLINPUT         0x1CFF
#define QS_ALLEVENTS        0x1CBF
NDW_API(DWORD, MsgWaitForMultipleObjectsEx, (DWORD count, const HANDLE *handles, DWORD milliseconds, DWORD wake, DWORD flags));
NDW_API(DWORD, MsgWaitForMultipleObjects, (DWORD count, const HANDLE *handles, BOOL all, DWORD milliseconds, DWORD wake));

#define NUMA_NO_PREFERRED_NODE ((DWORD)-1)
/* The node is preferred, not required: if it has no memory, another one gives it. For mappings it is ignored. */
NDW_API(LPVOID, VirtualAllocExNuma, (HANDLE process, LPVOID at, SIZE_T size, DWORD type, DWORD protection, DWORD node));
NDW_API(BOOL, VirtualFreeEx, (HANDLE process, LPVOID start, SIZE_T size, DWORD type));
NDW_API(HANDLE, CreateFileMappingNumaA,
        (HANDLE file, LPSECURITY_ATTRIBUTES security, DWORD protection, DWORD high, DWORD low, LPCSTR name, DWORD node));
NDW_API(HANDLE, CreateFileMappingNumaW,
        (HANDLE file, LPSECURITY_ATTRIBUTES security, DWORD protection, DWORD high, DWORD low, LPCWSTR name, DWORD node));
NDW_API(LPVOID, MapViewOfFileExNuma,
        (HANDLE mapping, DWORD access, DWORD high, DWORD low, SIZE_T size, LPVOID at, DWORD node));
typedef struct _WIN32_MEMORY_RANGE_ENTRY {
    PVOID VirtualAddress;
    SIZE_T NumberOfBytes;
} WIN32_MEMORY_RANGE_ENTRY, *PWIN32_MEMORY_RANGE_ENTRY;
NDW_API(BOOL, PrefetchVirtualMemory, (HANDLE process, ULONG_PTR count, PWIN32_MEMORY_RANGE_ENTRY ranges, ULONG flags));

#ifdef UNICODE
#define CharUpper       CharUpperW
#define CharLower       CharLowerW
#define CharNext        CharNextW
#define CharPrev        CharPrevW
#define CharUpperBuff   CharUpperBuffW
#define CharLowerBuff   CharLowerBuffW
#define GetFullPathName GetFullPathNameW
#define CreateFileMappingNuma CreateFileMappingNumaW
#else
#define CharUpper       CharUpperA
#define CharLower       CharLowerA
#define CharNext        CharNextA
#define CharPrev        CharPrevA
#define GetFullPathName GetFullPathNameA
#define CreateFileMappingNuma CreateFileMappingNumaA
#endif

#endif /* NDWIN_SMALL_H */
