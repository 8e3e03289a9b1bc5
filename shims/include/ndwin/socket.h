/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions that Winsock and the C library both have, as on Windows: errors in WSAGetLastError (and in errno), no
 * SIGPIPE, time-outs in milliseconds, Windows' fd_set.
 *
 * They redirect the C library's declarations, so code for Linux in the same file calls them as well. It works unchanged:
 * descriptors, addresses, parameters, options and flags are the C library's. Lengths are written to an `int *`, as on
 * Windows: in C++ by overloads, in C because our <sys/socket.h> declares them so.
 */
#ifndef NDWIN_SOCKET_H
#define NDWIN_SOCKET_H
#pragma GCC system_header

#include <sys/types.h>
#include <sys/socket.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include "types.h"
#include "winsock_error.h"

/* A file descriptor. -1 of socket() converts to INVALID_SOCKET. */
typedef UINT_PTR SOCKET;

/* NDW_NATIVE(result, name, parameters): redirects the C library's function to ours. _NTH: for one declared __THROW. */
#ifdef __cplusplus
#define NDW_NATIVE(result, name, parameters)     extern "C" result name parameters __asm__("ndw_" #name)
#define NDW_NATIVE_NTH(result, name, parameters) extern "C" result name parameters __THROW __asm__("ndw_" #name)
#else
#define NDW_NATIVE(result, name, parameters)     extern result name parameters __asm__("ndw_" #name)
#define NDW_NATIVE_NTH(result, name, parameters) extern result name parameters __asm__("ndw_" #name) __THROW
#endif

NDW_NATIVE_NTH(int, socket, (int family, int type, int protocol));
NDW_NATIVE_NTH(int, bind, (int s, __CONST_SOCKADDR_ARG address, socklen_t length));
NDW_NATIVE_NTH(int, listen, (int s, int backlog));
#ifndef NDWIN_LENGTH
typedef socklen_t *__restrict ndw_length;
#endif
NDW_NATIVE(int, accept, (int s, __SOCKADDR_ARG address, ndw_length length));
NDW_NATIVE(int, connect, (int s, __CONST_SOCKADDR_ARG address, socklen_t length));
NDW_NATIVE_NTH(int, getsockname, (int s, __SOCKADDR_ARG address, ndw_length length));
NDW_NATIVE_NTH(int, getpeername, (int s, __SOCKADDR_ARG address, ndw_length length));
NDW_NATIVE_NTH(int, shutdown, (int s, int how));
NDW_NATIVE(ssize_t, send, (int s, const void *data, size_t length, int flags));
NDW_NATIVE(ssize_t, recv, (int s, void *data, size_t length, int flags));
NDW_NATIVE(ssize_t, sendto,
    (int s, const void *data, size_t length, int flags, __CONST_SOCKADDR_ARG to, socklen_t toLength));
NDW_NATIVE(ssize_t, recvfrom,
    (int s, void *__restrict data, size_t length, int flags, __SOCKADDR_ARG from, ndw_length fromLength));
NDW_NATIVE_NTH(int, setsockopt, (int s, int level, int option, const void *value, socklen_t size));
NDW_NATIVE_NTH(int, getsockopt, (int s, int level, int option, void *__restrict value, ndw_length size));
NDW_NATIVE(struct hostent *, gethostbyname, (const char *name));
NDW_NATIVE(struct hostent *, gethostbyaddr, (const void *address, __socklen_t length, int family));
NDW_NATIVE(struct servent *, getservbyname, (const char *name, const char *protocol));
NDW_NATIVE(struct servent *, getservbyport, (int port, const char *protocol));
NDW_NATIVE(struct protoent *, getprotobyname, (const char *name));
NDW_NATIVE(struct protoent *, getprotobynumber, (int number));
NDW_NATIVE_NTH(in_addr_t, inet_addr, (const char *text));
#if defined(__USE_FORTIFY_LEVEL) && __USE_FORTIFY_LEVEL > 0 && __GLIBC_PREREQ(2, 42)
/* <arpa/inet.h> has defined them inline, as calls of the C library's. */
EXTERN_C const char *ndw_inet_ntop(int family, const void *address, char *text, socklen_t size);
EXTERN_C int ndw_inet_pton(int family, const char *text, void *address);
#define inet_ntop ndw_inet_ntop
#define inet_pton ndw_inet_pton
#else
NDW_NATIVE_NTH(const char *, inet_ntop,
    (int family, const void *__restrict address, char *__restrict text, socklen_t size));
