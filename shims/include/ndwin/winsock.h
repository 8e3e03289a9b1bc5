/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Winsock on the C library's sockets. Socket addresses are the C library's, so they can be passed to any Linux call.
 *
 * Numbers of families, such as AF_INET6, are Linux's (10; 23 on Windows): use the names. u_long is Linux's and has 64 bits;
 * all other types have the size that they have on Windows.
 */
#ifndef NDWIN_WINSOCK_H
#define NDWIN_WINSOCK_H

#include "socket.h"
#include "guid.h"
#include "inaddr.h"
#include "io.h"
#include "winsock_error.h"
#include "winsock_options.h"

typedef HANDLE WSAEVENT, *LPWSAEVENT;
typedef UINT GROUP;
typedef USHORT ADDRESS_FAMILY;
typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int;
typedef unsigned long u_long;
#define INVALID_SOCKET ((SOCKET)~(SOCKET)0)
#define SOCKET_ERROR   (-1)
#define ADDR_ANY       INADDR_ANY
/* For listen: a backlog between 200 and 65535. */
#define SOMAXCONN_HINT(backlog) (-(backlog))
#define SD_RECEIVE     SHUT_RD
#define SD_SEND        SHUT_WR
#define SD_BOTH        SHUT_RDWR

typedef struct in_addr IN_ADDR, *PIN_ADDR, *LPIN_ADDR;
typedef struct in6_addr IN6_ADDR, *PIN6_ADDR, *LPIN6_ADDR;
typedef struct sockaddr SOCKADDR, *PSOCKADDR, *LPSOCKADDR;
typedef struct sockaddr_in SOCKADDR_IN, *PSOCKADDR_IN, *LPSOCKADDR_IN;
typedef struct sockaddr_in6 SOCKADDR_IN6, *PSOCKADDR_IN6, *LPSOCKADDR_IN6, SOCKADDR_IN6_LH, *PSOCKADDR_IN6_LH;
typedef struct sockaddr_storage SOCKADDR_STORAGE, *PSOCKADDR_STORAGE, *LPSOCKADDR_STORAGE;
typedef struct addrinfo ADDRINFOA, *PADDRINFOA, ADDRINFO, *LPADDRINFO;
typedef struct timeval TIMEVAL, *PTIMEVAL, *LPTIMEVAL;
typedef struct hostent HOSTENT, *PHOSTENT, *LPHOSTENT;
typedef struct servent SERVENT, *PSERVENT, *LPSERVENT;
typedef struct protoent PROTOENT, *PPROTOENT, *LPPROTOENT;
typedef struct linger LINGER, *PLINGER, *LPLINGER;
typedef fd_set FD_SET, *PFD_SET, *LPFD_SET;

typedef struct ip_mreq IP_MREQ, *PIP_MREQ;
typedef struct ipv6_mreq IPV6_MREQ, *PIPV6_MREQ;
/* The structures are Linux's, since its control messages contain them. */
typedef struct in_pktinfo IN_PKTINFO, *PIN_PKTINFO;
typedef struct in6_pktinfo IN6_PKTINFO, *PIN6_PKTINFO;

typedef struct {
    __extension__ union {
        __extension__ struct {
            ULONG Zone : 28;
            ULONG Level : 4;
        };
        ULONG Value;
    };
} SCOPE_ID, *PSCOPE_ID;
#define SCOPEID_UNSPECIFIED_INIT {{{0, 0}}}

/*
 * SIO_GET_INTERFACE_LIST: the flags have Linux's values. <linux/if.h> has them, too, and excludes the other if it comes first. By the
 * letter of a standard (-std=c11) <net/if.h> has none.
 */
#ifndef _LINUX_IF_H
#include <net/if.h>
#endif
#ifndef IFF_UP
#include <linux/if.h>
#endif
#define IFF_POINTTOPOINT IFF_POINTOPOINT
typedef union sockaddr_gen {
    struct sockaddr Address;
    struct sockaddr_in AddressIn;
    CHAR Reserved[24];
} sockaddr_gen;
typedef struct _INTERFACE_INFO {
    ULONG iiFlags;
    sockaddr_gen iiAddress;
    sockaddr_gen iiBroadcastAddress;
    sockaddr_gen iiNetmask;
} INTERFACE_INFO, *LPINTERFACE_INFO;

