/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Clocks, the machine, modules, messages. */
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

#define ES_SYSTEM_REQUIRED   0x00000001u
#define ES_DISPLAY_REQUIRED  0x00000002u
#define ES_USER_PRESENT      0x00000004u
#define ES_AWAYMODE_REQUIRED 0x00000040u
#define ES_CONTINUOUS        0x80000000u
typedef DWORD EXECUTION_STATE, *PEXECUTION_STATE;
NDW_API(EXECUTION_STATE, SetThreadExecutionState, (EXECUTION_STATE flags));

/* number * numerator / denominator, rounded; -1 if it does not fit. */
NDW_INLINE int MulDiv(int number, int numerator, int denominator)
{
    LONGLONG product = (LONGLONG)number * numerator, half = denominator / 2, result;
    if (denominator == 0) {
        return -1;
    }
    if ((product < 0) != (denominator < 0)) {
        half = -half;
    }
    result = (product + half) / denominator;
    return result > 0x7fffffff || result < -0x7fffffff - 1 ? -1 : (int)result;
}

#define LOAD_LIBRARY_AS_DATAFILE          0x00000002
#define LOAD_WITH_ALTERED_SEARCH_PATH     0x00000008
#define LOAD_LIBRARY_SEARCH_APPLICATION_DIR 0x00000200
#define LOAD_LIBRARY_SEARCH_SYSTEM32      0x00000800
#define LOAD_LIBRARY_SEARCH_DEFAULT_DIRS  0x00001000

/* Reasons of a DllMain. Nothing calls one here: use constructors and destructors of the library. */
#define DLL_PROCESS_DETACH 0
#define DLL_PROCESS_ATTACH 1
#define DLL_THREAD_ATTACH  2
#define DLL_THREAD_DETACH  3

NDW_API(HMODULE, LoadLibraryA, (LPCSTR name));
NDW_API(HMODULE, LoadLibraryW, (LPCWSTR name));
NDW_API(HMODULE, LoadLibraryExA, (LPCSTR name, HANDLE file, DWORD flags));
NDW_API(HMODULE, LoadLibraryExW, (LPCWSTR name, HANDLE file, DWORD flags));
NDW_API(FARPROC, GetProcAddress, (HMODULE module, LPCSTR name));
NDW_API(BOOL, FreeLibrary, (HMODULE module));
/* Libraries are never told of threads here, so there is nothing to turn off. */
NDW_INLINE BOOL DisableThreadLibraryCalls(HMODULE module) { return module != NULL; }
NDW_API(HMODULE, GetModuleHandleA, (LPCSTR name));
NDW_API(HMODULE, GetModuleHandleW, (LPCWSTR name));
#define GET_MODULE_HANDLE_EX_FLAG_PIN                0x00000001
#define GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT 0x00000002
#define GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS       0x00000004
NDW_API(BOOL, GetModuleHandleExA, (DWORD flags, LPCSTR name, HMODULE *module));
NDW_API(BOOL, GetModuleHandleExW, (DWORD flags, LPCWSTR name, HMODULE *module));
NDW_API(DWORD, GetModuleFileNameA, (HMODULE module, LPSTR buffer, DWORD size));
NDW_API(DWORD, GetModuleFileNameW, (HMODULE module, LPWSTR buffer, DWORD size));
NDW_API(BOOL, IsDebuggerPresent, (void));
#define DebugBreak() __debugbreak()
NDW_API(void, OutputDebugStringA, (LPCSTR text));
NDW_API(void, OutputDebugStringW, (LPCWSTR text));

#define CP_ACP  0
#define CP_UTF8 65001
#define CP_OEMCP 1
#define CP_THREAD_ACP 3
#define MB_PRECOMPOSED       0x1
#define MB_COMPOSITE         0x2
#define MB_USEGLYPHCHARS     0x4
#define MB_ERR_INVALID_CHARS 0x8
#define WC_ERR_INVALID_CHARS 0x80
#define WC_COMPOSITECHECK    0x200
#define WC_DISCARDNS         0x10
#define WC_SEPCHARS          0x20
#define WC_DEFAULTCHAR       0x40
#define WC_NO_BEST_FIT_CHARS 0x400
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
#define GetModuleHandleEx        GetModuleHandleExW
#define GetModuleFileName        GetModuleFileNameW
#define OutputDebugString        OutputDebugStringW
#define FormatMessage            FormatMessageW
#else
#define LoadLibrary              LoadLibraryA
#define LoadLibraryEx            LoadLibraryExA
#define GetModuleHandle          GetModuleHandleA
#define GetModuleHandleEx        GetModuleHandleExA
#define GetModuleFileName        GetModuleFileNameA
#define OutputDebugString        OutputDebugStringA
#define FormatMessage            FormatMessageA
#endif

#endif /* NDWIN_SYSTEM_H */
