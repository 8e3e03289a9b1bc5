// SPDX-License-Identifier: MIT OR Apache-2.0
// A program that has functions of its own under Windows' names: one in a file that includes the headers, others in one
// that does not (names_other.c), as a second library of that kind would. Each calls its own. And it has names that are Linux', and not
// Windows'.
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <mswsock.h>
#include <iphlpapi.h>
#include <process.h>
#include <ndspi.h>
#include <ndsupport.h>
#include <stdio.h>

static int own;

WCHAR* optarg;
int optind = 1;
int getopt(int, WCHAR**, const WCHAR*) { return optind; }
int dup, link, access, pause, sleep, alarm, sync, nice, daemon;
HANDLE pipe[2];

extern "C" BOOL ResetEvent(HANDLE)
{
    own++;
    return 77;
}

extern "C" int other(void);

int main()
{
    const HANDLE event = CreateEventW(nullptr, TRUE, TRUE, nullptr);
    const bool reset = ResetEvent(event) == 77 && own == 1;
    // Still set: it was not ours that was called.
    const bool set = WaitForSingleObject(event, 0) == WAIT_OBJECT_0;
    const bool others = other() == 42 && GetLastError() != 43;
    CloseHandle(event);
    puts(reset && set && others ? "done" : "mixed up");
    return !(reset && set && others);
}