NDW_NATIVE_NTH(int, inet_pton, (int family, const char *__restrict text, void *__restrict address));
#endif
#ifdef __USE_XOPEN2K
NDW_NATIVE(int, getaddrinfo,
    (const char *__restrict node, const char *__restrict service, const struct addrinfo *__restrict hints,
     struct addrinfo **__restrict result));
NDW_NATIVE_NTH(const char *, gai_strerror, (int code));
NDW_NATIVE(int, getnameinfo,
    (const struct sockaddr *__restrict address, socklen_t length, char *__restrict host, socklen_t hostSize,
     char *__restrict service, socklen_t serviceSize, int flags));
#endif
#if defined __USE_MISC || defined __USE_UNIX98
#if !defined(_UNISTD_H) || !defined(__USE_FORTIFY_LEVEL) || __USE_FORTIFY_LEVEL == 0
NDW_NATIVE_NTH(int, gethostname, (char *name, size_t size));
#else
/* <unistd.h> has defined it inline, as a call of the C library's. (Included later it does so, too, and that is called.) */
EXTERN_C int ndw_gethostname(char *name, size_t size);
#ifdef __cplusplus
extern "C++" {
NDW_INLINE int gethostname(char *name, int size)
{
    return ndw_gethostname(name, (size_t)size);
}
}
#else
#define gethostname(...) ndw_gethostname(__VA_ARGS__)
#endif
#endif
#endif

/* getaddrinfo and getnameinfo return WSA codes here. */
#undef EAI_AGAIN
#undef EAI_BADFLAGS
#undef EAI_FAIL
#undef EAI_FAMILY
#undef EAI_MEMORY
#undef EAI_NODATA
#undef EAI_NONAME
#undef EAI_SERVICE
#undef EAI_SOCKTYPE
#define EAI_AGAIN    11002
#define EAI_BADFLAGS 10022
#define EAI_FAIL     11003
#define EAI_FAMILY   10047
#define EAI_MEMORY   8
#define EAI_NODATA   11001
#define EAI_NONAME   11001
#define EAI_SERVICE  10109
#define EAI_SOCKTYPE 10044

/* So do gethostbyname and its kin fail: WSAGetLastError has their code, and the C library's variable is not for the program. */
#undef h_errno
#undef HOST_NOT_FOUND
#undef TRY_AGAIN
#undef NO_RECOVERY
#undef NO_DATA
#undef NO_ADDRESS
#define h_errno        WSAGetLastError()
#define HOST_NOT_FOUND WSAHOST_NOT_FOUND
#define TRY_AGAIN      WSATRY_AGAIN
#define NO_RECOVERY    WSANO_RECOVERY
#define NO_DATA        WSANO_DATA
#define WSANO_ADDRESS  WSANO_DATA
#define NO_ADDRESS     WSANO_ADDRESS

/* The canonical name is the full one. The others change nothing here: names are not encoded unless a program wants that (AI_IDN). */
#define AI_FQDN                 AI_CANONNAME
#define AI_NON_AUTHORITATIVE    0
#define AI_FILESERVER           0
#define AI_DISABLE_IDN_ENCODING 0

