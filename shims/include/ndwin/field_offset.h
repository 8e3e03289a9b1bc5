/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * FIELD_OFFSET for run-time indices in g++, at the price that it is no constant expression any more; macros.h has the
 * other form. No include guard: the last one included wins.
 */
#if defined(__cplusplus) && !defined(__clang__)
#undef FIELD_OFFSET
#undef UFIELD_OFFSET
#define FIELD_OFFSET(type, field)  ((LONG)(LONG_PTR) & (((type *)0)->field))
#define UFIELD_OFFSET(type, field) ((DWORD)(LONG_PTR) & (((type *)0)->field))
#endif
