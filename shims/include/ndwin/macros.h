/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Small macros of the SDK: bytes and words, offsets in structures, min and max, memory. */
#ifndef NDWIN_MACROS_H
#define NDWIN_MACROS_H

#include "crt/stdlib.h"
#include "types.h"

#define MAKEWORD(low, high) ((WORD)((BYTE)(DWORD_PTR)(low) | ((WORD)((BYTE)(DWORD_PTR)(high))) << 8))
#define MAKELONG(low, high) ((LONG)((WORD)(DWORD_PTR)(low) | ((DWORD)((WORD)(DWORD_PTR)(high))) << 16))
#define LOWORD(value)       ((WORD)((DWORD_PTR)(value) & 0xFFFF))
#define HIWORD(value)       ((WORD)((DWORD_PTR)(value) >> 16 & 0xFFFF))
#define LOBYTE(value)       ((BYTE)((DWORD_PTR)(value) & 0xFF))
#define HIBYTE(value)       ((BYTE)((DWORD_PTR)(value) >> 8 & 0xFF))

#define Int32x32To64(a, b)  ((LONGLONG)(LONG)(a) * (LONGLONG)(LONG)(b))
#define UInt32x32To64(a, b) ((ULONGLONG)(ULONG)(a) * (ULONGLONG)(ULONG)(b))

/* Shifts by 0 to 31. */
#define Int64ShllMod32(a, b) ((ULONGLONG)(a) << (b))
#define Int64ShraMod32(a, b) ((LONGLONG)(a) >> (b))
#define Int64ShrlMod32(a, b) ((ULONGLONG)(a) >> (b))
#define PopulationCount64(value) ((DWORD64)__builtin_popcountll(value))

#ifndef NOGDI
/* A colour of its three parts. */
#define RGB(red, green, blue) ((COLORREF)((BYTE)(red) | (WORD)((BYTE)(green)) << 8 | (DWORD)(BYTE)(blue) << 16))
#define GetRValue(colour) LOBYTE(colour)
#define GetGValue(colour) ((BYTE)((WORD)(colour) >> 8))
#define GetBValue(colour) LOBYTE((colour) >> 16)
#endif

/* A number in place of a name. */
#define IS_INTRESOURCE(name)     ((ULONG_PTR)(name) >> 16 == 0)
#define MAKEINTRESOURCEA(number) ((LPSTR)(ULONG_PTR)(WORD)(number))
#define MAKEINTRESOURCEW(number) ((LPWSTR)(ULONG_PTR)(WORD)(number))
#ifdef UNICODE
#define MAKEINTRESOURCE MAKEINTRESOURCEW
#else
#define MAKEINTRESOURCE MAKEINTRESOURCEA
#endif

#define UNREFERENCED_PARAMETER(parameter)    ((void)(parameter))
#define DBG_UNREFERENCED_PARAMETER(parameter) ((void)(parameter))
#define UNREFERENCED_LOCAL_VARIABLE(variable) ((void)(variable))
#define DBG_UNREFERENCED_LOCAL_VARIABLE(variable) ((void)(variable))

#ifndef ARRAYSIZE
#define ARRAYSIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif
#define _ARRAYSIZE(array) ARRAYSIZE(array)
#ifdef __cplusplus
#define C_ASSERT(condition) static_assert(condition, #condition)
#else
#define C_ASSERT(condition) _Static_assert(condition, #condition)
#endif

#define CONTAINING_RECORD(address, type, field) \
    ((type *)((char *)(address) - (LONG_PTR)__builtin_offsetof(type, field)))
#define RTL_FIELD_SIZE(type, field) (sizeof(((type *)0)->field))
#define RTL_SIZEOF_THROUGH_FIELD(type, field) (FIELD_OFFSET(type, field) + RTL_FIELD_SIZE(type, field))
#define RTL_NUMBER_OF(array) ARRAYSIZE(array)
#define RTL_BITS_OF(type) (sizeof(type) * 8)
#define RTL_BITS_OF_FIELD(type, field) (RTL_FIELD_SIZE(type, field) * 8)
#define RTL_CONTAINS_FIELD(structure, size, field) \
    ((((PCHAR)(&(structure)->field)) + sizeof((structure)->field)) <= (((PCHAR)(structure)) + (size)))

/* Must be a constant in `enum { X = FIELD_OFFSET(T, m) }`, and allow an index in `FIELD_OFFSET(SOCKET_ADDRESS_LIST, Address[n])`. */
#if defined(__cplusplus) && !defined(__clang__)
#include "field_offset.h"
#else
#define FIELD_OFFSET(type, field)     ((LONG)__builtin_offsetof(type, field))
#define UFIELD_OFFSET(type, field)    ((DWORD)__builtin_offsetof(type, field))
#endif

/*
 * As macros min and max would break the C++ library. The templates take operands of two types, as the macros do, and take them
 * by value: a reference to a `static const` member would need a definition of it, which no macro does. For operands of one type
 * std::min is the better match, so `using namespace std` causes no ambiguity.
 */
#ifndef NOMINMAX
#ifdef __cplusplus
extern "C++" {
namespace ndwin {
template <typename T_> struct value { typedef T_ type; };
template <typename T_> struct value<T_ &> : value<T_> {};
}
template <typename A_, typename B_>
constexpr auto min(A_ a, B_ b) -> typename ndwin::value<decltype(b < a ? b : a)>::type
{
    return b < a ? b : a;
}
template <typename A_, typename B_>
constexpr auto max(A_ a, B_ b) -> typename ndwin::value<decltype(a < b ? b : a)>::type
{
    return a < b ? b : a;
}
}
#else
#ifndef min
#define min(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef max
#define max(a, b) ((a) > (b) ? (a) : (b))
#endif
#endif
#endif

