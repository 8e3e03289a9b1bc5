/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Heaps and pages. */
#ifndef NDWIN_MEMORY_H
#define NDWIN_MEMORY_H

#include "crt/malloc.h"
#include "error.h"

#define HEAP_NO_SERIALIZE          0x00000001
#define HEAP_GROWABLE              0x00000002
#define HEAP_GENERATE_EXCEPTIONS   0x00000004
#define HEAP_ZERO_MEMORY           0x00000008
#define HEAP_REALLOC_IN_PLACE_ONLY 0x00000010

NDW_API(HANDLE, GetProcessHeap, (void));
NDW_API(HANDLE, HeapCreate, (DWORD options, SIZE_T initial, SIZE_T maximum));
NDW_API(BOOL, HeapDestroy, (HANDLE heap));
NDW_API(LPVOID, HeapAlloc, (HANDLE heap, DWORD flags, SIZE_T size));
NDW_API(LPVOID, HeapReAlloc, (HANDLE heap, DWORD flags, LPVOID block, SIZE_T size));
NDW_API(BOOL, HeapFree, (HANDLE heap, DWORD flags, LPVOID block));
NDW_API(SIZE_T, HeapSize, (HANDLE heap, DWORD flags, LPCVOID block));
NDW_API(BOOL, HeapValidate, (HANDLE heap, DWORD flags, LPCVOID block));
NDW_API(SIZE_T, HeapCompact, (HANDLE heap, DWORD flags));
NDW_API(BOOL, HeapLock, (HANDLE heap));
NDW_API(BOOL, HeapUnlock, (HANDLE heap));

#define PROCESS_HEAP_REGION            0x0001
#define PROCESS_HEAP_UNCOMMITTED_RANGE 0x0002
#define PROCESS_HEAP_ENTRY_BUSY        0x0004
#define PROCESS_HEAP_ENTRY_MOVEABLE    0x0010
#define PROCESS_HEAP_ENTRY_DDESHARE    0x0020

typedef struct _PROCESS_HEAP_ENTRY {
    PVOID lpData;
    DWORD cbData;
    BYTE cbOverhead;
    BYTE iRegionIndex;
    WORD wFlags;
    __extension__ union {
        struct {
            HANDLE hMem;
            DWORD dwReserved[3];
        } Block;
        struct {
            DWORD dwCommittedSize;
            DWORD dwUnCommittedSize;
            LPVOID lpFirstBlock;
            LPVOID lpLastBlock;
        } Region;
    };
} PROCESS_HEAP_ENTRY, *LPPROCESS_HEAP_ENTRY, *PPROCESS_HEAP_ENTRY;

typedef enum _HEAP_INFORMATION_CLASS {
    HeapCompatibilityInformation = 0,
    HeapEnableTerminationOnCorruption = 1,
    HeapOptimizeResources = 3
} HEAP_INFORMATION_CLASS;

NDW_API(BOOL, HeapSetInformation, (HANDLE heap, HEAP_INFORMATION_CLASS kind, PVOID information, SIZE_T length));
NDW_API(BOOL, HeapQueryInformation,
    (HANDLE heap, HEAP_INFORMATION_CLASS kind, PVOID information, SIZE_T length, PSIZE_T needed));
NDW_API(BOOL, HeapWalk, (HANDLE heap, LPPROCESS_HEAP_ENTRY entry));

#define LMEM_FIXED    0x0000
#define LMEM_ZEROINIT 0x0040
#define LPTR          (LMEM_FIXED | LMEM_ZEROINIT)
NDW_API(HLOCAL, LocalAlloc, (UINT flags, SIZE_T size));
NDW_API(HLOCAL, LocalFree, (HLOCAL block));
NDW_API(SIZE_T, LocalSize, (HLOCAL block));
NDW_API(HLOCAL, LocalReAlloc, (HLOCAL block, SIZE_T size, UINT flags));
#define LMEM_MOVEABLE 0x0002
#define LHND          (LMEM_MOVEABLE | LMEM_ZEROINIT)
#define LMEM_MODIFY   0x0080
#define LMEM_DISCARDED      0x4000
#define LMEM_INVALID_HANDLE 0x8000
#define LMEM_LOCKCOUNT      0x00FF
/* No block is discarded, or locked: all are fixed. */
NDW_INLINE UINT LocalFlags(HLOCAL block)
{
    if (block == NULL) {
        SetLastError(ERROR_INVALID_HANDLE);
        return LMEM_INVALID_HANDLE;
    }
    return 0;
}

