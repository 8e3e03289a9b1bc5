/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Clocks, the machine, the environment, modules, messages. */
#ifndef NDWIN_SYSTEM_H
#define NDWIN_SYSTEM_H

#include <stdarg.h>
#include "error.h"

NDW_API(BOOL, QueryPerformanceCounter, (LARGE_INTEGER *count));
NDW_API(BOOL, QueryPerformanceFrequency, (LARGE_INTEGER *frequency));
NDW_API(DWORD, GetTickCount, (void));
NDW_API(ULONGLONG, GetTickCount64, (void));
NDW_API(BOOL, GetSystemTimes, (LPFILETIME idle, LPFILETIME kernel, LPFILETIME user));
NDW_API(void, GetSystemTimeAsFileTime, (LPFILETIME time));
NDW_API(void, GetSystemTimePreciseAsFileTime, (LPFILETIME time));

#define PROCESSOR_ARCHITECTURE_INTEL   0
#define PROCESSOR_ARCHITECTURE_AMD64   9
#define PROCESSOR_ARCHITECTURE_ARM64   12
#define PROCESSOR_ARCHITECTURE_UNKNOWN 0xFFFF

typedef struct _SYSTEM_INFO {
    __extension__ union {
        DWORD dwOemId;
        __extension__ struct {
            WORD wProcessorArchitecture;
            WORD wReserved;
        };
    };
    DWORD dwPageSize;
    LPVOID lpMinimumApplicationAddress;
    LPVOID lpMaximumApplicationAddress;
    DWORD_PTR dwActiveProcessorMask;
    DWORD dwNumberOfProcessors;
    DWORD dwProcessorType;
    DWORD dwAllocationGranularity;
    WORD wProcessorLevel;
    WORD wProcessorRevision;
} SYSTEM_INFO, *LPSYSTEM_INFO;

typedef struct _MEMORYSTATUSEX {
    DWORD dwLength;
    DWORD dwMemoryLoad;
    DWORDLONG ullTotalPhys;
    DWORDLONG ullAvailPhys;
    DWORDLONG ullTotalPageFile;
    DWORDLONG ullAvailPageFile;
    DWORDLONG ullTotalVirtual;
    DWORDLONG ullAvailVirtual;
    DWORDLONG ullAvailExtendedVirtual;
} MEMORYSTATUSEX, *LPMEMORYSTATUSEX;

NDW_API(void, GetSystemInfo, (LPSYSTEM_INFO info));
NDW_API(void, GetNativeSystemInfo, (LPSYSTEM_INFO info));
NDW_API(BOOL, GlobalMemoryStatusEx, (LPMEMORYSTATUSEX status));

#define LOAD_LIBRARY_AS_DATAFILE          0x00000002
#define LOAD_WITH_ALTERED_SEARCH_PATH     0x00000008
#define LOAD_LIBRARY_SEARCH_APPLICATION_DIR 0x00000200
#define LOAD_LIBRARY_SEARCH_SYSTEM32      0x00000800
#define LOAD_LIBRARY_SEARCH_DEFAULT_DIRS  0x00001000

NDW_API(HMODULE, LoadLibraryA, (LPCSTR name));
NDW_API(HMODULE, LoadLibraryW, (LPCWSTR name));
NDW_API(HMODULE, LoadLibraryExA, (LPCSTR name, HANDLE file, DWORD flags));
NDW_API(HMODULE, LoadLibraryExW, (LPCWSTR name, HANDLE file, DWORD flags));
NDW_API(FARPROC, GetProcAddress, (HMODULE module, LPCSTR name));
NDW_API(BOOL, FreeLibrary, (HMODULE module));
NDW_API(HMODULE, GetModuleHandleA, (LPCSTR name));
NDW_API(HMODULE, GetModuleHandleW, (LPCWSTR name));
NDW_API(DWORD, GetModuleFileNameA, (HMODULE module, LPSTR buffer, DWORD size));
NDW_API(DWORD, GetModuleFileNameW, (HMODULE module, LPWSTR buffer, DWORD size));
NDW_API(DWORD, ExpandEnvironmentStringsA, (LPCSTR source, LPSTR buffer, DWORD size));
NDW_API(DWORD, ExpandEnvironmentStringsW, (LPCWSTR source, LPWSTR buffer, DWORD size));
NDW_API(DWORD, GetEnvironmentVariableA, (LPCSTR name, LPSTR buffer, DWORD size));
NDW_API(DWORD, GetEnvironmentVariableW, (LPCWSTR name, LPWSTR buffer, DWORD size));
NDW_API(BOOL, IsDebuggerPresent, (void));
#define DebugBreak() __debugbreak()
NDW_API(void, OutputDebugStringA, (LPCSTR text));
NDW_API(void, OutputDebugStringW, (LPCWSTR text));

