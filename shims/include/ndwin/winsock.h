/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Winsock on top of the C library's sockets: socket addresses are the native ones, so they can go to any Linux call.
 *
 * AF_INET6 is Linux's 10 (Windows: 23): code that uses the name is right on both. u_long is Linux's 64-bit one; the
 * rest of the Windows names here has its Windows size.
 */
#ifndef NDWIN_WINSOCK_H
#define NDWIN_WINSOCK_H

#include <sys/socket.h>
#include <sys/select.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <netdb.h>
#include "guid.h"
#include "io.h"
#include "winsock_error.h"

/* A descriptor. The int of socket() converts: -1 becomes INVALID_SOCKET. */
typedef UINT_PTR SOCKET;
typedef HANDLE WSAEVENT;
typedef UINT GROUP;
typedef USHORT ADDRESS_FAMILY;
typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int;
#define INVALID_SOCKET ((SOCKET)~(SOCKET)0)
#define SOCKET_ERROR   (-1)
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
typedef fd_set FD_SET, *PFD_SET, *LPFD_SET;

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

typedef struct _WSABUF {
    ULONG len;
    CHAR *buf;
} WSABUF, *LPWSABUF;

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

#define WSA_FLAG_OVERLAPPED        0x01
#define WSA_FLAG_NO_HANDLE_INHERIT 0x80

/* IOC_IN, IOC_OUT and IOC_INOUT mean something else in <sys/ioctl.h>, so only what is made of them is here. */
#define IOC_VOID 0x20000000
#define IOC_WS2  0x08000000
#define _WSAIO(group, number)   (0x20000000 | (group) | (number))
#define _WSAIOR(group, number)  (0x40000000 | (group) | (number))
#define _WSAIOW(group, number)  (0x80000000 | (group) | (number))
#define _WSAIORW(group, number) (0xC0000000 | (group) | (number))
#define SIO_ROUTING_INTERFACE_QUERY  _WSAIORW(IOC_WS2, 20)
#define SIO_ROUTING_INTERFACE_CHANGE _WSAIOW(IOC_WS2, 21)
#define SIO_ADDRESS_LIST_QUERY       _WSAIOR(IOC_WS2, 22)
#define SIO_ADDRESS_LIST_CHANGE      _WSAIO(IOC_WS2, 23)

#define WSAOVERLAPPED   OVERLAPPED
#define LPWSAOVERLAPPED LPOVERLAPPED
typedef void (CALLBACK *LPWSAOVERLAPPED_COMPLETION_ROUTINE)(
    DWORD code, DWORD bytes, LPWSAOVERLAPPED overlapped, DWORD flags);

NDW_API(int, WSAStartup, (WORD version, LPWSADATA data));
NDW_API(int, WSACleanup, (void));
NDW_API(SOCKET, WSASocketW,
    (int family, int type, int protocol, LPWSAPROTOCOL_INFOW info, GROUP group, DWORD flags));
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
#define WSAStringToAddress WSAStringToAddressW
#define WSAAddressToString WSAAddressToStringW
#define InetPton           InetPtonW
#define InetNtop           InetNtopW
#else
#define WSAPROTOCOL_INFO   WSAPROTOCOL_INFOA
#define LPWSAPROTOCOL_INFO LPWSAPROTOCOL_INFOA
#define WSAStringToAddress WSAStringToAddressA
#define WSAAddressToString WSAAddressToStringA
#define InetPton           InetPtonA
#define InetNtop           InetNtopA
#endif

/*
 * The provider catalogue, <ws2spi.h>. Its first entry is this library; others are described by files, see
 * docs/providers.md.
 */
NDW_API(int, WSCEnumProtocols, (LPINT protocols, LPWSAPROTOCOL_INFOW buffer, LPDWORD size, LPINT error));
NDW_API(int, WSCGetProviderPath, (GUID *provider, WCHAR *path, LPINT length, LPINT error));
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

#endif /* NDWIN_WINSOCK_H */
