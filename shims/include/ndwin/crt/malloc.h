/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <malloc.h>. */
#ifndef NDWIN_CRT_MALLOC_H
#define NDWIN_CRT_MALLOC_H

#include "base.h"

NDW_API(void *, _aligned_malloc, (size_t size, size_t alignment));
NDW_API(void *, _aligned_realloc, (void *block, size_t size, size_t alignment));
NDW_API(void, _aligned_free, (void *block));
NDW_LIBC(size_t, _msize, (void *block), "malloc_usable_size");
NDW_INLINE size_t _aligned_msize(void *block, size_t alignment, size_t offset)
{
    return (void)alignment, (void)offset, _msize(block);
}
/* New bytes are 0. */
NDW_INLINE void *_recalloc(void *block, size_t count, size_t size)
{
    const size_t former = block ? _msize(block) : 0;
    size_t bytes;
    char *grown;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    if (bytes == 0) {
        __builtin_free(block);
        return NULL;
    }
    grown = (char *)__builtin_realloc(block, bytes);
    if (grown && bytes > former)
        __builtin_memset(grown + former, 0, bytes - former);
    return grown;
}
#define _alloca(size)  __builtin_alloca(size)
#define _malloca(size) malloc(size)
#define _freea(block)  free(block)

#endif /* NDWIN_CRT_MALLOC_H */