NDW_API(int, lstrlenW, (LPCWSTR text));
NDW_API(int, lstrlenA, (LPCSTR text));
NDW_API(int, lstrcmpW, (LPCWSTR a, LPCWSTR b));
NDW_API(int, lstrcmpA, (LPCSTR a, LPCSTR b));
NDW_API(int, lstrcmpiW, (LPCWSTR a, LPCWSTR b));
NDW_API(int, lstrcmpiA, (LPCSTR a, LPCSTR b));

#define CP_ACP  0
#define CP_UTF8 65001
#define MB_PRECOMPOSED       0x1
#define MB_ERR_INVALID_CHARS 0x8
#define WC_ERR_INVALID_CHARS 0x80
NDW_API(int, MultiByteToWideChar,
    (UINT page, DWORD flags, LPCSTR source, int sourceLength, LPWSTR target, int targetLength));
NDW_API(int, WideCharToMultiByte,
    (UINT page, DWORD flags, LPCWSTR source, int sourceLength, LPSTR target, int targetLength, LPCSTR fallback,
     LPBOOL usedFallback));

#define FORMAT_MESSAGE_ALLOCATE_BUFFER 0x00000100
#define FORMAT_MESSAGE_IGNORE_INSERTS  0x00000200
#define FORMAT_MESSAGE_FROM_STRING     0x00000400
#define FORMAT_MESSAGE_FROM_HMODULE    0x00000800
#define FORMAT_MESSAGE_FROM_SYSTEM     0x00001000
#define FORMAT_MESSAGE_ARGUMENT_ARRAY  0x00002000
#define FORMAT_MESSAGE_MAX_WIDTH_MASK  0x000000FF
#define LANG_NEUTRAL    0x00
#define LANG_ENGLISH    0x09
#define SUBLANG_NEUTRAL 0x00
#define SUBLANG_DEFAULT 0x01
#define MAKELANGID(primary, sub) ((WORD)((WORD)(sub) << 10 | (WORD)(primary)))
NDW_API(DWORD, FormatMessageA,
    (DWORD flags, LPCVOID source, DWORD message, DWORD language, LPSTR buffer, DWORD size, va_list *arguments));
NDW_API(DWORD, FormatMessageW,
    (DWORD flags, LPCVOID source, DWORD message, DWORD language, LPWSTR buffer, DWORD size, va_list *arguments));

#ifdef UNICODE
#define LoadLibrary              LoadLibraryW
#define LoadLibraryEx            LoadLibraryExW
#define GetModuleHandle          GetModuleHandleW
#define GetModuleFileName        GetModuleFileNameW
#define ExpandEnvironmentStrings ExpandEnvironmentStringsW
#define GetEnvironmentVariable   GetEnvironmentVariableW
#define OutputDebugString        OutputDebugStringW
#define FormatMessage            FormatMessageW
#define lstrlen                  lstrlenW
#define lstrcmp                  lstrcmpW
#define lstrcmpi                 lstrcmpiW
#else
#define LoadLibrary              LoadLibraryA
#define LoadLibraryEx            LoadLibraryExA
#define GetModuleHandle          GetModuleHandleA
#define GetModuleFileName        GetModuleFileNameA
#define ExpandEnvironmentStrings ExpandEnvironmentStringsA
#define GetEnvironmentVariable   GetEnvironmentVariableA
#define OutputDebugString        OutputDebugStringA
#define FormatMessage            FormatMessageA
#define lstrlen                  lstrlenA
#define lstrcmp                  lstrcmpA
#define lstrcmpi                 lstrcmpiA
#endif

#endif /* NDWIN_SYSTEM_H */
