/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <tchar.h> and what stands behind it in C. Compiling is the test. Linux only. */
#include <conio.h>
#include <direct.h>
#include <io.h>
#include <locale.h>
#include <process.h>
#include <search.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/utime.h>
#include <tchar.h>
#include <time.h>

int with_list(TCHAR *buffer, const TCHAR *format, ...);
int names_of_text(TCHAR *text, const TCHAR *other, int number);
int names_of_files(TCHAR *path, const TCHAR *mode, const time_t *day, struct tm *split);
int names_of_the_c_library(int *numbers, unsigned count, int (*compare)(const void *, const void *), int (*compareBy)(void *, const void *, const void *));

int with_list(TCHAR *buffer, const TCHAR *format, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = _vstprintf(buffer, format, arguments);
    va_end(arguments);
    return length + _stprintf(buffer, _T("%d"), length);
}

int names_of_text(TCHAR *text, const TCHAR *other, int number)
{
    TCHAR *const word = _tcstok(text, _T(","));
    if (_tcslwr_s(text, 8) || _tcsupr_s(text, 8) || _tcsset_s(text, 8, _T('x')) || _tcsnset_s(text, 8, _T('x'), 2) || _tcserror_s(text, 8, number))
        return 1;
    if (_tcsinc(other) == _tcsdec(other, other + 1) || _tcscoll(text, other) || _tcsnccmp(text, other, 1) || _tcsncicmp(text, other, 1) || _tcsnccpy_s(text, 8, other, 2))
        return 2;
    if (_i64tot_s(number, text, 8, 10) || _itot(number, text, 10) != text || _ttof(text) > 1 || _tcstof(text, 0) > 1 || _TEOF == (_TINT)number)
        return 3;
    return _istupper(*text) && _istalnum(*text) && _istxdigit(*text) && _istpunct(*text) && _istprint(*text) && word != _tcsrev(text) && _tcsclen(text) > 1;
}

int names_of_files(TCHAR *path, const TCHAR *mode, const time_t *day, struct tm *split)
{
    struct _stat found;
    struct _stat64 found64;
    struct _utimbuf stamps = {0, 0};
    FILE *stream = _tfsopen(path, mode, 0x40);
    int file = _topen(path, 0);
    _tperror(_T("told"));
    if (_tsopen_s(&file, path, 0, 0, 0) || _tstat(path, &found) || _tstat64(path, &found64) || _tfreopen_s(&stream, path, mode, stream) || _tfdopen(file, mode) == NULL)
        return 1;
    if (_tchdir(path) || _tmkdir(path) || _trmdir(path) || _tgetcwd(path, 8) == NULL || _ungettc(_T('x'), stream) == _TEOF || _futime(file, &stamps) || _locking(file, 2, 1L))
        return 2;
    return _tasctime(split) == _tctime(day) || _tctime_s(path, 8, day) || _tstrdate_s(path, 8) || _tstrtime_s(path, 8) || _tcsftime(path, 8, _T("%d"), split) == 0;
}

int names_of_the_c_library(int *numbers, unsigned count, int (*compare)(const void *, const void *), int (*compareBy)(void *, const void *, const void *))
{
    const _locale_t c = _create_locale(LC_ALL, "C");
    const char *const arguments[] = {"program", NULL};
    const __time32_t now = _time32(NULL);
    char text[20];
    if (_lfind(numbers, numbers, &count, 4, compare) == NULL || bsearch_s(numbers, numbers, count, 4, compareBy, NULL) == NULL || _lsearch(numbers, numbers, &count, 4, compare) == NULL)
        return __argc;
    if (_strtod_l("1", NULL, c) > 1 || _snprintf_l(text, sizeof text, "%d", c, 1) != 1 || _isalpha_l('a', c) || _cputws(L"x") || _localtime32(&now) == NULL)
        return (int)_lrotl(1, 1);
    return (int)_execv(_pgmptr, arguments) + (__argv[0] == arguments[0]);
}
