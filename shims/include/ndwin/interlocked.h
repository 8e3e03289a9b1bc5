/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Interlocked operations. All are full barriers, which the variants with a weaker name may be.
 *
 * They take any integer type, since ported code passes LONG*, long*, unsigned* and long long* to the same name.
 */
#ifndef NDWIN_INTERLOCKED_H
#define NDWIN_INTERLOCKED_H

#include "types.h"

#ifdef __cplusplus

extern "C++" {
namespace ndwin {
/* Keeps the second operand out of template argument deduction. */
template <typename T> struct same { typedef T type; };

template <typename T> inline T add(volatile T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }
/* Wraps, as no plain addition of signed numbers may. */
template <typename T> inline T sum(volatile T *p, T v) { return __atomic_add_fetch(p, v, __ATOMIC_SEQ_CST); }
template <typename T> inline T exchange(volatile T *p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }
template <typename T> inline T compare_exchange(volatile T *p, T v, T c)
{
    __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return c;
}
template <typename T> inline T bit_and(volatile T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }
template <typename T> inline T bit_or(volatile T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }
template <typename T> inline T bit_xor(volatile T *p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); }
}

#define NDW_ONE(name, expression) \
    template <typename T> inline T name(volatile T *p) { return static_cast<T>(expression); }
#define NDW_TWO(name, expression) \
    template <typename T> inline T name(volatile T *p, typename ndwin::same<T>::type v) \
    { return static_cast<T>(expression); }
#define NDW_THREE(name, expression) \
    template <typename T> inline T name(volatile T *p, typename ndwin::same<T>::type v, \
                                        typename ndwin::same<T>::type c) \
    { return static_cast<T>(expression); }

