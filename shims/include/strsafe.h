/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <strsafe.h>: string functions whose result always ends in a NUL. */
#ifndef NDWIN_STRSAFE_H
#define NDWIN_STRSAFE_H

#include <stdarg.h>
#include "ndwin/types.h"

typedef LPSTR STRSAFE_LPSTR;
typedef LPCSTR STRSAFE_LPCSTR;
typedef LPWSTR STRSAFE_LPWSTR;
typedef LPCWSTR STRSAFE_LPCWSTR;
typedef LPCUWSTR STRSAFE_LPCUWSTR;
typedef PCNZCH STRSAFE_PCNZCH;
typedef PCNZWCH STRSAFE_PCNZWCH;
typedef PCUNZWCH STRSAFE_PCUNZWCH;

#define STRSAFE_MAX_CCH    2147483647
#define STRSAFE_MAX_LENGTH (STRSAFE_MAX_CCH - 1)

#define STRSAFE_IGNORE_NULLS     0x00000100
#define STRSAFE_FILL_BEHIND_NULL 0x00000200
#define STRSAFE_FILL_ON_FAILURE  0x00000400
#define STRSAFE_NULL_ON_FAILURE  0x00000800
#define STRSAFE_NO_TRUNCATION    0x00001000
#define STRSAFE_VALID_FLAGS      0x00001FFF
#define STRSAFE_FILL_BYTE(byte)    ((DWORD)(((byte) & 0xFF) | STRSAFE_FILL_BEHIND_NULL))
#define STRSAFE_FAILURE_BYTE(byte) ((DWORD)(((byte) & 0xFF) | STRSAFE_FILL_ON_FAILURE))
#define STRSAFE_GET_FILL_PATTERN(flags) ((int)((flags) & 0xFF))

#define STRSAFE_E_INSUFFICIENT_BUFFER ((HRESULT)0x8007007A)
#define STRSAFE_E_INVALID_PARAMETER   ((HRESULT)0x80070057)
#define STRSAFE_E_END_OF_FILE         ((HRESULT)0x80070026)

