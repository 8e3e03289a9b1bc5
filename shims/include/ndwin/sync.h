/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Events, mutexes, semaphores, timers, waits, locks, condition variables, waiting on an address. */
#ifndef NDWIN_SYNC_H
#define NDWIN_SYNC_H

#include "error.h"
#include "interlocked.h"
#include "rights.h"

#define WAIT_OBJECT_0      0x00000000
#define WAIT_ABANDONED     0x00000080
#define WAIT_ABANDONED_0   0x00000080
#define WAIT_IO_COMPLETION 0x000000C0
#define WAIT_FAILED        ((DWORD)0xFFFFFFFF)
#define WAIT_TIMEOUT       258
#define MAXIMUM_WAIT_OBJECTS 64

#define EVENT_MODIFY_STATE       0x0002
#define EVENT_ALL_ACCESS         0x001F0003
#define MUTANT_QUERY_STATE       0x0001
#define MUTEX_MODIFY_STATE       MUTANT_QUERY_STATE
#define MUTEX_ALL_ACCESS         0x001F0001
#define SEMAPHORE_MODIFY_STATE   0x0002
#define SEMAPHORE_ALL_ACCESS     0x001F0003
#define CREATE_MUTEX_INITIAL_OWNER 0x1
#define CREATE_EVENT_MANUAL_RESET 0x1
#define CREATE_EVENT_INITIAL_SET  0x2

NDW_API(HANDLE, CreateEventA, (LPSECURITY_ATTRIBUTES security, BOOL manualReset, BOOL initialState, LPCSTR name));
NDW_API(HANDLE, CreateEventW, (LPSECURITY_ATTRIBUTES security, BOOL manualReset, BOOL initialState, LPCWSTR name));
NDW_API(HANDLE, CreateEventExA, (LPSECURITY_ATTRIBUTES security, LPCSTR name, DWORD flags, DWORD access));
NDW_API(HANDLE, CreateEventExW, (LPSECURITY_ATTRIBUTES security, LPCWSTR name, DWORD flags, DWORD access));
NDW_API(HANDLE, OpenEventA, (DWORD access, BOOL inherit, LPCSTR name));
NDW_API(HANDLE, OpenEventW, (DWORD access, BOOL inherit, LPCWSTR name));
NDW_API(BOOL, SetEvent, (HANDLE event));
NDW_API(BOOL, ResetEvent, (HANDLE event));
NDW_API(BOOL, PulseEvent, (HANDLE event));

NDW_API(HANDLE, CreateMutexA, (LPSECURITY_ATTRIBUTES security, BOOL owned, LPCSTR name));
NDW_API(HANDLE, CreateMutexW, (LPSECURITY_ATTRIBUTES security, BOOL owned, LPCWSTR name));
NDW_API(HANDLE, CreateMutexExA, (LPSECURITY_ATTRIBUTES security, LPCSTR name, DWORD flags, DWORD access));
NDW_API(HANDLE, CreateMutexExW, (LPSECURITY_ATTRIBUTES security, LPCWSTR name, DWORD flags, DWORD access));
NDW_API(HANDLE, OpenMutexA, (DWORD access, BOOL inherit, LPCSTR name));
NDW_API(HANDLE, OpenMutexW, (DWORD access, BOOL inherit, LPCWSTR name));
NDW_API(BOOL, ReleaseMutex, (HANDLE mutex));

NDW_API(HANDLE, CreateSemaphoreA, (LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum, LPCSTR name));
NDW_API(HANDLE, CreateSemaphoreW, (LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum, LPCWSTR name));
NDW_API(HANDLE, CreateSemaphoreExA,
    (LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum, LPCSTR name, DWORD flags, DWORD access));
NDW_API(HANDLE, CreateSemaphoreExW,
    (LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum, LPCWSTR name, DWORD flags, DWORD access));
