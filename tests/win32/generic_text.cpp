// SPDX-License-Identifier: MIT OR Apache-2.0
// <tchar.h>, with _UNICODE and without; what takes the size of its buffer from an array.
#include <windows.h>
#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <share.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tchar.h>
#include <time.h>

#define LAST_ERROR errno
#include "../check.h"

static bool is(const TCHAR* text, const TCHAR* expected)
{
    return text && _tcscmp(text, expected) == 0;
}

static int print(TCHAR* buffer, const TCHAR* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = _vstprintf(buffer, format, arguments);
    va_end(arguments);
    return length;
}

static int print_wide(wchar_t* buffer, const wchar_t* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vswprintf(buffer, format, arguments);
    va_end(arguments);
    return length;
}

static void printing_without_a_size()
{
    TCHAR text[32];
    CHECK(_stprintf(text, _T("%d %s"), 5, _T("x")) == 3 && is(text, _T("5 x")));
    CHECK(print(text, _T("%I64d"), 1ll << 40) == 13 && is(text, _T("1099511627776")));
    wchar_t wide[32];
    CHECK(swprintf(wide, L"%d%s", 7, L"y") == 2 && !wcscmp(wide, L"7y") && swprintf(wide, 32, L"%d", 8) == 1 && !wcscmp(wide, L"8"));
    CHECK(_swprintf(wide, L"%hs", "narrow") == 6 && !wcscmp(wide, L"narrow") && print_wide(wide, L"%d", 9) == 1 && !wcscmp(wide, L"9"));
    CHECK(std::swprintf(wide, L"%d", 6) == 1 && !wcscmp(wide, L"6"));
}

static void text_in_place()
{
    TCHAR text[8] = _T("AbC");
    CHECK(_tcslwr_s(text) == 0 && is(text, _T("abc")) && _tcsupr_s(text) == 0 && is(text, _T("ABC")));
    CHECK(is(_tcsrev(text), _T("CBA")) && _tcsnset_s(text, _T('x'), 2) == 0 && is(text, _T("xxA")) && _tcsset_s(text, _T('y')) == 0 && is(text, _T("yyy")));
    char narrow[4] = "Mix";
    wchar_t wide[4] = L"Mix";
    CHECK(_strlwr_s(narrow) == 0 && !strcmp(narrow, "mix") && _strupr_s(narrow) == 0 && !strcmp(narrow, "MIX") && _strset_s(narrow, 'z') == 0 && !strcmp(narrow, "zzz"));
    CHECK(_wcslwr_s(wide) == 0 && !wcscmp(wide, L"mix") && _wcsupr_s(wide) == 0 && !wcscmp(wide, L"MIX") && _wcsset_s(wide, L'z') == 0 && !wcscmp(wide, L"zzz"));
    CHECK(_strnset_s(narrow, 'q', 1) == 0 && !strcmp(narrow, "qzz") && _strnset_s(nullptr, 0, 'q', 0) == 0 && _strnset_s(nullptr, 4, 'q', 1) == EINVAL);
    memset(narrow, 'n', sizeof narrow);
    CHECK(_strset_s(narrow, 'z') == EINVAL && narrow[0] == 0 && _wcsnset_s(wide, 3, L'q', 1) == EINVAL && wide[0] == 0);

    TCHAR words[] = _T("a,b;c");
    CHECK(is(_tcstok(words, _T(",;")), _T("a")) && is(_tcstok(nullptr, _T(",;")), _T("b")) && is(_tcstok(nullptr, _T(",;")), _T("c")) && !_tcstok(nullptr, _T(",;")));
    wchar_t wide_words[] = L"x y";
    CHECK(!wcscmp(wcstok(wide_words, L" "), L"x") && !wcscmp(wcstok(nullptr, L" "), L"y"));
    CHECK(_tcsinc(words) == words + 1 && _tcsdec(words, words + 2) == words + 1 && _tcsdec(words, words) == nullptr && _tcsclen(_T("abc")) == 3);
    CHECK(_tcsnccmp(_T("ab"), _T("ac"), 1) == 0 && _tcsncicmp(_T("aB"), _T("Ab"), 2) == 0 && _tcscoll(_T("a"), _T("a")) == 0);
    CHECK(_tcsnccpy_s(text, _T("abcdef"), 3) == 0 && is(text, _T("abc")) && _tcsnccat_s(text, _T("xyz"), 1) == 0 && is(text, _T("abcx")));
    CHECK(_istupper(_T('A')) && !_istupper(_T('a')) && _istlower(_T('a')) && _istalnum(_T('5')) && _istxdigit(_T('f')) && !_istxdigit(_T('g')) && _istpunct(_T('.')) && _istprint(_T('x')) && _istcntrl(_T('\n')) && _istgraph(_T('x')));
}

static void numbers()
{
    TCHAR text[80];
    CHECK(is(_itot(-5, text, 10), _T("-5")) && is(_ltot(-1, text, 16), _T("ffffffff")) && is(_ultot(255, text, 2), _T("11111111")));
    CHECK(is(_i64tot(-(1ll << 40), text, 10), _T("-1099511627776")) && _i64tot_s(7, text, 80, 10) == 0 && is(text, _T("7")) && _ui64tot_s(~0ull, text, 80, 16) == 0 && is(text, _T("ffffffffffffffff")));
    CHECK(_ttof(_T("2.5")) == 2.5 && _tcstof(_T("2.5"), nullptr) == 2.5f && _tcstoll(_T("-8"), nullptr, 10) == -8 && _tcstoull(_T("8"), nullptr, 10) == 8);
}

