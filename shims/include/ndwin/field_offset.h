/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * FIELD_OFFSET for g++, whose __builtin_offsetof takes no index that is known at run time only.
 *
 * g++ folds the bound of an array type to a constant if possible, and computes it otherwise. sizeof evaluates no operand, so
 * nothing is read. The 1 is needed for offset 0, as an array of no elements is not allowed.
 */
#pragma GCC system_header /* no warning about arrays of variable length where the macro is used */
#define NDW_FIELD_OFFSET(type, field) (sizeof(char[(LONG_PTR)&(((type *)0)->field) + 1]) - 1)
#define FIELD_OFFSET(type, field)     ((LONG)NDW_FIELD_OFFSET(type, field))
#define UFIELD_OFFSET(type, field)    ((DWORD)NDW_FIELD_OFFSET(type, field))
