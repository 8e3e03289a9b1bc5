/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the compiler has to be taught: MSVC keywords, and how a Windows name finds its symbol.
 *
 * The shim never defines _WIN32 or _MSC_VER: system headers would believe it.
 */
#ifndef NDWIN_CONFIG_H
#define NDWIN_CONFIG_H

#if !defined(__linux__) || !defined(__LP64__)
#error "These headers stand in for the Windows SDK on 64-bit Linux only"
#endif
#if __SIZEOF_WCHAR_T__ != 4
#error "WCHAR is Linux's wchar_t: compile without -fshort-wchar"
#endif

/* How a program tells that these are not the Windows SDK's: major * 0x10000 + minor. */
#define NDCOMPAT_VERSION 0x00001

#ifdef __cplusplus
#define EXTERN_C       extern "C"
#define EXTERN_C_START extern "C" {
#define EXTERN_C_END   }
#else
#define EXTERN_C       extern
#define EXTERN_C_START
#define EXTERN_C_END
#endif

/*
 * A function of the runtime. The library exports it as ndw_<name>, so a program may have a CreateEventW of its own, or
 * link another shim, without a clash.
 */
#define NDW_API(result, name, parameters) EXTERN_C result name parameters __asm__("ndw_" #name)

/* A function that lives in these headers. */
#ifdef __cplusplus
#define NDW_INLINE inline __attribute__((visibility("hidden")))
#else
#define NDW_INLINE static inline __attribute__((unused))
#endif

/* One calling convention on 64-bit systems. */
#define __cdecl
#define __stdcall
#define __fastcall
#define __vectorcall
#define __thiscall
#define _cdecl
#define _stdcall
#define WINAPI      __stdcall
#define WINAPIV     __cdecl
#define APIENTRY    WINAPI
#define CALLBACK    __stdcall
#define PASCAL      __stdcall
#define NTAPI       __stdcall
#define WSAAPI      __stdcall
#define WSPAPI      __stdcall
#define WINBASEAPI
#define WINSOCK_API_LINKAGE
#define NTSYSAPI
#define FAR
#define NEAR
#define CONST       const
#define IN
#define OUT
#define OPTIONAL

#define __int8  char
#define __int16 short
#define __int32 int
#define __int64 long long
#define __ptr64
#define __ptr32
#define __w64
#define __unaligned

#define __forceinline __inline__ __attribute__((always_inline))
#define _inline       __inline__
#define FORCEINLINE   __forceinline

/* __declspec(x), one macro for each x. */
#define __declspec(x)             NDW_DECLSPEC_##x
#define _declspec(x)              NDW_DECLSPEC_##x
#define NDW_DECLSPEC_novtable
#define NDW_DECLSPEC_dllimport
#define NDW_DECLSPEC_dllexport    __attribute__((visibility("default")))
#define NDW_DECLSPEC_selectany    __attribute__((weak))
#define NDW_DECLSPEC_noreturn     __attribute__((noreturn))
#define NDW_DECLSPEC_noinline     __attribute__((noinline))
#define NDW_DECLSPEC_nothrow      __attribute__((nothrow))
#define NDW_DECLSPEC_deprecated   __attribute__((deprecated))
#define NDW_DECLSPEC_restrict     __attribute__((malloc))
#define NDW_DECLSPEC_noalias
#define NDW_DECLSPEC_empty_bases
#define NDW_DECLSPEC_safebuffers
#define NDW_DECLSPEC_no_sanitize_address __attribute__((no_sanitize("address")))
#define NDW_DECLSPEC_thread       __thread
#define NDW_DECLSPEC_align(n)     __attribute__((aligned(n)))
#define NDW_DECLSPEC_uuid(text)
#define NDW_DECLSPEC_allocate(segment)
#define NDW_DECLSPEC_code_seg(segment)

#define DECLSPEC_NOVTABLE     __declspec(novtable)
#define DECLSPEC_SELECTANY    __declspec(selectany)
#define DECLSPEC_NORETURN     __declspec(noreturn)
#define DECLSPEC_NOINLINE     __declspec(noinline)
#define DECLSPEC_ALIGN(n)     __attribute__((aligned(n)))
#define DECLSPEC_CACHEALIGN   DECLSPEC_ALIGN(64)
#define DECLSPEC_UUID(text)
#define DECLSPEC_IMPORT
#define DECLSPEC_EXPORT       __declspec(dllexport)
#define DECLSPEC_DEPRECATED   __declspec(deprecated)

#ifndef __pragma /* clang -fms-extensions has it */
#define __pragma(x)
#endif
#define __assume(condition)       do { if (!(condition)) __builtin_unreachable(); } while (0)
#define __analysis_assume(condition)
#define __noop(...)               ((void)0)
#define __debugbreak()            __builtin_trap()
#define __annotation(...)         ((void)0)
#define __int2c()                 __builtin_trap()
#define __fallthrough             __attribute__((fallthrough))
#define UNALIGNED

#endif /* NDWIN_CONFIG_H */
