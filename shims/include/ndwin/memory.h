/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Heaps and pages. */
#ifndef NDWIN_MEMORY_H
#define NDWIN_MEMORY_H

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

#define LMEM_FIXED    0x0000
#define LMEM_ZEROINIT 0x0040
#define LPTR          (LMEM_FIXED | LMEM_ZEROINIT)
NDW_API(HLOCAL, LocalAlloc, (UINT flags, SIZE_T size));
NDW_API(HLOCAL, LocalFree, (HLOCAL block));

#define PAGE_NOACCESS          0x01
#define PAGE_READONLY          0x02
#define PAGE_READWRITE         0x04
#define PAGE_WRITECOPY         0x08
#define PAGE_EXECUTE           0x10
#define PAGE_EXECUTE_READ      0x20
#define PAGE_EXECUTE_READWRITE 0x40
#define PAGE_GUARD             0x100
#define PAGE_NOCACHE           0x200
#define MEM_COMMIT             0x00001000
#define MEM_RESERVE            0x00002000
#define MEM_DECOMMIT           0x00004000
#define MEM_RELEASE            0x00008000
#define MEM_FREE               0x00010000
#define MEM_PRIVATE            0x00020000
#define MEM_MAPPED             0x00040000
#define MEM_RESET              0x00080000
#define MEM_TOP_DOWN           0x00100000
#define MEM_IMAGE              0x01000000
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

NDW_API(LPVOID, VirtualAlloc, (LPVOID address, SIZE_T size, DWORD type, DWORD protect));
NDW_API(BOOL, VirtualFree, (LPVOID address, SIZE_T size, DWORD type));
NDW_API(BOOL, VirtualProtect, (LPVOID address, SIZE_T size, DWORD protect, PDWORD old));
NDW_API(SIZE_T, VirtualQuery, (LPCVOID address, PMEMORY_BASIC_INFORMATION buffer, SIZE_T length));

/* <malloc.h> */
NDW_API(void *, _aligned_malloc, (size_t size, size_t alignment));
NDW_API(void *, _aligned_realloc, (void *block, size_t size, size_t alignment));
NDW_API(void, _aligned_free, (void *block));

#endif /* NDWIN_MEMORY_H */