NDW_API(HANDLE, OpenSemaphoreA, (DWORD access, BOOL inherit, LPCSTR name));
NDW_API(HANDLE, OpenSemaphoreW, (DWORD access, BOOL inherit, LPCWSTR name));
NDW_API(BOOL, ReleaseSemaphore, (HANDLE semaphore, LONG more, LPLONG before));

#define CREATE_WAITABLE_TIMER_MANUAL_RESET    0x1
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x2
#define TIMER_QUERY_STATE  0x0001
#define TIMER_MODIFY_STATE 0x0002
#define TIMER_ALL_ACCESS   0x001F0003
typedef VOID (APIENTRY *PTIMERAPCROUTINE)(LPVOID argument, DWORD timeLow, DWORD timeHigh);

NDW_API(HANDLE, CreateWaitableTimerA, (LPSECURITY_ATTRIBUTES security, BOOL manualReset, LPCSTR name));
NDW_API(HANDLE, CreateWaitableTimerW, (LPSECURITY_ATTRIBUTES security, BOOL manualReset, LPCWSTR name));
NDW_API(HANDLE, CreateWaitableTimerExA, (LPSECURITY_ATTRIBUTES security, LPCSTR name, DWORD flags, DWORD access));
NDW_API(HANDLE, CreateWaitableTimerExW, (LPSECURITY_ATTRIBUTES security, LPCWSTR name, DWORD flags, DWORD access));
NDW_API(HANDLE, OpenWaitableTimerA, (DWORD access, BOOL inherit, LPCSTR name));
NDW_API(HANDLE, OpenWaitableTimerW, (DWORD access, BOOL inherit, LPCWSTR name));
NDW_API(BOOL, SetWaitableTimer,
    (HANDLE timer, const LARGE_INTEGER *due, LONG period, PTIMERAPCROUTINE routine, LPVOID argument, BOOL resume));
NDW_API(BOOL, SetWaitableTimerEx,
    (HANDLE timer, const LARGE_INTEGER *due, LONG period, PTIMERAPCROUTINE routine, LPVOID argument,
     PVOID wakeContext, ULONG tolerableDelay));
NDW_API(BOOL, CancelWaitableTimer, (HANDLE timer));

#ifdef UNICODE
#define CreateWaitableTimer   CreateWaitableTimerW
#define CreateWaitableTimerEx CreateWaitableTimerExW
#define OpenWaitableTimer     OpenWaitableTimerW
#define CreateEvent       CreateEventW
#define CreateEventEx     CreateEventExW
#define OpenEvent         OpenEventW
#define CreateMutex       CreateMutexW
#define CreateMutexEx     CreateMutexExW
#define OpenMutex         OpenMutexW
#define CreateSemaphore   CreateSemaphoreW
#define CreateSemaphoreEx CreateSemaphoreExW
#define OpenSemaphore     OpenSemaphoreW
#else
#define CreateWaitableTimer   CreateWaitableTimerA
#define CreateWaitableTimerEx CreateWaitableTimerExA
#define OpenWaitableTimer     OpenWaitableTimerA
#define CreateEvent       CreateEventA
#define CreateEventEx     CreateEventExA
#define OpenEvent         OpenEventA
#define CreateMutex       CreateMutexA
#define CreateMutexEx     CreateMutexExA
#define OpenMutex         OpenMutexA
#define CreateSemaphore   CreateSemaphoreA
#define CreateSemaphoreEx CreateSemaphoreExA
#define OpenSemaphore     OpenSemaphoreA
#endif

NDW_API(DWORD, WaitForSingleObject, (HANDLE object, DWORD milliseconds));
NDW_API(DWORD, WaitForSingleObjectEx, (HANDLE object, DWORD milliseconds, BOOL alertable));
NDW_API(DWORD, SignalObjectAndWait, (HANDLE signal, HANDLE wait, DWORD milliseconds, BOOL alertable));
NDW_API(DWORD, WaitForMultipleObjects, (DWORD count, const HANDLE *objects, BOOL waitAll, DWORD milliseconds));
NDW_API(DWORD, WaitForMultipleObjectsEx,
    (DWORD count, const HANDLE *objects, BOOL waitAll, DWORD milliseconds, BOOL alertable));

