// SPDX-License-Identifier: MIT OR Apache-2.0
// Functions that are not there, with arguments of Windows' types: each line is one error, which names the function.
#include <windows.h>
#include <malloc.h>
#include <process.h>
#include <psapi.h>

int main()
{
    FILE_SEGMENT_ELEMENT segments[2] = {};
    OVERLAPPED overlapped = {};
    PERFORMANCE_INFORMATION information = {};
    const char* const arguments[] = {"program", nullptr};
    int status = 0;
    char digits[20];
    ReadFileScatter(nullptr, segments, 4096, nullptr, &overlapped);
    GetPerformanceInfo(&information, sizeof information);
    _spawnv(_P_WAIT, "program", arguments);
    _spawnlp(_P_NOWAIT, "program", "program", "argument", nullptr);
    _cwait(&status, 0, 0);
    _aligned_offset_malloc(100, 64, 16);
    _gcvt_s(digits, sizeof digits, 1.5, 5);
    FreeConsole();
    _resetstkoflw();
    return 0;
}
