/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <intrin.h>: intrinsics of MSVC. */
#ifndef NDWIN_INTRIN_ALL_H
#define NDWIN_INTRIN_ALL_H

#if defined(__x86_64__)
#include <x86intrin.h> /* _mm_*, __rdtsc, _rotl, ... */
#include <cpuid.h>
#endif
#include <stdlib.h>
/* <x86intrin.h> has them for the 64 bits of Linux's `unsigned long`. */
#undef _lrotl
#undef _lrotr
#define _lrotl(value, by) ndw_rotl((unsigned)(value), (by))
#define _lrotr(value, by) ndw_rotr((unsigned)(value), (by))
#include "ndwin/macros.h"
#include "ndwin/intrin.h"

#define __popcnt16(value) ((unsigned short)__builtin_popcount((unsigned short)(value)))
#define __popcnt(value)   ((unsigned)__builtin_popcount((unsigned)(value)))
#define __popcnt64(value) ((unsigned long long)__builtin_popcountll(value))
#define __lzcnt(value)    ((unsigned)((value) ? __builtin_clz((unsigned)(value)) : 32))
#define __nop()           __asm__ volatile("nop")
#define __faststorefence() MemoryBarrier()
#define _ReturnAddress()  __builtin_return_address(0)

#ifdef NDW_BUILTIN_INTRINSICS
EXTERN_C unsigned long long _umul128(unsigned long long a, unsigned long long b, unsigned long long *high);
EXTERN_C unsigned long long __umulh(unsigned long long a, unsigned long long b);
EXTERN_C long long __mulh(long long a, long long b);
EXTERN_C long long _mul128(long long a, long long b, long long *high);
EXTERN_C unsigned long long __shiftleft128(unsigned long long low, unsigned long long high, unsigned char by);
EXTERN_C unsigned long long __shiftright128(unsigned long long low, unsigned long long high, unsigned char by);
EXTERN_C long long __emul(int a, int b);
EXTERN_C unsigned long long __emulu(unsigned a, unsigned b);
EXTERN_C void __stosb(unsigned char *target, unsigned char value, size_t count);
#else
NDW_INTRINSIC unsigned long long _umul128(unsigned long long a, unsigned long long b, unsigned long long *high)
{
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;
    *high = (unsigned long long)(product >> 64);
    return (unsigned long long)product;
}
NDW_INTRINSIC unsigned long long __umulh(unsigned long long a, unsigned long long b)
{
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;
    return (unsigned long long)(product >> 64);
}
NDW_INTRINSIC long long __mulh(long long a, long long b)
{
    __extension__ const __int128 product = (__int128)a * b;
    return (long long)(product >> 64);
}
#endif

#if defined(__x86_64__)
/* MSVC's __cpuid, with two arguments, beside the one of <cpuid.h> with five; and __cpuidex. */
NDW_INTRINSIC void ndw_cpuid(int registers[4], int leaf, int part)
{
    __asm__ volatile("cpuid"
                     : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]), "=d"(registers[3])
                     : "0"(leaf), "2"(part));
}
#undef __cpuid
#define __cpuid(...) NDW_CPUID_N(__VA_ARGS__, NDW_CPUID_5, , , NDW_CPUID_2, )(__VA_ARGS__)
#define NDW_CPUID_N(a, b, c, d, e, form, ...) form
#define NDW_CPUID_2(registers, leaf) ndw_cpuid((registers), (int)(leaf), 0)
#define NDW_CPUID_5(level, a, b, c, d) \
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "0"(level))
#undef __cpuidex
#define __cpuidex(registers, leaf, part) ndw_cpuid((registers), (int)(leaf), (int)(part))
#endif

/* What clang has no builtins for. */
NDW_INLINE void __movsb(unsigned char *target, const unsigned char *source, size_t count)
{
    size_t i; /* forwards, as the instruction does, byte by byte */
    for (i = 0; i < count; i++)
        ((volatile unsigned char *)target)[i] = source[i];
}
/* `long` of MSVC's has 32 bits. */
NDW_INLINE void __stosd(unsigned *target, unsigned value, size_t count)
{
    while (count--)
        *target++ = value;
}
NDW_INLINE void __stosq(void *target, unsigned long long value, size_t count)
{
    ndw_word64 *at = (ndw_word64 *)target;
    while (count--)
        *at++ = value;
}
NDW_INLINE void __movsq(void *target, const void *source, size_t count)
{
    size_t i;
    for (i = 0; i < count; i++)
        ((volatile ndw_word64 *)target)[i] = ((const ndw_word64 *)source)[i];
}
#if defined(__x86_64__)
/* The quotient must fit: as on Windows, the processor raises a fault otherwise. */
NDW_INLINE unsigned long long _udiv128(
    unsigned long long high, unsigned long long low, unsigned long long divisor, unsigned long long *remainder)
{
    unsigned long long quotient, rest;
    __asm__("divq %4" : "=a"(quotient), "=d"(rest) : "0"(low), "1"(high), "rm"(divisor) : "cc");
    *remainder = rest;
    return quotient;
}
#endif

#ifndef NDW_BUILTIN_INTRINSICS
NDW_INLINE long long _mul128(long long a, long long b, long long *high)
{
    __extension__ const __int128 product = (__int128)a * b;
    *high = (long long)(product >> 64);
    return (long long)product;
}
NDW_INLINE unsigned long long __shiftleft128(unsigned long long low, unsigned long long high, unsigned char by)
{
    return by & 63 ? high << (by & 63) | low >> (64 - (by & 63)) : high;
}
NDW_INLINE unsigned long long __shiftright128(unsigned long long low, unsigned long long high, unsigned char by)
{
    return by & 63 ? low >> (by & 63) | high << (64 - (by & 63)) : low;
}
NDW_INLINE unsigned char _rotl8(unsigned char value, unsigned char by)
{
    return (unsigned char)(value << (by & 7) | value >> (-by & 7));
}
NDW_INLINE unsigned char _rotr8(unsigned char value, unsigned char by)
{
    return (unsigned char)(value >> (by & 7) | value << (-by & 7));
}
NDW_INLINE unsigned short _rotl16(unsigned short value, unsigned char by)
{
    return (unsigned short)(value << (by & 15) | value >> (-by & 15));
}
NDW_INLINE unsigned short _rotr16(unsigned short value, unsigned char by)
{
    return (unsigned short)(value >> (by & 15) | value << (-by & 15));
}
NDW_INLINE void __stosb(unsigned char *target, unsigned char value, size_t count)
{
    __builtin_memset(target, value, count);
}
NDW_INLINE long long __emul(int a, int b) { return (long long)a * b; }
NDW_INLINE unsigned long long __emulu(unsigned a, unsigned b) { return (unsigned long long)a * b; }
#define __ud2()          __builtin_trap()
#define __fastfail(code) ((void)(code), __builtin_trap())
#ifdef __cplusplus
/* LONG64 and ULONG64 are Linux's long. */
extern "C++" {
inline long long _mul128(long long a, long long b, long *high)
{
    long long upper;
    const long long lower = _mul128(a, b, &upper);
    *high = static_cast<long>(upper);
    return lower;
}
inline unsigned long long _umul128(unsigned long long a, unsigned long long b, unsigned long *high)
{
    unsigned long long upper;
    const unsigned long long lower = _umul128(a, b, &upper);
    *high = static_cast<unsigned long>(upper);
    return lower;
}
}
#endif
#endif

#endif /* NDWIN_INTRIN_ALL_H */