typedef union _SOCKADDR_INET {
    SOCKADDR_IN Ipv4;
    SOCKADDR_IN6 Ipv6;
    ADDRESS_FAMILY si_family;
} SOCKADDR_INET, *PSOCKADDR_INET;

typedef struct _SOCKET_ADDRESS {
    LPSOCKADDR lpSockaddr;
    INT iSockaddrLength;
} SOCKET_ADDRESS, *PSOCKET_ADDRESS, *LPSOCKET_ADDRESS;

typedef struct _SOCKET_ADDRESS_LIST {
    INT iAddressCount;
    SOCKET_ADDRESS Address[1];
} SOCKET_ADDRESS_LIST, *PSOCKET_ADDRESS_LIST, *LPSOCKET_ADDRESS_LIST;
#define SIZEOF_SOCKET_ADDRESS_LIST(count) (offsetof(SOCKET_ADDRESS_LIST, Address) + (count) * sizeof(SOCKET_ADDRESS))

/* The values of the flags are poll's. Where Windows has one event, or one within the other, so has poll. */
#undef POLLRDNORM
#define POLLRDNORM POLLIN
#undef POLLWRNORM
#define POLLWRNORM POLLOUT

typedef struct _WSAPOLLFD {
    SOCKET fd;
    SHORT events;
    SHORT revents;
} WSAPOLLFD, *PWSAPOLLFD, *LPWSAPOLLFD;

typedef struct _WSABUF {
    ULONG len;
    CHAR *buf;
} WSABUF, *LPWSABUF;

/* Windows' layout. Its control messages are the C library's cmsghdr. */
typedef struct _WSAMSG {
    LPSOCKADDR name;
    INT namelen;
    LPWSABUF lpBuffers;
    ULONG dwBufferCount;
    WSABUF Control;
    ULONG dwFlags;
} WSAMSG, *PWSAMSG, *LPWSAMSG;
typedef struct cmsghdr WSACMSGHDR, *PWSACMSGHDR, *LPWSACMSGHDR;
/* The C library's CMSG_ macros for a WSAMSG. */
#define WSA_CMSG_SPACE(length) CMSG_SPACE(length)
#define WSA_CMSG_LEN(length)   CMSG_LEN(length)
#define WSA_CMSG_DATA(header)  CMSG_DATA(header)
#define WSA_CMSG_FIRSTHDR(message)                       \
    ((message)->Control.len >= sizeof(WSACMSGHDR) ? (LPWSACMSGHDR)(void *)(message)->Control.buf : (LPWSACMSGHDR)NULL)
NDW_INLINE LPWSACMSGHDR ndw_next_header(LPWSAMSG message, LPWSACMSGHDR header)
{
    const size_t room = message->Control.len;
    const size_t begin = (size_t)((char *)header - message->Control.buf) + CMSG_ALIGN(header->cmsg_len);
    return header->cmsg_len < sizeof(WSACMSGHDR) || begin > room || room - begin < sizeof(WSACMSGHDR)
               ? NULL
               : (LPWSACMSGHDR)(void *)(message->Control.buf + begin);
}
#define WSA_CMSG_NXTHDR(message, header) \
    ((header) == NULL ? WSA_CMSG_FIRSTHDR(message) : ndw_next_header((message), (header)))

/* Qualities of service, which are passed as NULL. */
typedef ULONG SERVICETYPE;
typedef struct _flowspec {
    ULONG TokenRate;
    ULONG TokenBucketSize;
    ULONG PeakBandwidth;
    ULONG Latency;
    ULONG DelayVariation;
    SERVICETYPE ServiceType;
    ULONG MaxSduSize;
    ULONG MinimumPolicedSize;
} FLOWSPEC, *PFLOWSPEC, *LPFLOWSPEC;
typedef struct _QualityOfService {
    FLOWSPEC SendingFlowspec;
    FLOWSPEC ReceivingFlowspec;
    WSABUF ProviderSpecific;
} QOS, *LPQOS;

