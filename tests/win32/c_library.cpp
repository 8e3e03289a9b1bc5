// SPDX-License-Identifier: MIT OR Apache-2.0
// More of Microsoft's C library that its headers have by themselves: no Windows header is included here.
#include <conio.h>
#include <ctype.h>
#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <io.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <mbctype.h>
#include <mbstring.h>
#include <process.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/locking.h>
#include <sys/stat.h>
#include <sys/utime.h>
#include <sys/wait.h>
#include <time.h>
#include <wchar.h>

#define LAST_ERROR errno
#include "../check.h"

static int compare_by(void* context, const void* a, const void* b)
{
    ++*static_cast<int*>(context);
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

static int compare(const void* a, const void* b)
{
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

static void searching()
{
    int numbers[10] = {1, 3, 5, 7, 9}, calls = 0;
    for (int i = 0; i < 5; i++) {
        const int key = numbers[i], between = key + 1;
        CHECK(bsearch_s(&key, numbers, 5, sizeof key, compare_by, &calls) == &numbers[i] && !bsearch_s(&between, numbers, 5, sizeof key, compare_by, &calls));
    }
    const int none = 0, seven = 7, eight = 8;
    CHECK(calls > 0 && !bsearch_s(&none, numbers, 5, sizeof none, compare_by, &calls) && !bsearch_s(&none, nullptr, 0, sizeof none, compare_by, &calls));
    errno = 0;
    CHECK(!bsearch_s(nullptr, numbers, 5, sizeof none, compare_by, &calls) && errno == EINVAL);
    unsigned count = 5;
    CHECK(_lfind(&seven, numbers, &count, sizeof seven, compare) == &numbers[3] && _lfind_s(&seven, numbers, &count, sizeof seven, compare_by, &calls) == &numbers[3]);
    CHECK(!_lfind(&eight, numbers, &count, sizeof eight, compare) && _lsearch(&eight, numbers, &count, sizeof eight, compare) == &numbers[5] && count == 6 && numbers[5] == 8);
    CHECK(_lsearch_s(&eight, numbers, &count, sizeof eight, compare_by, &calls) == &numbers[5] && count == 6);
    errno = 0;
    CHECK(!_lsearch(nullptr, numbers, &count, sizeof eight, compare) && errno == EINVAL && !_lsearch_s(&eight, nullptr, &count, 4, compare_by, &calls) && count == 6);
}

static void times()
{
    const __time32_t day = 86400, before = -1;
    tm split;
    char text[64], few[3];
    CHECK(_gmtime32_s(&split, &day) == 0 && split.tm_mday == 2 && _mkgmtime32(&split) == day && _gmtime32(&day)->tm_mday == 2 && _localtime32_s(&split, &day) == 0 && _mktime32(&split) == day);
    CHECK(_ctime32_s(text, sizeof text, &day) == 0 && strlen(text) == 25 && strlen(_ctime32(&day)) == 25 && _localtime32(nullptr) == nullptr && _gmtime32_s(&split, nullptr) == EINVAL);
    CHECK(_gmtime32_s(&split, &before) != 0 && _difftime32(10, 4) == 6);
    __time32_t now = 0;
    const __time64_t now64 = _time64(nullptr);
    if (now64 <= INT_MAX - 60)
        CHECK(_time32(&now) == now && now >= now64 && _time32(nullptr) >= now);
    split = {};
    split.tm_year = 200;
    CHECK(_mkgmtime32(&split) == -1);
    long seconds = 0;
    size_t needed = 0;
    CHECK(_get_dstbias(&seconds) == 0 && seconds == -3600 && _get_dstbias(nullptr) == EINVAL);
    CHECK(setenv("TZ", "ABCD5EFGHI", 1) == 0 && _get_tzname(&needed, nullptr, 0, 1) == 0 && needed == 6 && _get_tzname(&needed, text, sizeof text, 0) == 0 && !strcmp(text, "ABCD"));
    CHECK(_get_tzname(&needed, few, sizeof few, 1) == ERANGE && few[0] == 0 && _get_tzname(&needed, text, sizeof text, 2) == EINVAL && _get_tzname(nullptr, text, 9, 0) == EINVAL);
}

static void numbers_and_text()
{
    CHECK(_hypot(3, 4) == 5 && _hypotf(3, 4) == 5 && _copysignf(1, -2) == -1 && _chgsignf(1) == -1 && _wtoll(L"-1099511627776") == -(1ll << 40));
    CHECK(_lrotl(0x80000001, 1) == 3 && _lrotr(1, 1) == 0x80000000 && _strnicoll("abc", "ABD", 2) == 0 && _wcsnicoll(L"abc", L"ABD", 2) == 0 && _wcsncoll(L"ab", L"ac", 1) == 0);
    CHECK(__iscsym('_') && __iscsym('9') && !__iscsym('-') && __iscsymf('a') && !__iscsymf('9') && iswascii(L'a') && !iswascii(0xE4) && !isleadbyte(0xC3));
    const auto bytes = [](const char* of) { return reinterpret_cast<const unsigned char*>(of); };
    unsigned char text[8];
    const unsigned char* const word = bytes("a\xC3\xBC" "a");
    CHECK(_mbsicmp(bytes("aB"), bytes("Ab")) == 0 && _mbschr(word, 'a') == word && _mbsrchr(word, 'a') == word + 3 && !_mbschr(word, 'x') && !_mbschr(word, 0xC3) && _mbsstr(word, bytes("\xBC")) == word + 2);
    CHECK(_mbsinc(word + 1) == word + 3 && _mbsdec(word, word + 3) == word + 1 && _mbsdec(word, word) == nullptr);
    CHECK(_mbscpy_s(text, bytes("abc")) == 0 && _mbscat_s(text, sizeof text, bytes("de")) == 0 && _mbscmp(text, bytes("abcde")) == 0 && _mbscpy_s(text, 3, bytes("abc")) == ERANGE && text[0] == 0);
    unsigned char* const copy = _mbsdup(word);
    CHECK(_mbscmp(copy, word) == 0 && _cputws(L"") == 0 && _heapchk() == _HEAPOK && _heapmin() == 0);
    free(copy);
    wchar_t name[L_tmpnam_s], few[2];
    CHECK(_wtmpnam_s(name) == 0 && _waccess(name, 0) == -1 && _wtmpnam_s(few) == ERANGE && few[0] == 0 && _wtmpnam_s(nullptr, 5) == EINVAL);
}

static void locales()
{
    const _locale_t c = _create_locale(LC_ALL, "C");
    char text[16], *end;
    CHECK(c && _strtod_l("1.5x", &end, c) == 1.5 && *end == 'x' && _strtof_l("2.5", nullptr, c) == 2.5f && _atof_l("-1.5", c) == -1.5 && _wcstod_l(L"0.5", nullptr, c) == 0.5 && _strtod_l("1.5", nullptr, nullptr) == 1.5);
    CHECK(_isalpha_l('a', c) && !_isalpha_l('1', c) && !_isalpha_l(0xE4, c) && _isdigit_l('1', nullptr) && _iswupper_l(L'A', c) && _toupper_l('a', c) == 'A' && _towlower_l(L'A', c) == L'a');
    CHECK(_strcoll_l("a", "B", c) > 0 && _stricmp_l("aB", "Ab", c) == 0 && _strnicmp_l("aBc", "AbD", 2, c) == 0 && _wcsicmp_l(L"x", L"X", c) == 0);
    CHECK(_snprintf_l(text, sizeof text, "%.1f", c, 1.5) == 3 && !strcmp(text, "1.5") && _sprintf_s_l(text, sizeof text, "%I64d", c, 1ll << 40) == 13 && _snprintf_s_l(text, sizeof text, 2, "%d", nullptr, 123) == -1 && !strcmp(text, "12"));
    _free_locale(c);
    _free_locale(nullptr);
    const _locale_t present = _get_current_locale(), wide = _wcreate_locale(LC_NUMERIC, L"C");
    CHECK(present && wide && !_create_locale(LC_ALL, "no such locale") && !_create_locale(99, "C") && !_create_locale(LC_ALL, nullptr));
    _free_locale(present), _free_locale(wide);
    CHECK(_configthreadlocale(0) == _DISABLE_PER_THREAD_LOCALE && _configthreadlocale(_ENABLE_PER_THREAD_LOCALE) == -1);
    CHECK(!wcscmp(_wsetlocale(LC_NUMERIC, L"C"), L"C") && !wcscmp(_wsetlocale(LC_NUMERIC, nullptr), L"C") && !_wsetlocale(LC_ALL, L"no such locale"));
}

static void files()
{
    char path[] = "/tmp/ndcompat-library-XXXXXX";
    const int file = mkstemp(path), other = _open(path, _O_RDWR);
    CHECK(file >= 0 && other >= 0 && _write(file, "0123456789", 10) == 10 && _lseek(file, 2, SEEK_SET) == 2 && _lseek(other, 3, SEEK_SET) == 3);
    CHECK(_locking(file, _LK_NBLCK, 4) == 0 && _locking(other, _LK_NBLCK, 1) == -1 && errno == EACCES && _locking(other, _LK_UNLCK, 1) == -1 && errno == EACCES);
    CHECK(_lseek(other, 6, SEEK_SET) == 6 && _locking(other, _LK_LOCK, 1) == 0 && _locking(other, _LK_UNLCK, 1) == 0 && _locking(file, _LK_UNLCK, 4) == 0);
    CHECK(_locking(file, 9, 1) == -1 && errno == EINVAL && _locking(file, _LK_LOCK, -1) == -1 && errno == EINVAL && _close(other) == 0 && _locking(other, _LK_LOCK, 1) == -1 && errno == EBADF);
    struct _stat64i32 found;
    struct _utimbuf stamps = {86400, 2 * 86400};
    CHECK(_futime(file, &stamps) == 0 && _fstat64i32(file, &found) == 0 && found.st_atime == 86400 && found.st_mtime == 2 * 86400 && found.st_size == 10);
    stamps.modtime = 5;
    CHECK(_utime(path, &stamps) == 0 && _stat64i32(path, &found) == 0 && found.st_mtime == 5 && _utime(path, nullptr) == 0 && _stat64(path, &found) == 0 && found.st_mtime > 5);
    wchar_t wide[40];
    CHECK(mbstowcs_s(nullptr, wide, path, _TRUNCATE) == 0 && _wutime(wide, &stamps) == 0 && _wstat64i32(wide, &found) == 0 && found.st_mtime == 5 && _wutime(nullptr, nullptr) == -1);
    CHECK(_futime(file, nullptr) == 0 && _close(file) == 0 && _unlink(path) == 0);
    char folder[_MAX_PATH], again[_MAX_PATH];
    wchar_t wide_folder[_MAX_PATH];
    CHECK(_getdrive() == 0 && _getdrives() == 0 && _chdrive(3) == -1 && errno == EACCES && _getdcwd(0, folder, _MAX_PATH) == folder && !strcmp(folder, _getcwd(again, _MAX_PATH)));
    CHECK(_getdcwd(3, folder, _MAX_PATH) == nullptr && errno == EACCES && _wgetdcwd(0, wide_folder, _MAX_PATH) == wide_folder && _wgetdcwd(3, wide_folder, _MAX_PATH) == nullptr);
    const int most = _getmaxstdio();
    CHECK(most >= 20 && _setmaxstdio(20) == 20 && _getmaxstdio() == most && _setmaxstdio(19) == -1 && errno == EINVAL && _setmaxstdio(8193) == -1);
}

static int* at_end;

static int count_at_end()
{
    ++*at_end;
    return 0;
}

// What runs at the end, and another program in place of this one, each in a process of its own.
static void ends()
{
    static const auto child_gives = [](void (*body)()) {
        const pid_t child = fork();
        if (child == 0) {
            body();
            _exit(99);
        }
        int status = 0;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
        return WEXITSTATUS(status);
    };
    CHECK(child_gives([] {
        static int count = 0;
        at_end = &count;
        // Handlers run in reverse order: the first one sees what the other has done.
        CHECK(_onexit([] { _exit(*at_end); return 0; }) != nullptr && _onexit(count_at_end) == count_at_end && _onexit(nullptr) == nullptr);
        exit(0);
    }) == 1);
    CHECK(child_gives([] {
        const char* const arguments[] = {"sh", "-c", "exit 7", nullptr};
        _execv("/bin/sh", arguments);
    }) == 7);
    CHECK(child_gives([] {
        const char* const arguments[] = {"sh", "-c", "exit $OF_C_LIBRARY", nullptr};
        const char* const environment[] = {"OF_C_LIBRARY=8", nullptr};
        _execve("/bin/sh", arguments, environment);
    }) == 8);
    CHECK(child_gives([] { _execl("/bin/sh", "sh", "-c", "exit 9", static_cast<char*>(nullptr)); }) == 9);
    CHECK(child_gives([] { _execlp("sh", "sh", "-c", "exit 6", static_cast<char*>(nullptr)); }) == 6);
    const char* const none[] = {"none", nullptr};
    CHECK(_execv("/no/such/program", none) == -1 && errno == ENOENT && _execvp("/no/such/program", none) == -1);
}

// Static objects find the arguments.
static const int arguments_at_first = __argc;

int main(int argc, char** argv)
{
    CHECK(__argc == argc && __argv == argv && arguments_at_first == argc);
    char* path;
    wchar_t* wide;
    CHECK(_get_pgmptr(&path) == 0 && strstr(path, "/") && !strcmp(_pgmptr, path) && _access(path, 0) == 0 && _get_pgmptr(nullptr) == EINVAL);
    CHECK(_get_wpgmptr(&wide) == 0 && wcslen(wide) == mbstowcs(nullptr, path, 0) && _wpgmptr == wide);
    searching();
    times();
    numbers_and_text();
    locales();
    files();
    ends();
    return 0;
}
