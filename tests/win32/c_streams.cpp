// SPDX-License-Identifier: MIT OR Apache-2.0
// Streams and files of Microsoft's C library: wide and narrow input on one stream, the scanf family, pipes, what is not replaced,
// deleted or opened. Other code's functions of such names are left alone.
#include <filesystem>
#include <fstream>
#include <list>
#include <string>

struct Reader {
    int scanf(const char*) { return 1; }
    int remove(const char*) { return 2; }
    int rename(const char*, const char*) { return 3; }
};
// Called before <windows.h>, which clang takes for its first use.
inline int early(const char* from, const char* to)
{
    return ::rename(from, to);
}

#include <windows.h>
#include <direct.h>
#include <fcntl.h>
#include <inttypes.h>
#include <io.h>
#include <locale.h>
#include <malloc.h>
#include <share.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tchar.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <iostream>
#include <vector>

#define LAST_ERROR errno
#include "../check.h"

static FILE* opened(const wchar_t* name, const wchar_t* mode)
{
    FILE* file = nullptr;
    CHECK(_wfopen_s(&file, name, mode) == 0);
    return file;
}

static void wide_and_narrow_input_mix()
{
    wchar_t w[64];
    char c[8];
    int n = 0;
    FILE* f = opened(L"lines", L"w+");
    CHECK(fwprintf(f, L"l\u00EFne %d\nnext\u4E2D\n", 5) > 0);
    rewind(f);
    CHECK(fgetws(w, 64, f) == w && !wcscmp(w, L"l\u00EFne 5\n") && getwc(f) == L'n' && fclose(f) == 0);
    // Wide input by formats, then by characters, and the other way round.
    f = opened(L"lines", L"r");
    CHECK(fwscanf_s(f, L"%s", w, 64u) == 1 && !wcscmp(w, L"l\u00EFne") && fwscanf_s(f, L"%d", &n) == 1 && n == 5 && fgetwc(f) == L'\n' && fclose(f) == 0);
    f = opened(L"lines", L"r");
    CHECK(fgetwc(f) == L'l' && fgetwc(f) == L'\u00EF' && ungetwc(L'\u00EF', f) == L'\u00EF');
    CHECK(fgetws(w, 5, f) && !wcscmp(w, L"\u00EFne ") && fwscanf(f, L"%d", &n) == 1 && n == 5 && fclose(f) == 0);
    f = opened(L"lines", L"r");
    CHECK(fgets(c, 7, f) && fgetwc(f) == L'5' && fgetc(f) == '\n' && std::fgetwc(f) == L'n' && fclose(f) == 0);
    // Standard input.
    CHECK(freopen_s(&f, "lines", "r", stdin) == 0 && wscanf_s(L"%*s %d", &n) == 1 && n == 5 && getwchar() == L'\n' && getchar() == 'n');
    CHECK(_fgettc(stdin) == _T('e') && _getws_s(w) == w && !wcscmp(w, L"xt\u4E2D") && getwchar() == WEOF && feof(stdin) && !_getws_s(w, 64));
    CHECK(freopen_s(&f, "lines", "r", stdin) == 0);
    std::wstring text;
    CHECK(std::getline(std::wcin, text) && text == L"l\u00EFne 5" && getwchar() == L'n' && std::wcin.get() == L'e');
    CHECK(std::wcin.unget() && std::wcin >> text && text == L"ext\u4E2D" && getchar() == '\n' && std::wcin.get() == WEOF);
}