/* What a condition function of WSAAccept returns. It gets the addresses, and no data. */
#define CF_ACCEPT 0x0000
#define CF_REJECT 0x0001
#define CF_DEFER  0x0002
typedef int (CALLBACK *LPCONDITIONPROC)(
    LPWSABUF callerId, LPWSABUF callerData, LPQOS sqos, LPQOS gqos, LPWSABUF calleeId, LPWSABUF calleeData, GROUP *group,
    DWORD_PTR data);

#define NDW_ADDRINFOEX(name, character)      \
    struct name {                            \
        int ai_flags;                        \
        int ai_family;                       \
        int ai_socktype;                     \
        int ai_protocol;                     \
        size_t ai_addrlen;                   \
        character *ai_canonname;             \
        struct sockaddr *ai_addr;            \
        void *ai_blob;                       \
        size_t ai_bloblen;                   \
        LPGUID ai_provider;                  \
        struct name *ai_next;                \
    }
typedef NDW_ADDRINFOEX(addrinfoexA, CHAR) ADDRINFOEXA, *PADDRINFOEXA, *LPADDRINFOEXA;
typedef NDW_ADDRINFOEX(addrinfoexW, WCHAR) ADDRINFOEXW, *PADDRINFOEXW, *LPADDRINFOEXW;
#define NS_ALL 0
#define NS_DNS 12

typedef struct addrinfoW {
    int ai_flags;
    int ai_family;
    int ai_socktype;
    int ai_protocol;
    size_t ai_addrlen;
    WCHAR *ai_canonname;
    struct sockaddr *ai_addr;
    struct addrinfoW *ai_next;
} ADDRINFOW, *PADDRINFOW, *LPADDRINFOW;

#define WSADESCRIPTION_LEN 256
#define WSASYS_STATUS_LEN  128
typedef struct WSAData {
    WORD wVersion;
    WORD wHighVersion;
    USHORT iMaxSockets;
    USHORT iMaxUdpDg;
    char *lpVendorInfo;
    char szDescription[WSADESCRIPTION_LEN + 1];
    char szSystemStatus[WSASYS_STATUS_LEN + 1];
} WSADATA, *LPWSADATA;

#define MAX_PROTOCOL_CHAIN   7
#define WSAPROTOCOL_LEN      255
#define BASE_PROTOCOL        1
#define LAYERED_PROTOCOL     0
typedef struct _WSAPROTOCOLCHAIN {
    int ChainLen;
    DWORD ChainEntries[MAX_PROTOCOL_CHAIN];
} WSAPROTOCOLCHAIN, *LPWSAPROTOCOLCHAIN;

#define NDW_WSAPROTOCOL_INFO(character)      \
    {                                        \
        DWORD dwServiceFlags1;               \
        DWORD dwServiceFlags2;               \
        DWORD dwServiceFlags3;               \
        DWORD dwServiceFlags4;               \
        DWORD dwProviderFlags;               \
        GUID ProviderId;                     \
        DWORD dwCatalogEntryId;              \
        WSAPROTOCOLCHAIN ProtocolChain;      \
        int iVersion;                        \
        int iAddressFamily;                  \
        int iMaxSockAddr;                    \
        int iMinSockAddr;                    \
        int iSocketType;                     \
        int iProtocol;                       \
        int iProtocolMaxOffset;              \
        int iNetworkByteOrder;               \
        int iSecurityScheme;                 \
        DWORD dwMessageSize;                 \
        DWORD dwProviderReserved;            \
        character szProtocol[WSAPROTOCOL_LEN + 1]; \
    }
typedef struct _WSAPROTOCOL_INFOA NDW_WSAPROTOCOL_INFO(CHAR) WSAPROTOCOL_INFOA, *LPWSAPROTOCOL_INFOA;
typedef struct _WSAPROTOCOL_INFOW NDW_WSAPROTOCOL_INFO(WCHAR) WSAPROTOCOL_INFOW, *LPWSAPROTOCOL_INFOW;

