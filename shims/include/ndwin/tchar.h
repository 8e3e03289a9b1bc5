/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <tchar.h>: the generic-text names, wide where _UNICODE is set. */
#ifndef NDWIN_TCHAR_H
#define NDWIN_TCHAR_H

#include <ctype.h>
#include <wctype.h>
#include "crt.h"

#ifdef _UNICODE
#define __T(text) L##text
#define _tmain        wmain
#define _tWinMain     wWinMain
#define _tprintf      wprintf
#define _ftprintf     fwprintf
#define _stprintf     swprintf
#define _sntprintf    _snwprintf
#define _vtprintf     vwprintf
#define _vftprintf    vfwprintf
#define _vsntprintf   _vsnwprintf
#define _stprintf_s   swprintf_s
#define _sntprintf_s  _snwprintf_s
#define _vstprintf_s  vswprintf_s
#define _vsntprintf_s _vsnwprintf_s
#define _tprintf_s    wprintf_s
#define _ftprintf_s   fwprintf_s
#define _fputts       fputws
#define _tfopen       _wfopen
#define _tfreopen     _wfreopen
#define _tfopen_s     _wfopen_s
#define _itot_s       _itow_s
#define _ltot_s       _ltow_s
#define _ultot_s      _ultow_s
#define _tcstok_s     wcstok_s
#define _tcslen       wcslen
#define _tcsnlen      wcsnlen
#define _tcscpy       wcscpy
#define _tcsncpy      wcsncpy
#define _tcscat       wcscat
#define _tcscpy_s     wcscpy_s
#define _tcsncpy_s    wcsncpy_s
#define _tcscat_s     wcscat_s
#define _tcsncat_s    wcsncat_s
#define _tcscmp       wcscmp
#define _tcsncmp      wcsncmp
#define _tcsicmp      _wcsicmp
#define _tcsnicmp     _wcsnicmp
#define _tcschr       wcschr
#define _tcsrchr      wcsrchr
#define _tcsstr       wcsstr
#define _tcsdup       _wcsdup
#define _tcstol       wcstol
#define _tcstoul      wcstoul
#define _tcstod       wcstod
#define _tcstoi64     _wcstoi64
#define _tcstoui64    _wcstoui64
#define _ttoi         _wtoi
#define _ttol         _wtol
#define _ttoi64       _wtoi64
#define _totlower     towlower
#define _totupper     towupper
#define _istdigit     iswdigit
#define _istspace     iswspace
#define _istalpha     iswalpha
#else
#define __T(text) text
#define _tmain        main
#define _tWinMain     WinMain
#define _tprintf      printf
#define _ftprintf     fprintf
#define _stprintf     sprintf
#define _sntprintf    _snprintf
#define _vtprintf     vprintf
#define _vftprintf    vfprintf
#define _vsntprintf   _vsnprintf
#define _stprintf_s   sprintf_s
#define _sntprintf_s  _snprintf_s
#define _vstprintf_s  vsprintf_s
#define _vsntprintf_s _vsnprintf_s
#define _tprintf_s    printf_s
#define _ftprintf_s   fprintf_s
#define _fputts       fputs
#define _tfopen       fopen
#define _tfreopen     freopen
#define _tfopen_s     fopen_s
#define _itot_s       _itoa_s
#define _ltot_s       _ltoa_s
#define _ultot_s      _ultoa_s
#define _tcstok_s     strtok_s
#define _tcslen       strlen
#define _tcsnlen      strnlen
#define _tcscpy       strcpy
#define _tcsncpy      strncpy
#define _tcscat       strcat
#define _tcscpy_s     strcpy_s
#define _tcsncpy_s    strncpy_s
#define _tcscat_s     strcat_s
#define _tcsncat_s    strncat_s
#define _tcscmp       strcmp
#define _tcsncmp      strncmp
#define _tcsicmp      _stricmp
#define _tcsnicmp     _strnicmp
#define _tcschr       strchr
#define _tcsrchr      strrchr
#define _tcsstr       strstr
#define _tcsdup       _strdup
#define _tcstol       strtol
#define _tcstoul      strtoul
#define _tcstod       strtod
#define _tcstoi64     _strtoi64
#define _tcstoui64    _strtoui64
#define _ttoi         atoi
#define _ttol         atol
#define _ttoi64       _atoi64
#define _totlower     tolower
#define _totupper     toupper
#define _istdigit     isdigit
#define _istspace     isspace
#define _istalpha     isalpha
#endif
#define _T(text)    __T(text)
#define _TEXT(text) __T(text)

#ifndef _TCHAR_DEFINED
#define _TCHAR_DEFINED
#ifdef _UNICODE
typedef wchar_t _TCHAR, _TSCHAR, _TUCHAR, _TXCHAR;
typedef wint_t _TINT;
#else
typedef char _TCHAR;
typedef signed char _TSCHAR;
typedef unsigned char _TUCHAR, _TXCHAR;
typedef int _TINT;
#endif
#endif

#endif /* NDWIN_TCHAR_H */
