// SPDX-License-Identifier: MIT OR Apache-2.0
// Whose printf is called: members and other namespaces keep theirs, though their header comes before <windows.h> or after it. It is
// built with the C library's checked functions, which are inline.
#include <cstdio>
#include <string>

struct Log {
    int lines = 0;
    void printf(const char*, ...) { lines++; }
    int sprintf(const char*, int) { return 5; }
};
namespace lib {
template <typename... Arguments>
int printf(const char*, Arguments...)
{
    return sizeof...(Arguments);
}
int fprintf(FILE*, const char*, ...);
}

#include <windows.h>

#include <cstring>
#include <iostream>

#include "../check.h"

int lib::fprintf(FILE*, const char*, ...)
{
    return 9;
}

struct Parts {
    static const int constant = 7; // it is defined nowhere
    unsigned bits : 5;
};

template <typename Number>
static std::string text(Number number)
{
    char buffer[64];
    snprintf(buffer, sizeof buffer, "%I64d|%ld", static_cast<long long>(number), static_cast<long>(number));
    return buffer;
}

int main()
{
    Log log, *const pointer = &log;
    log.printf("one");
    pointer->printf("%d", 2);
    CHECK(log.lines == 2 && log.sprintf("", 1) == 5 && lib::printf("", 1, 2) == 2 && lib::fprintf(stdout, "") == 9);

    // Microsoft's meaning, by every name that these functions have.
    char buffer[64] = "";
    const Parts parts = {3};
    CHECK(text(0x500000001ll) == "21474836481|1");
    CHECK(std::snprintf(buffer, sizeof buffer, "%I64d %S %hs", 1ll, L"w", "n") == 5 && !strcmp(buffer, "1 w n"));
    CHECK(::sprintf(buffer, "%d %d %s", Parts::constant, parts.bits, buffer + 60) == 4 && !strncmp(buffer, "7 3 ", 4));
    const int length = sprintf(buffer, "%I64d", 5ll);
    CHECK(length == 1 && length < 64);
    CHECK(std::fprintf(stdout, "%I64u %ws\n", 3ull, L"wide") == 7);
    using std::printf;
    CHECK(printf("100%%\n") == 5 && printf("%I64d\n", 4ll) == 2 && sprintf(buffer, "%p", NULL) > 0);

    // Pointers are to the C library's, and so are the standard library's own uses.
    int (*const own)(const char*, ...) = printf;
    CHECK(own("%d\n", 6) == 2 && std::to_string(1.5L).compare(0, 3, "1.5") == 0);
}