/* WSAPROTOCOL_INFO: dwServiceFlags1, dwProviderFlags */
#define BIGENDIAN                 0
#define LITTLEENDIAN              1
#define XP1_CONNECTIONLESS        0x00000001
#define XP1_GUARANTEED_DELIVERY   0x00000002
#define XP1_GUARANTEED_ORDER      0x00000004
#define XP1_MESSAGE_ORIENTED      0x00000008
#define XP1_PSEUDO_STREAM         0x00000010
#define XP1_GRACEFUL_CLOSE        0x00000020
#define XP1_EXPEDITED_DATA        0x00000040
#define XP1_CONNECT_DATA          0x00000080
#define XP1_DISCONNECT_DATA       0x00000100
#define XP1_IFS_HANDLES           0x00020000
#define PFL_MULTIPLE_PROTO_ENTRIES   0x00000001
#define PFL_RECOMMENDED_PROTO_ENTRY  0x00000002
#define PFL_HIDDEN                   0x00000004
#define PFL_MATCHES_PROTOCOL_ZERO    0x00000008
#define PFL_NETWORKDIRECT_PROVIDER   0x00000010

#define FROM_PROTOCOL_INFO         (-1)
#define WSA_FLAG_OVERLAPPED        0x01
#define WSA_FLAG_NO_HANDLE_INHERIT 0x80

#define WINSOCK_VERSION MAKEWORD(2, 2)

#define FD_READ_BIT     0
#define FD_WRITE_BIT    1
#define FD_OOB_BIT      2
#define FD_ACCEPT_BIT   3
#define FD_CONNECT_BIT  4
#define FD_CLOSE_BIT    5
#define FD_QOS_BIT      6
#define FD_GROUP_QOS_BIT 7
#define FD_ADDRESS_LIST_CHANGE_BIT 9
#define FD_MAX_EVENTS   10
#define FD_ALL_EVENTS   ((1 << FD_MAX_EVENTS) - 1)
#define FD_READ         (1 << FD_READ_BIT)
#define FD_WRITE        (1 << FD_WRITE_BIT)
#define FD_OOB          (1 << FD_OOB_BIT)
#define FD_ACCEPT       (1 << FD_ACCEPT_BIT)
#define FD_CONNECT      (1 << FD_CONNECT_BIT)
#define FD_CLOSE        (1 << FD_CLOSE_BIT)
#define FD_ADDRESS_LIST_CHANGE (1 << FD_ADDRESS_LIST_CHANGE_BIT)
/* These never occur, as on Windows without a provider of qualities of service. */
#define FD_QOS          (1 << FD_QOS_BIT)
#define FD_GROUP_QOS    (1 << FD_GROUP_QOS_BIT)
typedef struct _WSANETWORKEVENTS {
    LONG lNetworkEvents;
    int iErrorCode[FD_MAX_EVENTS];
} WSANETWORKEVENTS, *LPWSANETWORKEVENTS;

#define WSA_INVALID_EVENT       ((WSAEVENT)NULL)
#define WSA_MAXIMUM_WAIT_EVENTS MAXIMUM_WAIT_OBJECTS
#define WSA_WAIT_FAILED         WAIT_FAILED
#define WSA_WAIT_EVENT_0        WAIT_OBJECT_0
#define WSA_WAIT_IO_COMPLETION  WAIT_IO_COMPLETION
#define WSA_WAIT_TIMEOUT        WAIT_TIMEOUT
#define WSA_INFINITE            INFINITE

#define WSAOVERLAPPED   OVERLAPPED
#define LPWSAOVERLAPPED LPOVERLAPPED
typedef void (CALLBACK *LPWSAOVERLAPPED_COMPLETION_ROUTINE)(
    DWORD code, DWORD bytes, LPWSAOVERLAPPED overlapped, DWORD flags);

NDW_API(int, WSAStartup, (WORD version, LPWSADATA data));
NDW_API(int, WSACleanup, (void));
NDW_API(SOCKET, WSASocketW,
    (int family, int type, int protocol, LPWSAPROTOCOL_INFOW info, GROUP group, DWORD flags));
NDW_API(SOCKET, WSASocketA,
    (int family, int type, int protocol, LPWSAPROTOCOL_INFOA info, GROUP group, DWORD flags));
/* CF_DEFER leaves the connection to the next call. */
NDW_API(SOCKET, WSAAccept,
    (SOCKET socket, struct sockaddr *address, LPINT length, LPCONDITIONPROC condition, DWORD_PTR data));
