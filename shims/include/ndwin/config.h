/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The base of all Windows headers: checks of the platform, symbol names, calling conventions and attributes.
 *
 * No header here defines _MSC_VER, and only ndwin32.h defines _WIN32: system headers would take their Windows branches.
 */
#ifndef NDWIN_CONFIG_H
#define NDWIN_CONFIG_H

#if !(defined(__linux__) || defined(NDCOMPAT_WIN32_BRANCH)) || !defined(__LP64__)
#error "These headers stand in for the Windows SDK on 64-bit Linux only"
#endif
#if __SIZEOF_WCHAR_T__ != 4
#error "WCHAR is Linux's wchar_t: compile without -fshort-wchar"
#endif

#include "keywords.h"

/* Tells these headers from the Windows SDK's: major * 0x10000 + minor. */
#define NDCOMPAT_VERSION 0x00002

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
 * Declares a function of the library, which exports it as ndw_<name>. So it does not clash with a CreateEventW of the
 * program's own, or of another library.
 */
#define NDW_API(result, name, parameters) EXTERN_C result name parameters __asm__("ndw_" #name)

/* A function defined in these headers. */
#ifdef __cplusplus
#define NDW_INLINE inline __attribute__((visibility("hidden")))
#else
#define NDW_INLINE static inline __attribute__((unused))
#endif

/* Calling conventions, of which there is only one here, and modifiers without effect. */
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
#define FORCEINLINE __forceinline
#define UNALIGNED

#define DECLSPEC_NOVTABLE     __declspec(novtable)
#define DECLSPEC_SELECTANY    __declspec(selectany)
#define DECLSPEC_NORETURN     __declspec(noreturn)
#define DECLSPEC_NOINLINE     __declspec(noinline)
#define DECLSPEC_ALIGN(n)     __declspec(align(n))
#define DECLSPEC_CACHEALIGN   DECLSPEC_ALIGN(64)
#define DECLSPEC_ALLOCATOR
#define SYSTEM_CACHE_ALIGNMENT_SIZE 64
#define MEMORY_ALLOCATION_ALIGNMENT 16
#define __kernel_entry
#define DECLSPEC_UUID(text)
#define DECLSPEC_IMPORT
#define DECLSPEC_EXPORT       __declspec(dllexport)
#define DECLSPEC_DEPRECATED   __declspec(deprecated)

#endif /* NDWIN_CONFIG_H */
