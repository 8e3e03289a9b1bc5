/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The types of the Windows SDK with their Windows sizes: LONG, DWORD, BOOL and HRESULT are 32 bits wide although
 * `long` is 64 here. WCHAR is the native 32-bit wchar_t, so that L"..." works.
 *
 * Where Windows has one underlying type and Linux two of the same size (`long` and `long long`), the names that ported
 * code mixes with size_t and the uintN_t types are the ones that match those.
 */
#ifndef NDWIN_TYPES_H
#define NDWIN_TYPES_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "config.h"
#include "sal.h"

#ifndef VOID
#define VOID void
#endif

typedef char CHAR, CCHAR, *PCHAR, *LPCH, *PCH;
typedef signed char INT8, *PINT8;
typedef unsigned char UCHAR, *PUCHAR, BYTE, *PBYTE, *LPBYTE, UINT8, *PUINT8, BOOLEAN, *PBOOLEAN;
typedef wchar_t WCHAR, *PWCHAR, *LPWCH, *PWCH;
typedef const wchar_t *LPCWCH, *PCWCH;
typedef short SHORT, *PSHORT, INT16, *PINT16;
typedef unsigned short USHORT, *PUSHORT, WORD, *PWORD, *LPWORD, UINT16, *PUINT16, ATOM;
typedef int INT, *PINT, *LPINT, LONG, *PLONG, *LPLONG, INT32, *PINT32, LONG32, *PLONG32, BOOL, *PBOOL, *LPBOOL;
typedef unsigned int UINT, *PUINT, *LPUINT, ULONG, *PULONG, DWORD, *PDWORD, *LPDWORD, UINT32, *PUINT32, ULONG32,
    *PULONG32, DWORD32, *PDWORD32;
typedef long long LONGLONG, *PLONGLONG, LONG64, *PLONG64;
typedef unsigned long long ULONGLONG, *PULONGLONG, DWORDLONG, *PDWORDLONG, ULONG64, *PULONG64;
typedef int64_t INT64, *PINT64;
typedef uint64_t UINT64, *PUINT64, DWORD64, *PDWORD64, QWORD;
typedef float FLOAT, *PFLOAT;
typedef double DOUBLE;

typedef intptr_t INT_PTR, *PINT_PTR, LONG_PTR, *PLONG_PTR;
typedef uintptr_t UINT_PTR, *PUINT_PTR, ULONG_PTR, *PULONG_PTR, DWORD_PTR, *PDWORD_PTR;
typedef size_t SIZE_T, *PSIZE_T, *LPSIZE_T, rsize_t;
typedef ptrdiff_t SSIZE_T, *PSSIZE_T;
typedef ULONG_PTR KAFFINITY, *PKAFFINITY;
typedef UINT_PTR WPARAM;
typedef LONG_PTR LPARAM, LRESULT;

typedef void *PVOID, *LPVOID, *PVOID64;
typedef const void *LPCVOID, *PCVOID;
typedef char *LPSTR, *PSTR, *NPSTR, *PZPSTR;
typedef const char *LPCSTR, *PCSTR;
typedef wchar_t *LPWSTR, *PWSTR, *NWPSTR;
typedef const wchar_t *LPCWSTR, *PCWSTR;
typedef int errno_t;

#ifdef UNICODE
typedef WCHAR TCHAR, *PTCHAR, TBYTE, *PTBYTE;
typedef LPWSTR LPTSTR, PTSTR, LPTCH, PTCH;
typedef LPCWSTR LPCTSTR, PCTSTR;
#define __TEXT(quote) L##quote
#else
typedef char TCHAR, *PTCHAR;
typedef unsigned char TBYTE, *PTBYTE;
typedef LPSTR LPTSTR, PTSTR, LPTCH, PTCH;
typedef LPCSTR LPCTSTR, PCTSTR;
#define __TEXT(quote) quote
#endif
#define TEXT(quote) __TEXT(quote)

typedef int HRESULT;
typedef int SCODE;
typedef int NTSTATUS, *PNTSTATUS;
typedef DWORD LCID, ACCESS_MASK, *PACCESS_MASK;
typedef WORD LANGID;

typedef void *HANDLE, **PHANDLE, **LPHANDLE;
typedef HANDLE HGLOBAL, HLOCAL;
#define DECLARE_HANDLE(name) \
    struct name##__ {        \
        int unused;          \
    };                       \
    typedef struct name##__ *name
DECLARE_HANDLE(HINSTANCE);
DECLARE_HANDLE(HWND);
DECLARE_HANDLE(HKEY);
typedef HINSTANCE HMODULE;
typedef INT_PTR (WINAPI *FARPROC)(void);
typedef INT_PTR (WINAPI *PROC)(void);
#define INVALID_HANDLE_VALUE ((HANDLE)(LONG_PTR)-1)

/* Other libraries have these, too, in other words. */
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif
#ifndef NULL
#define NULL 0
#endif
#define MAX_PATH 260
#define INFINITE 0xFFFFFFFF
#define MAXDWORD 0xFFFFFFFF
#ifndef MAXLONG /* <values.h> */
#define MAXLONG 0x7FFFFFFF
#endif
#define MAXULONG 0xFFFFFFFF
#define MAXUINT  0xFFFFFFFF
#define MAXUSHORT 0xFFFF
#define MAXULONG_PTR UINTPTR_MAX
#define MAXSIZE_T SIZE_MAX

typedef union _LARGE_INTEGER {
    __extension__ struct {
        DWORD LowPart;
        LONG HighPart;
    };
    struct {
        DWORD LowPart;
        LONG HighPart;
    } u;
    LONGLONG QuadPart;
} LARGE_INTEGER, *PLARGE_INTEGER;

typedef union _ULARGE_INTEGER {
    __extension__ struct {
        DWORD LowPart;
        DWORD HighPart;
    };
    struct {
        DWORD LowPart;
        DWORD HighPart;
    } u;
    ULONGLONG QuadPart;
} ULARGE_INTEGER, *PULARGE_INTEGER;

typedef struct _LUID {
    DWORD LowPart;
    LONG HighPart;
} LUID, *PLUID;

typedef struct _FILETIME {
    DWORD dwLowDateTime;
    DWORD dwHighDateTime;
} FILETIME, *PFILETIME, *LPFILETIME;

typedef struct _LIST_ENTRY {
    struct _LIST_ENTRY *Flink;
    struct _LIST_ENTRY *Blink;
} LIST_ENTRY, *PLIST_ENTRY;

typedef struct _GROUP_AFFINITY {
    KAFFINITY Mask;
    WORD Group;
    WORD Reserved[3];
} GROUP_AFFINITY, *PGROUP_AFFINITY;

typedef struct _PROCESSOR_NUMBER {
    WORD Group;
    BYTE Number;
    BYTE Reserved;
} PROCESSOR_NUMBER, *PPROCESSOR_NUMBER;

typedef struct _SECURITY_ATTRIBUTES {
    DWORD nLength;
    LPVOID lpSecurityDescriptor;
    BOOL bInheritHandle;
} SECURITY_ATTRIBUTES, *PSECURITY_ATTRIBUTES, *LPSECURITY_ATTRIBUTES;

#endif /* NDWIN_TYPES_H */