static void formats_have_microsofts_meaning()
{
    wchar_t name[32] = L"", set[32] = L"";
    char narrow[8] = "";
    int port = 0;
    __int64 big = 0;
    __int32 small[2] = {7, 7};
    CHECK(swscanf(L"h\u00F6st 8080", L"%s %d", name, &port) == 2 && !wcscmp(name, L"h\u00F6st") && port == 8080);
    wchar_t letter = 0, both[2] = {};
    CHECK(swscanf(L"\u00E9", L"%c", &letter) == 1 && letter == L'\u00E9' && swscanf(L"\u00E9\u00E8", L"%2c", both) == 1 && both[1] == L'\u00E8');
    CHECK(swscanf(L"key=val", L"%[a-z]=%s", set, name) == 2 && !wcscmp(set, L"key") && !wcscmp(name, L"val"));
    CHECK(sscanf("123456789012", "%I64d", &big) == 1 && big == 123456789012ll);
    CHECK(std::sscanf("-1", "%ld", &small[0]) == 1 && small[0] == -1 && small[1] == 7);
    CHECK(sscanf("word 12", "%S %n%" SCNd64, name, &port, &big) == 2 && !wcscmp(name, L"word") && port == 5 && big == 12);
    CHECK(_stscanf_s(_T("5 x"), _T("%d %s"), &port, name, 32u) == 2 && port == 5 && !wcscmp(name, L"x"));
    long double exact = 0;
    CHECK(sscanf("x1.5", "%7[a-z]%Lf", narrow, &exact) == 2 && !strcmp(narrow, "x") && exact == 1.5L);
    FILE* f = opened(L"lines", L"r");
    CHECK(fwscanf(f, L"%s", name) == 1 && !wcscmp(name, L"l\u00EFne") && fscanf(f, "%d %7[a-z]", &port, narrow) == 2 && !strcmp(narrow, "next") && fclose(f) == 0);
    CHECK(freopen_s(&f, "lines", "r", stdin) == 0 && wscanf(L"%s", name) == 1 && !wcscmp(name, L"l\u00EFne") && scanf("%d", &port) == 1 && port == 5);
    CHECK(sscanf("plain", "plain") == 0 && Reader().scanf("") == 1);
}

static void nothing_is_replaced_deleted_or_opened_that_is_not_to_be()
{
    for (const wchar_t* name : {L"one", L"two", L"three"})
        CHECK(fputws(name, opened(name, L"w")) >= 0 && _fcloseall() == 0);
    CHECK(rename("one", "two") != 0 && errno == EACCES && _wrename(L"one", L"two") != 0 && errno == EACCES && _trename(_T("one"), _T("two")) != 0);
    CHECK(std::rename("one", "two") != 0 && std::filesystem::file_size("two") == 3);
    CHECK(_chmod("two", _S_IREAD) == 0 && _unlink("two") == -1 && errno == EACCES && remove("two") == -1 && std::remove("two") == -1 && _wremove(L"two") == -1 && errno == EACCES);
    struct _stat64 found;
    CHECK(_chmod("two", _S_IWRITE) == 0 && _stat64("two", &found) == 0 && (found.st_mode & _S_IREAD) && _wchmod(L"two", _S_IWRITE) == 0 && remove("two") == 0);
    CHECK(rename("one", "two") == 0 && rename("one", "two") == -1 && errno == ENOENT);
    // Linux's own, and what only has such a name.
    std::filesystem::rename("two", "three");
    std::vector<int> numbers = {1, 2, 1};
    std::list<int> list = {1, 2};
    numbers.erase(std::remove(numbers.begin(), numbers.end(), 1), numbers.end());
    list.remove(1);
    CHECK(numbers.size() == 1 && list.size() == 1 && Reader().remove("") == 2 && Reader().rename("", "") == 3 && early("three", "two") == 0);
    CHECK(std::filesystem::remove("two"));

    CHECK(_mkdir("folder") == 0 && remove("folder") == -1 && errno == EACCES && _open("folder", _O_RDONLY) == -1 && errno == EACCES && _wopen(L"folder", _O_RDONLY) == -1);
    FILE* f;
    CHECK(fopen_s(&f, "folder", "r") == EACCES && !_wfopen(L"folder", L"r") && errno == EACCES && !_fsopen("folder", "r", _SH_DENYNO) && _rmdir("folder") == 0);
    int file = _open("new", _O_CREAT | _O_WRONLY, _S_IWRITE), other = _dup(1);
    CHECK(file >= 0 && _dup2(file, other) == 0 && _dup2(-1, other) == -1 && errno == EBADF && _write(other, "abc", 3) == 3 && _close(other) == 0 && _close(file) == 0);
    CHECK((file = _wopen(L".\\new", _O_RDONLY)) >= 0 && _filelength(file) == 3 && _close(file) == 0 && _wunlink(L".\\new") == 0);
}