NDW_API(HRESULT, StringCchCopyA, (LPSTR target, size_t size, LPCSTR source));
NDW_API(HRESULT, StringCchCopyExA,
    (LPSTR target, size_t size, LPCSTR source, LPSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCchCopyNA, (LPSTR target, size_t size, LPCSTR source, size_t count));
NDW_API(HRESULT, StringCchCopyNExA,
    (LPSTR target, size_t size, LPCSTR source, size_t count, LPSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCchCatA, (LPSTR target, size_t size, LPCSTR source));
NDW_API(HRESULT, StringCchCatExA,
    (LPSTR target, size_t size, LPCSTR source, LPSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCchCatNA, (LPSTR target, size_t size, LPCSTR source, size_t count));
NDW_API(HRESULT, StringCchCatNExA,
    (LPSTR target, size_t size, LPCSTR source, size_t count, LPSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCchLengthA, (LPCSTR text, size_t size, size_t *length));
NDW_API(HRESULT, StringCchVPrintfA, (LPSTR target, size_t size, LPCSTR format, va_list arguments));
NDW_API(HRESULT, StringCchVPrintfExA,
    (LPSTR target, size_t size, LPSTR *end, size_t *remaining, DWORD flags, LPCSTR format, va_list arguments));
NDW_INLINE HRESULT StringCchPrintfA(LPSTR target, size_t size, LPCSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const HRESULT result = StringCchVPrintfA(target, size, format, arguments);
    va_end(arguments);
    return result;
}
NDW_INLINE HRESULT StringCchPrintfExA(
    LPSTR target, size_t size, LPSTR *end, size_t *remaining, DWORD flags, LPCSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const HRESULT result = StringCchVPrintfExA(target, size, end, remaining, flags, format, arguments);
    va_end(arguments);
    return result;
}

NDW_API(HRESULT, StringCbCopyA, (LPSTR target, size_t size, LPCSTR source));
NDW_API(HRESULT, StringCbCopyExA,
    (LPSTR target, size_t size, LPCSTR source, LPSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCbCopyNA, (LPSTR target, size_t size, LPCSTR source, size_t count));
NDW_API(HRESULT, StringCbCopyNExA,
    (LPSTR target, size_t size, LPCSTR source, size_t count, LPSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCbCatA, (LPSTR target, size_t size, LPCSTR source));
NDW_API(HRESULT, StringCbCatExA,
    (LPSTR target, size_t size, LPCSTR source, LPSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCbCatNA, (LPSTR target, size_t size, LPCSTR source, size_t count));
NDW_API(HRESULT, StringCbCatNExA,
    (LPSTR target, size_t size, LPCSTR source, size_t count, LPSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCbLengthA, (LPCSTR text, size_t size, size_t *length));
NDW_API(HRESULT, StringCbVPrintfA, (LPSTR target, size_t size, LPCSTR format, va_list arguments));
NDW_API(HRESULT, StringCbVPrintfExA,
    (LPSTR target, size_t size, LPSTR *end, size_t *remaining, DWORD flags, LPCSTR format, va_list arguments));
NDW_INLINE HRESULT StringCbPrintfA(LPSTR target, size_t size, LPCSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const HRESULT result = StringCbVPrintfA(target, size, format, arguments);
    va_end(arguments);
    return result;
}
NDW_INLINE HRESULT StringCbPrintfExA(
    LPSTR target, size_t size, LPSTR *end, size_t *remaining, DWORD flags, LPCSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const HRESULT result = StringCbVPrintfExA(target, size, end, remaining, flags, format, arguments);
    va_end(arguments);
    return result;
}

NDW_API(HRESULT, StringCchCopyW, (LPWSTR target, size_t size, LPCWSTR source));
NDW_API(HRESULT, StringCchCopyExW,
    (LPWSTR target, size_t size, LPCWSTR source, LPWSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCchCopyNW, (LPWSTR target, size_t size, LPCWSTR source, size_t count));
NDW_API(HRESULT, StringCchCopyNExW,
    (LPWSTR target, size_t size, LPCWSTR source, size_t count, LPWSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCchCatW, (LPWSTR target, size_t size, LPCWSTR source));
NDW_API(HRESULT, StringCchCatExW,
    (LPWSTR target, size_t size, LPCWSTR source, LPWSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCchCatNW, (LPWSTR target, size_t size, LPCWSTR source, size_t count));
NDW_API(HRESULT, StringCchCatNExW,
    (LPWSTR target, size_t size, LPCWSTR source, size_t count, LPWSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCchLengthW, (LPCWSTR text, size_t size, size_t *length));
NDW_API(HRESULT, StringCchVPrintfW, (LPWSTR target, size_t size, LPCWSTR format, va_list arguments));
NDW_API(HRESULT, StringCchVPrintfExW,
    (LPWSTR target, size_t size, LPWSTR *end, size_t *remaining, DWORD flags, LPCWSTR format, va_list arguments));
NDW_INLINE HRESULT StringCchPrintfW(LPWSTR target, size_t size, LPCWSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const HRESULT result = StringCchVPrintfW(target, size, format, arguments);
    va_end(arguments);
    return result;
}
NDW_INLINE HRESULT StringCchPrintfExW(
    LPWSTR target, size_t size, LPWSTR *end, size_t *remaining, DWORD flags, LPCWSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const HRESULT result = StringCchVPrintfExW(target, size, end, remaining, flags, format, arguments);
    va_end(arguments);
    return result;
}

NDW_API(HRESULT, StringCbCopyW, (LPWSTR target, size_t size, LPCWSTR source));
NDW_API(HRESULT, StringCbCopyExW,
    (LPWSTR target, size_t size, LPCWSTR source, LPWSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCbCopyNW, (LPWSTR target, size_t size, LPCWSTR source, size_t count));
NDW_API(HRESULT, StringCbCopyNExW,
    (LPWSTR target, size_t size, LPCWSTR source, size_t count, LPWSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCbCatW, (LPWSTR target, size_t size, LPCWSTR source));
NDW_API(HRESULT, StringCbCatExW,
    (LPWSTR target, size_t size, LPCWSTR source, LPWSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCbCatNW, (LPWSTR target, size_t size, LPCWSTR source, size_t count));
NDW_API(HRESULT, StringCbCatNExW,
    (LPWSTR target, size_t size, LPCWSTR source, size_t count, LPWSTR *end, size_t *remaining, DWORD flags));
NDW_API(HRESULT, StringCbLengthW, (LPCWSTR text, size_t size, size_t *length));
NDW_API(HRESULT, StringCbVPrintfW, (LPWSTR target, size_t size, LPCWSTR format, va_list arguments));
NDW_API(HRESULT, StringCbVPrintfExW,
    (LPWSTR target, size_t size, LPWSTR *end, size_t *remaining, DWORD flags, LPCWSTR format, va_list arguments));
NDW_INLINE HRESULT StringCbPrintfW(LPWSTR target, size_t size, LPCWSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const HRESULT result = StringCbVPrintfW(target, size, format, arguments);
    va_end(arguments);
    return result;
}
NDW_INLINE HRESULT StringCbPrintfExW(
    LPWSTR target, size_t size, LPWSTR *end, size_t *remaining, DWORD flags, LPCWSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const HRESULT result = StringCbVPrintfExW(target, size, end, remaining, flags, format, arguments);
    va_end(arguments);
    return result;
}

#ifdef UNICODE
#define StringCchCopy      StringCchCopyW
#define StringCchCopyEx    StringCchCopyExW
#define StringCchCopyN     StringCchCopyNW
#define StringCchCopyNEx   StringCchCopyNExW
#define StringCchCat       StringCchCatW
#define StringCchCatEx     StringCchCatExW
#define StringCchCatN      StringCchCatNW
#define StringCchCatNEx    StringCchCatNExW
#define StringCchLength    StringCchLengthW
#define StringCchVPrintf   StringCchVPrintfW
#define StringCchVPrintfEx StringCchVPrintfExW
#define StringCchPrintf    StringCchPrintfW
#define StringCchPrintfEx  StringCchPrintfExW
#define StringCbCopy       StringCbCopyW
#define StringCbCopyEx     StringCbCopyExW
#define StringCbCopyN      StringCbCopyNW
#define StringCbCopyNEx    StringCbCopyNExW
#define StringCbCat        StringCbCatW
#define StringCbCatEx      StringCbCatExW
#define StringCbCatN       StringCbCatNW
#define StringCbCatNEx     StringCbCatNExW
#define StringCbLength     StringCbLengthW
#define StringCbVPrintf    StringCbVPrintfW
#define StringCbVPrintfEx  StringCbVPrintfExW
#define StringCbPrintf     StringCbPrintfW
#define StringCbPrintfEx   StringCbPrintfExW
#else
#define StringCchCopy      StringCchCopyA
#define StringCchCopyEx    StringCchCopyExA
#define StringCchCopyN     StringCchCopyNA
#define StringCchCopyNEx   StringCchCopyNExA
#define StringCchCat       StringCchCatA
#define StringCchCatEx     StringCchCatExA
#define StringCchCatN      StringCchCatNA
#define StringCchCatNEx    StringCchCatNExA
#define StringCchLength    StringCchLengthA
#define StringCchVPrintf   StringCchVPrintfA
#define StringCchVPrintfEx StringCchVPrintfExA
#define StringCchPrintf    StringCchPrintfA
#define StringCchPrintfEx  StringCchPrintfExA
#define StringCbCopy       StringCbCopyA
#define StringCbCopyEx     StringCbCopyExA
#define StringCbCopyN      StringCbCopyNA
#define StringCbCopyNEx    StringCbCopyNExA
#define StringCbCat        StringCbCatA
#define StringCbCatEx      StringCbCatExA
#define StringCbCatN       StringCbCatNA
#define StringCbCatNEx     StringCbCatNExA
#define StringCbLength     StringCbLengthA
#define StringCbVPrintf    StringCbVPrintfA
#define StringCbVPrintfEx  StringCbVPrintfExA
#define StringCbPrintf     StringCbPrintfA
#define StringCbPrintfEx   StringCbPrintfExA
#endif

#endif /* NDWIN_STRSAFE_H */