/* The data and the qualities of service must be NULL. */
NDW_API(int, WSAConnect,
    (SOCKET socket, const struct sockaddr *address, int length, LPWSABUF callerData, LPWSABUF calleeData,
     LPQOS sqos, LPQOS gqos));
/* They wait whatever the socket does otherwise. The last argument must be NULL. */
NDW_API(BOOL, WSAConnectByNameA,
    (SOCKET socket, LPCSTR node, LPCSTR service, LPDWORD localLength, LPSOCKADDR local, LPDWORD remoteLength, LPSOCKADDR remote,
     const struct timeval *timeout, LPWSAOVERLAPPED reserved));
NDW_API(BOOL, WSAConnectByNameW,
    (SOCKET socket, LPWSTR node, LPWSTR service, LPDWORD localLength, LPSOCKADDR local, LPDWORD remoteLength, LPSOCKADDR remote,
     const struct timeval *timeout, LPWSAOVERLAPPED reserved));
NDW_API(BOOL, WSAConnectByList,
    (SOCKET socket, PSOCKET_ADDRESS_LIST list, LPDWORD localLength, LPSOCKADDR local, LPDWORD remoteLength, LPSOCKADDR remote,
     const struct timeval *timeout, LPWSAOVERLAPPED reserved));
NDW_API(int, WSASend,
    (SOCKET socket, LPWSABUF buffers, DWORD count, LPDWORD sent, DWORD flags, LPWSAOVERLAPPED overlapped,
     LPWSAOVERLAPPED_COMPLETION_ROUTINE routine));
NDW_API(int, WSASendTo,
    (SOCKET socket, LPWSABUF buffers, DWORD count, LPDWORD sent, DWORD flags, const struct sockaddr *to, int toLength,
     LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine));
NDW_API(int, WSASendMsg,
    (SOCKET socket, LPWSAMSG message, DWORD flags, LPDWORD sent, LPWSAOVERLAPPED overlapped,
     LPWSAOVERLAPPED_COMPLETION_ROUTINE routine));
NDW_API(int, WSARecv,
    (SOCKET socket, LPWSABUF buffers, DWORD count, LPDWORD received, LPDWORD flags, LPWSAOVERLAPPED overlapped,
     LPWSAOVERLAPPED_COMPLETION_ROUTINE routine));
NDW_API(int, WSARecvFrom,
    (SOCKET socket, LPWSABUF buffers, DWORD count, LPDWORD received, LPDWORD flags, struct sockaddr *from,
     LPINT fromLength, LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine));
NDW_API(BOOL, WSAGetOverlappedResult,
    (SOCKET socket, LPWSAOVERLAPPED overlapped, LPDWORD bytes, BOOL wait, LPDWORD flags));
NDW_API(int, WSAPoll, (LPWSAPOLLFD entries, ULONG count, INT timeout));
EXTERN_C int ndw_WSAPollNative(struct pollfd *entries, ULONG count, INT timeout);
#ifdef __cplusplus
extern "C++" {
/* For Linux's pollfd. A template, as NULL would match two functions. */
template <typename Entry>
NDW_INLINE auto WSAPoll(Entry *entries, ULONG count, INT timeout) -> decltype(ndw_WSAPollNative(entries, count, timeout))
{
    return ndw_WSAPollNative(entries, count, timeout);
}
}
#else
/* As on Windows, where `struct pollfd` is the tag of WSAPOLLFD: that of Linux will do, too. */
#define WSAPoll(entries, count, timeout) \
    _Generic((entries), struct pollfd *: ndw_WSAPollNative, default: WSAPoll)(entries, count, timeout)
