/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <new.h>. */
#ifndef NDWIN_NEW_H
#define NDWIN_NEW_H
#ifdef __cplusplus
#include <cstdlib>
#include <new>
#include "ndwin/config.h"

/* Called by `operator new` when there is no memory, until it says 0: then std::bad_alloc is thrown. */
typedef int (*_PNH)(size_t);

extern "C++" {
namespace ndwin {
inline _PNH &new_handler()
{
    static _PNH handler;
    return handler;
}
/* The standard's handlers are not told the size. */
inline void call_new_handler()
{
    if (new_handler() && new_handler()(0))
        return;
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
    throw std::bad_alloc();
#else
    std::abort();
#endif
}
}
inline _PNH _query_new_handler()
{
    return ndwin::new_handler();
}
inline _PNH _set_new_handler(_PNH handler)
{
    const _PNH former = ndwin::new_handler();
    ndwin::new_handler() = handler;
    std::set_new_handler(handler ? ndwin::call_new_handler : nullptr);
    return former;
}
}
#endif
#endif
