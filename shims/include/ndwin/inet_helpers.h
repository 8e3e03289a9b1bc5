/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The helpers of <mstcpip.h> and <ws2ipdef.h> that compare and fill addresses. Those that the C library has under the same
 * names (IN6_IS_ADDR_LOOPBACK and its kin) are the C library's. Included by winsock.h.
 */
#ifndef NDWIN_INET_HELPERS_H
#define NDWIN_INET_HELPERS_H

#define SS_PORT(address) (((struct sockaddr_in *)(void *)(address))->sin_port)

/* The first byte of an IPv4 address, which is in network order. */
#define NDW_IN4_BYTE(a) ((a)->s_addr & 0xFF)

NDW_INLINE BOOLEAN IN4_ADDR_EQUAL(const IN_ADDR *a, const IN_ADDR *b) { return a->s_addr == b->s_addr; }
NDW_INLINE BOOLEAN IN4_UNALIGNED_ADDR_EQUAL(const IN_ADDR *a, const IN_ADDR *b)
{
    return __builtin_memcmp(a, b, sizeof *a) == 0;
}
NDW_INLINE BOOLEAN IN4_IS_ADDR_UNSPECIFIED(const IN_ADDR *a) { return a->s_addr == 0; }
NDW_INLINE BOOLEAN IN4_IS_ADDR_LOOPBACK(const IN_ADDR *a) { return NDW_IN4_BYTE(a) == 127; }
NDW_INLINE BOOLEAN IN4_IS_ADDR_BROADCAST(const IN_ADDR *a) { return a->s_addr == 0xFFFFFFFF; }
NDW_INLINE BOOLEAN IN4_IS_ADDR_MULTICAST(const IN_ADDR *a) { return (a->s_addr & 0xF0) == 0xE0; }
NDW_INLINE BOOLEAN IN4_IS_ADDR_LINKLOCAL(const IN_ADDR *a) { return (a->s_addr & 0xFFFF) == 0xFEA9; }
#undef NDW_IN4_BYTE

NDW_INLINE BOOLEAN IN4ADDR_ISANY(const SOCKADDR_IN *a) { return IN4_IS_ADDR_UNSPECIFIED(&a->sin_addr); }
NDW_INLINE BOOLEAN IN4ADDR_ISLOOPBACK(const SOCKADDR_IN *a) { return IN4_IS_ADDR_LOOPBACK(&a->sin_addr); }
NDW_INLINE BOOLEAN IN4ADDR_ISEQUAL(const SOCKADDR_IN *a, const SOCKADDR_IN *b)
{
    return IN4_ADDR_EQUAL(&a->sin_addr, &b->sin_addr);
}
NDW_INLINE void IN4ADDR_SETSOCKADDR(SOCKADDR_IN *a, const IN_ADDR *host, USHORT port)
{
    a->sin_family = AF_INET;
    a->sin_port = port;
    a->sin_addr = *host;
    __builtin_memset(a->sin_zero, 0, sizeof a->sin_zero);
}
NDW_INLINE void ndw_set_in4(SOCKADDR_IN *a, ULONG host)
{
    IN_ADDR address;
    address.s_addr = host;
    IN4ADDR_SETSOCKADDR(a, &address, 0);
}
NDW_INLINE void IN4ADDR_SETANY(SOCKADDR_IN *a) { ndw_set_in4(a, 0); }
NDW_INLINE void IN4ADDR_SETLOOPBACK(SOCKADDR_IN *a) { ndw_set_in4(a, 0x0100007F); }

NDW_INLINE BOOLEAN IN6_ADDR_EQUAL(const IN6_ADDR *a, const IN6_ADDR *b)
{
    return __builtin_memcmp(a, b, sizeof *a) == 0;
}
NDW_INLINE BOOLEAN ndw_is_in6_last(const IN6_ADDR *a, UCHAR last)
{
    int i;
    for (i = 0; i < 15; i++)
        if (a->s6_addr[i])
            return FALSE;
    return a->s6_addr[15] == last;
}
NDW_INLINE BOOLEAN ndw_is_in6_v4mapped(const IN6_ADDR *a)
{
    int i;
    for (i = 0; i < 10; i++)
        if (a->s6_addr[i])
            return FALSE;
    return a->s6_addr[10] == 0xFF && a->s6_addr[11] == 0xFF;
}
NDW_INLINE void IN6_SET_ADDR_UNSPECIFIED(IN6_ADDR *a) { __builtin_memset(a, 0, sizeof *a); }
NDW_INLINE void IN6_SET_ADDR_LOOPBACK(IN6_ADDR *a)
{
    __builtin_memset(a, 0, sizeof *a);
    a->s6_addr[15] = 1;
}
NDW_INLINE void IN6_SET_ADDR_V4MAPPED(IN6_ADDR *a, const IN_ADDR *from)
{
    __builtin_memset(a, 0, sizeof *a);
    a->s6_addr[10] = a->s6_addr[11] = 0xFF;
    __builtin_memcpy(&a->s6_addr[12], from, sizeof *from);
}
NDW_INLINE const UCHAR *IN6_GET_ADDR_V4MAPPED(const IN6_ADDR *a) { return &a->s6_addr[12]; }

