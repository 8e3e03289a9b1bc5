// SPDX-License-Identifier: MIT OR Apache-2.0
// What Microsoft's C headers have by themselves: no Windows header is included here.
#include <cerrno>
#include <cfloat>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cwchar>
#include <conio.h>
#include <crtdbg.h>
#include <direct.h>
#include <eh.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <mbstring.h>
#include <new.h>
#include <ntverp.h>
#include <process.h>
#include <share.h>
#include <sys/locking.h>
#include <sys/stat.h>
#include <sys/timeb.h>

#include "../check.h"

static int __cdecl compare(const void* a, const void* b)
{
    return *static_cast<const __int64*>(a) < *static_cast<const __int64*>(b) ? -1 : 1;
}

static int compare_by(void* context, const void* a, const void* b)
{
    ++*static_cast<int*>(context);
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

// What is made of others by the headers alone, each with what it refuses.
static void extras()
{
    static_assert(_I64_MAX == LLONG_MAX && _UI64_MAX == ULLONG_MAX && _I32_MAX == INT_MAX && _I16_MIN == SHRT_MIN, "limits");
    char text[80];
    wchar_t wide[80];
    CHECK(!strcmp(_itoa(-255, text, 10), "-255") && !strcmp(_itoa(-1, text, 16), "ffffffff") && !strcmp(_ultoa(~0u, text, 2), "11111111111111111111111111111111"));
    CHECK(!strcmp(_i64toa(-(1ll << 40), text, 10), "-1099511627776") && !strcmp(_ui64toa(~0ull, text, 16), "ffffffffffffffff"));
    CHECK(!wcscmp(_ui64tow(10, wide, 2), L"1010") && !strcmp(_ltoa(7, text, 10), "7") && _abs64(-(1ll << 40)) == 1ll << 40);
    int calls = 0, numbers[] = {3, 1, 2};
    qsort_s(numbers, 3, sizeof *numbers, compare_by, &calls);
    CHECK(numbers[0] == 1 && numbers[2] == 3 && calls > 0);
    errno = 0;
    qsort_s(numbers, 3, sizeof *numbers, nullptr, nullptr);
    CHECK(errno == EINVAL && numbers[0] == 1);
    CHECK(_putenv("NDCOMPAT_PLAIN_TOO=x=y") == 0 && !strcmp(getenv("NDCOMPAT_PLAIN_TOO"), "x=y"));
    CHECK(_putenv("NDCOMPAT_PLAIN_TOO=") == 0 && getenv("NDCOMPAT_PLAIN_TOO") == nullptr);
    CHECK(_wputenv(L"NDCOMPAT_PLAIN_TOO=\u00FC=y") == 0 && !strcmp(getenv("NDCOMPAT_PLAIN_TOO"), "\xC3\xBC=y") && _wputenv(L"NDCOMPAT_PLAIN_TOO=") == 0 && !getenv("NDCOMPAT_PLAIN_TOO"));
    CHECK(_wputenv(nullptr) == -1 && _wputenv(L"no sign") == -1 && _wputenv(L"=x") == -1 && errno == EINVAL);
    int point, sign;
    CHECK(!strcmp(_ecvt(-31.25, 4, &point, &sign), "3125") && point == 2 && sign != 0 && !strcmp(_fcvt(31.26, 1, &point, &sign), "313") && point == 2 && sign == 0);
    CHECK(_putenv(nullptr) == -1 && _putenv("no sign") == -1 && _putenv("=x") == -1 && errno == EINVAL);

    strcpy_s(text, "abc");
    CHECK(!strcmp(_strrev(text), "cba") && !strcmp(_strnset(text, 'x', 2), "xxa") && !strcmp(_strset(text, 'y'), "yyy"));
    CHECK(_strset_s(text, sizeof text, 'z') == 0 && !strcmp(text, "zzz") && _strset_s(text, 3, 'q') == EINVAL && *text == 0 && _strset_s(nullptr, 3, 'q') == EINVAL);
    CHECK(_strcmpi("aB", "Ab") == 0 && stricmp("x", "X") == 0 && _stricoll("a", "A") == 0 && strnicmp("abc", "ABD", 2) == 0);
    CHECK(!wcscmp(_wcsrev(wcscpy(wide, L"ab")), L"ba") && wmemcpy_s(wide, 80, L"xyz", 4) == 0 && !wcscmp(wide, L"xyz"));
    CHECK(wmemcpy_s(wide, 2, L"xyz", 4) == ERANGE && wmemmove_s(wide, 2, L"xyz", 4) == ERANGE);

    CHECK(_isnan(strtod("nan", nullptr)) && !_isnan(1) && _finite(1) && !_finite(strtod("inf", nullptr)) && _copysign(2, -1) == -2 && _chgsign(2) == -2);
    unsigned control = 0;
    static_assert(_CW_DEFAULT == (_RC_NEAR | _EM_INVALID | _EM_ZERODIVIDE | _EM_OVERFLOW | _EM_UNDERFLOW | _EM_INEXACT | _EM_DENORMAL), "x64 and ARM64");
    CHECK(_controlfp_s(&control, _RC_UP, _MCW_RC) == 0 && control == _CW_DEFAULT && _controlfp(0, 0) == control && _clearfp() == 0 && SIGBREAK > 0);
    wchar_t digits[9];
    CHECK(_ultow_s(4000000000u, wide, 10) == 0 && !wcscmp(wide, L"4000000000") && _ultow_s(4000000000u, digits, 10) == ERANGE);
    CHECK(_ui64tow_s(1, digits, 2) == 0 && _i64tow_s(-1, digits, 10) == 0 && !wcscmp(digits, L"-1") && _i64toa_s(-5, text, 10) == 0 && *text == '-');
    CHECK(_wputenv_s(L"NDCOMPAT_PLAIN", L"w\x00e4rme") == 0 && !wcscmp(_wgetenv(L"NDCOMPAT_PLAIN"), L"w\x00e4rme") && !_wgetenv(L"NO_SUCH_VARIABLE"));
    CHECK(_wsystem(L"test $NDCOMPAT_PLAIN = w\x00e4rme") == 0 && _wsystem(L"false") != 0);

    CHECK(!strcmp(itoa(-255, text, 16), "ffffff01") && !strcmp(ltoa(-7, text, 10), "-7") && !strcmp(ultoa(~0u, text, 10), "4294967295"));
    CHECK(_wtof(L"-2.5x") == -2.5 && _environ[0] == environ[0] && memicmp("aB", "Ab", 2) == 0 && !strcmp(strnset(strset(strcpy(text, "abc"), 'x'), 'y', 1), "yxx"));
    char swapped[4] = {};
    _swab(strcpy(text, "badc"), swapped, 4);
    CHECK(!memcmp(swapped, "abcd", 4) && _memccpy(text, "12;4", ';', 4) == text + 3);
    CHECK(_fpclass(-0.0) == _FPCLASS_NZ && _fpclass(strtod("-inf", nullptr)) == _FPCLASS_NINF && _fpclass(1e-310) == _FPCLASS_PD && _fpclass(-1) == _FPCLASS_NN && _fpclass(strtod("nan", nullptr)) == _FPCLASS_QNAN);
    CHECK(_scalb(1.5, 3) == 12 && _logb(8) == 3 && _nextafter(1, 2) > 1 && _finitef(1) && !_isnanf(1) && _control87(0, 0) == _CW_DEFAULT && SIGABRT_COMPAT == SIGABRT);
    char eight[9], nine[8];
    CHECK(_strdate_s(eight) == 0 && eight[2] == '/' && eight[5] == '/' && strlen(eight) == 8 && _strtime(eight) == eight && eight[2] == ':' && eight[5] == ':' && strlen(eight) == 8);
    wchar_t wide_eight[9], wide_nine[8];
    CHECK(_wstrdate_s(wide_eight) == 0 && wide_eight[2] == L'/' && wcslen(wide_eight) == 8 && _wstrtime(wide_eight) == wide_eight && wide_eight[5] == L':' && wcslen(wide_eight) == 8);
    CHECK(_wstrtime_s(wide_nine) == ERANGE && *wide_nine == 0 && _wstrdate_s(nullptr, 9) == EINVAL && _wstrdate(nullptr) == nullptr);
    CHECK(_strtime_s(nine) == ERANGE && *nine == 0 && _strdate_s(nullptr, 9) == EINVAL && _strdate(nullptr) == nullptr && CLK_TCK == CLOCKS_PER_SEC);
    int hours = -1, stored = 0;
    CHECK(_get_daylight(&hours) == 0 && hours >= 0 && _get_daylight(nullptr) == EINVAL && _set_errno(7) == 0 && _get_errno(&stored) == 0 && stored == 7);

    char path[] = "/tmp/ndcompat-plain-XXXXXX";
    int file = mkstemp(path);
    CHECK(_write(file, "abcdef", 6) == 6 && _tell(file) == 6 && _eof(file) == 1 && _chsize(file, 3) == 0 && _chsize_s(file, 10) == 0);
    struct _stat found;
    struct _stat64 found64;
    CHECK(_fstat(file, &found) == 0 && found.st_size == 10 && (found.st_mode & _S_IFMT) == _S_IFREG && _stat64(path, &found64) == 0 && found64.st_size == 10);
    CHECK(_lseek(file, 0, SEEK_SET) == 0 && _eof(file) == 0 && _close(file) == 0 && _tell(file) == -1 && _eof(file) == -1 && _chsize_s(file, 1) == EBADF);
    CHECK(_sopen_s(&file, path, _O_RDONLY | O_BINARY, _SH_DENYNO, _S_IREAD) == 0 && _close(file) == 0);
    CHECK((file = _sopen(path, _O_RDONLY | O_BINARY, _SH_DENYNO)) >= 0 && _close(file) == 0 && _sopen("/no/such/file", _O_RDONLY, _SH_DENYNO) == -1 && errno == ENOENT);
    char unused[] = "/tmp/ndcompat-plain-XXXXXX", no_template[] = "x";
    CHECK(_mktemp_s(unused) == 0 && strcmp(unused + 20, "XXXXXX") != 0 && _access_s(unused, 0) == ENOENT && (file = _sopen(unused, _O_RDWR | _O_CREAT | _O_EXCL, _SH_DENYNO, _S_IREAD | _S_IWRITE)) >= 0 && _close(file) == 0 && _unlink(unused) == 0);
    CHECK(_mktemp(no_template) == nullptr && errno == EINVAL && _mktemp(nullptr) == nullptr && _mktemp_s(no_template, 1) == EINVAL && _mktemp_s(nullptr, 1) == EINVAL);
    CHECK(_sopen_s(&file, "/no/such/file", _O_RDONLY, _SH_DENYNO, 0) == ENOENT && file == -1 && _sopen_s(nullptr, path, 0, 0, 0) == EINVAL && _sopen_s(&file, nullptr, 0, 0, 0) == EINVAL);
    CHECK(_access_s(path, 4) == 0 && _access_s("/no/such/file", 0) == ENOENT && _access_s(nullptr, 0) == EINVAL);
    mbstowcs_s(nullptr, wide, 80, path, _TRUNCATE);
    // Other programs of this name may run.
    wchar_t other[80], folder[80];
    char narrow[80];
    swprintf_s(other, 80, L"/tmp/ndcompat-plain-%d-\u00FC", _getpid());
    swprintf_s(folder, 80, L"/tmp/ndcompat-%d-f\u00F6lder", _getpid());
    sprintf_s(narrow, 80, "/tmp/ndcompat-plain-%d-\xC3\xBC", _getpid());
    CHECK(_waccess(wide, 0) == 0 && _wstat(wide, &found) == 0 && found.st_size == 10 && _wrename(wide, other) == 0 && access(narrow, 0) == 0);
    CHECK(_wchmod(other, _S_IREAD) == 0 && (file = _wopen(other, _O_RDONLY)) >= 0 && filelength(file) == 10 && _close(file) == 0 && _wopen(nullptr, 0) == -1 && errno == EINVAL);
    CHECK(_wremove(other) == -1 && errno == EACCES && _wchmod(other, _S_IREAD | _S_IWRITE) == 0);
    CHECK(_wremove(other) == 0 && _wunlink(other) == -1 && errno == ENOENT && _waccess(nullptr, 0) == -1 && errno == EINVAL);
    wchar_t longest[5000];
    wmemset(longest, L'a', 4999)[4999] = 0;
    CHECK(_waccess(longest, 0) == -1 && errno == ENAMETOOLONG);
    const int mask = _umask(077);
    CHECK(_umask(mask) == 077 && _umask_s(mask, nullptr) == EINVAL);

    const int length = static_cast<int>(wcslen(folder));
    wchar_t before[_MAX_PATH], place[80];
    CHECK(_wgetcwd(before, _MAX_PATH) == before && _wmkdir(folder) == 0 && _wchdir(folder) == 0 && _wgetcwd(place, 80) == place && !wcscmp(place, folder));
    CHECK(_wgetcwd(place, length + 1) == place && _wgetcwd(place, length) == nullptr && errno == ERANGE);
    wchar_t* const allocated = _wgetcwd(nullptr, 0);
    CHECK(allocated && !wcscmp(allocated, folder) && _wchdir(before) == 0 && _wrmdir(folder) == 0 && _wrmdir(folder) == -1 && errno == ENOENT);
    free(allocated);
    int ends[2];
    CHECK(_pipe(ends, 256, O_NOINHERIT | _O_BINARY) == 0 && _write(ends[1], "ab", 2) == 2 && _read(ends[0], text, 5) == 2 && _close(ends[0]) == 0 && _close(ends[1]) == 0);
    CHECK(setmode(0, _O_TEXT) == _O_BINARY && getpid() == _getpid() && cputs("") == 0 && _cprintf("%s", "") == 0);

    FILE* stream;
    CHECK(tmpfile_s(&stream) == 0 && fprintf_s(stream, "x") == 1 && fclose(stream) == 0 && tmpfile_s(nullptr) == EINVAL);
    CHECK((stream = _fsopen("/dev/null", "w", _SH_DENYWR)) != nullptr && fclose(stream) == 0 && _flushall() == 0 && gets_s(nullptr, 5) == nullptr);
    CHECK(tmpfile_s(&stream) == 0 && _fwrite_nolock("abcd", 2, 2, stream) == 2 && _putc_nolock('e', stream) == 'e' && _fflush_nolock(stream) == 0 && fseek(stream, 0, SEEK_SET) == 0);
    CHECK(fread_s(text, 3, 1, 4, stream) == 0 && errno == ERANGE && fread_s(nullptr, 3, 1, 1, stream) == 0 && errno == EINVAL && fread_s(text, 4, 2, 2, stream) == 2 && !memcmp(text, "abcd", 4));
    _lock_file(stream);
    CHECK(_getc_nolock(stream) == 'e' && _fgetc_nolock(stream) == EOF && clearerr_s(stream) == 0 && !feof(stream) && clearerr_s(nullptr) == EINVAL);
    _unlock_file(stream);
    CHECK(_fclose_nolock(stream) == 0);
    struct _timeb now;
    CHECK(_ftime_s(&now) == 0 && now.millitm < 1000 && now.time > 1000000 && _ftime_s(nullptr) == EINVAL);
    const __time64_t day = 86400;
    long west;
    CHECK(_gmtime64(&day)->tm_mday == 2 && _localtime64(&day) != nullptr && _difftime64(day, 0) == 86400 && _get_timezone(&west) == 0 && west == _timezone && _get_timezone(nullptr) == EINVAL);
    char* block = static_cast<char*>(_recalloc(nullptr, 4, 2));
    block[7] = 5;
    block = static_cast<char*>(_recalloc(block, 100, 10));
    CHECK(block[7] == 5 && block[999] == 0 && _recalloc(block, ~size_t{0}, 2) == nullptr && _recalloc(block, 0, 1) == nullptr);
    const auto bytes = [](const char* of) { return reinterpret_cast<const unsigned char*>(of); };
    CHECK(_mbslen(bytes("a\xC3\xBC")) == 2 && _ismbblead(0xC3) && !_ismbblead('a') && _mbscmp(bytes("a"), bytes("a")) == 0 && _LK_NBLCK == 2 && VER_PRODUCTMAJORVERSION == 10);
    _CrtMemState state;
    _CrtMemCheckpoint(&state);
    _RPTF0(_CRT_WARN, "nothing");
    _cexit();
}

int main()
{
    extras();
    char text[_MAX_PATH];
    CHECK(sprintf_s(text, "%I64d %s", static_cast<__int64>(1) << 40, "x") == 15 && strcmp(text, "1099511627776 x") == 0);
    CHECK(strncpy_s(text, "abcdef", 3) == 0 && strcat_s(text, "D") == 0 && _stricmp(text, "ABCD") == 0);
    CHECK(strnlen_s(text, sizeof text) == 4 && _countof(text) == 260 && strcmp(_strupr(text), "ABCD") == 0);
    wchar_t wide[8];
    CHECK(wcscpy_s(wide, L"wide") == 0 && _wtoi(L"42") == 42 && _wcsicmp(wide, L"WIDE") == 0);
    char words[] = "a,b";
    char* state;
    CHECK(strcmp(strtok_s(words, ",", &state), "a") == 0 && strcmp(strtok_s(nullptr, ",", &state), "b") == 0);
    CHECK(strerror_s(text, 2) == 0 && strlen(text) > 0 && strstr(_strerror("here"), "here: ") != nullptr);

    FILE* file;
    CHECK(fopen_s(&file, "/no/such/folder/file", "r") == 2 && file == nullptr);
    CHECK(fopen_s(&file, "/dev/null", "rb") == 0 && _fileno(file) > 2 && !_isatty(_fileno(file)) && fclose(file) == 0);
    CHECK(_access("/dev/null", 0) == 0 && _getcwd(text, sizeof text) == text && _getpid() > 1);
    const int created = _creat("/dev/null", _S_IREAD | _S_IWRITE);
    CHECK(created > 2 && _read(created, text, 1) == 0 && _close(created) == 0);
    const int null = _open("/dev/null", _O_RDWR | _O_BINARY);
    CHECK(_write(null, text, 1) == 1 && _read(null, text, 1) == 0 && _filelengthi64(null) == 0 && _close(null) == 0);

    tm split;
    const time_t day = 86400;
    CHECK(gmtime_s(&split, &day) == 0 && split.tm_mday == 2 && _mkgmtime(&split) == day);
    // The clock goes on though the processor has nothing to do, whatever calls it.
    std::clock_t (*const by_address)() = &std::clock;
    const clock_t end = clock() + CLOCKS_PER_SEC / 50;
    int turns = 0;
    while (by_address() < end && ++turns < 1000)
        usleep(1000);
    CHECK(end > CLOCKS_PER_SEC / 50 && turns < 1000 && std::clock() >= end);
    const __time64_t now = _time64(nullptr);
    CHECK(_localtime64_s(&split, &now) == 0 && localtime_s(&split, &day) == 0);
    char* value;
    size_t size;
    CHECK(_putenv_s("NDCOMPAT_PLAIN", "12") == 0 && _dupenv_s(&value, &size, "NDCOMPAT_PLAIN") == 0 && size == 3);
    free(value);
    CHECK(getenv_s(&size, text, sizeof text, "NDCOMPAT_PLAIN") == 0 && strcmp(text, "12") == 0);
    CHECK(_byteswap_ulong(0x01020304) == 0x04030201 && _rotl(0x80000001, 1) == 3 && _rotr64(1, 1) == 1ull << 63);
    CHECK(_atoi64("-1099511627776") == -(1ll << 40) && _strtoui64("ff", nullptr, 16) == 255);
    __int32 small;
    CHECK(sscanf_s("7 word", "%ld %s", &small, text, static_cast<unsigned>(sizeof text)) == 2 && small == 7);
    CHECK(strcmp(text, "word") == 0);
    void* block = _aligned_malloc(10, 64);
    CHECK(reinterpret_cast<size_t>(block) % 64 == 0);
    _aligned_free(block);
    __int64 numbers[] = {3, 1, 2};
    qsort(numbers, _countof(numbers), sizeof *numbers, compare);
    CHECK(numbers[0] == 1 && __max(numbers[1], numbers[2]) == 3);
}
