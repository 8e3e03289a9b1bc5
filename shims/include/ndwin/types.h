/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The types of the Windows SDK with their Windows sizes: LONG, DWORD, BOOL and HRESULT are 32 bits wide although
 * `long` is 64 here. WCHAR is the native 32-bit wchar_t, so that L"..." works.
 *
 * `long` and `long long` have the same size here. SIZE_T, UINT64 and similar names are the ones that match size_t and the
 * uintN_t types, which ported code mixes with them.
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
#include "crt/base.h"
#include "sal.h"
#include "../winapifamily.h"

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
typedef long long LONGLONG, *PLONGLONG;
typedef unsigned long long ULONGLONG, *PULONGLONG, DWORDLONG, *PDWORDLONG;
typedef int64_t INT64, *PINT64, LONG64, *PLONG64;
typedef uint64_t UINT64, *PUINT64, DWORD64, *PDWORD64, ULONG64, *PULONG64, QWORD;
typedef float FLOAT, *PFLOAT;
typedef double DOUBLE;

typedef intptr_t INT_PTR, *PINT_PTR, LONG_PTR, *PLONG_PTR;
typedef uintptr_t UINT_PTR, *PUINT_PTR, ULONG_PTR, *PULONG_PTR, DWORD_PTR, *PDWORD_PTR;
typedef size_t SIZE_T, *PSIZE_T, *LPSIZE_T;
typedef ptrdiff_t SSIZE_T, *PSSIZE_T;
typedef ULONG_PTR KAFFINITY, *PKAFFINITY;
typedef int HALF_PTR, *PHALF_PTR, HFILE;
typedef unsigned int UHALF_PTR, *PUHALF_PTR;
typedef LONG_PTR SHANDLE_PTR;
typedef ULONG_PTR HANDLE_PTR;
typedef LONGLONG USN;
typedef BYTE FCHAR;
typedef WORD FSHORT;
typedef DWORD FLONG;
typedef UINT_PTR WPARAM;
typedef LONG_PTR LPARAM, LRESULT;

typedef void *PVOID, *LPVOID, *PVOID64;
typedef const void *LPCVOID, *PCVOID;
typedef char *LPSTR, *PSTR, *NPSTR, *PSZ;
typedef const char *LPCSTR, *PCSTR;
typedef wchar_t *LPWSTR, *PWSTR, *NWPSTR;
typedef const wchar_t *LPCWSTR, *PCWSTR;

/* As annotated declarations write them: lists of texts (PZP), texts behind one another (ZZ), characters without an end (NZ). */
typedef const char *LPCCH, *PCCH, *PCNZCH, *PCZZSTR;
typedef char *PNZCH, *PZZSTR;
typedef PSTR *PZPSTR;
typedef PCSTR *PZPCSTR;
typedef const PSTR *PCZPSTR;
typedef const wchar_t *LPCWCHAR, *PCWCHAR, *LPCUWCHAR, *PCUWCHAR, *PCNZWCH, *PCUNZWCH, *PCZZWSTR, *PCUZZWSTR;
typedef wchar_t *PNZWCH, *PUNZWCH, *PZZWSTR, *PUZZWSTR;
typedef WCHAR UNALIGNED *LPUWSTR, *PUWSTR;
typedef const WCHAR UNALIGNED *LPCUWSTR, *PCUWSTR;
typedef PWSTR *PZPWSTR;
typedef PCWSTR *PZPCWSTR;
typedef const PWSTR *PCZPWSTR;

#ifdef UNICODE
typedef WCHAR TCHAR, *PTCHAR, TBYTE, *PTBYTE;
typedef LPWSTR LPTSTR, PTSTR, LPTCH, PTCH;
typedef LPCWSTR LPCTSTR, PCTSTR;
typedef LPUWSTR LPUTSTR, PUTSTR;
typedef LPCUWSTR LPCUTSTR, PCUTSTR;
typedef LPCWCH LPCTCH, PCTCH;
typedef PZZWSTR PZZTSTR, PUZZTSTR;
typedef PCZZWSTR PCZZTSTR, PCUZZTSTR;
typedef PZPWSTR PZPTSTR;
typedef PNZWCH PNZTCH, PUNZTCH;
typedef PCNZWCH PCNZTCH, PCUNZTCH;
#define __TEXT(quote) L##quote
#else
typedef char TCHAR, *PTCHAR;
typedef unsigned char TBYTE, *PTBYTE;
typedef LPSTR LPTSTR, PTSTR, LPTCH, PTCH, LPUTSTR, PUTSTR;
typedef LPCSTR LPCTSTR, PCTSTR, LPCUTSTR, PCUTSTR;
typedef LPCCH LPCTCH, PCTCH;
typedef PZZSTR PZZTSTR, PUZZTSTR;
typedef PCZZSTR PCZZTSTR, PCUZZTSTR;
typedef PZPSTR PZPTSTR;
typedef PNZCH PNZTCH, PUNZTCH;
typedef PCNZCH PCNZTCH, PCUNZTCH;
#define __TEXT(quote) quote
#endif
#define TEXT(quote) __TEXT(quote)

