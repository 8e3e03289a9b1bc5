/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Interlocked operations. All are full barriers, also those named Acquire, Release or NoFence.
 *
 * They take any integer type, because ported code passes LONG*, long*, unsigned* and long long* to the same function.
 */
#ifndef NDWIN_INTERLOCKED_H
#define NDWIN_INTERLOCKED_H

#include "types.h"

#ifdef __cplusplus

extern "C++" {
namespace ndwin {
/* The second operand takes no part in template argument deduction. */
template <typename T_> struct same { typedef T_ type; };

template <typename T_> inline T_ add(volatile T_ *p, T_ v) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }
/* The builtin wraps on overflow; a plain addition of signed numbers must not. */
template <typename T_> inline T_ sum(volatile T_ *p, T_ v) { return __atomic_add_fetch(p, v, __ATOMIC_SEQ_CST); }
template <typename T_> inline T_ exchange(volatile T_ *p, T_ v) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }
template <typename T_> inline T_ compare_exchange(volatile T_ *p, T_ v, T_ c)
{
    __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return c;
}
template <typename T_> inline T_ bit_and(volatile T_ *p, T_ v) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }
template <typename T_> inline T_ bit_or(volatile T_ *p, T_ v) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }
template <typename T_> inline T_ bit_xor(volatile T_ *p, T_ v) { return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); }
}

#define NDW_ONE(name, expression) \
    template <typename T_> inline T_ name(volatile T_ *p) { return static_cast<T_>(expression); }
#define NDW_TWO(name, expression) \
    template <typename T_> inline T_ name(volatile T_ *p, typename ndwin::same<T_>::type v) \
    { return static_cast<T_>(expression); }
#define NDW_THREE(name, expression) \
    template <typename T_> inline T_ name(volatile T_ *p, typename ndwin::same<T_>::type v, \
                                        typename ndwin::same<T_>::type c) \
    { return static_cast<T_>(expression); }