#define CopyMemory(destination, source, length)    memcpy((destination), (source), (length))
#define MoveMemory(destination, source, length)    memmove((destination), (source), (length))
#define FillMemory(destination, length, fill)      memset((destination), (fill), (length))
#define ZeroMemory(destination, length)            memset((destination), 0, (length))
#define RtlCopyMemory(destination, source, length) memcpy((destination), (source), (length))
#define RtlMoveMemory(destination, source, length) memmove((destination), (source), (length))
#define RtlFillMemory(destination, length, fill)   memset((destination), (fill), (length))
#define RtlZeroMemory(destination, length)         memset((destination), 0, (length))
#define RtlEqualMemory(a, b, length)               (!memcmp((a), (b), (length)))
#define RtlUshortByteSwap(value)                   __builtin_bswap16(value)
#define RtlUlongByteSwap(value)                    __builtin_bswap32(value)
#define RtlUlonglongByteSwap(value)                __builtin_bswap64(value)
#define RotateLeft32                               _rotl
#define RotateRight32                              _rotr
#define RotateLeft64                               _rotl64
#define RotateRight64                              _rotr64
#define SecureZeroMemory                           RtlSecureZeroMemory

#define ULongToPtr(value)    ((void *)(ULONG_PTR)(unsigned int)(value))
#define LongToPtr(value)     ((void *)(LONG_PTR)(int)(value))
#define UlongToPtr(value)    ULongToPtr(value)
#define PtrToUlong(pointer)  ((ULONG)(ULONG_PTR)(pointer))
#define PtrToLong(pointer)   ((LONG)(LONG_PTR)(pointer))
#define ULongToHandle(value) ULongToPtr(value)
#define LongToHandle(value)  LongToPtr(value)
#define HandleToULong(handle) PtrToUlong(handle)
#define HandleToLong(handle) PtrToLong(handle)
#define HandleToUlong(handle) PtrToUlong(handle)
#define UlongToHandle(value) ULongToPtr(value)
#define HandleToHandle64(handle) ((void *)(handle))
#define Handle64ToHandle(handle) ((HANDLE)(handle))
#define PtrToUint(pointer)   ((UINT)(UINT_PTR)(pointer))
#define PtrToInt(pointer)    ((INT)(INT_PTR)(pointer))
#define PtrToULong(pointer)  PtrToUlong(pointer)
#define UIntToPtr(value)     ULongToPtr(value)
#define UintToPtr(value)     ULongToPtr(value)
#define IntToPtr(value)      LongToPtr(value)

#define YieldProcessor() NDW_PAUSE()
#if defined(__x86_64__)
#define NDW_PAUSE() __builtin_ia32_pause()
#else
#define NDW_PAUSE() __asm__ volatile("yield")
#endif
#define MemoryBarrier()      __sync_synchronize()
#define PrefetchCacheLine(level, address) __builtin_prefetch(address)
#define PreFetchCacheLine(level, address) __builtin_prefetch(address)
#define PrefetchForWrite(address)         __builtin_prefetch((const void *)(address), 1)

/* The compiler does not see that nobody reads the zeroes. */
NDW_INLINE PVOID RtlSecureZeroMemory(PVOID destination, SIZE_T length)
{
    __builtin_memset(destination, 0, length);
    __asm__ volatile("" : : "r"(destination) : "memory");
    return destination;
}
/* These do not encode: the pointer is returned as it is. */
NDW_INLINE PVOID EncodePointer(PVOID pointer)
{
    return pointer;
}
NDW_INLINE PVOID DecodePointer(PVOID pointer)
{
    return pointer;
}
/* The number of bytes up to the first difference. */
NDW_INLINE SIZE_T RtlCompareMemory(const VOID *first, const VOID *second, SIZE_T length)
{
    SIZE_T same = 0;
    while (same < length && ((const BYTE *)first)[same] == ((const BYTE *)second)[same])
        same++;
    return same;
}

#ifdef __cplusplus
/* Bitwise operators for an enumeration of flags. */
#define DEFINE_ENUM_FLAG_OPERATORS(type)                                                                  \
    extern "C++" {                                                                                        \
    constexpr type operator|(type a, type b)                                                              \
    {                                                                                                     \
        return static_cast<type>(static_cast<__underlying_type(type)>(a) | static_cast<__underlying_type(type)>(b));\
    }                                                                                                     \
    constexpr type operator&(type a, type b)                                                              \
    {                                                                                                     \
        return static_cast<type>(static_cast<__underlying_type(type)>(a) & static_cast<__underlying_type(type)>(b));\
    }                                                                                                     \
    constexpr type operator^(type a, type b)                                                              \
    {                                                                                                     \
        return static_cast<type>(static_cast<__underlying_type(type)>(a) ^ static_cast<__underlying_type(type)>(b));\
    }                                                                                                     \
    constexpr type operator~(type a)                                                                      \
    {                                                                                                     \
        return static_cast<type>(~static_cast<__underlying_type(type)>(a));                               \
    }                                                                                                     \
    inline type &operator|=(type &a, type b) { return a = a | b; }                                        \
    inline type &operator&=(type &a, type b) { return a = a & b; }                                        \
    inline type &operator^=(type &a, type b) { return a = a ^ b; }                                        \
    }
#else
#define DEFINE_ENUM_FLAG_OPERATORS(type)
#endif

/* As in <winioctl.h>, where the others are. */
#define CTL_CODE(device, function, method, access) ((device) << 16 | (access) << 14 | (function) << 2 | (method))
#define METHOD_BUFFERED     0
#define FILE_ANY_ACCESS     0
#define FILE_DEVICE_NETWORK 0x00000012

#endif /* NDWIN_MACROS_H */
