// SPDX-License-Identifier: MIT OR Apache-2.0
// Text functions as C++ calls them: with argument lists, and with arrays whose size the headers see.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tchar.h>
#include <windows.h>
#include <comdef.h>

#define LAST_ERROR GetLastError()
#include "../check.h"

static DWORD message(wchar_t* buffer, DWORD size, const wchar_t* text, ...)
{
    va_list arguments;
    va_start(arguments, text);
    const DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_STRING, text, 0, 0, buffer, size, &arguments);
    va_end(arguments);
    return length;
}

static void messages()
{
    wchar_t text[80];
    // More arguments than there are registers for.
    CHECK(message(text, ARRAYSIZE(text), L"%1 %2!S! %3!d! %4!I64x! %5!c! %6!u! %7!04X! %1", L"a", "b", -3, 1LL << 40, L'e', 6u, 7) != 0);
    CHECK(wcscmp(text, L"a b -3 10000000000 e 6 0007 a") == 0);
    DWORD_PTR array[] = {reinterpret_cast<DWORD_PTR>(L"end"), 5};
    wchar_t* allocated = nullptr;
    CHECK(FormatMessageW(FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_ARGUMENT_ARRAY, L"%1%n%2!d!", 0, 0,
                         reinterpret_cast<LPWSTR>(&allocated), 0, reinterpret_cast<va_list*>(array)) == 6);
    CHECK(wcscmp(allocated, L"end\r\n5") == 0 && LocalFree(allocated) == nullptr);
}

static int bounded(char (&buffer)[6], const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = _vsnprintf_s(buffer, _TRUNCATE, format, arguments);
    va_end(arguments);
    return length;
}

static int whole(wchar_t (&buffer)[6], const wchar_t* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vswprintf_s(buffer, format, arguments);
    va_end(arguments);
    return length;
}

static void arrays()
{
    char narrow[6];
    wchar_t wide[6];
    CHECK(bounded(narrow, "%s", "abcdef") == -1 && strcmp(narrow, "abcde") == 0);
    CHECK(whole(wide, L"%d", 12345) == 5 && wcscmp(wide, L"12345") == 0);
    CHECK(whole(wide, L"%d", 123456) == -1 && wide[0] == 0);
    CHECK(_snprintf_s(narrow, _TRUNCATE, "%s%d", "abc", 123) == -1 && strcmp(narrow, "abc12") == 0);
    CHECK(_snprintf_s(narrow, sizeof narrow, 2, "%d", 123) == -1 && strcmp(narrow, "12") == 0);
    CHECK(_snwprintf_s(wide, _TRUNCATE, L"%s", L"abcdef") == -1 && wcscmp(wide, L"abcde") == 0);
    CHECK(_snwprintf_s(wide, ARRAYSIZE(wide), _TRUNCATE, L"%s", L"abc") == 3);
    CHECK(sprintf_s(narrow, "%s", "abcde") == 5 && swprintf_s(wide, L"%hs", "abcde") == 5);
    // One has a NUL and counts all, the other has neither.
    CHECK(snprintf(narrow, 3, "%s", "abcd") == 4 && strcmp(narrow, "ab") == 0);
    CHECK(_snprintf(narrow, 3, "%s", "abcd") == -1 && memcmp(narrow, "abc", 3) == 0);
    CHECK(strcpy_s(narrow, "abcde") == 0 && strncpy_s(narrow, "abcdefgh", _TRUNCATE) == STRUNCATE);
    CHECK(wcscpy_s(wide, L"abcdef") == ERANGE && wide[0] == 0);
    CHECK(_itow_s(-77, wide, 10) == 0 && wcscmp(wide, L"-77") == 0);
    CHECK(_itoa_s(123456, narrow, 10) == ERANGE && narrow[0] == 0);
    TCHAR text[] = _T("a,b"), *state = nullptr;
    CHECK(_tcscmp(_tcstok_s(text, _T(","), &state), _T("a")) == 0 && _tcscmp(_tcstok_s(nullptr, _T(","), &state), _T("b")) == 0);
    FILE* file = nullptr;
    CHECK(_tfopen_s(&file, _T("NUL"), _T("w")) == 0 && fputws(L"gone", file) >= 0 && fclose(file) == 0);
    CHECK(fopen_s(&file, "/nonexistent/x", "r") == ENOENT && file == nullptr);
}

static void errors_as_exceptions()
{
    try {
        _com_issue_error(E_OUTOFMEMORY);
    } catch (const _com_error& error) {
        TCHAR expected[128];
        CHECK(FormatMessage(FORMAT_MESSAGE_FROM_SYSTEM, nullptr, static_cast<DWORD>(E_OUTOFMEMORY), 0, expected, 128, nullptr) > 2);
        const size_t length = _tcslen(error.ErrorMessage());
        CHECK(error.Error() == E_OUTOFMEMORY && length > 0 && _tcsncmp(error.ErrorMessage(), expected, length) == 0);
        CHECK(_tcscmp(expected + length, _T("\r\n")) == 0 && error.WCode() == 0);
    }
    CHECK(_tcscmp(_com_error(static_cast<HRESULT>(0x8FFFABCD)).ErrorMessage(), _T("Unknown error 0x8FFFABCD")) == 0);
    CHECK(_tcscmp(_com_error(_com_error::WCodeToHRESULT(7)).ErrorMessage(), _T("IDispatch error #7")) == 0);
    CHECK(_com_error::HRESULTToWCode(_com_error::WCodeToHRESULT(7)) == 7);
}

int main()
{
    messages();
    arrays();
    errors_as_exceptions();
    puts("done");
}
