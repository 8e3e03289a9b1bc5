/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Microsoft's extensions of Winsock, <mswsock.h>: call them directly, or by SIO_GET_EXTENSION_FUNCTION_POINTER. Only that header and
 * <winsock.h> have them, as on Windows: programs of <winsock2.h> may have variables of these names.
 */
#ifndef NDWIN_SOCKET_EXTENSIONS_H
#define NDWIN_SOCKET_EXTENSIONS_H

#include "winsock.h"

typedef BOOL (PASCAL *LPFN_ACCEPTEX)(SOCKET listener, SOCKET socket, PVOID buffer, DWORD dataLength,
    DWORD localLength, DWORD remoteLength, LPDWORD received, LPOVERLAPPED overlapped);
typedef BOOL (PASCAL *LPFN_CONNECTEX)(SOCKET socket, const struct sockaddr *address, int length, PVOID data,
    DWORD dataLength, LPDWORD sent, LPOVERLAPPED overlapped);
typedef BOOL (PASCAL *LPFN_DISCONNECTEX)(SOCKET socket, LPOVERLAPPED overlapped, DWORD flags, DWORD reserved);
typedef VOID (PASCAL *LPFN_GETACCEPTEXSOCKADDRS)(PVOID buffer, DWORD dataLength, DWORD localLength,
    DWORD remoteLength, struct sockaddr **local, LPINT localSize, struct sockaddr **remote, LPINT remoteSize);
typedef INT (PASCAL *LPFN_WSASENDMSG)(SOCKET socket, LPWSAMSG message, DWORD flags, LPDWORD sent,
    LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine);
typedef INT (PASCAL *LPFN_WSARECVMSG)(SOCKET socket, LPWSAMSG message, LPDWORD received,
    LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine);
NDW_API(INT, WSARecvMsg,
    (SOCKET socket, LPWSAMSG message, LPDWORD received, LPWSAOVERLAPPED overlapped,
     LPWSAOVERLAPPED_COMPLETION_ROUTINE routine));
NDW_API(BOOL, AcceptEx,
    (SOCKET listener, SOCKET socket, PVOID buffer, DWORD dataLength, DWORD localLength, DWORD remoteLength,
     LPDWORD received, LPOVERLAPPED overlapped));
NDW_API(VOID, GetAcceptExSockaddrs,
    (PVOID buffer, DWORD dataLength, DWORD localLength, DWORD remoteLength, struct sockaddr **local, LPINT localSize,
     struct sockaddr **remote, LPINT remoteSize));
NDW_API(BOOL, ConnectEx,
    (SOCKET socket, const struct sockaddr *address, int length, PVOID data, DWORD dataLength, LPDWORD sent,
     LPOVERLAPPED overlapped));
NDW_API(BOOL, DisconnectEx, (SOCKET socket, LPOVERLAPPED overlapped, DWORD flags, DWORD reserved));
#define WSAID_ACCEPTEX             {0xb5367df1, 0xcbac, 0x11cf, {0x95, 0xca, 0x00, 0x80, 0x5f, 0x48, 0xa1, 0x92}}
#define WSAID_GETACCEPTEXSOCKADDRS {0xb5367df2, 0xcbac, 0x11cf, {0x95, 0xca, 0x00, 0x80, 0x5f, 0x48, 0xa1, 0x92}}
#define WSAID_CONNECTEX            {0x25a207b9, 0xddf3, 0x4660, {0x8e, 0xe9, 0x76, 0xe5, 0x8c, 0x74, 0x06, 0x3e}}
#define WSAID_DISCONNECTEX         {0x7fda2e11, 0x8630, 0x436f, {0xa0, 0x31, 0xf5, 0x36, 0xa6, 0xee, 0xc1, 0x57}}
#define WSAID_WSASENDMSG           {0xa441e712, 0x754f, 0x43ca, {0x84, 0xa7, 0x0d, 0xee, 0x44, 0xcf, 0x60, 0x6d}}
#define WSAID_WSARECVMSG           {0xf689d7c8, 0x6f1f, 0x436b, {0x8a, 0x53, 0xe5, 0x4f, 0xe3, 0x51, 0xc3, 0x22}}
typedef struct _TRANSMIT_FILE_BUFFERS {
    LPVOID Head;
    DWORD HeadLength;
    LPVOID Tail;
    DWORD TailLength;
} TRANSMIT_FILE_BUFFERS, *PTRANSMIT_FILE_BUFFERS, *LPTRANSMIT_FILE_BUFFERS;
typedef BOOL (PASCAL *LPFN_TRANSMITFILE)(SOCKET socket, HANDLE file, DWORD count, DWORD atATime, LPOVERLAPPED overlapped,
    LPTRANSMIT_FILE_BUFFERS buffers, DWORD flags);
NDW_API(BOOL, TransmitFile,
    (SOCKET socket, HANDLE file, DWORD count, DWORD atATime, LPOVERLAPPED overlapped, LPTRANSMIT_FILE_BUFFERS buffers,
     DWORD flags));
#define WSAID_TRANSMITFILE         {0xb5367df0, 0xcbac, 0x11cf, {0x95, 0xca, 0x00, 0x80, 0x5f, 0x48, 0xa1, 0x92}}
#define TF_DISCONNECT         0x01
#define TF_REUSE_SOCKET       0x02 /* not with TransmitFile */
#define TF_WRITE_BEHIND       0x04
#define TF_USE_DEFAULT_WORKER 0x00
#define TF_USE_SYSTEM_THREAD  0x10
#define TF_USE_KERNEL_APC     0x20

/* Registered I/O is not available: any use of its types is a compile error. */
#ifndef NDCOMPAT_NO_ABSENT
#define NDW_NO_RIO __attribute__((unavailable("registered I/O is not in ndcompat: see docs/win32.md")))
typedef struct RIO_BUFID_t *RIO_BUFFERID NDW_NO_RIO;
typedef struct RIO_CQ_t *RIO_CQ NDW_NO_RIO;
typedef struct RIO_RQ_t *RIO_RQ NDW_NO_RIO;
typedef struct _RIORESULT RIORESULT NDW_NO_RIO;
typedef struct _RIO_BUF RIO_BUF NDW_NO_RIO;
typedef struct _RIO_NOTIFICATION_COMPLETION RIO_NOTIFICATION_COMPLETION NDW_NO_RIO;
typedef struct _RIO_EXTENSION_FUNCTION_TABLE RIO_EXTENSION_FUNCTION_TABLE NDW_NO_RIO;
#undef NDW_NO_RIO
#endif

#endif /* NDWIN_SOCKET_EXTENSIONS_H */
