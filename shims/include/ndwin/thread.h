/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads and the process. */
#ifndef NDWIN_THREAD_H
#define NDWIN_THREAD_H

#include <stdlib.h>
#include "error.h"

#define STILL_ACTIVE     259
#define CREATE_SUSPENDED 0x00000004

/* Access rights. A handle made by DuplicateHandle has all of them. */
#define THREAD_TERMINATE         0x0001
#define THREAD_SUSPEND_RESUME    0x0002
#define THREAD_GET_CONTEXT       0x0008
#define THREAD_SET_CONTEXT       0x0010
#define THREAD_SET_INFORMATION   0x0020
#define THREAD_QUERY_INFORMATION 0x0040
#define THREAD_ALL_ACCESS        0x001FFFFF

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
NDW_API(HRESULT, SetThreadDescription, (HANDLE thread, PCWSTR description));
NDW_API(HRESULT, GetThreadDescription, (HANDLE thread, PWSTR *description));
NDW_API(HANDLE, OpenThread, (DWORD access, BOOL inherit, DWORD id));
NDW_API(HANDLE, GetCurrentThread, (void));
NDW_API(DWORD, GetCurrentThreadId, (void));
NDW_API(HANDLE, GetCurrentProcess, (void));
NDW_API(BOOL, TerminateProcess, (HANDLE process, UINT code));
NDW_API(DWORD, GetCurrentProcessId, (void));
NDW_API(DWORD, GetProcessId, (HANDLE process));
NDW_API(BOOL, GetProcessHandleCount, (HANDLE process, PDWORD count));
NDW_API(void, FlushProcessWriteBuffers, (void));

/* Access rights. The handle of GetCurrentProcess() has all of them. */
#define PROCESS_TERMINATE                 0x0001
#define PROCESS_VM_READ                   0x0010
#define PROCESS_VM_WRITE                  0x0020
#define PROCESS_DUP_HANDLE                0x0040
#define PROCESS_SET_QUOTA                 0x0100
#define PROCESS_SET_INFORMATION           0x0200
#define PROCESS_QUERY_INFORMATION         0x0400
#define PROCESS_QUERY_LIMITED_INFORMATION 0x1000
#define PROCESS_ALL_ACCESS                0x1FFFFF

NDW_INLINE __attribute__((noreturn)) void ExitProcess(UINT code)
{
    exit((int)code);
}

NDW_API(void, Sleep, (DWORD milliseconds));
NDW_API(DWORD, SleepEx, (DWORD milliseconds, BOOL alertable));
NDW_API(BOOL, SwitchToThread, (void));

typedef VOID (NTAPI *PAPCFUNC)(ULONG_PTR data);
NDW_API(DWORD, QueueUserAPC, (PAPCFUNC routine, HANDLE thread, ULONG_PTR data));

#define TLS_MINIMUM_AVAILABLE 64
#define TLS_OUT_OF_INDEXES    ((DWORD)0xFFFFFFFF)
#define FLS_MAXIMUM_AVAILABLE 4080
#define FLS_OUT_OF_INDEXES    ((DWORD)0xFFFFFFFF)
NDW_API(DWORD, TlsAlloc, (void));
NDW_API(BOOL, TlsFree, (DWORD index));
NDW_API(LPVOID, TlsGetValue, (DWORD index));
NDW_API(BOOL, TlsSetValue, (DWORD index, LPVOID value));

/* There are no fibers. A callback is called when a thread ends, and for all threads' values in FlsFree. */
typedef VOID (WINAPI *PFLS_CALLBACK_FUNCTION)(PVOID value);
NDW_API(DWORD, FlsAlloc, (PFLS_CALLBACK_FUNCTION callback));
NDW_API(BOOL, FlsFree, (DWORD index));
NDW_API(PVOID, FlsGetValue, (DWORD index));
NDW_API(BOOL, FlsSetValue, (DWORD index, PVOID value));

/* <process.h> */
NDW_API(uintptr_t, _beginthreadex,
    (void *security, unsigned stack, unsigned (__stdcall *start)(void *), void *parameter, unsigned flags,
     unsigned *id));
NDW_API(void, _endthreadex, (unsigned code)) __attribute__((noreturn));
NDW_API(uintptr_t, _beginthread, (void (__cdecl *start)(void *), unsigned stack, void *parameter));
NDW_API(void, _endthread, (void)) __attribute__((noreturn));

#endif /* NDWIN_THREAD_H */
