/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The C library's <sys/select.h>, prepared for Windows' fd_set of a later <winsock2.h>: keeps a FD_SETSIZE that the program
 * has defined, and in C declares select so that it takes either kind of set.
 */
#ifndef NDWIN_SYS_SELECT_H
#define NDWIN_SYS_SELECT_H
#pragma GCC system_header

#ifdef FD_SETSIZE
#pragma push_macro("FD_SETSIZE")
#undef FD_SETSIZE
#define NDWIN_FD_SETSIZE 1
#endif
#if defined(__cplusplus) || defined(_SYS_SELECT_H)
#include_next <sys/select.h>
#else
#define select ndw_native_select
#include_next <sys/select.h>
#undef select
#define NDWIN_SELECT 1
struct ndw_fd_set;
typedef union {
    fd_set *native;
    struct ndw_fd_set *windows;
} ndw_any_fd_set __attribute__((__transparent_union__));
extern int select(int, ndw_any_fd_set, ndw_any_fd_set, ndw_any_fd_set, struct timeval *__restrict);
#endif
#ifdef NDWIN_FD_SETSIZE
#undef FD_SETSIZE
#pragma pop_macro("FD_SETSIZE")
#endif

#endif /* NDWIN_SYS_SELECT_H */
