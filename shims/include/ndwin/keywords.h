/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Keywords of MSVC, and annotations. Macros only: the flags of pkg-config include this file before everything else, and it must not include
 * a system header before the program has set its feature macros.
 */
#ifndef NDWIN_KEYWORDS_H
#define NDWIN_KEYWORDS_H
#pragma GCC system_header /* clang -fms-extensions warns about its keywords as macros */
#ifndef __ASSEMBLER__

/* clang -fms-compatibility leaves out what MSVC does not have, and glibc and libstdc++ want. */
#if defined(__clang__) && !defined(__GNUC_STDC_INLINE__) && !defined(__GNUC_GNU_INLINE__)
#define __GNUC_STDC_INLINE__ 1
#endif
#if defined(__clang__) && !defined(__GCC_ATOMIC_INT_LOCK_FREE)
#define __GCC_ATOMIC_TEST_AND_SET_TRUEVAL 1
#define __GCC_ATOMIC_BOOL_LOCK_FREE       __CLANG_ATOMIC_BOOL_LOCK_FREE
#define __GCC_ATOMIC_CHAR_LOCK_FREE       __CLANG_ATOMIC_CHAR_LOCK_FREE
#ifdef __CLANG_ATOMIC_CHAR8_T_LOCK_FREE
#define __GCC_ATOMIC_CHAR8_T_LOCK_FREE    __CLANG_ATOMIC_CHAR8_T_LOCK_FREE
#endif
#define __GCC_ATOMIC_CHAR16_T_LOCK_FREE   __CLANG_ATOMIC_CHAR16_T_LOCK_FREE
#define __GCC_ATOMIC_CHAR32_T_LOCK_FREE   __CLANG_ATOMIC_CHAR32_T_LOCK_FREE
#define __GCC_ATOMIC_WCHAR_T_LOCK_FREE    __CLANG_ATOMIC_WCHAR_T_LOCK_FREE
#define __GCC_ATOMIC_SHORT_LOCK_FREE      __CLANG_ATOMIC_SHORT_LOCK_FREE
#define __GCC_ATOMIC_INT_LOCK_FREE        __CLANG_ATOMIC_INT_LOCK_FREE
#define __GCC_ATOMIC_LONG_LOCK_FREE       __CLANG_ATOMIC_LONG_LOCK_FREE
#define __GCC_ATOMIC_LLONG_LOCK_FREE      __CLANG_ATOMIC_LLONG_LOCK_FREE
#define __GCC_ATOMIC_POINTER_LOCK_FREE    __CLANG_ATOMIC_POINTER_LOCK_FREE
#endif

#include "sal_words.h"

/* One calling convention on 64-bit systems. */
#define __cdecl
#define __stdcall
#define __fastcall
#define __vectorcall
#define __thiscall
#define __clrcall
#define _cdecl
#define _stdcall
#define _fastcall

#define __int8  char
#define __int16 short
#define __int32 int
#define __int64 long long
#define _int8   char
#define _int16  short
#define _int32  int
#define _int64  long long
#define __ptr64
#define __ptr32
#define __w64
#define __unaligned

/*
 * Not always_inline in C++: that would be an error for a function that is declared here and defined in another file. In C
 * it must be, as plain `inline` emits no function to call.
 */
#ifdef __cplusplus
#define __forceinline __inline__
#else
#define __forceinline __inline__ __attribute__((always_inline))
#endif
#define _forceinline  __forceinline
#define _inline       __inline__

/*
 * __declspec(x) or __declspec(x, y): an attribute for each. They may have arguments.
 */
#undef __declspec /* clang -fdeclspec has it as a keyword, too */
#define __declspec(...)           NDW_DECLSPEC_N(__VA_ARGS__, NDW_DECLSPEC_3, NDW_DECLSPEC_2, NDW_DECLSPEC_1, )(__VA_ARGS__)
#define _declspec(...)            __declspec(__VA_ARGS__)
#define NDW_DECLSPEC_N(a, b, c, count, ...) count
#define NDW_DECLSPEC_1(x)         __attribute__((NDW_DECLSPEC_##x))
#define NDW_DECLSPEC_2(x, y)      NDW_DECLSPEC_1(x) NDW_DECLSPEC_1(y)
#define NDW_DECLSPEC_3(x, y, z)   NDW_DECLSPEC_2(x, y) NDW_DECLSPEC_1(z)
#define NDW_DECLSPEC_novtable
#define NDW_DECLSPEC_dllimport
#define NDW_DECLSPEC_dllexport    visibility("default")
#define NDW_DECLSPEC_selectany    weak
#define NDW_DECLSPEC_noreturn     noreturn
#define NDW_DECLSPEC_noinline     noinline
#define NDW_DECLSPEC_nothrow      nothrow
#define NDW_DECLSPEC_deprecated   deprecated
#define NDW_DECLSPEC_restrict     malloc
#define NDW_DECLSPEC_allocator
#define NDW_DECLSPEC_noalias
#define NDW_DECLSPEC_empty_bases
#define NDW_DECLSPEC_safebuffers
#define NDW_DECLSPEC_strict_gs_check
#define NDW_DECLSPEC_guard(what)
#define NDW_DECLSPEC_spectre(what)
#define NDW_DECLSPEC_naked        naked
#define NDW_DECLSPEC_no_sanitize_address no_sanitize("address")
#define NDW_DECLSPEC_align(n)     aligned(n)
#define NDW_DECLSPEC_uuid(text)
#define NDW_DECLSPEC_allocate(segment)
#define NDW_DECLSPEC_code_seg(segment)
/* Not an attribute: closes the attribute list, and opens another behind the keyword. */
#ifdef __cplusplus
#define NDW_DECLSPEC_thread       )) thread_local __attribute__((
#else
#define NDW_DECLSPEC_thread       )) _Thread_local __attribute__((
#endif

#ifndef __pragma /* clang -fms-extensions has it */
#define __pragma(x)
#endif
#define __assume(condition)       ((condition) ? (void)0 : __builtin_unreachable())
#define __analysis_assume(condition)
/* A breakpoint, behind which the program can go on. */
#if defined(__clang__)
#define __debugbreak()            __builtin_debugtrap()
#elif defined(__x86_64__) || defined(__aarch64__)
/* A function, as a constexpr one may call it. No `static` one, which C's inline functions may not call. */
extern __inline__ __attribute__((gnu_inline, always_inline)) void ndw_break(void)
{
#ifdef __x86_64__
    __asm__ __volatile__("int3");
#else
    __asm__ __volatile__("brk #0xf000");
#endif
}
#define __debugbreak()            ndw_break()
#else
#define __debugbreak()            __builtin_trap()
#endif
#define __annotation(...)         ((void)0)
#define __int2c()                 __builtin_trap()
#define __fallthrough             __attribute__((fallthrough))
/* MSVC's __noop: as a call it does not evaluate its arguments; without parentheses it is 0. */
#define __noop(...)               ((void)0)
#if !defined(__clang__) || !__has_builtin(__noop)
enum { __noop };
/* The function with its parameters; an array, no literal. */
#define __FUNCSIG__ __PRETTY_FUNCTION__
#endif

#endif
#endif /* NDWIN_KEYWORDS_H */