#endif
/* TCP has no data to go with the end. */
NDW_INLINE int ndw_end(SOCKET socket, int how, const WSABUF *data)
{
    if (data != NULL && data->len != 0) {
        WSASetLastError(WSAENOPROTOOPT);
        return SOCKET_ERROR;
    }
    return shutdown((int)socket, how);
}
NDW_INLINE int WSASendDisconnect(SOCKET socket, LPWSABUF data) { return ndw_end(socket, SD_SEND, data); }
NDW_INLINE int WSARecvDisconnect(SOCKET socket, LPWSABUF data) { return ndw_end(socket, SD_RECEIVE, data); }
NDW_API(int, WSAEventSelect, (SOCKET socket, WSAEVENT event, LONG events));
NDW_API(int, WSAEnumNetworkEvents, (SOCKET socket, WSAEVENT event, LPWSANETWORKEVENTS events));
EXTERN_C WSAEVENT WSACreateEvent(void) __asm__("ndw_WSACreateEvent");
EXTERN_C BOOL WSACloseEvent(WSAEVENT event) __asm__("ndw_CloseHandle");
EXTERN_C BOOL WSASetEvent(WSAEVENT event) __asm__("ndw_SetEvent");
EXTERN_C BOOL WSAResetEvent(WSAEVENT event) __asm__("ndw_ResetEvent");
EXTERN_C DWORD WSAWaitForMultipleEvents(
    DWORD count, const WSAEVENT *events, BOOL all, DWORD milliseconds, BOOL alertable)
    __asm__("ndw_WaitForMultipleObjectsEx");

/* Takes a pointer to u_long, which has 64 bits here, or to a ULONG or DWORD. */
EXTERN_C int ndw_ioctlsocket(SOCKET socket, LONG64 command, unsigned long *value);
EXTERN_C int ndw_ioctlsocket32(SOCKET socket, LONG64 command, ULONG *value);
#ifdef __cplusplus
extern "C++" {
NDW_INLINE int ioctlsocket(SOCKET socket, LONG64 command, unsigned long *value)
{
    return ndw_ioctlsocket(socket, command, value);
}
NDW_INLINE int ioctlsocket(SOCKET socket, LONG64 command, ULONG *value)
{
    return ndw_ioctlsocket32(socket, command, value);
}
}
#else
#define ioctlsocket(socket, command, value)                                                           \
    _Generic((value), unsigned long *: ndw_ioctlsocket(socket, command, (unsigned long *)(value)),    \
             default: ndw_ioctlsocket32(socket, command, (ULONG *)(value)))
#endif

NDW_API(INT, GetAddrInfoW,
    (PCWSTR node, PCWSTR service, const ADDRINFOW *hints, PADDRINFOW *result));
NDW_API(VOID, FreeAddrInfoW, (PADDRINFOW list));
NDW_API(INT, GetNameInfoW,
    (const SOCKADDR *address, socklen_t length, WCHAR *host, DWORD hostSize, WCHAR *service, DWORD serviceSize, INT flags));
typedef void (CALLBACK *LPLOOKUPSERVICE_COMPLETION_ROUTINE)(DWORD error, DWORD bytes, LPWSAOVERLAPPED overlapped);
NDW_API(INT, GetAddrInfoExA,
    (PCSTR node, PCSTR service, DWORD nameSpace, LPGUID provider, const ADDRINFOEXA *hints, PADDRINFOEXA *result,
     struct timeval *timeout, LPOVERLAPPED overlapped, LPLOOKUPSERVICE_COMPLETION_ROUTINE routine, LPHANDLE cancel));
NDW_API(INT, GetAddrInfoExW,
    (PCWSTR node, PCWSTR service, DWORD nameSpace, LPGUID provider, const ADDRINFOEXW *hints, PADDRINFOEXW *result,
     struct timeval *timeout, LPOVERLAPPED overlapped, LPLOOKUPSERVICE_COMPLETION_ROUTINE routine, LPHANDLE cancel));