static void commands_have_pipes()
{
    char line[16];
    FILE* pipe = _popen("echo hi; exit 77", "rt");
    CHECK(pipe && fgets(line, 16, pipe) && !strcmp(line, "hi\n") && _pclose(pipe) == 77);
    CHECK((pipe = _wpopen(L"read word; test \"$word\" = \u00E4", L"wb")) != nullptr && fputws(L"\u00E4\n", pipe) == 0 && _pclose(pipe) == 0);
    CHECK(!_popen("true", "x") && errno == EINVAL && _wsystem(L"exit 5") == 5 && _pclose(nullptr) == -1);
    // Nobody reads: an error, and no SIGPIPE.
    int ends[2];
    CHECK(_pipe(ends, 256, _O_BINARY) == 0 && _close(ends[0]) == 0);
    CHECK(_write(ends[1], "x", 1) == -1 && errno == EPIPE);
    FILE* f = _fdopen(ends[1], "w");
    CHECK(fprintf(f, "%d", 1) == 1 && fflush(f) == EOF && errno == EPIPE && fwprintf(f, L"x") == 1 && fclose(f) == EOF);
    pipe = _popen("exit 3", "w");
    while (fprintf(pipe, "hello\n") > 0 && fflush(pipe) == 0)
        Sleep(1);
    CHECK(_pclose(pipe) == 3);
}

// Whatever is the first to write.
static void wide_streams_survive_a_broken_pipe()
{
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int ends[2], status;
        alarm(60);
        signal(SIGPIPE, SIG_DFL);
        if (pipe(ends) != 0 || close(ends[0]) != 0 || dup2(ends[1], 1) != 1)
            _exit(2);
        std::wcout << L"for nobody" << std::flush;
        status = std::wcout.bad() ? 0 : 3;
        _exit(status);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void formats_of_times()
{
    tm second = {};
    second.tm_year = 70, second.tm_mday = 2, second.tm_wday = 5, second.tm_yday = 1;
    char text[80];
    wchar_t wide[80];
    CHECK(strftime(text, 80, "%#d.%#m. %#H | %d.%m.", &second) > 0 && !strcmp(text, "2.1. 0 | 02.01."));
    CHECK(std::strftime(text, 80, "%#x", &second) > 0 && !strcmp(text, "Friday, January 02, 1970"));
    CHECK(std::wcsftime(wide, 80, L"%#c", &second) > 0 && !wcscmp(wide, L"Friday, January 02, 1970, 00:00:00"));
}

static void locales_have_windows_names()
{
    CHECK(setlocale(LC_ALL, ".UTF8") && std::setlocale(LC_CTYPE, nullptr) && setlocale(LC_ALL, "C") && !setlocale(LC_ALL, ".1252"));
}

static void blocks_have_their_sizes()
{
    // The compiler knows what was asked for, and the checked functions hold the program to it.
    int* const numbers = static_cast<int*>(malloc(25 * sizeof(int)));
    memset(numbers, 0, _msize(numbers));
    CHECK(_msize(numbers) == 100);
    free(numbers);
    char* block = static_cast<char*>(_recalloc(nullptr, 64, 1));
    memset(block, 0x55, 64);
    block = static_cast<char*>(_recalloc(block, 10, 1));
    block = static_cast<char*>(_recalloc(block, 64, 1));
    CHECK(block[9] == 0x55 && block[10] == 0 && block[23] == 0 && block[63] == 0);
    free(block);
}

int main()
{
    char folder[] = "/tmp/ndcompat-c-streams-XXXXXX";
    CHECK(mkdtemp(folder) && chdir(folder) == 0);
    wide_streams_survive_a_broken_pipe();
    wide_and_narrow_input_mix();
    formats_have_microsofts_meaning();
    nothing_is_replaced_deleted_or_opened_that_is_not_to_be();
    commands_have_pipes();
    formats_of_times();
    locales_have_windows_names();
    blocks_have_their_sizes();
    CHECK(_chdir("/") == 0);
    std::filesystem::remove_all(folder);
    return 0;
}