/* Global* use the same heap. Movable blocks are fixed here: the handle is the address. */
#define GMEM_FIXED    LMEM_FIXED
#define GMEM_MOVEABLE 0x0002
#define GMEM_ZEROINIT LMEM_ZEROINIT
#define GPTR          LPTR
#define GMEM_DISCARDED      LMEM_DISCARDED
#define GMEM_INVALID_HANDLE LMEM_INVALID_HANDLE
#define GMEM_LOCKCOUNT      LMEM_LOCKCOUNT
NDW_INLINE UINT GlobalFlags(HGLOBAL block) { return LocalFlags(block); }
#define GHND          (GMEM_MOVEABLE | GMEM_ZEROINIT)
NDW_INLINE HGLOBAL GlobalAlloc(UINT flags, SIZE_T size)
{
    return LocalAlloc(flags, size);
}
NDW_INLINE HGLOBAL GlobalFree(HGLOBAL block)
{
    return LocalFree(block);
}
NDW_INLINE SIZE_T GlobalSize(HGLOBAL block)
{
    return LocalSize(block);
}
NDW_INLINE HGLOBAL GlobalReAlloc(HGLOBAL block, SIZE_T size, UINT flags)
{
    return LocalReAlloc(block, size, flags);
}
NDW_INLINE LPVOID GlobalLock(HGLOBAL block)
{
    return block;
}
NDW_INLINE HGLOBAL GlobalHandle(LPCVOID address)
{
    if (address == NULL)
        SetLastError(ERROR_INVALID_HANDLE);
    return (HGLOBAL)(ULONG_PTR)address;
}
/* Of a block that is locked no more: FALSE, and no error. */
NDW_INLINE BOOL GlobalUnlock(HGLOBAL block)
{
    if (block != NULL)
        SetLastError(0);
    return block == NULL;
}

#define PAGE_NOACCESS          0x01
#define PAGE_READONLY          0x02
#define PAGE_READWRITE         0x04
#define PAGE_WRITECOPY         0x08
#define PAGE_EXECUTE           0x10
#define PAGE_EXECUTE_READ      0x20
#define PAGE_EXECUTE_READWRITE 0x40
#define PAGE_GUARD             0x100
#define PAGE_NOCACHE           0x200
#define PAGE_WRITECOMBINE      0x400
#define MEM_COMMIT             0x00001000
#define MEM_RESERVE            0x00002000
#define MEM_DECOMMIT           0x00004000
#define MEM_RELEASE            0x00008000
#define MEM_FREE               0x00010000
#define MEM_PRIVATE            0x00020000
#define MEM_MAPPED             0x00040000
#define MEM_RESET              0x00080000
#define MEM_TOP_DOWN           0x00100000
#define MEM_WRITE_WATCH        0x00200000
#define MEM_PHYSICAL           0x00400000
#define MEM_IMAGE              0x01000000
#define MEM_RESET_UNDO         0x01000000
#define MEM_LARGE_PAGES        0x20000000

typedef struct _MEMORY_BASIC_INFORMATION {
    PVOID BaseAddress;
    PVOID AllocationBase;
    DWORD AllocationProtect;
    WORD PartitionId;
    SIZE_T RegionSize;
    DWORD State;
    DWORD Protect;
    DWORD Type;
} MEMORY_BASIC_INFORMATION, *PMEMORY_BASIC_INFORMATION;

