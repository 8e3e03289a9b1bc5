/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads and the process. */
#ifndef NDWIN_THREAD_H
#define NDWIN_THREAD_H

#include <stdlib.h>
#include "error.h"

#define STILL_ACTIVE     259
#define CREATE_SUSPENDED 0x00000004
#define STACK_SIZE_PARAM_IS_A_RESERVATION 0x00010000

typedef DWORD (WINAPI *PTHREAD_START_ROUTINE)(LPVOID parameter);
typedef PTHREAD_START_ROUTINE LPTHREAD_START_ROUTINE;

NDW_API(HANDLE, CreateThread,
    (LPSECURITY_ATTRIBUTES security, SIZE_T stack, LPTHREAD_START_ROUTINE start, LPVOID parameter, DWORD flags,
     LPDWORD id));
NDW_API(void, ExitThread, (DWORD code)) __attribute__((noreturn));
NDW_API(BOOL, GetExitCodeThread, (HANDLE thread, LPDWORD code));
NDW_API(DWORD, ResumeThread, (HANDLE thread));
NDW_API(DWORD, GetThreadId, (HANDLE thread));
NDW_API(HANDLE, GetCurrentThread, (void));
NDW_API(DWORD, GetCurrentThreadId, (void));
NDW_API(HANDLE, GetCurrentProcess, (void));
NDW_API(DWORD, GetCurrentProcessId, (void));

NDW_INLINE __attribute__((noreturn)) void ExitProcess(UINT code)
{
    exit((int)code);
}

NDW_API(void, Sleep, (DWORD milliseconds));
NDW_API(DWORD, SleepEx, (DWORD milliseconds, BOOL alertable));
NDW_API(BOOL, SwitchToThread, (void));

/* <process.h> */
NDW_API(uintptr_t, _beginthreadex,
    (void *security, unsigned stack, unsigned (__stdcall *start)(void *), void *parameter, unsigned flags,
     unsigned *id));
NDW_API(void, _endthreadex, (unsigned code)) __attribute__((noreturn));

#endif /* NDWIN_THREAD_H */