static void dates()
{
    TCHAR text[80], eight[9];
    const time_t day = 86400;
    const __time64_t wide_day = day;
    tm split;
    CHECK(gmtime_s(&split, &day) == 0 && is(_tasctime(&split), _T("Fri Jan  2 00:00:00 1970\n")) && _tcslen(_tctime(&day)) == 25 && _tcslen(_tctime64(&wide_day)) == 25);
    CHECK(_tasctime_s(text, &split) == 0 && is(text, _T("Fri Jan  2 00:00:00 1970\n")) && _tctime_s(text, &day) == 0 && _tcslen(text) == 25 && _tctime64_s(text, &wide_day) == 0);
    CHECK(_tctime_s(eight, &day) != 0 && eight[0] == 0 && _tctime_s(nullptr, 80, &day) == EINVAL && _tasctime_s(text, 80, nullptr) == EINVAL && text[0] == 0);
    CHECK(_tcsftime(text, 80, _T("%Y-%m-%d"), &split) == 10 && is(text, _T("1970-01-02")) && _tstrdate_s(eight) == 0 && eight[2] == _T('/') && _tstrtime_s(eight) == 0 && eight[2] == _T(':'));
    CHECK(_wctime(nullptr) == nullptr && _wasctime(nullptr) == nullptr);
}

static void files()
{
    TCHAR before[_MAX_PATH], folder[_MAX_PATH], text[_MAX_PATH];
    CHECK(_tgetcwd(before, _MAX_PATH) == before && _stprintf(folder, _T("/tmp/ndcompat-text-%d-%d"), int(sizeof(TCHAR)), _getpid()) > 0);
    CHECK(_tmkdir(folder) == 0 && _tmkdir(folder) == -1 && errno == EEXIST && _tchdir(folder) == 0 && is(_tgetcwd(text, _MAX_PATH), folder));
    int file;
    CHECK(_tsopen_s(&file, _T("a"), _O_CREAT | _O_RDWR | _O_EXCL, _SH_DENYNO, _S_IREAD | _S_IWRITE) == 0 && _write(file, "abc", 3) == 3);
    FILE* stream = _tfdopen(file, _T("r+b"));
    CHECK(stream && fclose(stream) == 0 && _tsopen_s(&file, _T("b"), _O_RDONLY, _SH_DENYNO, 0) == ENOENT && file == -1);
    CHECK(_tsopen_s(&file, nullptr, _O_RDONLY, _SH_DENYNO, 0) == EINVAL && _tsopen_s(nullptr, _T("a"), _O_RDONLY, _SH_DENYNO, 0) == EINVAL);
    CHECK((file = _tsopen(_T("a"), _O_RDONLY, _SH_DENYNO)) >= 0 && _close(file) == 0 && (file = _topen(_T("a"), _O_RDONLY)) >= 0 && _close(file) == 0);
    struct _stat found;
    struct _stat64 found64;
    CHECK(_tstat(_T("a"), &found) == 0 && found.st_size == 3 && _tstat64(_T("a"), &found64) == 0 && found64.st_size == 3 && _taccess_s(_T("a"), 0) == 0 && _taccess_s(_T("b"), 0) == ENOENT);
    CHECK((stream = _tfsopen(_T("a"), _T("r"), _SH_DENYWR)) != nullptr && _gettc(stream) == _T('a') && _tfreopen_s(&stream, _T("b"), _T("w"), stream) == 0 && fclose(stream) == 0);
    CHECK(_tfreopen_s(nullptr, _T("b"), _T("r"), stdin) == EINVAL && _tfreopen_s(&stream, _T("no/such"), _T("r"), stdin) == ENOENT && stream == nullptr);
    _tfinddata64_t match;
    const intptr_t search = _tfindfirst64(_T("*"), &match);
    CHECK(search != -1 && is(match.name, _T(".")) && _tfindnext64(search, &match) == 0 && _findclose(search) == 0);
    CHECK((file = _tcreat(_T("b"), _S_IREAD | _S_IWRITE)) >= 0 && _close(file) == 0 && _tchmod(_T("b"), _S_IREAD) == 0 && _tchmod(_T("b"), _S_IREAD | _S_IWRITE) == 0);
    CHECK(_tremove(_T("a")) == 0 && _tremove(_T("b")) == 0 && _tchdir(before) == 0 && _trmdir(folder) == 0 && _trmdir(folder) == -1);
}

static void errors()
{
    TCHAR text[80], few[4];
    CHECK(_tcserror_s(text, ENOENT) == 0 && is(text, _T("No such file or directory")) && is(_tcserror(ENOENT), text));
    CHECK(_tcserror_s(few, ENOENT) == 0 && is(few, _T("No ")) && _wcserror_s(nullptr, 5, 1) == EINVAL && _TEOF != 0);
    errno = ENOENT;
    _tperror(_T("told as expected"));
}

int main()
{
    printing_without_a_size();
    text_in_place();
    numbers();
    dates();
    files();
    errors();
    return 0;
}
