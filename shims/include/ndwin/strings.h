/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Strings: length, copies, comparison. */
#ifndef NDWIN_STRINGS_H
#define NDWIN_STRINGS_H

#include "types.h"

NDW_API(int, lstrlenA, (LPCSTR text));
NDW_API(int, lstrlenW, (LPCWSTR text));
NDW_API(int, lstrcmpA, (LPCSTR a, LPCSTR b));
NDW_API(int, lstrcmpW, (LPCWSTR a, LPCWSTR b));
NDW_API(int, lstrcmpiA, (LPCSTR a, LPCSTR b));
NDW_API(int, lstrcmpiW, (LPCWSTR a, LPCWSTR b));
NDW_API(LPSTR, lstrcpyA, (LPSTR target, LPCSTR source));
NDW_API(LPWSTR, lstrcpyW, (LPWSTR target, LPCWSTR source));
NDW_API(LPSTR, lstrcatA, (LPSTR target, LPCSTR source));
NDW_API(LPWSTR, lstrcatW, (LPWSTR target, LPCWSTR source));
NDW_API(LPSTR, lstrcpynA, (LPSTR target, LPCSTR source, int room));
NDW_API(LPWSTR, lstrcpynW, (LPWSTR target, LPCWSTR source, int room));

#define CSTR_LESS_THAN    1
#define CSTR_EQUAL        2
#define CSTR_GREATER_THAN 3

#define NORM_IGNORECASE            0x00000001
#define NORM_IGNORENONSPACE        0x00000002
#define NORM_IGNORESYMBOLS         0x00000004
#define SORT_DIGITSASNUMBERS       0x00000008
#define LINGUISTIC_IGNORECASE      0x00000010
#define LINGUISTIC_IGNOREDIACRITIC 0x00000020
#define SORT_STRINGSORT            0x00001000
#define NORM_IGNOREKANATYPE        0x00010000
#define NORM_IGNOREWIDTH           0x00020000
#define NORM_LINGUISTIC_CASING     0x08000000

#define LOCALE_INVARIANT           0x007F
#define LOCALE_USER_DEFAULT        0x0400
#define LOCALE_SYSTEM_DEFAULT      0x0800
#define LOCALE_NAME_USER_DEFAULT   NULL
#define LOCALE_NAME_INVARIANT      L""
#define LOCALE_NAME_SYSTEM_DEFAULT L"!x-sys-default-locale"

NDW_API(int, CompareStringA, (LCID locale, DWORD flags, LPCSTR a, int aLength, LPCSTR b, int bLength));
NDW_API(int, CompareStringW, (LCID locale, DWORD flags, LPCWSTR a, int aLength, LPCWSTR b, int bLength));
NDW_API(int, CompareStringEx,
    (LPCWSTR locale, DWORD flags, LPCWSTR a, int aLength, LPCWSTR b, int bLength, LPVOID version, LPVOID reserved,
     LPARAM parameter));
NDW_API(int, CompareStringOrdinal, (LPCWSTR a, int aLength, LPCWSTR b, int bLength, BOOL ignoreCase));

#ifdef UNICODE
#define lstrlen       lstrlenW
#define lstrcmp       lstrcmpW
#define lstrcmpi      lstrcmpiW
#define lstrcpy       lstrcpyW
#define lstrcat       lstrcatW
#define lstrcpyn      lstrcpynW
#define CompareString CompareStringW
#else
#define lstrlen       lstrlenA
#define lstrcmp       lstrcmpA
#define lstrcmpi      lstrcmpiA
#define lstrcpy       lstrcpyA
#define lstrcat       lstrcatA
#define lstrcpyn      lstrcpynA
#define CompareString CompareStringA
#endif

#endif /* NDWIN_STRINGS_H */
