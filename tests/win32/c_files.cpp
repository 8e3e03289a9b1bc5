// SPDX-License-Identifier: MIT OR Apache-2.0
// Microsoft's C library on files: handles of descriptors and back, searches, reading by formats; the wide environment.
#include <windows.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tchar.h>
#include <initializer_list>

#define LAST_ERROR errno
#include "../check.h"

static char folder[] = "/tmp/ndcompat-c-files-XXXXXX";

// The path of a file in the folder.
static const char* in_folder(const char* name)
{
    static char path[100];
    sprintf_s(path, "%s/%s", folder, name);
    return path;
}

// Creates a file of these contents.
static void create(const char* name, const char* contents)
{
    FILE* file;
    CHECK(fopen_s(&file, in_folder(name), "w") == 0 && fputs(contents, file) >= 0 && fclose(file) == 0);
}

static void descriptors_have_handles()
{
    create("a", "abc");
    FILE* stream;
    CHECK(fopen_s(&stream, in_folder("a"), "r+") == 0);
    const int fd = _fileno(stream);
    const HANDLE handle = reinterpret_cast<HANDLE>(_get_osfhandle(fd));
    LARGE_INTEGER size;
    CHECK(handle != INVALID_HANDLE_VALUE && GetFileSizeEx(handle, &size) && size.QuadPart == 3 && GetFileType(handle) == FILE_TYPE_DISK);
    CHECK(reinterpret_cast<HANDLE>(_get_osfhandle(fd)) == handle && FlushFileBuffers(handle));
    DWORD written;
    CHECK(SetFilePointer(handle, 0, nullptr, FILE_END) == 3 && WriteFile(handle, "de", 2, &written, nullptr) && written == 2);
    CHECK(fclose(stream) == 0);
    // The handle ends with the descriptor; the next file of that number has another.
    CHECK(!GetFileSizeEx(handle, &size) && GetLastError() == ERROR_INVALID_HANDLE);
    create("b", "0123456789");
    const int again = _open(in_folder("b"), _O_RDONLY | _O_BINARY);
    const HANDLE other = reinterpret_cast<HANDLE>(_get_osfhandle(again));
    CHECK(again == fd && other != handle && GetFileSizeEx(other, &size) && size.QuadPart == 10);
    CHECK(!WriteFile(other, "x", 1, &written, nullptr) && GetLastError() == ERROR_ACCESS_DENIED);
    // Closing the handle leaves the descriptor alone.
    CHECK(CloseHandle(other) && _filelength(again) == 10 && _close(again) == 0);
    CHECK(_get_osfhandle(again) == -1 && errno == EBADF && _get_osfhandle(-5) == -1);
    CHECK(reinterpret_cast<HANDLE>(_get_osfhandle(1)) == GetStdHandle(STD_OUTPUT_HANDLE));
}

static void handles_become_descriptors()
{
    const HANDLE handle = CreateFileA(in_folder("b"), GENERIC_READ, 0, nullptr, OPEN_EXISTING, 0, nullptr);
    const int fd = _open_osfhandle(reinterpret_cast<intptr_t>(handle), _O_RDONLY | _O_TEXT);
    char text[4] = {};
    CHECK(fd > 2 && _read(fd, text, 3) == 3 && !strcmp(text, "012") && reinterpret_cast<HANDLE>(_get_osfhandle(fd)) == handle);
    DWORD read;
    CHECK(ReadFile(handle, text, 3, &read, nullptr) && read == 3 && !strcmp(text, "345"));
    CHECK(_close(fd) == 0 && !ReadFile(handle, text, 3, &read, nullptr) && GetLastError() == ERROR_INVALID_HANDLE);
    CloseHandle(handle);
    const HANDLE event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    CHECK(_open_osfhandle(reinterpret_cast<intptr_t>(event), 0) == -1 && errno == EBADF && CloseHandle(event));
    CHECK(_open_osfhandle(-1, 0) == -1 && errno == EBADF);
}

