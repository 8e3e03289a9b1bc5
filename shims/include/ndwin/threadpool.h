/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Callbacks on threads of the library: thread pools, registered waits, timer queues. */
#ifndef NDWIN_THREADPOOL_H
#define NDWIN_THREADPOOL_H

#include "io.h"
#include "sync.h"
#include "system.h"
#include "thread.h"

/* Work items, registered waits, timer queues. */
#define WT_EXECUTEDEFAULT              0x00000000
#define WT_EXECUTEINIOTHREAD           0x00000001
#define WT_EXECUTEINWAITTHREAD         0x00000004
#define WT_EXECUTEONLYONCE             0x00000008
#define WT_EXECUTELONGFUNCTION         0x00000010
#define WT_EXECUTEINTIMERTHREAD        0x00000020
#define WT_EXECUTEINPERSISTENTTHREAD   0x00000080
#define WT_TRANSFER_IMPERSONATION      0x00000100

typedef VOID (NTAPI *WAITORTIMERCALLBACKFUNC)(PVOID context, BOOLEAN timerOrWaitFired);
typedef WAITORTIMERCALLBACKFUNC WAITORTIMERCALLBACK;

NDW_API(BOOL, QueueUserWorkItem, (LPTHREAD_START_ROUTINE routine, PVOID context, ULONG flags));
NDW_API(BOOL, RegisterWaitForSingleObject,
    (PHANDLE wait, HANDLE object, WAITORTIMERCALLBACK callback, PVOID context, ULONG milliseconds, ULONG flags));
NDW_API(BOOL, UnregisterWait, (HANDLE wait));
NDW_API(BOOL, UnregisterWaitEx, (HANDLE wait, HANDLE completion));

NDW_API(HANDLE, CreateTimerQueue, (void));
NDW_API(BOOL, CreateTimerQueueTimer,
    (PHANDLE timer, HANDLE queue, WAITORTIMERCALLBACK callback, PVOID context, DWORD due, DWORD period, ULONG flags));
NDW_API(BOOL, ChangeTimerQueueTimer, (HANDLE queue, HANDLE timer, ULONG due, ULONG period));
NDW_API(BOOL, DeleteTimerQueueTimer, (HANDLE queue, HANDLE timer, HANDLE completion));
NDW_API(BOOL, DeleteTimerQueueEx, (HANDLE queue, HANDLE completion));
NDW_API(BOOL, DeleteTimerQueue, (HANDLE queue));

/* Thread pools. */
typedef struct _TP_POOL TP_POOL, *PTP_POOL;
typedef struct _TP_WORK TP_WORK, *PTP_WORK;
typedef struct _TP_TIMER TP_TIMER, *PTP_TIMER;
typedef struct _TP_WAIT TP_WAIT, *PTP_WAIT;
typedef struct _TP_IO TP_IO, *PTP_IO;
typedef struct _TP_CLEANUP_GROUP TP_CLEANUP_GROUP, *PTP_CLEANUP_GROUP;
typedef struct _TP_CALLBACK_INSTANCE TP_CALLBACK_INSTANCE, *PTP_CALLBACK_INSTANCE;
typedef DWORD TP_VERSION, *PTP_VERSION;
typedef DWORD TP_WAIT_RESULT;

typedef VOID (NTAPI *PTP_SIMPLE_CALLBACK)(PTP_CALLBACK_INSTANCE instance, PVOID context);
typedef VOID (NTAPI *PTP_WORK_CALLBACK)(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work);
typedef VOID (NTAPI *PTP_TIMER_CALLBACK)(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer);
typedef VOID (NTAPI *PTP_WAIT_CALLBACK)(
    PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result);
typedef VOID (WINAPI *PTP_WIN32_IO_CALLBACK)(
    PTP_CALLBACK_INSTANCE instance, PVOID context, PVOID overlapped, ULONG result, ULONG_PTR bytes, PTP_IO io);
typedef VOID (NTAPI *PTP_CLEANUP_GROUP_CANCEL_CALLBACK)(PVOID context, PVOID cleanupContext);

typedef enum _TP_CALLBACK_PRIORITY {
    TP_CALLBACK_PRIORITY_HIGH,
    TP_CALLBACK_PRIORITY_NORMAL,
    TP_CALLBACK_PRIORITY_LOW,
    TP_CALLBACK_PRIORITY_INVALID,
    TP_CALLBACK_PRIORITY_COUNT = TP_CALLBACK_PRIORITY_INVALID
} TP_CALLBACK_PRIORITY;

typedef struct _TP_CALLBACK_ENVIRON_V3 {
    TP_VERSION Version;
    PTP_POOL Pool;
    PTP_CLEANUP_GROUP CleanupGroup;
    PTP_CLEANUP_GROUP_CANCEL_CALLBACK CleanupGroupCancelCallback;
    PVOID RaceDll;
    struct _ACTIVATION_CONTEXT *ActivationContext;
    PTP_SIMPLE_CALLBACK FinalizationCallback;
    union {
        DWORD Flags;
        struct {
            DWORD LongFunction : 1;
            DWORD Persistent : 1;
            DWORD Private : 30;
        } s;
    } u;
    TP_CALLBACK_PRIORITY CallbackPriority;
    DWORD Size;
} TP_CALLBACK_ENVIRON_V3, TP_CALLBACK_ENVIRON, *PTP_CALLBACK_ENVIRON;

NDW_INLINE void InitializeThreadpoolEnvironment(PTP_CALLBACK_ENVIRON environment)
{
    static const TP_CALLBACK_ENVIRON initial = {
        3, NULL, NULL, NULL, NULL, NULL, NULL, {0}, TP_CALLBACK_PRIORITY_NORMAL, sizeof(TP_CALLBACK_ENVIRON)};
    *environment = initial;
}

