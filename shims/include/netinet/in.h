/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The C library's <netinet/in.h>, with the Windows members in in_addr and in6_addr: S_un.S_addr beside s_addr, u.Byte
 * beside s6_addr.
 *
 * Windows code, <infiniband/verbs.h> and <rdma/rdma_cma.h> share these structures in one translation unit. Types of our own
 * would clash with the C library's, and member names such as `u` cannot be macros. So this file comes before the C
 * library's in the search path and changes what that defines:
 *   - macros turn `in_addr_t s_addr;`, the only member of in_addr, into an empty bit-field followed by a union;
 *   - in6_addr and the structures that contain it are left out there, as after the kernel's header, and defined here.
 * Sizes, alignment and the C library's member names are unchanged.
 */
#ifndef NDWIN_NETINET_IN_H
#define NDWIN_NETINET_IN_H
#pragma GCC system_header

#include <features.h>
#include <stdint.h>
#include <sys/socket.h>
#include <bits/types.h>

#if !defined(__GLIBC__) || defined(_NETINET_IN_H) || defined(_LINUX_IN6_H) || defined(_UAPI_LINUX_IN6_H)
/* Another C library, or it was included before: the structures have no Windows members. */
#include <ndwin/words_off.h>
#include_next <netinet/in.h>
#include <ndwin/words_on.h>
#else

#define NDWIN_IN_ADDR 1

#define s_addr                                        \
    : 0;                                              \
    __extension__ union {                             \
        in_addr_t s_addr;                             \
        union {                                       \
            struct {                                  \
                uint8_t s_b1, s_b2, s_b3, s_b4;       \
            } S_un_b;                                 \
            struct {                                  \
                uint16_t s_w1, s_w2;                  \
            } S_un_w;                                 \
            uint32_t S_addr;                          \
        } S_un;                                       \
    }
#define _UAPI_LINUX_IN6_H
#include <ndwin/words_off.h>
#include_next <netinet/in.h>
#include <ndwin/words_on.h>
#undef _UAPI_LINUX_IN6_H
#undef s_addr
#undef __USE_KERNEL_IPV6_DEFS
#define __USE_KERNEL_IPV6_DEFS 0

struct in6_addr {
    __extension__ union {
        union {
            uint8_t __u6_addr8[16];
            uint16_t __u6_addr16[8];
            uint32_t __u6_addr32[4];
        } __in6_u;
        union {
            uint8_t Byte[16];
            uint16_t Word[8];
        } u;
    };
};
#define s6_addr   __in6_u.__u6_addr8
#define s6_addr16 __in6_u.__u6_addr16
#define s6_addr32 __in6_u.__u6_addr32

#undef IN6ADDR_ANY_INIT
#undef IN6ADDR_LOOPBACK_INIT
#define IN6ADDR_ANY_INIT      {{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}}}
#define IN6ADDR_LOOPBACK_INIT {{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}}}

struct sockaddr_in6 {
    sa_family_t sin6_family;
    in_port_t sin6_port;
    uint32_t sin6_flowinfo;
    struct in6_addr sin6_addr;
    uint32_t sin6_scope_id;
};

struct ipv6_mreq {
    struct in6_addr ipv6mr_multiaddr;
    unsigned int ipv6mr_interface;
};

/* The C library has it with _GNU_SOURCE only, Windows always. */
struct in6_pktinfo {
    struct in6_addr ipi6_addr;
    unsigned int ipi6_ifindex;
};

#ifdef __USE_GNU
struct ip6_mtuinfo {
    struct sockaddr_in6 ip6m_addr;
    uint32_t ip6m_mtu;
};
#endif

enum {
    IPPROTO_HOPOPTS = 0,
    IPPROTO_ROUTING = 43,
    IPPROTO_FRAGMENT = 44,
    IPPROTO_ICMPV6 = 58,
    IPPROTO_NONE = 59,
    IPPROTO_DSTOPTS = 60,
    IPPROTO_MH = 135
};
#define IPPROTO_HOPOPTS  IPPROTO_HOPOPTS
#define IPPROTO_ROUTING  IPPROTO_ROUTING
#define IPPROTO_FRAGMENT IPPROTO_FRAGMENT
#define IPPROTO_ICMPV6   IPPROTO_ICMPV6
#define IPPROTO_NONE     IPPROTO_NONE
#define IPPROTO_DSTOPTS  IPPROTO_DSTOPTS
#define IPPROTO_MH       IPPROTO_MH

#endif
#endif /* NDWIN_NETINET_IN_H */
