/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * MSVC's intrinsics that <windows.h> declares as well: barriers, bit scans. They are functions, not macros, since programs
 * declare them again and name them in `#pragma intrinsic`.
 */
#ifndef NDWIN_INTRIN_H
#define NDWIN_INTRIN_H

#if defined(__x86_64__)
#include <emmintrin.h> /* _mm_pause, fences, prefetches: <winnt.h> declares them, too */
#endif
#include "interlocked.h"

#ifdef __cplusplus
#define NDW_INTRINSIC extern "C" inline __attribute__((always_inline, visibility("hidden")))
#else
#define NDW_INTRINSIC extern inline __attribute__((gnu_inline, always_inline))
#endif

/* With -fms-extensions most of these are builtins of clang, which cannot be redeclared. */
#if defined(__clang__)
#if __has_builtin(_ReadBarrier)
#define NDW_BUILTIN_INTRINSICS 1
#endif
#endif

#ifndef NDW_BUILTIN_INTRINSICS
/* Compiler barriers. */
NDW_INTRINSIC void _ReadWriteBarrier(void)
{
    __asm__ volatile("" ::: "memory");
}
NDW_INTRINSIC void _ReadBarrier(void)
{
    __asm__ volatile("" ::: "memory");
}
NDW_INTRINSIC void _WriteBarrier(void)
{
    __asm__ volatile("" ::: "memory");
}
#endif

/*
 * Bit scans. On Windows `unsigned long` has 32 bits, so the index may be a ULONG or an `unsigned long` here, and only the
 * low 32 bits of the mask are used.
 */
NDW_INTRINSIC unsigned char ndw_bit_scan_forward(unsigned *index, unsigned mask)
{
    if (mask)
        *index = (unsigned)__builtin_ctz(mask);
    return mask != 0;
}
NDW_INTRINSIC unsigned char ndw_bit_scan_reverse(unsigned *index, unsigned mask)
{
    if (mask)
        *index = 31 ^ (unsigned)__builtin_clz(mask);
    return mask != 0;
}
NDW_INTRINSIC unsigned char ndw_bit_scan_forward64(unsigned *index, unsigned long long mask)
{
    if (mask)
        *index = (unsigned)__builtin_ctzll(mask);
    return mask != 0;
}
NDW_INTRINSIC unsigned char ndw_bit_scan_reverse64(unsigned *index, unsigned long long mask)
{
    if (mask)
        *index = 63 ^ (unsigned)__builtin_clzll(mask);
    return mask != 0;
}
#if defined(__cplusplus) && !defined(NDW_BUILTIN_INTRINSICS)
#define NDW_BIT_SCAN(name, scan, mask_type)                                  \
    NDW_INTRINSIC unsigned char name(unsigned long *index, mask_type mask)   \
    {                                                                        \
        unsigned position;                                                   \
        if (!scan(&position, static_cast<mask_type>(mask)))                  \
            return 0;                                                        \
        *index = position;                                                   \
        return 1;                                                            \
    }                                                                        \
    extern "C++" inline unsigned char name(unsigned *index, mask_type mask)  \
    {                                                                        \
        return scan(index, mask);                                            \
    }
NDW_BIT_SCAN(_BitScanForward, ndw_bit_scan_forward, unsigned)
NDW_BIT_SCAN(_BitScanReverse, ndw_bit_scan_reverse, unsigned)
NDW_BIT_SCAN(_BitScanForward64, ndw_bit_scan_forward64, unsigned long long)
NDW_BIT_SCAN(_BitScanReverse64, ndw_bit_scan_reverse64, unsigned long long)
#undef NDW_BIT_SCAN
#else
#define NDW_BIT_SCAN_ANY(scan, index, mask)                                  \
    (__extension__({                                                         \
        unsigned ndw_position;                                               \
        const unsigned char ndw_found = scan(&ndw_position, (mask));         \
        if (ndw_found)                                                       \
            *(index) = ndw_position;                                         \
        ndw_found;                                                           \
    }))
#define _BitScanForward(index, mask)   NDW_BIT_SCAN_ANY(ndw_bit_scan_forward, (index), (unsigned)(mask))
#define _BitScanReverse(index, mask)   NDW_BIT_SCAN_ANY(ndw_bit_scan_reverse, (index), (unsigned)(mask))
#define _BitScanForward64(index, mask) NDW_BIT_SCAN_ANY(ndw_bit_scan_forward64, (index), (mask))
#define _BitScanReverse64(index, mask) NDW_BIT_SCAN_ANY(ndw_bit_scan_reverse64, (index), (mask))
#endif
#define BitScanForward   _BitScanForward
#define BitScanReverse   _BitScanReverse
#define BitScanForward64 _BitScanForward64
#define BitScanReverse64 _BitScanReverse64

typedef unsigned __attribute__((may_alias)) ndw_word32;
typedef unsigned long long __attribute__((may_alias)) ndw_word64;

