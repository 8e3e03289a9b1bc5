/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Events, waits, locks, condition variables, waiting on an address. */
#ifndef NDWIN_SYNC_H
#define NDWIN_SYNC_H

#include "error.h"
#include "interlocked.h"

#define WAIT_OBJECT_0      0x00000000
#define WAIT_ABANDONED     0x00000080
#define WAIT_ABANDONED_0   0x00000080
#define WAIT_IO_COMPLETION 0x000000C0
#define WAIT_FAILED        ((DWORD)0xFFFFFFFF)
#define WAIT_TIMEOUT       258
#define MAXIMUM_WAIT_OBJECTS 64

#define READ_CONTROL             0x00020000
#define SYNCHRONIZE              0x00100000
#define STANDARD_RIGHTS_REQUIRED 0x000F0000
#define EVENT_MODIFY_STATE       0x0002
#define EVENT_ALL_ACCESS         0x001F0003
#define CREATE_EVENT_MANUAL_RESET 0x1
#define CREATE_EVENT_INITIAL_SET  0x2

NDW_API(HANDLE, CreateEventA, (LPSECURITY_ATTRIBUTES security, BOOL manualReset, BOOL initialState, LPCSTR name));
NDW_API(HANDLE, CreateEventW, (LPSECURITY_ATTRIBUTES security, BOOL manualReset, BOOL initialState, LPCWSTR name));
NDW_API(HANDLE, CreateEventExA, (LPSECURITY_ATTRIBUTES security, LPCSTR name, DWORD flags, DWORD access));
NDW_API(HANDLE, CreateEventExW, (LPSECURITY_ATTRIBUTES security, LPCWSTR name, DWORD flags, DWORD access));
#ifdef UNICODE
#define CreateEvent   CreateEventW
#define CreateEventEx CreateEventExW
#else
#define CreateEvent   CreateEventA
#define CreateEventEx CreateEventExA
#endif
NDW_API(BOOL, SetEvent, (HANDLE event));
NDW_API(BOOL, ResetEvent, (HANDLE event));

NDW_API(DWORD, WaitForSingleObject, (HANDLE object, DWORD milliseconds));
NDW_API(DWORD, WaitForSingleObjectEx, (HANDLE object, DWORD milliseconds, BOOL alertable));
NDW_API(DWORD, SignalObjectAndWait, (HANDLE signal, HANDLE wait, DWORD milliseconds, BOOL alertable));
NDW_API(DWORD, WaitForMultipleObjects, (DWORD count, const HANDLE *objects, BOOL waitAll, DWORD milliseconds));
NDW_API(DWORD, WaitForMultipleObjectsEx,
    (DWORD count, const HANDLE *objects, BOOL waitAll, DWORD milliseconds, BOOL alertable));

/* Zero-initialised memory is a valid SRWLOCK and CONDITION_VARIABLE; neither needs to be destroyed. */
typedef struct _RTL_CRITICAL_SECTION {
    PVOID DebugInfo;
    LONG LockCount;
    LONG RecursionCount;
    HANDLE OwningThread;
    HANDLE LockSemaphore;
    ULONG_PTR SpinCount;
} RTL_CRITICAL_SECTION, *PRTL_CRITICAL_SECTION, CRITICAL_SECTION, *PCRITICAL_SECTION, *LPCRITICAL_SECTION;

typedef struct _RTL_SRWLOCK {
    PVOID Ptr;
} RTL_SRWLOCK, *PRTL_SRWLOCK, SRWLOCK, *PSRWLOCK;
#define RTL_SRWLOCK_INIT {0}
#define SRWLOCK_INIT     RTL_SRWLOCK_INIT

typedef struct _RTL_CONDITION_VARIABLE {
    PVOID Ptr;
} RTL_CONDITION_VARIABLE, *PRTL_CONDITION_VARIABLE, CONDITION_VARIABLE, *PCONDITION_VARIABLE;
#define RTL_CONDITION_VARIABLE_INIT {0}
#define CONDITION_VARIABLE_INIT     RTL_CONDITION_VARIABLE_INIT
#define CONDITION_VARIABLE_LOCKMODE_SHARED 0x1

typedef union _RTL_RUN_ONCE {
    PVOID Ptr;
} RTL_RUN_ONCE, *PRTL_RUN_ONCE, INIT_ONCE, *PINIT_ONCE, *LPINIT_ONCE;
#define INIT_ONCE_STATIC_INIT {0}
typedef BOOL (WINAPI *PINIT_ONCE_FN)(PINIT_ONCE once, PVOID parameter, PVOID *context);

NDW_API(void, InitializeCriticalSection, (LPCRITICAL_SECTION section));
NDW_API(BOOL, InitializeCriticalSectionAndSpinCount, (LPCRITICAL_SECTION section, DWORD spins));
NDW_API(BOOL, InitializeCriticalSectionEx, (LPCRITICAL_SECTION section, DWORD spins, DWORD flags));
NDW_API(DWORD, SetCriticalSectionSpinCount, (LPCRITICAL_SECTION section, DWORD spins));
NDW_API(void, EnterCriticalSection, (LPCRITICAL_SECTION section));
NDW_API(BOOL, TryEnterCriticalSection, (LPCRITICAL_SECTION section));
NDW_API(void, LeaveCriticalSection, (LPCRITICAL_SECTION section));
NDW_API(void, DeleteCriticalSection, (LPCRITICAL_SECTION section));

NDW_API(void, InitializeSRWLock, (PSRWLOCK lock));
NDW_API(void, AcquireSRWLockExclusive, (PSRWLOCK lock));
NDW_API(void, AcquireSRWLockShared, (PSRWLOCK lock));
NDW_API(void, ReleaseSRWLockExclusive, (PSRWLOCK lock));
NDW_API(void, ReleaseSRWLockShared, (PSRWLOCK lock));
NDW_API(BOOLEAN, TryAcquireSRWLockExclusive, (PSRWLOCK lock));
NDW_API(BOOLEAN, TryAcquireSRWLockShared, (PSRWLOCK lock));

NDW_API(void, InitializeConditionVariable, (PCONDITION_VARIABLE variable));
NDW_API(BOOL, SleepConditionVariableCS, (PCONDITION_VARIABLE variable, PCRITICAL_SECTION section, DWORD milliseconds));
NDW_API(BOOL, SleepConditionVariableSRW,
    (PCONDITION_VARIABLE variable, PSRWLOCK lock, DWORD milliseconds, ULONG flags));
NDW_API(void, WakeConditionVariable, (PCONDITION_VARIABLE variable));
NDW_API(void, WakeAllConditionVariable, (PCONDITION_VARIABLE variable));

NDW_API(void, InitOnceInitialize, (PINIT_ONCE once));
NDW_API(BOOL, InitOnceExecuteOnce, (PINIT_ONCE once, PINIT_ONCE_FN function, PVOID parameter, LPVOID *context));

NDW_API(BOOL, WaitOnAddress, (volatile VOID *address, PVOID compare, SIZE_T size, DWORD milliseconds));
NDW_API(void, WakeByAddressSingle, (PVOID address));
NDW_API(void, WakeByAddressAll, (PVOID address));

#endif /* NDWIN_SYNC_H */