typedef int HRESULT;
typedef int SCODE;
typedef int NTSTATUS, *PNTSTATUS;
#ifndef NT_SUCCESS
#define NT_SUCCESS(Status) (((NTSTATUS)(Status)) >= 0)
#endif
#ifndef NT_INFORMATION
#define NT_INFORMATION(Status) ((((ULONG)(Status)) >> 30) == 1)
#endif
#ifndef NT_WARNING
#define NT_WARNING(Status) ((((ULONG)(Status)) >> 30) == 2)
#endif
#ifndef NT_ERROR
#define NT_ERROR(Status) ((((ULONG)(Status)) >> 30) == 3)
#endif
#ifndef GENERIC_READ
#define GENERIC_READ    0x80000000
#define GENERIC_WRITE   0x40000000
#define GENERIC_EXECUTE 0x20000000
#define GENERIC_ALL     0x10000000
#endif
typedef DWORD LCID, *PLCID, ACCESS_MASK, *PACCESS_MASK;
typedef WORD LANGID;

typedef void *HANDLE, **PHANDLE, **LPHANDLE;
typedef HANDLE *SPHANDLE, HGLOBAL, HLOCAL, GLOBALHANDLE, LOCALHANDLE;
#define DECLARE_HANDLE(name) \
    struct name##__ {        \
        int unused;          \
    };                       \
    typedef struct name##__ *name
DECLARE_HANDLE(HINSTANCE);
DECLARE_HANDLE(HWND);
DECLARE_HANDLE(HKEY);
typedef HKEY *PHKEY;
typedef HINSTANCE HMODULE;
typedef INT_PTR (WINAPI *FARPROC)(void);
typedef INT_PTR (WINAPI *PROC)(void);
#define INVALID_HANDLE_VALUE ((HANDLE)(LONG_PTR)-1)

/* Other libraries define these as well, in other ways: as `(!FALSE)`, for example. */
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
#define DWORD_MAX MAXDWORD
#ifndef MAXLONG /* <values.h> */
#define MAXLONG 0x7FFFFFFF
#endif
#define MAXULONG 0xFFFFFFFF
#define MAXUINT  0xFFFFFFFF
#define MAXUSHORT 0xFFFF
#define MINCHAR  0x80
#define MAXCHAR  0x7F
#ifndef MAXSHORT /* <values.h> */
#define MINSHORT 0x8000
#define MAXSHORT 0x7FFF
#endif
#ifndef MINLONG
#define MINLONG  0x80000000
#endif
#define MAXBYTE  0xFF
#define MAXWORD  0xFFFF
#define MAXUINT8  ((UINT8)~((UINT8)0))
#define MAXINT8   ((INT8)(MAXUINT8 >> 1))
#define MININT8   ((INT8)~MAXINT8)
#define MAXUINT16 ((UINT16)~((UINT16)0))
#define MAXINT16  ((INT16)(MAXUINT16 >> 1))
#define MININT16  ((INT16)~MAXINT16)
#define MAXUINT32 ((UINT32)~((UINT32)0))
#define MAXINT32  ((INT32)(MAXUINT32 >> 1))
#define MININT32  ((INT32)~MAXINT32)
#define MAXULONG32 ((ULONG32)~((ULONG32)0))
#define MAXUINT64 ((UINT64)~((UINT64)0))
#define MAXINT64  ((INT64)(MAXUINT64 >> 1))
#define MININT64  ((INT64)~MAXINT64)
#define MAXLONG64  ((LONG64)(MAXULONG64 >> 1))
#define MAXDWORD64 ((DWORD64)~((DWORD64)0))
#define MAXULONG64 ((ULONG64)~((ULONG64)0))
#define MAXULONGLONG ((ULONGLONG)~((ULONGLONG)0))
#define MAXLONGLONG  ((LONGLONG)(MAXULONGLONG >> 1))
#ifndef MAXINT
#define MAXINT    ((INT)(MAXUINT >> 1))
#endif
#define MAXUINT_PTR UINTPTR_MAX
#define MAXINT_PTR  INTPTR_MAX
#define MAXLONG_PTR INTPTR_MAX
#define MAXDWORD_PTR UINTPTR_MAX
#define MAXSSIZE_T  PTRDIFF_MAX
#define ANYSIZE_ARRAY 1
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

typedef struct _SINGLE_LIST_ENTRY {
    struct _SINGLE_LIST_ENTRY *Next;
} SINGLE_LIST_ENTRY, *PSINGLE_LIST_ENTRY;

/* For ReadFileScatter and WriteFileGather, which are not there. */
typedef void *PVOID64;
typedef union _FILE_SEGMENT_ELEMENT {
    PVOID64 Buffer;
    ULONGLONG Alignment;
} FILE_SEGMENT_ELEMENT, *PFILE_SEGMENT_ELEMENT;

/* Of windows and drawing, which are not there. */
typedef DWORD COLORREF, *LPCOLORREF;
typedef struct tagPOINT {
    LONG x;
    LONG y;
} POINT, *PPOINT, *LPPOINT;
typedef struct tagSIZE {
    LONG cx;
    LONG cy;
} SIZE, *PSIZE, *LPSIZE;
typedef struct tagRECT {
    LONG left;
    LONG top;
    LONG right;
    LONG bottom;
} RECT, *PRECT, *LPRECT;
typedef const RECT *LPCRECT;

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