NDW_API(INT, GetAddrInfoExCancel, (LPHANDLE handle));
NDW_API(INT, GetAddrInfoExOverlappedResult, (LPOVERLAPPED overlapped));
NDW_API(VOID, FreeAddrInfoEx, (PADDRINFOEXA list));
NDW_API(VOID, FreeAddrInfoExW, (PADDRINFOEXW list));
#define FreeAddrInfoExA FreeAddrInfoEx
NDW_API(int, GetHostNameW, (PWSTR name, int size));
NDW_API(const WCHAR *, gai_strerrorW, (int code));
#define gai_strerrorA gai_strerror
NDW_API(int, WSAEnumProtocolsA, (LPINT protocols, LPWSAPROTOCOL_INFOA buffer, LPDWORD size));
NDW_API(int, WSAEnumProtocolsW, (LPINT protocols, LPWSAPROTOCOL_INFOW buffer, LPDWORD size));
/* Numbers of 32 bits. The result may be a u_long, which has 64 bits here. */
NDW_API(int, WSAHtons, (SOCKET socket, u_short value, u_short *result));
EXTERN_C int WSANtohs(SOCKET socket, u_short value, u_short *result) __asm__("ndw_WSAHtons");
EXTERN_C int ndw_WSAHtonl(SOCKET socket, ULONG value, ULONG *result);
NDW_INLINE int ndw_order_long(SOCKET socket, unsigned long value, unsigned long *result)
{
    ULONG ordered = 0;
    const int outcome = ndw_WSAHtonl(socket, (ULONG)value, result ? &ordered : (ULONG *)0);
    if (outcome == 0)
        *result = ordered;
    return outcome;
}
#ifdef __cplusplus
extern "C++" {
NDW_INLINE int WSAHtonl(SOCKET socket, unsigned long value, unsigned long *result) { return ndw_order_long(socket, value, result); }
NDW_INLINE int WSAHtonl(SOCKET socket, unsigned long value, ULONG *result) { return ndw_WSAHtonl(socket, (ULONG)value, result); }
NDW_INLINE int WSANtohl(SOCKET socket, unsigned long value, unsigned long *result) { return ndw_order_long(socket, value, result); }
NDW_INLINE int WSANtohl(SOCKET socket, unsigned long value, ULONG *result) { return ndw_WSAHtonl(socket, (ULONG)value, result); }
}
#else
#define WSAHtonl(socket, value, result)                                                                \
    _Generic((result), unsigned long *: ndw_order_long((socket), (value), (unsigned long *)(result)),  \
             default: ndw_WSAHtonl((socket), (ULONG)(value), (ULONG *)(result)))
#define WSANtohl(socket, value, result) WSAHtonl(socket, value, result)
#endif
#define GetAddrInfoA  getaddrinfo
#define FreeAddrInfoA freeaddrinfo
#define GetNameInfoA  getnameinfo
NDW_API(int, closesocket, (SOCKET socket));
NDW_API(int, WSAIoctl,
    (SOCKET socket, DWORD code, LPVOID in, DWORD inSize, LPVOID out, DWORD outSize, LPDWORD returned,
     LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine));
NDW_API(INT, WSAStringToAddressA,
    (LPSTR string, INT family, LPWSAPROTOCOL_INFOA info, LPSOCKADDR address, LPINT length));
NDW_API(INT, WSAStringToAddressW,
    (LPWSTR string, INT family, LPWSAPROTOCOL_INFOW info, LPSOCKADDR address, LPINT length));
NDW_API(INT, WSAAddressToStringA,
    (LPSOCKADDR address, DWORD size, LPWSAPROTOCOL_INFOA info, LPSTR string, LPDWORD length));
NDW_API(INT, WSAAddressToStringW,
    (LPSOCKADDR address, DWORD size, LPWSAPROTOCOL_INFOW info, LPWSTR string, LPDWORD length));
NDW_API(INT, InetPtonA, (INT family, LPCSTR string, PVOID address));
NDW_API(INT, InetPtonW, (INT family, LPCWSTR string, PVOID address));
NDW_API(LPCSTR, InetNtopA, (INT family, const VOID *address, LPSTR string, size_t size));
NDW_API(LPCWSTR, InetNtopW, (INT family, const VOID *address, LPWSTR string, size_t size));