/* Bits of a word that may lie beyond the first one. Words of 64 bits are `long` or `long long`, as the program has them. */
#ifndef NDW_BUILTIN_INTRINSICS
#define NDW_BIT_OF(name, word_type, pointer, index, width, change)                       \
    NDW_INLINE unsigned char name(pointer words, index bit)                              \
    {                                                                                    \
        word_type *const word = (word_type *)words + bit / width;                        \
        const word_type mask = (word_type)1 << (bit & (width - 1));                      \
        const unsigned char was = (*word & mask) != 0;                                   \
        change;                                                                          \
        return was;                                                                      \
    }
NDW_INLINE unsigned char _bittest(const int *words, int bit)
{
    return ((unsigned)words[bit / 32] >> (bit & 31)) & 1;
}
NDW_INLINE unsigned char _bittest64(const void *words, long long bit)
{
    return (((const ndw_word64 *)words)[bit / 64] >> (bit & 63)) & 1;
}
NDW_BIT_OF(_bittestandset, ndw_word32, int *, int, 32, *word |= mask)
NDW_BIT_OF(_bittestandreset, ndw_word32, int *, int, 32, *word &= ~mask)
NDW_BIT_OF(_bittestandcomplement, ndw_word32, int *, int, 32, *word ^= mask)
NDW_BIT_OF(_bittestandset64, ndw_word64, void *, long long, 64, *word |= mask)
NDW_BIT_OF(_bittestandreset64, ndw_word64, void *, long long, 64, *word &= ~mask)
NDW_BIT_OF(_bittestandcomplement64, ndw_word64, void *, long long, 64, *word ^= mask)
#undef NDW_BIT_OF
#ifdef __cplusplus
/* The program's own `long`, of which the lower 32 bits count, as it has no more on Windows. */
#define NDW_BIT_OF(name, change)                                             \
    extern "C++" NDW_INLINE unsigned char name(long *words, int bit)         \
    {                                                                        \
        long *const word = words + bit / 32;                                 \
        const long mask = 1l << (bit & 31);                                  \
        const unsigned char was = (*word & mask) != 0;                       \
        change;                                                              \
        return was;                                                          \
    }
extern "C++" NDW_INLINE unsigned char _bittest(const long *words, int bit)
{
    return (words[bit / 32] >> (bit & 31)) & 1;
}
NDW_BIT_OF(_bittestandset, *word |= mask)
NDW_BIT_OF(_bittestandreset, *word &= ~mask)
NDW_BIT_OF(_bittestandcomplement, *word ^= mask)
#undef NDW_BIT_OF
#endif
#endif
#define BitTest                   _bittest
#define BitTestAndSet             _bittestandset
#define BitTestAndReset           _bittestandreset
#define BitTestAndComplement      _bittestandcomplement
#define BitTest64                 _bittest64
#define BitTestAndSet64           _bittestandset64
#define BitTestAndReset64         _bittestandreset64
#define BitTestAndComplement64    _bittestandcomplement64

/* <winnt.h>'s names for products and shifts of 128 bits, which <intrin.h> has, too. */
__extension__ typedef __int128 ndw_int128;
__extension__ typedef unsigned __int128 ndw_uint128;
NDW_INTRINSIC LONG64 Multiply128(LONG64 a, LONG64 b, LONG64 *high)
{
    const ndw_int128 product = (ndw_int128)a * b;
    *high = (LONG64)(product >> 64);
    return (LONG64)product;
}
NDW_INTRINSIC ULONG64 UnsignedMultiply128(ULONG64 a, ULONG64 b, ULONG64 *high)
{
    const ndw_uint128 product = (ndw_uint128)a * b;
    *high = (ULONG64)(product >> 64);
    return (ULONG64)product;
}
NDW_INTRINSIC LONG64 MultiplyHigh(LONG64 a, LONG64 b)
{
    return (LONG64)((ndw_int128)a * b >> 64);
}
NDW_INTRINSIC ULONG64 UnsignedMultiplyHigh(ULONG64 a, ULONG64 b)
{
    return (ULONG64)((ndw_uint128)a * b >> 64);
}
/* As the instructions do, they take the lower six bits of the count. */
NDW_INTRINSIC ULONG64 ShiftLeft128(ULONG64 low, ULONG64 high, BYTE count)
{
    return (ULONG64)(((ndw_uint128)high << 64 | low) << (count & 63) >> 64);
}
NDW_INTRINSIC ULONG64 ShiftRight128(ULONG64 low, ULONG64 high, BYTE count)
{
    return (ULONG64)(((ndw_uint128)high << 64 | low) >> (count & 63));
}

#if defined(__x86_64__)
#define ReadTimeStampCounter() __builtin_ia32_rdtsc()
#define LoadFence              _mm_lfence
#define MemoryFence            _mm_mfence
#define StoreFence             _mm_sfence
#define FastFence              MemoryBarrier
#define SpeculationFence       LoadFence
#define CacheLineFlush(address) _mm_clflush(address)
#endif

#endif /* NDWIN_INTRIN_H */