/* Windows' fd_set: an array of sockets. A program may define FD_SETSIZE first, or use a longer structure of its own. */
#pragma push_macro("__FD_SETSIZE")
#undef __FD_SETSIZE
#define __FD_SETSIZE 70000017
#if FD_SETSIZE + 0 == 70000017 /* it is the C library's: __FD_SETSIZE */
#undef FD_SETSIZE
#endif
#pragma pop_macro("__FD_SETSIZE")
#ifndef FD_SETSIZE
#define FD_SETSIZE 64
#endif
typedef struct ndw_fd_set {
    unsigned int fd_count;
    SOCKET fd_array[FD_SETSIZE];
} ndw_fd_set;
#define fd_set ndw_fd_set

#ifdef NDWIN_SELECT
NDW_NATIVE(int, select,
    (int ignored, ndw_any_fd_set read, ndw_any_fd_set write, ndw_any_fd_set except, struct timeval *__restrict timeout));
#else
EXTERN_C int ndw_select(int ignored, fd_set *read, fd_set *write, fd_set *except, const struct timeval *timeout);
#endif
EXTERN_C int __WSAFDIsSet(SOCKET s, fd_set *set) __asm__("ndw___WSAFDIsSet");

static inline __attribute__((unused)) void ndw_fd_set_add(SOCKET s, unsigned int *count, SOCKET *array, unsigned int room)
{
    unsigned int i;
    for (i = 0; i < *count; i++)
        if (array[i] == s)
            return;
    if (*count < room)
        array[(*count)++] = s;
}

static inline __attribute__((unused)) void ndw_fd_set_remove(SOCKET s, unsigned int *count, SOCKET *array)
{
    unsigned int i;
    for (i = 0; i < *count; i++) {
        if (array[i] != s)
            continue;
        for ((*count)--; i < *count; i++)
            array[i] = array[i + 1];
        return;
    }
}

#undef FD_ZERO
#undef FD_SET
#undef FD_CLR
#undef FD_ISSET
#define FD_ZERO(set)     ((void)(((fd_set *)(set))->fd_count = 0))
#define FD_SET(s, set)   \
    ndw_fd_set_add((SOCKET)(s), &((fd_set *)(set))->fd_count, ((fd_set *)(set))->fd_array, FD_SETSIZE)
#define FD_CLR(s, set)   ndw_fd_set_remove((SOCKET)(s), &((fd_set *)(set))->fd_count, ((fd_set *)(set))->fd_array)
#define FD_ISSET(s, set) __WSAFDIsSet((SOCKET)(s), (fd_set *)(set))

#ifdef __cplusplus
extern "C++" {
NDW_INLINE int select(int ignored, fd_set *read, fd_set *write, fd_set *except, const struct timeval *timeout)
{
    return ndw_select(ignored, read, write, except, timeout);
}
NDW_INLINE SOCKET accept(SOCKET s, struct sockaddr *address, int *length)
{
    return (SOCKET)(INT_PTR)accept((int)s, address, (socklen_t *)length);
}
NDW_INLINE int getsockname(SOCKET s, struct sockaddr *address, int *length)
{
    return getsockname((int)s, address, (socklen_t *)length);
}
NDW_INLINE int getpeername(SOCKET s, struct sockaddr *address, int *length)
{
    return getpeername((int)s, address, (socklen_t *)length);
}
NDW_INLINE int getsockopt(SOCKET s, int level, int option, void *value, int *size)
{
    return getsockopt((int)s, level, option, value, (socklen_t *)size);
}
NDW_INLINE int recvfrom(SOCKET s, void *data, size_t length, int flags, struct sockaddr *from, int *fromLength)
{
    return (int)recvfrom((int)s, data, length, flags, from, (socklen_t *)fromLength);
}
}
#elif !defined(NDWIN_SELECT)
/* The C library's <sys/select.h> came first and has declared select: redirect the calls. */
#define select(...) ndw_select(__VA_ARGS__)
#endif

#endif /* NDWIN_SOCKET_H */
