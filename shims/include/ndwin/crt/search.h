/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <search.h>. */
#ifndef NDWIN_CRT_SEARCH_H
#define NDWIN_CRT_SEARCH_H

#include "stdlib.h"

/* From the first element on. The context comes first. */
NDW_INLINE void *_lfind_s(const void *key, const void *first, unsigned *count, size_t size,
    int (*compare)(void *context, const void *key, const void *element), void *context)
{
    const char *at = (const char *)first;
    unsigned i;
    if (key == NULL || count == NULL || (first == NULL && *count > 0) || size == 0 || compare == NULL) {
        errno = EINVAL;
        return NULL;
    }
    for (i = 0; i < *count; i++, at += size)
        if (compare(context, key, at) == 0)
            return (void *)(size_t)at;
    return NULL;
}
NDW_INLINE void *_lfind(
    const void *key, const void *first, unsigned *count, unsigned size, int (*compare)(const void *key, const void *element))
{
    const char *at = (const char *)first;
    unsigned i;
    if (key == NULL || count == NULL || (first == NULL && *count > 0) || size == 0 || compare == NULL) {
        errno = EINVAL;
        return NULL;
    }
    for (i = 0; i < *count; i++, at += size)
        if (compare(key, at) == 0)
            return (void *)(size_t)at;
    return NULL;
}
/* What is not found is added at the end. */
NDW_INLINE void *ndw_append(const void *key, void *first, unsigned *count, size_t size)
{
    return __builtin_memcpy((char *)first + (*count)++ * size, key, size);
}
NDW_INLINE void *_lsearch_s(const void *key, void *first, unsigned *count, size_t size,
    int (*compare)(void *context, const void *key, const void *element), void *context)
{
    void *found;
    if (first == NULL) {
        errno = EINVAL;
        return (void *)0;
    }
    found = _lfind_s(key, first, count, size, compare, context);
    return found || key == NULL || count == NULL || size == 0 || compare == NULL ? found : ndw_append(key, first, count, size);
}
NDW_INLINE void *_lsearch(
    const void *key, void *first, unsigned *count, unsigned size, int (*compare)(const void *key, const void *element))
{
    void *found;
    if (first == NULL) {
        errno = EINVAL;
        return (void *)0;
    }
    found = _lfind(key, first, count, size, compare);
    return found || key == NULL || count == NULL || size == 0 || compare == NULL ? found : ndw_append(key, first, count, size);
}

#endif /* NDWIN_CRT_SEARCH_H */