NDW_INLINE void DestroyThreadpoolEnvironment(PTP_CALLBACK_ENVIRON environment)
{
    (void)environment;
}

NDW_INLINE void SetThreadpoolCallbackPool(PTP_CALLBACK_ENVIRON environment, PTP_POOL pool)
{
    environment->Pool = pool;
}

NDW_INLINE void SetThreadpoolCallbackCleanupGroup(
    PTP_CALLBACK_ENVIRON environment, PTP_CLEANUP_GROUP group, PTP_CLEANUP_GROUP_CANCEL_CALLBACK callback)
{
    environment->CleanupGroup = group;
    environment->CleanupGroupCancelCallback = callback;
}

NDW_INLINE void SetThreadpoolCallbackRunsLong(PTP_CALLBACK_ENVIRON environment)
{
    environment->u.s.LongFunction = 1;
}

NDW_INLINE void SetThreadpoolCallbackPersistent(PTP_CALLBACK_ENVIRON environment)
{
    environment->u.s.Persistent = 1;
}

NDW_INLINE void SetThreadpoolCallbackPriority(PTP_CALLBACK_ENVIRON environment, TP_CALLBACK_PRIORITY priority)
{
    environment->CallbackPriority = priority;
}

NDW_INLINE void SetThreadpoolCallbackLibrary(PTP_CALLBACK_ENVIRON environment, PVOID module)
{
    environment->RaceDll = module;
}

NDW_API(PTP_POOL, CreateThreadpool, (PVOID reserved));
NDW_API(void, SetThreadpoolThreadMaximum, (PTP_POOL pool, DWORD most));
NDW_API(BOOL, SetThreadpoolThreadMinimum, (PTP_POOL pool, DWORD least));
NDW_API(void, CloseThreadpool, (PTP_POOL pool));

NDW_API(BOOL, TrySubmitThreadpoolCallback,
    (PTP_SIMPLE_CALLBACK callback, PVOID context, PTP_CALLBACK_ENVIRON environment));
NDW_API(PTP_WORK, CreateThreadpoolWork,
    (PTP_WORK_CALLBACK callback, PVOID context, PTP_CALLBACK_ENVIRON environment));
NDW_API(void, SubmitThreadpoolWork, (PTP_WORK work));
NDW_API(void, WaitForThreadpoolWorkCallbacks, (PTP_WORK work, BOOL cancel));
NDW_API(void, CloseThreadpoolWork, (PTP_WORK work));

NDW_API(PTP_TIMER, CreateThreadpoolTimer,
    (PTP_TIMER_CALLBACK callback, PVOID context, PTP_CALLBACK_ENVIRON environment));
NDW_API(void, SetThreadpoolTimer, (PTP_TIMER timer, PFILETIME due, DWORD period, DWORD window));
NDW_API(BOOL, SetThreadpoolTimerEx, (PTP_TIMER timer, PFILETIME due, DWORD period, DWORD window));
NDW_API(BOOL, IsThreadpoolTimerSet, (PTP_TIMER timer));
NDW_API(void, WaitForThreadpoolTimerCallbacks, (PTP_TIMER timer, BOOL cancel));
NDW_API(void, CloseThreadpoolTimer, (PTP_TIMER timer));

NDW_API(PTP_WAIT, CreateThreadpoolWait,
    (PTP_WAIT_CALLBACK callback, PVOID context, PTP_CALLBACK_ENVIRON environment));
NDW_API(void, SetThreadpoolWait, (PTP_WAIT wait, HANDLE object, PFILETIME timeout));
NDW_API(BOOL, SetThreadpoolWaitEx, (PTP_WAIT wait, HANDLE object, PFILETIME timeout, PVOID reserved));
NDW_API(void, WaitForThreadpoolWaitCallbacks, (PTP_WAIT wait, BOOL cancel));
NDW_API(void, CloseThreadpoolWait, (PTP_WAIT wait));

NDW_API(PTP_IO, CreateThreadpoolIo,
    (HANDLE file, PTP_WIN32_IO_CALLBACK callback, PVOID context, PTP_CALLBACK_ENVIRON environment));
NDW_API(void, StartThreadpoolIo, (PTP_IO io));
NDW_API(void, CancelThreadpoolIo, (PTP_IO io));
NDW_API(void, WaitForThreadpoolIoCallbacks, (PTP_IO io, BOOL cancel));
NDW_API(void, CloseThreadpoolIo, (PTP_IO io));

NDW_API(PTP_CLEANUP_GROUP, CreateThreadpoolCleanupGroup, (void));
NDW_API(void, CloseThreadpoolCleanupGroupMembers, (PTP_CLEANUP_GROUP group, BOOL cancel, PVOID context));
NDW_API(void, CloseThreadpoolCleanupGroup, (PTP_CLEANUP_GROUP group));

NDW_API(BOOL, CallbackMayRunLong, (PTP_CALLBACK_INSTANCE instance));
NDW_API(void, FreeLibraryWhenCallbackReturns, (PTP_CALLBACK_INSTANCE instance, HMODULE module));
NDW_API(void, SetEventWhenCallbackReturns, (PTP_CALLBACK_INSTANCE instance, HANDLE event));
NDW_API(void, ReleaseSemaphoreWhenCallbackReturns, (PTP_CALLBACK_INSTANCE instance, HANDLE semaphore, DWORD more));
NDW_API(void, ReleaseMutexWhenCallbackReturns, (PTP_CALLBACK_INSTANCE instance, HANDLE mutex));
NDW_API(void, LeaveCriticalSectionWhenCallbackReturns,
    (PTP_CALLBACK_INSTANCE instance, PCRITICAL_SECTION section));

#endif /* NDWIN_THREADPOOL_H */
