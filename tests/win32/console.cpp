// SPDX-License-Identifier: MIT OR Apache-2.0
// What a console program of Windows counts on: wide arguments and environment, and printing.
#include <inttypes.h>
#include <iostream>
#include <string>
#include <windows.h>
#include <stdio.h>

int wmain(int argc, wchar_t* argv[])
{
    // The first output is wide, by the C++ library; nothing that follows is lost.
    std::wcout << L"gr\xFC\xDF" << 1 << L' ' << std::wstring(3, L'\x20AC') << L"\x1F600" << std::wstring(300, L'\xE4').length() << std::endl;
    std::wcout << L"stays narrow: " << std::flush << (fwide(stdout, 0) < 0) << std::wstring(300, L'\xE4') << std::endl;
    std::cout << "narrow" << std::endl;

    // In turn on one stream, and in the order of the calls.
    printf("%d arguments:", argc - 1);
    for (int i = 1; i < argc; i++)
        wprintf(L" %s (%u)", argv[i], static_cast<unsigned>(wcslen(argv[i])));
    printf("\n");
    wchar_t value[16];
    const DWORD length = GetEnvironmentVariableW(L"NDCOMPAT_PLACE", value, ARRAYSIZE(value));
    wprintf(L"%ls, %lu, %S, %hs\n", value, length, "schön", "schön");
    printf("%s, %ls, %S\n", "größer", L"größer", L"größer");
    fputws(L"wide ", stdout);
    fputs("narrow ", stdout);
    fwprintf(stdout, L"%c%C\n", L'w', 'n');

    // What has 64 bits is printed whole, whatever it is called; LONG and DWORD have 32.
    const uint64_t large = UINT64_MAX - 1;
    printf("%" PRIu64 " %" PRIx64 " %" PRIX64 " %" PRIo64 "\n", large, large, large, large);
    printf("%" PRId64 " %" PRIi64 " %" PRIdMAX " %" PRIdPTR "\n", INT64_MIN, INT64_MIN, INTMAX_MIN, INTPTR_MIN);
    printf("%" PRIuMAX " %" PRIuPTR " %" PRIxPTR "\n", UINTMAX_MAX, UINTPTR_MAX, UINTPTR_MAX);
    printf("%" PRIuLEAST64 " %" PRIuFAST64 " %" PRIuFAST32 " %" PRIuFAST16 "\n", UINT_LEAST64_MAX, UINT_FAST64_MAX,
           UINT_FAST32_MAX, UINT_FAST16_MAX);
    printf("%" PRIu32 " %" PRId16 " %" PRIu8 "\n", UINT32_MAX, INT16_MIN, UINT8_MAX);
    wprintf(L"%" PRIu64 L" %I64u %Iu %llu\n", large, large, static_cast<SIZE_T>(large), 1ULL << 63);
    printf("%ld %lu %lx\n", static_cast<LONG>(-1), static_cast<DWORD>(0xFFFFFFFF), static_cast<ULONG>(0xABCDEF01));

    // scanf is the C library's, and so are its macros.
    uint64_t read = 0;
    printf("%d", sscanf("18446744073709551614", "%" SCNu64, &read));
    printf(" %d\n", read == large);
    return 7;
}
