/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Handles, overlapped requests and I/O completion ports. */
#ifndef NDWIN_IO_H
#define NDWIN_IO_H

#include "error.h"

typedef struct _OVERLAPPED {
    ULONG_PTR Internal;
    ULONG_PTR InternalHigh;
    __extension__ union {
        __extension__ struct {
            DWORD Offset;
            DWORD OffsetHigh;
        };
        PVOID Pointer;
    };
    HANDLE hEvent;
} OVERLAPPED, *LPOVERLAPPED;

typedef struct _OVERLAPPED_ENTRY {
    ULONG_PTR lpCompletionKey;
    LPOVERLAPPED lpOverlapped;
    ULONG_PTR Internal;
    DWORD dwNumberOfBytesTransferred;
} OVERLAPPED_ENTRY, *LPOVERLAPPED_ENTRY;

typedef VOID (WINAPI *LPOVERLAPPED_COMPLETION_ROUTINE)(DWORD code, DWORD bytes, LPOVERLAPPED overlapped);

/* The library stores Internal last, with release order: a program that reads it here sees all results. */
#define HasOverlappedIoCompleted(overlapped) \
    (__atomic_load_n(&(overlapped)->Internal, __ATOMIC_ACQUIRE) != (ULONG_PTR)0x103)

#define DUPLICATE_CLOSE_SOURCE 0x1
#define DUPLICATE_SAME_ACCESS  0x2
#define HANDLE_FLAG_INHERIT            0x1
#define HANDLE_FLAG_PROTECT_FROM_CLOSE 0x2
#define FILE_SKIP_COMPLETION_PORT_ON_SUCCESS 0x1
#define FILE_SKIP_SET_EVENT_ON_HANDLE        0x2

NDW_API(BOOL, CloseHandle, (HANDLE object));
NDW_API(BOOL, GetHandleInformation, (HANDLE handle, LPDWORD flags));
NDW_API(BOOL, SetHandleInformation, (HANDLE handle, DWORD mask, DWORD flags));
NDW_API(BOOL, DuplicateHandle,
    (HANDLE sourceProcess, HANDLE source, HANDLE targetProcess, LPHANDLE target, DWORD access, BOOL inherit,
     DWORD options));

NDW_API(HANDLE, CreateIoCompletionPort, (HANDLE file, HANDLE port, ULONG_PTR key, DWORD threads));
NDW_API(BOOL, GetQueuedCompletionStatus,
    (HANDLE port, LPDWORD bytes, PULONG_PTR key, LPOVERLAPPED *overlapped, DWORD milliseconds));
NDW_API(BOOL, GetQueuedCompletionStatusEx,
    (HANDLE port, LPOVERLAPPED_ENTRY entries, ULONG count, PULONG removed, DWORD milliseconds, BOOL alertable));
NDW_API(BOOL, PostQueuedCompletionStatus, (HANDLE port, DWORD bytes, ULONG_PTR key, LPOVERLAPPED overlapped));
NDW_API(BOOL, BindIoCompletionCallback, (HANDLE file, LPOVERLAPPED_COMPLETION_ROUTINE function, ULONG flags));
NDW_API(BOOL, ReadFileEx,
    (HANDLE file, LPVOID buffer, DWORD length, LPOVERLAPPED overlapped, LPOVERLAPPED_COMPLETION_ROUTINE routine));
NDW_API(BOOL, WriteFileEx,
    (HANDLE file, LPCVOID buffer, DWORD length, LPOVERLAPPED overlapped, LPOVERLAPPED_COMPLETION_ROUTINE routine));
NDW_API(BOOL, SetFileCompletionNotificationModes, (HANDLE file, UCHAR flags));
NDW_API(BOOL, CancelIo, (HANDLE file));
NDW_API(BOOL, CancelIoEx, (HANDLE file, LPOVERLAPPED overlapped));
NDW_API(BOOL, GetOverlappedResult, (HANDLE file, LPOVERLAPPED overlapped, LPDWORD bytes, BOOL wait));
NDW_API(BOOL, GetOverlappedResultEx,
    (HANDLE file, LPOVERLAPPED overlapped, LPDWORD bytes, DWORD milliseconds, BOOL alertable));

#endif /* NDWIN_IO_H */
