/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <tchar.h>: the generic-text names, wide if _UNICODE is defined. */
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
#define _putts        _putws
#define _puttchar     putwchar
#define _puttc        putwc
#define _fputtc       fputwc
#define _gettchar     getwchar
#define _gettc        getwc
#define _fgettc       fgetwc
#define _fgetts       fgetws
#define _tgetenv      _wgetenv
#define _tsystem      _wsystem
#define _taccess      _waccess
#define _tremove      _wremove
#define _trename      _wrename
#define _tunlink      _wunlink
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
#define _tsplitpath   _wsplitpath
#define _tsplitpath_s _wsplitpath_s
#define _tmakepath    _wmakepath
#define _tmakepath_s  _wmakepath_s
#define _tfullpath    _wfullpath
#define _tcstol       wcstol
#define _tcstoul      wcstoul
#define _tcstod       wcstod
#define _tcstoi64     _wcstoi64
#define _tcstoui64    _wcstoui64
#define _ttoi         _wtoi
#define _ttol         _wtol
#define _tstol        _wtol
#define _tstoi        _wtoi
#define _stscanf_s    swscanf_s
#define _tscanf_s     wscanf_s
#define _ftscanf_s    fwscanf_s
#define _tdupenv_s    _wdupenv_s
#define _tgetenv_s    _wgetenv_s
#define _tputenv_s    _wputenv_s
#define _tputenv      _wputenv
#define _tstrdate     _wstrdate
#define _tstrtime     _wstrtime
#define _tfindfirst   _wfindfirst
#define _tfindnext    _wfindnext
#define _tfinddata_t  _wfinddata_t
#define _tstoi64      _wtoi64
#define _tstof(text)  wcstod((text), NULL)
#define _tcsupr       _wcsupr
#define _tcslwr       _wcslwr
#define _tcsupr_s     _wcsupr_s
#define _tcslwr_s     _wcslwr_s
#define _tcsnlen_s    wcsnlen_s
#define _tcsncat      wcsncat
#define _tcscspn      wcscspn
#define _tcsspn       wcsspn
#define _tcspbrk      wcspbrk
#define _sctprintf    _scwprintf
#define _vsctprintf   _vscwprintf
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
#define _putts        puts
#define _puttchar     putchar
#define _puttc        putc
#define _fputtc       fputc
#define _gettchar     getchar
#define _gettc        getc
#define _fgettc       fgetc
#define _fgetts       fgets
#define _tgetenv      getenv
#define _tsystem      system
#define _taccess      _access
#define _tremove      remove
#define _trename      rename
#define _tunlink      _unlink
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
#define _tsplitpath   _splitpath
#define _tsplitpath_s _splitpath_s
#define _tmakepath    _makepath
#define _tmakepath_s  _makepath_s
#define _tfullpath    _fullpath
#define _tcstol       strtol
#define _tcstoul      strtoul
#define _tcstod       strtod
#define _tcstoi64     _strtoi64
#define _tcstoui64    _strtoui64
#define _ttoi         atoi
#define _ttol         atol
#define _tstol        atol
#define _tstoi        atoi
#define _stscanf_s    sscanf_s
#define _tscanf_s     scanf_s
#define _ftscanf_s    fscanf_s
#define _tdupenv_s    _dupenv_s
#define _tgetenv_s    getenv_s
#define _tputenv_s    _putenv_s
#define _tputenv      _putenv
#define _tstrdate     _strdate
#define _tstrtime     _strtime
#define _tfindfirst   _findfirst
#define _tfindnext    _findnext
#define _tfinddata_t  _finddata_t
#define _tstoi64      _atoi64
#define _tstof        atof
#define _tcsupr       _strupr
#define _tcslwr       _strlwr
#define _tcsupr_s     _strupr_s
#define _tcslwr_s     _strlwr_s
#define _tcsnlen_s    strnlen_s
#define _tcsncat      strncat
#define _tcscspn      strcspn
#define _tcsspn       strspn
#define _tcspbrk      strpbrk
#define _sctprintf    _scprintf
#define _vsctprintf   _vscprintf
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
