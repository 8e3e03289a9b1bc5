/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <intsafe.h>: arithmetic and conversions that fail on overflow. */
#ifndef NDWIN_INTSAFE_H
#define NDWIN_INTSAFE_H

#include "error.h"

#define INTSAFE_E_ARITHMETIC_OVERFLOW ((HRESULT)0x80070216)

/* On overflow the result has all bits set. */
#define NDW_INTSAFE_SUM(name, type, step)                                         \
    NDW_INLINE HRESULT name(type first, type second, type *result)                \
    {                                                                             \
        type value;                                                               \
        const BOOL fits = !step(first, second, &value);                           \
        *result = fits ? value : (type)-1;                                        \
        return fits ? S_OK : INTSAFE_E_ARITHMETIC_OVERFLOW;                       \
    }
#define NDW_INTSAFE_SUMS(name, type)                           \
    NDW_INTSAFE_SUM(name##Add, type, __builtin_add_overflow)   \
    NDW_INTSAFE_SUM(name##Sub, type, __builtin_sub_overflow)   \
    NDW_INTSAFE_SUM(name##Mult, type, __builtin_mul_overflow)

/* Adding 0 with overflow check tests whether the value fits the type, whatever the signs of the two types. */
#define NDW_INTSAFE_TO(name, from, to)                                            \
    NDW_INLINE HRESULT name(from operand, to *result)                             \
    {                                                                             \
        to value;                                                                 \
        const BOOL fits = !__builtin_add_overflow(operand, 0, &value);            \
        *result = fits ? value : (to)-1;                                          \
        return fits ? S_OK : INTSAFE_E_ARITHMETIC_OVERFLOW;                       \
    }
#define NDW_INTSAFE_ALL_TO(name, from)               \
    NDW_INTSAFE_TO(name##ToChar, from, CHAR)         \
    NDW_INTSAFE_TO(name##ToUChar, from, UCHAR)       \
    NDW_INTSAFE_TO(name##ToByte, from, BYTE)         \
    NDW_INTSAFE_TO(name##ToInt8, from, INT8)         \
    NDW_INTSAFE_TO(name##ToUInt8, from, UINT8)       \
    NDW_INTSAFE_TO(name##ToShort, from, SHORT)       \
    NDW_INTSAFE_TO(name##ToUShort, from, USHORT)     \
    NDW_INTSAFE_TO(name##ToWord, from, WORD)         \
    NDW_INTSAFE_TO(name##ToInt, from, INT)           \
    NDW_INTSAFE_TO(name##ToUInt, from, UINT)         \
    NDW_INTSAFE_TO(name##ToLong, from, LONG)         \
    NDW_INTSAFE_TO(name##ToULong, from, ULONG)       \
    NDW_INTSAFE_TO(name##ToDWord, from, DWORD)       \
    NDW_INTSAFE_TO(name##ToIntPtr, from, INT_PTR)    \
    NDW_INTSAFE_TO(name##ToUIntPtr, from, UINT_PTR)  \
    NDW_INTSAFE_TO(name##ToLongPtr, from, LONG_PTR)  \
    NDW_INTSAFE_TO(name##ToULongPtr, from, ULONG_PTR) \
    NDW_INTSAFE_TO(name##ToDWordPtr, from, DWORD_PTR) \
    NDW_INTSAFE_TO(name##ToSSIZET, from, SSIZE_T)    \
    NDW_INTSAFE_TO(name##ToSizeT, from, SIZE_T)      \
    NDW_INTSAFE_TO(name##ToSIZET, from, SIZE_T)      \
    NDW_INTSAFE_TO(name##ToLongLong, from, LONGLONG) \
    NDW_INTSAFE_TO(name##ToULongLong, from, ULONGLONG)

NDW_INTSAFE_SUMS(UInt8, UINT8)
NDW_INTSAFE_SUMS(UShort, USHORT)
NDW_INTSAFE_SUMS(Word, WORD)
NDW_INTSAFE_SUMS(UInt, UINT)
NDW_INTSAFE_SUMS(ULong, ULONG)
NDW_INTSAFE_SUMS(DWord, DWORD)
NDW_INTSAFE_SUMS(UIntPtr, UINT_PTR)
NDW_INTSAFE_SUMS(ULongPtr, ULONG_PTR)
NDW_INTSAFE_SUMS(DWordPtr, DWORD_PTR)
NDW_INTSAFE_SUMS(SizeT, SIZE_T)
NDW_INTSAFE_SUMS(SIZET, SIZE_T)
NDW_INTSAFE_SUMS(ULongLong, ULONGLONG)
NDW_INTSAFE_SUMS(DWordLong, DWORDLONG)
/* In the SDK only with ENABLE_INTSAFE_SIGNED_FUNCTIONS. */
NDW_INTSAFE_SUMS(Short, SHORT)
NDW_INTSAFE_SUMS(Int, INT)
NDW_INTSAFE_SUMS(Long, LONG)
NDW_INTSAFE_SUMS(IntPtr, INT_PTR)
NDW_INTSAFE_SUMS(LongPtr, LONG_PTR)
NDW_INTSAFE_SUMS(SSIZET, SSIZE_T)
NDW_INTSAFE_SUMS(LongLong, LONGLONG)

NDW_INTSAFE_ALL_TO(Short, SHORT)
NDW_INTSAFE_ALL_TO(UShort, USHORT)
NDW_INTSAFE_ALL_TO(Word, WORD)
NDW_INTSAFE_ALL_TO(Int, INT)
NDW_INTSAFE_ALL_TO(UInt, UINT)
NDW_INTSAFE_ALL_TO(Long, LONG)
NDW_INTSAFE_ALL_TO(ULong, ULONG)
NDW_INTSAFE_ALL_TO(DWord, DWORD)
NDW_INTSAFE_ALL_TO(IntPtr, INT_PTR)
NDW_INTSAFE_ALL_TO(UIntPtr, UINT_PTR)
NDW_INTSAFE_ALL_TO(LongPtr, LONG_PTR)
NDW_INTSAFE_ALL_TO(ULongPtr, ULONG_PTR)
NDW_INTSAFE_ALL_TO(DWordPtr, DWORD_PTR)
NDW_INTSAFE_ALL_TO(SSIZET, SSIZE_T)
NDW_INTSAFE_ALL_TO(SizeT, SIZE_T)
NDW_INTSAFE_ALL_TO(SIZET, SIZE_T)
NDW_INTSAFE_ALL_TO(LongLong, LONGLONG)
NDW_INTSAFE_ALL_TO(ULongLong, ULONGLONG)

#undef NDW_INTSAFE_SUM
#undef NDW_INTSAFE_SUMS
#undef NDW_INTSAFE_TO
#undef NDW_INTSAFE_ALL_TO

#endif /* NDWIN_INTSAFE_H */
