/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The C library's <sys/socket.h>, prepared for a later <winsock2.h> that redirects its functions.
 *
 * It leaves out the checks of _FORTIFY_SOURCE, which define recv and recvfrom inline as calls of the C library's. In C,
 * functions that write a length also take a pointer to int, as on Windows; in C++ <winsock2.h> has overloads for that.
 */
#ifndef NDWIN_SYS_SOCKET_H
#define NDWIN_SYS_SOCKET_H
#pragma GCC system_header

#include <features.h>
#pragma push_macro("__USE_FORTIFY_LEVEL")
#undef __USE_FORTIFY_LEVEL
#define __USE_FORTIFY_LEVEL 0

#if defined(__cplusplus) || defined(_SYS_SOCKET_H)
#include_next <sys/socket.h>
#else
#define accept      ndw_native_accept
#define getsockname ndw_native_getsockname
#define getpeername ndw_native_getpeername
#define getsockopt  ndw_native_getsockopt
#define recvfrom    ndw_native_recvfrom
#include_next <sys/socket.h>
#undef accept
#undef getsockname
#undef getpeername
#undef getsockopt
#undef recvfrom
#define NDWIN_LENGTH 1
typedef union {
    socklen_t *__restrict native;
    int *__restrict windows;
} ndw_length __attribute__((__transparent_union__));
extern int accept(int, __SOCKADDR_ARG, ndw_length);
extern int getsockname(int, __SOCKADDR_ARG, ndw_length) __THROW;
extern int getpeername(int, __SOCKADDR_ARG, ndw_length) __THROW;
extern int getsockopt(int, int, int, void *__restrict, ndw_length) __THROW;
extern ssize_t recvfrom(int, void *__restrict, size_t, int, __SOCKADDR_ARG, ndw_length);
#endif
#pragma pop_macro("__USE_FORTIFY_LEVEL")

#endif /* NDWIN_SYS_SOCKET_H */
