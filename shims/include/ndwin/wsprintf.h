/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* wsprintf of <winuser.h>: at most 1024 characters with the NUL, no floating-point numbers. */
#ifndef NDWIN_WSPRINTF_H
#define NDWIN_WSPRINTF_H

#include <stdarg.h>
#include "types.h"

NDW_API(int, wvsprintfA, (LPSTR buffer, LPCSTR format, va_list arguments));
NDW_API(int, wvsprintfW, (LPWSTR buffer, LPCWSTR format, va_list arguments));
NDW_INLINE int wsprintfA(LPSTR buffer, LPCSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = wvsprintfA(buffer, format, arguments);
    va_end(arguments);
    return length;
}
NDW_INLINE int wsprintfW(LPWSTR buffer, LPCWSTR format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = wvsprintfW(buffer, format, arguments);
    va_end(arguments);
    return length;
}
#ifdef UNICODE
#define wsprintf  wsprintfW
#define wvsprintf wvsprintfW
#else
#define wsprintf  wsprintfA
#define wvsprintf wvsprintfA
#endif

#endif /* NDWIN_WSPRINTF_H */