NDW_API(SIZE_T, GetLargePageMinimum, (void));
NDW_API(LPVOID, VirtualAlloc, (LPVOID address, SIZE_T size, DWORD type, DWORD protect));
NDW_API(BOOL, VirtualFree, (LPVOID address, SIZE_T size, DWORD type));
NDW_API(BOOL, VirtualProtect, (LPVOID address, SIZE_T size, DWORD protect, PDWORD old));
NDW_API(SIZE_T, VirtualQuery, (LPCVOID address, PMEMORY_BASIC_INFORMATION buffer, SIZE_T length));

#define PAGE_EXECUTE_WRITECOPY 0x80
#define SEC_RESERVE            0x04000000
#define SEC_COMMIT             0x08000000
#define SEC_NOCACHE            0x10000000
#define SEC_LARGE_PAGES        0x80000000
#define FILE_MAP_COPY          0x00000001
#define FILE_MAP_WRITE         0x00000002
#define FILE_MAP_READ          0x00000004
#define FILE_MAP_EXECUTE       0x00000020
#define FILE_MAP_ALL_ACCESS    0x000F001F

NDW_API(HANDLE, CreateFileMappingA,
    (HANDLE file, LPSECURITY_ATTRIBUTES security, DWORD protect, DWORD sizeHigh, DWORD sizeLow, LPCSTR name));
NDW_API(HANDLE, CreateFileMappingW,
    (HANDLE file, LPSECURITY_ATTRIBUTES security, DWORD protect, DWORD sizeHigh, DWORD sizeLow, LPCWSTR name));
NDW_API(HANDLE, OpenFileMappingA, (DWORD access, BOOL inherit, LPCSTR name));
NDW_API(HANDLE, OpenFileMappingW, (DWORD access, BOOL inherit, LPCWSTR name));
NDW_API(LPVOID, MapViewOfFile, (HANDLE section, DWORD access, DWORD offsetHigh, DWORD offsetLow, SIZE_T bytes));
NDW_API(LPVOID, MapViewOfFileEx,
    (HANDLE section, DWORD access, DWORD offsetHigh, DWORD offsetLow, SIZE_T bytes, LPVOID address));
NDW_API(BOOL, UnmapViewOfFile, (LPCVOID address));
NDW_API(BOOL, FlushViewOfFile, (LPCVOID address, SIZE_T bytes));
NDW_API(BOOL, VirtualLock, (LPVOID address, SIZE_T bytes));
NDW_API(BOOL, VirtualUnlock, (LPVOID address, SIZE_T bytes));

#define QUOTA_LIMITS_HARDWS_MIN_ENABLE  0x00000001
#define QUOTA_LIMITS_HARDWS_MIN_DISABLE 0x00000002
#define QUOTA_LIMITS_HARDWS_MAX_ENABLE  0x00000004
#define QUOTA_LIMITS_HARDWS_MAX_DISABLE 0x00000008
NDW_API(BOOL, GetProcessWorkingSetSize, (HANDLE process, PSIZE_T least, PSIZE_T most));
NDW_API(BOOL, SetProcessWorkingSetSize, (HANDLE process, SIZE_T least, SIZE_T most));
NDW_API(BOOL, GetProcessWorkingSetSizeEx, (HANDLE process, PSIZE_T least, PSIZE_T most, PDWORD flags));
NDW_API(BOOL, SetProcessWorkingSetSizeEx, (HANDLE process, SIZE_T least, SIZE_T most, DWORD flags));

typedef BOOLEAN(CALLBACK *PSECURE_MEMORY_CACHE_CALLBACK)(PVOID address, SIZE_T range);
NDW_API(BOOL, AddSecureMemoryCacheCallback, (PSECURE_MEMORY_CACHE_CALLBACK callback));
NDW_API(BOOL, RemoveSecureMemoryCacheCallback, (PSECURE_MEMORY_CACHE_CALLBACK callback));

#ifdef UNICODE
#define CreateFileMapping CreateFileMappingW
#define OpenFileMapping   OpenFileMappingW
#else
#define CreateFileMapping CreateFileMappingA
#define OpenFileMapping   OpenFileMappingA
#endif

#endif /* NDWIN_MEMORY_H */