/* Zero-initialised memory is a valid SRWLOCK and CONDITION_VARIABLE; neither needs to be destroyed. */
typedef struct _RTL_CRITICAL_SECTION_DEBUG {
    WORD Type;
    WORD CreatorBackTraceIndex;
    struct _RTL_CRITICAL_SECTION *CriticalSection;
    LIST_ENTRY ProcessLocksList;
    DWORD EntryCount;
    DWORD ContentionCount;
    DWORD Flags;
    WORD CreatorBackTraceIndexHigh;
    WORD Identifier;
} RTL_CRITICAL_SECTION_DEBUG, *PRTL_CRITICAL_SECTION_DEBUG, CRITICAL_SECTION_DEBUG, *PCRITICAL_SECTION_DEBUG;

/* DebugInfo is -1, as on Windows for a section without debug information. */
typedef struct _RTL_CRITICAL_SECTION {
    PRTL_CRITICAL_SECTION_DEBUG DebugInfo;
    LONG LockCount;
    LONG RecursionCount;
    HANDLE OwningThread;
    HANDLE LockSemaphore;
    ULONG_PTR SpinCount;
} RTL_CRITICAL_SECTION, *PRTL_CRITICAL_SECTION, CRITICAL_SECTION, *PCRITICAL_SECTION, *LPCRITICAL_SECTION;

#define CRITICAL_SECTION_NO_DEBUG_INFO              0x01000000
#define RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO     0x01000000
#define RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN      0x02000000
#define RTL_CRITICAL_SECTION_FLAG_STATIC_INIT       0x04000000
#define RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE     0x08000000
#define RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO  0x10000000

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
#define RTL_RUN_ONCE_INIT {0}
#define INIT_ONCE_STATIC_INIT RTL_RUN_ONCE_INIT
#define INIT_ONCE_CHECK_ONLY  0x1
#define INIT_ONCE_ASYNC       0x2
#define INIT_ONCE_INIT_FAILED 0x4
#define INIT_ONCE_CTX_RESERVED_BITS 2
typedef struct _RTL_BARRIER {
    DWORD Reserved1;
    DWORD Reserved2;
    ULONG_PTR Reserved3[2];
    DWORD Reserved4;
    DWORD Reserved5;
} RTL_BARRIER, *PRTL_BARRIER, SYNCHRONIZATION_BARRIER, *PSYNCHRONIZATION_BARRIER, *LPSYNCHRONIZATION_BARRIER;
#define SYNCHRONIZATION_BARRIER_FLAGS_SPIN_ONLY  0x01
#define SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY 0x02
#define SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE  0x04
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
NDW_API(BOOL, InitOnceBeginInitialize, (LPINIT_ONCE once, DWORD flags, PBOOL pending, LPVOID *context));
NDW_API(BOOL, InitOnceComplete, (LPINIT_ONCE once, DWORD flags, LPVOID context));

NDW_API(BOOL, InitializeSynchronizationBarrier, (LPSYNCHRONIZATION_BARRIER barrier, LONG threads, LONG spins));
NDW_API(BOOL, EnterSynchronizationBarrier, (LPSYNCHRONIZATION_BARRIER barrier, DWORD flags));
NDW_API(BOOL, DeleteSynchronizationBarrier, (LPSYNCHRONIZATION_BARRIER barrier));

NDW_API(BOOL, WaitOnAddress, (volatile VOID *address, PVOID compare, SIZE_T size, DWORD milliseconds));
NDW_API(void, WakeByAddressSingle, (PVOID address));
NDW_API(void, WakeByAddressAll, (PVOID address));

#endif /* NDWIN_SYNC_H */
