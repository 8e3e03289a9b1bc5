/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <malloc.h>. */
#ifndef NDWIN_CRT_MALLOC_H
#define NDWIN_CRT_MALLOC_H

#include "base.h"

NDW_API(void *, _aligned_malloc, (size_t size, size_t alignment));
NDW_API(void *, _aligned_realloc, (void *block, size_t size, size_t alignment));
NDW_API(void, _aligned_free, (void *block));
NDW_LIBC(size_t, ndw_room, (void *block), "malloc_usable_size");
/*
 * What was asked for, where the compiler knows it, as the checked functions of the C library hold the program to that. Otherwise
 * what there is room for, which may be a few bytes more.
 */
#if defined(__has_builtin)
#if __has_builtin(__builtin_dynamic_object_size)
#define NDW_KNOWN_SIZE(block) __builtin_dynamic_object_size(block, 0)
#endif
#endif
#ifndef NDW_KNOWN_SIZE
#define NDW_KNOWN_SIZE(block) __builtin_object_size(block, 0)
#endif
NDW_INLINE __attribute__((always_inline)) size_t _msize(void *block)
{
    const size_t known = NDW_KNOWN_SIZE(block);
    const size_t room = ndw_room(block);
    return known < room ? known : room;
}
#undef NDW_KNOWN_SIZE
NDW_INLINE size_t _aligned_msize(void *block, size_t alignment, size_t offset)
{
    return (void)alignment, (void)offset, ndw_room(block);
}
/* New bytes are 0. Of a block that another function has made they are those behind what there was room for. */
NDW_API(void *, _recalloc, (void *block, size_t count, size_t size));
#define _alloca(size)  __builtin_alloca(size)
#define _malloca(size) malloc(size)
#define _freea(block)  free(block)
/* The heap is not looked at: a program whose heap is damaged is ended by the C library. */
#define _HEAPEMPTY    (-1)
#define _HEAPOK       (-2)
#define _HEAPBADBEGIN (-3)
#define _HEAPBADNODE  (-4)
NDW_INLINE int _heapchk(void) { return _HEAPOK; }
NDW_INLINE int _heapmin(void) { return 0; }

#endif /* NDWIN_CRT_MALLOC_H */
