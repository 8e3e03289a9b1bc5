/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Control codes, options and families of sockets, beside those of the C library. */
#ifndef NDWIN_WINSOCK_OPTIONS_H
#define NDWIN_WINSOCK_OPTIONS_H

#include "socket.h"

/* No IOC_IN, IOC_OUT and IOC_INOUT: <sys/ioctl.h> has other values for them. */
#define IOC_VOID 0x20000000
#define IOC_WS2  0x08000000
#define _WSAIO(group, number)   (0x20000000 | (group) | (number))
#define _WSAIOR(group, number)  (0x40000000 | (group) | (number))
#define _WSAIOW(group, number)  (0x80000000 | (group) | (number))
#define _WSAIORW(group, number) (0xC0000000 | (group) | (number))
#define SIO_GET_EXTENSION_FUNCTION_POINTER _WSAIORW(IOC_WS2, 6)
#define SIO_ROUTING_INTERFACE_QUERY  _WSAIORW(IOC_WS2, 20)
#define SIO_ADDRESS_LIST_QUERY       _WSAIOR(IOC_WS2, 22)
#define SIO_ADDRESS_LIST_CHANGE      _WSAIO(IOC_WS2, 23)
#define SIO_BASE_HANDLE              _WSAIOR(IOC_WS2, 34)
#define IOC_VENDOR 0x18000000
#define SIO_KEEPALIVE_VALS           _WSAIOW(IOC_VENDOR, 4)
#define SIO_UDP_CONNRESET            _WSAIOW(IOC_VENDOR, 12)
#define SIO_UDP_NETRESET             _WSAIOW(IOC_VENDOR, 15)
#define SIO_LOOPBACK_FAST_PATH       _WSAIOW(IOC_VENDOR, 16)
#define SIO_GET_INTERFACE_LIST       0x4004747F

/* Linux's values, as in <sys/ioctl.h>. The library takes Windows' values as well. */
#ifndef FIONBIO
#define FIONBIO 0x5421
#endif
#ifndef FIONREAD
#define FIONREAD 0x541B
#endif
#ifndef SIOCATMARK
#define SIOCATMARK 0x8905
#endif

/* Options that Linux does not have. The others have Linux's values. */
#define SO_DONTLINGER            ((int)(~SO_LINGER))
#define SO_EXCLUSIVEADDRUSE      ((int)(~SO_REUSEADDR))
#define SO_MAX_MSG_SIZE          0x2003
#define SO_PROTOCOL_INFOA        0x2004
#define SO_PROTOCOL_INFOW        0x2005
#ifdef UNICODE
#define SO_PROTOCOL_INFO SO_PROTOCOL_INFOW
#else
#define SO_PROTOCOL_INFO SO_PROTOCOL_INFOA
#endif
#define SO_OPENTYPE              0x7008
#define SO_SYNCHRONOUS_ALERT     0x10
#define SO_SYNCHRONOUS_NONALERT  0x20
#define SO_UPDATE_ACCEPT_CONTEXT 0x700B
#define SO_CONNECT_TIME          0x700C
#define SO_UPDATE_CONNECT_CONTEXT 0x7010
#define SO_REUSE_UNICASTPORT     0x3007
/* WSAENOPROTOOPT. */
#define PVD_CONFIG               0x3001
#define SO_CONDITIONAL_ACCEPT    0x3002
#define SO_PAUSE_ACCEPT          0x3003
#define SO_COMPARTMENT_ID        0x3004
#define SO_RANDOMIZE_PORT        0x3005
#define SO_PORT_SCALABILITY      0x3006
#define SO_REUSE_MULTICASTPORT   0x3008
#define SO_GROUP_ID              0x2001
#define SO_GROUP_PRIORITY        0x2002
#define SO_BSP_STATE             0x1009
#define SO_MAXDG                 0x7009
#define SO_MAXPATHDG             0x700A
/* Below the socket level Windows' numbers are those of other options here. IP_DONTFRAGMENT is IP_MTU_DISCOVER, TCP_MAXRT is
 * TCP_USER_TIMEOUT in seconds, TCP_KEEPALIVE is TCP_KEEPIDLE; the others are WSAENOPROTOOPT. */
#define IP_DONTFRAGMENT          0x7000E
#define IP_RECVIF                0x70018
#define IPV6_RECVIF              0x70018
#define IPV6_PROTECTION_LEVEL    0x70017
#define TCP_MAXRT                0x70005
#define TCP_TIMESTAMPS           0x7000A
#define TCP_EXPEDITED_1122       0x70002
#define TCP_KEEPALIVE            TCP_KEEPIDLE
#define PROTECTION_LEVEL_UNRESTRICTED   10
#define PROTECTION_LEVEL_EDGERESTRICTED 20
#define PROTECTION_LEVEL_RESTRICTED     30
/* Refused: neither TCP nor UDP has messages in parts. */
#define MSG_PARTIAL              0x1000000
#define MSG_MAXIOVLEN            16
/* How a datagram was sent, for the flags that WSARecvMsg returns: it is not told. */
#define MSG_BCAST                0x0400
#define MSG_MCAST                0x0800

/* Families that Linux has under another name or not at all: WSAEAFNOSUPPORT. */
#define AF_IMPLINK   0x7003
#define AF_NS        0x7006
#define AF_ISO       0x7007
#define AF_OSI       AF_ISO
#define AF_HYLINK    0x700F
#define AF_NETBIOS   0x7011
#define AF_VOICEVIEW 0x7012
#define AF_FIREFOX   0x7013
#define AF_BAN       0x7015
#define AF_CLUSTER   0x7018
#define AF_BTH       0x7020
#define AF_LINK      0x7021
#define AF_HYPERV    0x7022

/* Windows' older names. */
#ifndef IPV6_ADD_MEMBERSHIP
#define IPV6_ADD_MEMBERSHIP  IPV6_JOIN_GROUP
#endif
#ifndef IPV6_DROP_MEMBERSHIP
#define IPV6_DROP_MEMBERSHIP IPV6_LEAVE_GROUP
#endif

struct tcp_keepalive {
    ULONG onoff;
    ULONG keepalivetime;
    ULONG keepaliveinterval;
};

#endif