#define NDW_FAMILY(suffix) \
    NDW_ONE(InterlockedIncrement##suffix, ndwin::sum(p, T(1))) \
    NDW_ONE(InterlockedDecrement##suffix, ndwin::sum(p, T(-1))) \
    NDW_TWO(InterlockedAdd##suffix, ndwin::sum(p, v)) \
    NDW_TWO(InterlockedExchangeAdd##suffix, ndwin::add(p, v)) \
    NDW_TWO(InterlockedExchange##suffix, ndwin::exchange(p, v)) \
    NDW_THREE(InterlockedCompareExchange##suffix, ndwin::compare_exchange(p, v, c)) \
    NDW_TWO(InterlockedAnd##suffix, ndwin::bit_and(p, v)) \
    NDW_TWO(InterlockedOr##suffix, ndwin::bit_or(p, v)) \
    NDW_TWO(InterlockedXor##suffix, ndwin::bit_xor(p, v))

template <typename T> inline T *InterlockedExchangePointer(T *volatile *p, typename ndwin::same<T>::type *v)
{
    return ndwin::exchange(p, v);
}
template <typename T>
inline T *InterlockedCompareExchangePointer(T *volatile *p, typename ndwin::same<T>::type *v,
                                            typename ndwin::same<T>::type *c)
{
    return ndwin::compare_exchange(p, v, c);
}

NDW_FAMILY()
NDW_FAMILY(8)
NDW_FAMILY(16)
NDW_FAMILY(64)
NDW_FAMILY(Acquire)
NDW_FAMILY(Release)
NDW_FAMILY(NoFence)
NDW_FAMILY(Acquire64)
NDW_FAMILY(Release64)
NDW_FAMILY(NoFence64)

#undef NDW_FAMILY
#undef NDW_THREE
#undef NDW_TWO
#undef NDW_ONE
} /* extern "C++" */

#else /* C: the builtins are generic already. */

#define InterlockedIncrement(p)                __atomic_add_fetch((p), 1, __ATOMIC_SEQ_CST)
#define InterlockedDecrement(p)                __atomic_sub_fetch((p), 1, __ATOMIC_SEQ_CST)
#define InterlockedAdd(p, v)                   __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
#define InterlockedExchangeAdd(p, v)           __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define InterlockedExchange(p, v)              __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define InterlockedCompareExchange(p, v, c)    __sync_val_compare_and_swap((p), (c), (v))
#define InterlockedAnd(p, v)                   __atomic_fetch_and((p), (v), __ATOMIC_SEQ_CST)
#define InterlockedOr(p, v)                    __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define InterlockedXor(p, v)                   __atomic_fetch_xor((p), (v), __ATOMIC_SEQ_CST)

#define InterlockedIncrement16(p)              InterlockedIncrement(p)
#define InterlockedDecrement16(p)              InterlockedDecrement(p)
#define InterlockedExchange16(p, v)            InterlockedExchange((p), (v))
#define InterlockedCompareExchange16(p, v, c)  InterlockedCompareExchange((p), (v), (c))
#define InterlockedAnd16(p, v)                 InterlockedAnd((p), (v))
#define InterlockedOr16(p, v)                  InterlockedOr((p), (v))
#define InterlockedXor16(p, v)                 InterlockedXor((p), (v))
#define InterlockedExchange8(p, v)             InterlockedExchange((p), (v))
#define InterlockedAnd8(p, v)                  InterlockedAnd((p), (v))
#define InterlockedOr8(p, v)                   InterlockedOr((p), (v))
#define InterlockedXor8(p, v)                  InterlockedXor((p), (v))
#define InterlockedExchangeAdd8(p, v)          InterlockedExchangeAdd((p), (v))

#define InterlockedIncrement64(p)              InterlockedIncrement(p)
#define InterlockedDecrement64(p)              InterlockedDecrement(p)
#define InterlockedAdd64(p, v)                 InterlockedAdd((p), (v))
#define InterlockedExchangeAdd64(p, v)         InterlockedExchangeAdd((p), (v))
#define InterlockedExchange64(p, v)            InterlockedExchange((p), (v))
#define InterlockedCompareExchange64(p, v, c)  InterlockedCompareExchange((p), (v), (c))
#define InterlockedAnd64(p, v)                 InterlockedAnd((p), (v))
#define InterlockedOr64(p, v)                  InterlockedOr((p), (v))
#define InterlockedXor64(p, v)                 InterlockedXor((p), (v))

#define InterlockedIncrementAcquire(p)         InterlockedIncrement(p)
#define InterlockedIncrementRelease(p)         InterlockedIncrement(p)
#define InterlockedIncrementNoFence(p)         InterlockedIncrement(p)
#define InterlockedDecrementAcquire(p)         InterlockedDecrement(p)
#define InterlockedDecrementRelease(p)         InterlockedDecrement(p)
#define InterlockedDecrementNoFence(p)         InterlockedDecrement(p)
#define InterlockedExchangeAcquire(p, v)       InterlockedExchange((p), (v))
#define InterlockedExchangeNoFence(p, v)       InterlockedExchange((p), (v))
#define InterlockedCompareExchangeAcquire(p, v, c) InterlockedCompareExchange((p), (v), (c))
#define InterlockedCompareExchangeRelease(p, v, c) InterlockedCompareExchange((p), (v), (c))
#define InterlockedCompareExchangeNoFence(p, v, c) InterlockedCompareExchange((p), (v), (c))

#define InterlockedExchangePointer(p, v)           __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define InterlockedCompareExchangePointer(p, v, c) __sync_val_compare_and_swap((p), (c), (v))

#endif

#ifdef __x86_64__
/*
 * 16 bytes, aligned to as many: TRUE when they were `comparand`, which gets what they were in either case. In assembly,
 * since compilers use the instruction only when told to by -mcx16.
 */
NDW_INLINE BOOLEAN InterlockedCompareExchange128(volatile LONGLONG *target, LONGLONG high, LONGLONG low, LONGLONG *comparand)
{
    unsigned char equal;
    __asm__ __volatile__("lock cmpxchg16b %1\n\tsete %0"
                         : "=q"(equal), "+m"(*(volatile LONGLONG(*)[2])target), "+a"(comparand[0]), "+d"(comparand[1])
                         : "b"(low), "c"(high)
                         : "cc", "memory");
    return equal;
}
#endif

/* The compiler's own spellings. */
#define _InterlockedIncrement              InterlockedIncrement
#define _InterlockedDecrement              InterlockedDecrement
#define _InterlockedExchangeAdd            InterlockedExchangeAdd
#define _InterlockedExchange               InterlockedExchange
#define _InterlockedCompareExchange        InterlockedCompareExchange
#define _InterlockedAnd                    InterlockedAnd
#define _InterlockedOr                     InterlockedOr
#define _InterlockedXor                    InterlockedXor
#define _InterlockedIncrement16            InterlockedIncrement16
#define _InterlockedDecrement16            InterlockedDecrement16
#define _InterlockedExchange16             InterlockedExchange16
#define _InterlockedCompareExchange16      InterlockedCompareExchange16
#define _InterlockedIncrement64            InterlockedIncrement64
#define _InterlockedDecrement64            InterlockedDecrement64
#define _InterlockedExchangeAdd64          InterlockedExchangeAdd64
#define _InterlockedExchange64             InterlockedExchange64
#define _InterlockedCompareExchange64      InterlockedCompareExchange64
#define _InterlockedAnd64                  InterlockedAnd64
#define _InterlockedOr64                   InterlockedOr64
#define _InterlockedXor64                  InterlockedXor64
#define _InterlockedCompareExchange128     InterlockedCompareExchange128
#define _InterlockedExchangePointer        InterlockedExchangePointer
#define _InterlockedCompareExchangePointer InterlockedCompareExchangePointer

#endif /* NDWIN_INTERLOCKED_H */