NDW_INLINE BOOLEAN IN6ADDR_ISANY(const SOCKADDR_IN6 *a) { return ndw_is_in6_last(&a->sin6_addr, 0); }
NDW_INLINE BOOLEAN IN6ADDR_ISUNSPECIFIED(const SOCKADDR_IN6 *a) { return IN6ADDR_ISANY(a); }
NDW_INLINE BOOLEAN IN6ADDR_ISLOOPBACK(const SOCKADDR_IN6 *a) { return ndw_is_in6_last(&a->sin6_addr, 1); }
NDW_INLINE BOOLEAN IN6ADDR_ISV4MAPPED(const SOCKADDR_IN6 *a) { return ndw_is_in6_v4mapped(&a->sin6_addr); }
NDW_INLINE BOOLEAN IN6ADDR_ISEQUAL(const SOCKADDR_IN6 *a, const SOCKADDR_IN6 *b)
{
    return a->sin6_scope_id == b->sin6_scope_id && IN6_ADDR_EQUAL(&a->sin6_addr, &b->sin6_addr);
}
NDW_INLINE void IN6ADDR_SETSOCKADDR(SOCKADDR_IN6 *a, const IN6_ADDR *host, SCOPE_ID scope, USHORT port)
{
    a->sin6_family = AF_INET6;
    a->sin6_port = port;
    a->sin6_flowinfo = 0;
    a->sin6_addr = *host;
    a->sin6_scope_id = scope.Value;
}
NDW_INLINE void IN6ADDR_SETANY(SOCKADDR_IN6 *a)
{
    __builtin_memset(a, 0, sizeof *a);
    a->sin6_family = AF_INET6;
}
NDW_INLINE void IN6ADDR_SETLOOPBACK(SOCKADDR_IN6 *a)
{
    IN6ADDR_SETANY(a);
    IN6_SET_ADDR_LOOPBACK(&a->sin6_addr);
}
NDW_INLINE void IN6ADDR_SETV4MAPPED(SOCKADDR_IN6 *a, const IN_ADDR *from, SCOPE_ID scope, USHORT port)
{
    IN6_ADDR mapped;
    IN6_SET_ADDR_V4MAPPED(&mapped, from);
    IN6ADDR_SETSOCKADDR(a, &mapped, scope, port);
}

/* For addresses of either family: each begins with its family. */
#define NDW_IN4(a) ((const SOCKADDR_IN *)(const void *)(a))
#define NDW_IN6(a) ((const SOCKADDR_IN6 *)(const void *)(a))
NDW_INLINE BOOLEAN INETADDR_ISEQUAL(const SOCKADDR *a, const SOCKADDR *b)
{
    if (a->sa_family != b->sa_family)
        return FALSE;
    return a->sa_family == AF_INET6 ? IN6ADDR_ISEQUAL(NDW_IN6(a), NDW_IN6(b)) : IN4ADDR_ISEQUAL(NDW_IN4(a), NDW_IN4(b));
}
NDW_INLINE BOOLEAN INETADDR_ISANY(const SOCKADDR *a)
{
    return a->sa_family == AF_INET6 ? IN6ADDR_ISANY(NDW_IN6(a)) : IN4ADDR_ISANY(NDW_IN4(a));
}
NDW_INLINE BOOLEAN INETADDR_ISUNSPECIFIED(const SOCKADDR *a) { return INETADDR_ISANY(a); }
NDW_INLINE BOOLEAN INETADDR_ISLOOPBACK(const SOCKADDR *a)
{
    return a->sa_family == AF_INET6 ? IN6ADDR_ISLOOPBACK(NDW_IN6(a)) : IN4ADDR_ISLOOPBACK(NDW_IN4(a));
}
NDW_INLINE BOOLEAN INETADDR_ISV4MAPPED(const SOCKADDR *a)
{
    return a->sa_family == AF_INET6 && IN6ADDR_ISV4MAPPED(NDW_IN6(a));
}
NDW_INLINE void INETADDR_SETANY(SOCKADDR *a)
{
    if (a->sa_family == AF_INET6)
        IN6ADDR_SETANY((SOCKADDR_IN6 *)(void *)a);
    else
        IN4ADDR_SETANY((SOCKADDR_IN *)(void *)a);
}
NDW_INLINE void INETADDR_SETLOOPBACK(SOCKADDR *a)
{
    if (a->sa_family == AF_INET6)
        IN6ADDR_SETLOOPBACK((SOCKADDR_IN6 *)(void *)a);
    else
        IN4ADDR_SETLOOPBACK((SOCKADDR_IN *)(void *)a);
}
NDW_INLINE UCHAR *INETADDR_ADDRESS(const SOCKADDR *a)
{
    return a->sa_family == AF_INET6 ? (UCHAR *)(ULONG_PTR)&NDW_IN6(a)->sin6_addr : (UCHAR *)(ULONG_PTR)&NDW_IN4(a)->sin_addr;
}
NDW_INLINE void INETADDR_SET_ADDRESS(SOCKADDR *a, const UCHAR *address)
{
    __builtin_memcpy(INETADDR_ADDRESS(a), address, a->sa_family == AF_INET6 ? sizeof(IN6_ADDR) : sizeof(IN_ADDR));
}
/* The port is at the same place in both families. */
NDW_INLINE USHORT INETADDR_PORT(const SOCKADDR *a) { return NDW_IN4(a)->sin_port; }
NDW_INLINE void INETADDR_SET_PORT(SOCKADDR *a, USHORT port) { ((SOCKADDR_IN *)(void *)a)->sin_port = port; }
NDW_INLINE SCOPE_ID INETADDR_SCOPE_ID(const SOCKADDR *a)
{
    SCOPE_ID scope;
    scope.Value = a->sa_family == AF_INET6 ? NDW_IN6(a)->sin6_scope_id : 0;
    return scope;
}
NDW_INLINE BOOLEAN INET_ADDR_EQUAL(ADDRESS_FAMILY family, const VOID *a, const VOID *b)
{
    return __builtin_memcmp(a, b, family == AF_INET6 ? sizeof(IN6_ADDR) : sizeof(IN_ADDR)) == 0;
}
#undef NDW_IN4
#undef NDW_IN6

#endif /* NDWIN_INET_HELPERS_H */