#define NDW_FAMILY(suffix) \
    NDW_ONE(InterlockedIncrement##suffix, ndwin::sum(p, T_(1))) \
    NDW_ONE(InterlockedDecrement##suffix, ndwin::sum(p, T_(-1))) \
    NDW_TWO(InterlockedAdd##suffix, ndwin::sum(p, v)) \
    NDW_TWO(InterlockedExchangeAdd##suffix, ndwin::add(p, v)) \
    NDW_TWO(InterlockedExchange##suffix, ndwin::exchange(p, v)) \
    NDW_THREE(InterlockedCompareExchange##suffix, ndwin::compare_exchange(p, v, c)) \
    NDW_TWO(InterlockedAnd##suffix, ndwin::bit_and(p, v)) \
    NDW_TWO(InterlockedOr##suffix, ndwin::bit_or(p, v)) \
    NDW_TWO(InterlockedXor##suffix, ndwin::bit_xor(p, v))

NDW_TWO(InterlockedExchangeSubtract, __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST))
template <typename T_> inline T_ *InterlockedExchangePointer(T_ *volatile *p, typename ndwin::same<T_>::type *v)
{
    return ndwin::exchange(p, v);
}
template <typename T_>
inline T_ *InterlockedCompareExchangePointer(T_ *volatile *p, typename ndwin::same<T_>::type *v,
                                            typename ndwin::same<T_>::type *c)
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
#define InterlockedIncrementAcquire64(p)       InterlockedIncrement(p)
#define InterlockedIncrementRelease64(p)       InterlockedIncrement(p)
#define InterlockedIncrementNoFence64(p)       InterlockedIncrement(p)
#define InterlockedDecrementAcquire(p)         InterlockedDecrement(p)
#define InterlockedDecrementRelease(p)         InterlockedDecrement(p)
#define InterlockedDecrementNoFence(p)         InterlockedDecrement(p)
#define InterlockedDecrementAcquire64(p)       InterlockedDecrement(p)
#define InterlockedDecrementRelease64(p)       InterlockedDecrement(p)
#define InterlockedDecrementNoFence64(p)       InterlockedDecrement(p)
#define InterlockedAddAcquire(p, v)            InterlockedAdd((p), (v))
#define InterlockedAddRelease(p, v)            InterlockedAdd((p), (v))
#define InterlockedAddNoFence(p, v)            InterlockedAdd((p), (v))
#define InterlockedAddAcquire64(p, v)          InterlockedAdd((p), (v))
#define InterlockedAddRelease64(p, v)          InterlockedAdd((p), (v))
#define InterlockedAddNoFence64(p, v)          InterlockedAdd((p), (v))
#define InterlockedExchangeAddAcquire(p, v)    InterlockedExchangeAdd((p), (v))
#define InterlockedExchangeAddRelease(p, v)    InterlockedExchangeAdd((p), (v))
#define InterlockedExchangeAddNoFence(p, v)    InterlockedExchangeAdd((p), (v))
#define InterlockedExchangeAddAcquire64(p, v)  InterlockedExchangeAdd((p), (v))
#define InterlockedExchangeAddRelease64(p, v)  InterlockedExchangeAdd((p), (v))
#define InterlockedExchangeAddNoFence64(p, v)  InterlockedExchangeAdd((p), (v))
#define InterlockedExchangeAcquire(p, v)       InterlockedExchange((p), (v))
#define InterlockedExchangeRelease(p, v)       InterlockedExchange((p), (v))
#define InterlockedExchangeNoFence(p, v)       InterlockedExchange((p), (v))
#define InterlockedExchangeAcquire64(p, v)     InterlockedExchange((p), (v))
#define InterlockedExchangeRelease64(p, v)     InterlockedExchange((p), (v))
#define InterlockedExchangeNoFence64(p, v)     InterlockedExchange((p), (v))
#define InterlockedCompareExchangeAcquire(p, v, c) InterlockedCompareExchange((p), (v), (c))
#define InterlockedCompareExchangeRelease(p, v, c) InterlockedCompareExchange((p), (v), (c))
#define InterlockedCompareExchangeNoFence(p, v, c) InterlockedCompareExchange((p), (v), (c))
#define InterlockedCompareExchangeAcquire64(p, v, c) InterlockedCompareExchange((p), (v), (c))
#define InterlockedCompareExchangeRelease64(p, v, c) InterlockedCompareExchange((p), (v), (c))
#define InterlockedCompareExchangeNoFence64(p, v, c) InterlockedCompareExchange((p), (v), (c))
#define InterlockedAndAcquire(p, v)            InterlockedAnd((p), (v))
#define InterlockedAndRelease(p, v)            InterlockedAnd((p), (v))
#define InterlockedAndNoFence(p, v)            InterlockedAnd((p), (v))
#define InterlockedAndAcquire64(p, v)          InterlockedAnd((p), (v))
#define InterlockedAndRelease64(p, v)          InterlockedAnd((p), (v))
#define InterlockedAndNoFence64(p, v)          InterlockedAnd((p), (v))
#define InterlockedOrAcquire(p, v)             InterlockedOr((p), (v))
#define InterlockedOrRelease(p, v)             InterlockedOr((p), (v))
#define InterlockedOrNoFence(p, v)             InterlockedOr((p), (v))
#define InterlockedOrAcquire64(p, v)           InterlockedOr((p), (v))
#define InterlockedOrRelease64(p, v)           InterlockedOr((p), (v))
#define InterlockedOrNoFence64(p, v)           InterlockedOr((p), (v))
#define InterlockedXorAcquire(p, v)            InterlockedXor((p), (v))
#define InterlockedXorRelease(p, v)            InterlockedXor((p), (v))
#define InterlockedXorNoFence(p, v)            InterlockedXor((p), (v))
#define InterlockedXorAcquire64(p, v)          InterlockedXor((p), (v))
#define InterlockedXorRelease64(p, v)          InterlockedXor((p), (v))
#define InterlockedXorNoFence64(p, v)          InterlockedXor((p), (v))

#define InterlockedExchangePointer(p, v)           __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define InterlockedCompareExchangePointer(p, v, c) __sync_val_compare_and_swap((p), (c), (v))

#endif

#ifdef __x86_64__
/*
 * `target` must be aligned to 16 bytes. Returns TRUE if it was equal to `comparand`, which receives its former value in
 * either case. In assembly, since compilers emit the instruction only with -mcx16.
 */
NDW_INLINE BOOLEAN ndw_compare_exchange_128(volatile LONGLONG *target, LONGLONG high, LONGLONG low, LONGLONG *comparand)
{
    unsigned char equal;
    __asm__ __volatile__("lock cmpxchg16b %1\n\tsete %0"
                         : "=q"(equal), "+m"(*(volatile LONGLONG(*)[2])target), "+a"(comparand[0]), "+d"(comparand[1])
                         : "b"(low), "c"(high)
                         : "cc", "memory");
    return equal;
}
/* LONG64 is long, and LONGLONG and __int64 are long long. */
#ifdef __cplusplus
extern "C++" {
NDW_INLINE BOOLEAN InterlockedCompareExchange128(volatile LONGLONG *target, LONGLONG high, LONGLONG low, LONGLONG *comparand)
{
    return ndw_compare_exchange_128(target, high, low, comparand);
}
NDW_INLINE BOOLEAN InterlockedCompareExchange128(volatile LONG64 *target, LONG64 high, LONG64 low, LONG64 *comparand)
{
    return ndw_compare_exchange_128((volatile LONGLONG *)target, high, low, (LONGLONG *)comparand);
}
}
#else
#define InterlockedCompareExchange128(target, high, low, comparand) \
    ndw_compare_exchange_128((volatile LONGLONG *)(target), (high), (low), (LONGLONG *)(comparand))
#endif
#endif

/* `bit` may lie beyond the first word. */
#define NDW_BITS(suffix, type, bit_type, width) \
    NDW_INLINE BOOLEAN InterlockedBitTestAndSet##suffix(volatile type *base, bit_type bit) \
    { \
        const type mask = (type)(1ull << (bit & (width - 1))); \
        return (__atomic_fetch_or(base + bit / width, mask, __ATOMIC_SEQ_CST) & mask) != 0; \
    } \
    NDW_INLINE BOOLEAN InterlockedBitTestAndReset##suffix(volatile type *base, bit_type bit) \
    { \
        const type mask = (type)(1ull << (bit & (width - 1))); \
        return (__atomic_fetch_and(base + bit / width, (type)~mask, __ATOMIC_SEQ_CST) & mask) != 0; \
    } \
    NDW_INLINE BOOLEAN InterlockedBitTestAndComplement##suffix(volatile type *base, bit_type bit) \
    { \
        const type mask = (type)(1ull << (bit & (width - 1))); \
        return (__atomic_fetch_xor(base + bit / width, mask, __ATOMIC_SEQ_CST) & mask) != 0; \
    }
NDW_BITS(, LONG, LONG, 32)
NDW_BITS(64, LONG64, LONG64, 64)
#ifdef __cplusplus
/* The program's own types, where they are not those of the functions: the lower 32 bits of its `long` count; __int64. */
extern "C++" {
NDW_BITS(, long, LONG, 32)
NDW_BITS(64, long long, LONG64, 64)
}
#endif
#undef NDW_BITS

/* Single loads and stores. */
#define NDW_ACCESS(kind, width, type)                                                                                          \
    NDW_INLINE type Read##kind##Acquire##width(type const volatile *from) { return __atomic_load_n(from, __ATOMIC_ACQUIRE); }   \
    NDW_INLINE type Read##kind##NoFence##width(type const volatile *from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }   \
    NDW_INLINE type Read##kind##Raw##width(type const volatile *from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }       \
    NDW_INLINE void Write##kind##Release##width(type volatile *to, type value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); } \
    NDW_INLINE void Write##kind##NoFence##width(type volatile *to, type value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); } \
    NDW_INLINE void Write##kind##Raw##width(type volatile *to, type value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }
NDW_ACCESS(, , LONG)
NDW_ACCESS(, 8, CHAR)
NDW_ACCESS(, 16, SHORT)
NDW_ACCESS(, 64, LONG64)
NDW_ACCESS(UChar, , UCHAR)
NDW_ACCESS(UShort, , USHORT)
NDW_ACCESS(ULong, , ULONG)
NDW_ACCESS(ULong64, , ULONG64)
NDW_ACCESS(LongPtr, , LONG_PTR)
NDW_ACCESS(ULongPtr, , ULONG_PTR)
NDW_ACCESS(Pointer, , PVOID)
#ifdef __cplusplus
extern "C++" {
NDW_ACCESS(, , long)
NDW_ACCESS(, 64, long long)
NDW_ACCESS(ULong, , unsigned long)
NDW_ACCESS(ULong64, , unsigned long long)
NDW_ACCESS(LongPtr, , long long)
NDW_ACCESS(ULongPtr, , unsigned long long)
}
#endif
#undef NDW_ACCESS

/* MSVC's names of the same intrinsics. */
#define _interlockedbittestandset     InterlockedBitTestAndSet
#define _interlockedbittestandreset   InterlockedBitTestAndReset
#define _interlockedbittestandset64   InterlockedBitTestAndSet64
#define _interlockedbittestandreset64 InterlockedBitTestAndReset64
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
#define _InterlockedExchange8              InterlockedExchange8
#define _InterlockedExchangeAdd8           InterlockedExchangeAdd8
#define _InterlockedAnd8                   InterlockedAnd8
#define _InterlockedOr8                    InterlockedOr8
#define _InterlockedXor8                   InterlockedXor8
#define _InterlockedAnd16                  InterlockedAnd16
#define _InterlockedOr16                   InterlockedOr16
#define _InterlockedXor16                  InterlockedXor16
#define InterlockedExchangePointerAcquire  InterlockedExchangePointer
#define InterlockedExchangePointerNoFence  InterlockedExchangePointer
#define InterlockedCompareExchangePointerAcquire InterlockedCompareExchangePointer
#define InterlockedCompareExchangePointerRelease InterlockedCompareExchangePointer
#define InterlockedCompareExchangePointerNoFence InterlockedCompareExchangePointer
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

/* Interlocked singly linked lists: last in, first out. A header of zeroes is an empty list. */
typedef struct DECLSPEC_ALIGN(16) _SLIST_ENTRY {
    struct _SLIST_ENTRY *Next;
} SLIST_ENTRY, *PSLIST_ENTRY;

typedef union DECLSPEC_ALIGN(16) _SLIST_HEADER {
    __extension__ struct {
        ULONGLONG Alignment;
        ULONGLONG Region;
    };
    struct {
        ULONGLONG Depth : 16;
        ULONGLONG Sequence : 48;
        ULONGLONG Reserved : 4;
        ULONGLONG NextEntry : 60;
    } HeaderX64;
} SLIST_HEADER, *PSLIST_HEADER;

NDW_API(void, InitializeSListHead, (PSLIST_HEADER list));
NDW_API(PSLIST_ENTRY, InterlockedPushEntrySList, (PSLIST_HEADER list, PSLIST_ENTRY entry));
NDW_API(PSLIST_ENTRY, InterlockedPushListSListEx,
    (PSLIST_HEADER list, PSLIST_ENTRY first, PSLIST_ENTRY last, ULONG count));
NDW_API(PSLIST_ENTRY, InterlockedPopEntrySList, (PSLIST_HEADER list));
NDW_API(PSLIST_ENTRY, InterlockedFlushSList, (PSLIST_HEADER list));
NDW_API(USHORT, QueryDepthSList, (PSLIST_HEADER list));
NDW_API(PSLIST_ENTRY, RtlFirstEntrySList, (const SLIST_HEADER *list));

#endif /* NDWIN_INTERLOCKED_H */