#ifdef UNICODE
#define WSAPROTOCOL_INFO   WSAPROTOCOL_INFOW
#define LPWSAPROTOCOL_INFO LPWSAPROTOCOL_INFOW
#define WSASocket          WSASocketW
#define WSAConnectByName   WSAConnectByNameW
#define GetAddrInfo        GetAddrInfoW
#define FreeAddrInfo       FreeAddrInfoW
#define GetNameInfo        GetNameInfoW
#define GetAddrInfoEx      GetAddrInfoExW
#define WSAEnumProtocols   WSAEnumProtocolsW
#define ADDRINFOEX         ADDRINFOEXW
#define PADDRINFOEX        PADDRINFOEXW
#define ADDRINFOT          ADDRINFOW
#define WSAStringToAddress WSAStringToAddressW
#define WSAAddressToString WSAAddressToStringW
#define InetPton           InetPtonW
#define InetNtop           InetNtopW
#else
#define WSAPROTOCOL_INFO   WSAPROTOCOL_INFOA
#define LPWSAPROTOCOL_INFO LPWSAPROTOCOL_INFOA
#define WSASocket          WSASocketA
#define WSAConnectByName   WSAConnectByNameA
#define GetAddrInfo        GetAddrInfoA
#define FreeAddrInfo       FreeAddrInfoA
#define GetNameInfo        GetNameInfoA
#define GetAddrInfoEx      GetAddrInfoExA
#define WSAEnumProtocols   WSAEnumProtocolsA
#define ADDRINFOEX         ADDRINFOEXA
#define PADDRINFOEX        PADDRINFOEXA
#define ADDRINFOT          ADDRINFOA
#define WSAStringToAddress WSAStringToAddressA
#define WSAAddressToString WSAAddressToStringA
#define InetPton           InetPtonA
#define InetNtop           InetNtopA
#endif

/*
 * The provider catalogue, <ws2spi.h>. Its first entry is this library; the others come from files (docs/providers.md).
 */
NDW_API(int, WSCEnumProtocols, (LPINT protocols, LPWSAPROTOCOL_INFOW buffer, LPDWORD size, LPINT error));
NDW_API(int, WSCGetProviderPath, (GUID *provider, WCHAR *path, LPINT length, LPINT error));
/* There is one catalogue, which is that of programs of 64 bits. */
#define WSCInstallProvider64_32 WSCInstallProvider
NDW_API(int, WSCInstallProvider,
    (GUID *provider, const WCHAR *path, const LPWSAPROTOCOL_INFOW infos, DWORD count, LPINT error));
NDW_API(int, WSCUpdateProvider,
    (GUID *provider, const WCHAR *path, const LPWSAPROTOCOL_INFOW infos, DWORD count, LPINT error));
NDW_API(int, WSCDeinstallProvider, (GUID *provider, LPINT error));
NDW_API(int, WSAProviderConfigChange,
    (LPHANDLE handle, LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine));

/* <ifdef.h> */
#define IF_MAX_PHYS_ADDRESS_LENGTH 32
typedef struct _IF_PHYSICAL_ADDRESS_LH {
    USHORT Length;
    UCHAR Address[IF_MAX_PHYS_ADDRESS_LENGTH];
} IF_PHYSICAL_ADDRESS_LH, IF_PHYSICAL_ADDRESS, *PIF_PHYSICAL_ADDRESS;
typedef union _NET_LUID_LH {
    ULONG64 Value;
    struct {
        ULONG64 Reserved : 24;
        ULONG64 NetLuidIndex : 24;
        ULONG64 IfType : 16;
    } Info;
} NET_LUID_LH, NET_LUID, *PNET_LUID, IF_LUID, *PIF_LUID;
typedef ULONG NET_IFINDEX, *PNET_IFINDEX, IF_INDEX;

/* NO_EXTRA_HTON_FUNCTIONS, as in the SDK: for programs that have functions of these names. */
#if !defined(NO_EXTRA_HTON_FUNCTIONS) && !defined(INFINIBAND_ARCH_H) && !defined(htonll) && !defined(ntohll)
NDW_INLINE UINT64 htonll(UINT64 value) { return __builtin_bswap64(value); }
NDW_INLINE UINT64 ntohll(UINT64 value) { return __builtin_bswap64(value); }
NDW_INLINE UINT32 htonf(float value)
{
    UINT32 bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return __builtin_bswap32(bits);
}
NDW_INLINE float ntohf(UINT32 value)
{
    float result;
    value = __builtin_bswap32(value);
    __builtin_memcpy(&result, &value, sizeof result);
    return result;
}
NDW_INLINE UINT64 htond(double value)
{
    UINT64 bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return __builtin_bswap64(bits);
}
NDW_INLINE double ntohd(UINT64 value)
{
    double result;
    value = __builtin_bswap64(value);
    __builtin_memcpy(&result, &value, sizeof result);
    return result;
}
#endif

#include "inet_helpers.h"

#endif /* NDWIN_WINSOCK_H */