static void searches_find_what_matches()
{
    _finddata_t found;
    const intptr_t search = _findfirst(in_folder("*"), &found);
    CHECK(search != -1 && !strcmp(found.name, ".") && found.attrib == _A_SUBDIR && _findnext(search, &found) == 0);
    CHECK(_findnext(search, &found) == 0 && !strcmp(found.name, "a") && found.attrib == _A_NORMAL && found.size == 5 && found.time_write > 1000000);
    __finddata64_t large;
    CHECK(_findnext64(search, &large) == 0 && !strcmp(large.name, "b") && large.size == 10);
    memset(&found, 7, sizeof found);
    CHECK(_findnext(search, &found) == -1 && errno == ENOENT && found.size == 0x07070707 && _findnext(search, nullptr) == -1 && errno == EINVAL);
    CHECK(_findclose(search) == 0 && _findclose(search) == -1 && errno == EINVAL && _findnext(search, &found) == -1 && errno == EINVAL);
    CHECK(_findfirst(in_folder("none*"), &found) == -1 && errno == ENOENT && _findfirst(nullptr, &found) == -1 && errno == EINVAL);
    CHECK(_findfirst(in_folder("*"), nullptr) == -1 && errno == EINVAL);
    wchar_t pattern[100];
    _wfinddata_t wide;
    size_t length;
    CHECK(mbstowcs_s(&length, pattern, in_folder("B"), _TRUNCATE) == 0);
    const intptr_t other = _wfindfirst(pattern, &wide);
    CHECK(other != -1 && !wcscmp(wide.name, L"b") && wide.size == 10 && _wfindnext(other, &wide) == -1 && _findclose(other) == 0);
}

static void text_is_read_by_formats()
{
    create("c", "7 word xy\n1.5 long-word");
    FILE* file;
    CHECK(fopen_s(&file, in_folder("c"), "r") == 0);
    __int32 number = 0;
    char word[5];
    wchar_t pair[2];
    double real;
    CHECK(fscanf_s(file, "%ld %s", &number, word, unsigned(sizeof word)) == 2 && number == 7 && !strcmp(word, "word"));
    CHECK(fwscanf_s(file, L" %2c", pair, 2u) == 1 && pair[0] == L'x' && pair[1] == L'y');
    CHECK(fscanf_s(file, "%lf %s", &real, word, unsigned(sizeof word)) == 1 && real == 1.5 && word[0] == 0);
    CHECK(fscanf_s(file, "%ld", &number) == EOF && fclose(file) == 0 && fscanf_s(nullptr, "%ld", &number) == EOF && errno == EINVAL);
    CHECK(freopen_s(&file, in_folder("c"), "r", stdin) == 0 && scanf_s("%ld %s", &number, word, unsigned(sizeof word)) == 2 && number == 7);
}

static void wide_forms()
{
    wchar_t* copy;
    wchar_t text[8];
    size_t size;
    CHECK(_wputenv_s(L"NDCOMPAT_TEST_C_FILES", L"gr\u00FCn") == 0 && !strcmp(getenv("NDCOMPAT_TEST_C_FILES"), "gr\xC3\xBCn"));
    CHECK(_wdupenv_s(&copy, &size, L"NDCOMPAT_TEST_C_FILES") == 0 && size == 5 && !wcscmp(copy, L"gr\u00FCn"));
    free(copy);
    CHECK(_wgetenv_s(&size, text, L"NDCOMPAT_TEST_C_FILES") == 0 && size == 5 && !wcscmp(text, L"gr\u00FCn"));
    int length;
    char bytes[4];
    CHECK(wctomb_s(&length, bytes, sizeof bytes, L'\u00FC') == 0 && length == 2 && bytes[0] == '\xC3');
    char name[L_tmpnam_s];
    CHECK(tmpnam_s(name) == 0 && _access(name, 0) == -1 && tmpnam_s(name, 2) == ERANGE);
}

// Nobody in this process has made the objects: the log tells so, once.
static int look_for_names()
{
    CHECK(OpenEventW(SYNCHRONIZE, FALSE, L"of another process") == nullptr && GetLastError() == ERROR_FILE_NOT_FOUND);
    CHECK(OpenMutexW(SYNCHRONIZE, FALSE, L"of another, too") == nullptr);
    return 0;
}

int main(int argc, char**)
{
    if (argc > 1)
        return look_for_names();
    CHECK(mkdtemp(folder) == folder);
    descriptors_have_handles();
    handles_become_descriptors();
    searches_find_what_matches();
    text_is_read_by_formats();
    wide_forms();
    for (const char* name : {"a", "b", "c"})
        CHECK(_unlink(in_folder(name)) == 0);
    CHECK(rmdir(folder) == 0);
    return 0;
}
