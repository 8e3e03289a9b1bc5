// SPDX-License-Identifier: MIT OR Apache-2.0
// What the programs about overlapped sockets share.
#ifndef OVERLAPPED_TEST_H
#define OVERLAPPED_TEST_H

#include "winsock.h"

static inline sockaddr* raw(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

// So that a send of some megabytes pends on every host: the kernel would let the room grow.
static inline void give_little_room(const Pair& pair)
{
    const int sends = 64 << 10, receives = 256 << 10;
    CHECK(setsockopt(pair.near_end, SOL_SOCKET, SO_SNDBUF, reinterpret_cast<const char*>(&sends), sizeof sends) == 0);
    CHECK(setsockopt(pair.far_end, SOL_SOCKET, SO_RCVBUF, reinterpret_cast<const char*>(&receives), sizeof receives) == 0);
}

// A request in the order of one's own making.
struct Request : OVERLAPPED {
    explicit Request(HANDLE event = nullptr) : OVERLAPPED() { hEvent = event; }
};

struct Packet {
    BOOL succeeded;
    DWORD error, bytes;
    ULONG_PTR key;
    OVERLAPPED* overlapped;
};

static inline Packet next(HANDLE port, DWORD wait = 60000)
{
    Packet packet = {};
    packet.succeeded = GetQueuedCompletionStatus(port, &packet.bytes, &packet.key, &packet.overlapped, wait);
    packet.error = packet.succeeded ? 0 : GetLastError();
    return packet;
}

static inline bool is_empty(HANDLE port)
{
    const Packet packet = next(port, 0);
    return packet.overlapped == nullptr && packet.error == WAIT_TIMEOUT;
}

static inline HANDLE port_of(SOCKET socket, HANDLE port = nullptr, ULONG_PTR key = 0)
{
    const HANDLE result = CreateIoCompletionPort(reinterpret_cast<HANDLE>(socket), port, key, 0);
    CHECK(result != nullptr && (port == nullptr || result == port));
    return result;
}

// What a call has come to: 0 done, WSA_IO_PENDING begun, else its error.
static inline int receive(SOCKET socket, void* data, ULONG length, OVERLAPPED* overlapped, DWORD flags = 0)
{
    WSABUF buffer = {length, static_cast<char*>(data)};
    return WSARecv(socket, &buffer, 1, nullptr, &flags, overlapped, nullptr) == 0 ? 0 : WSAGetLastError();
}

static inline int transmit(SOCKET socket, const void* data, ULONG length, OVERLAPPED* overlapped)
{
    WSABUF buffer = {length, static_cast<char*>(const_cast<void*>(data))};
    return WSASend(socket, &buffer, 1, nullptr, 0, overlapped, nullptr) == 0 ? 0 : WSAGetLastError();
}

static inline bool began(int result) { return result == 0 || result == WSA_IO_PENDING; }

static inline bool ended(SOCKET socket, OVERLAPPED& overlapped, DWORD expected, bool wait = true)
{
    DWORD bytes = 0, flags = 0;
    return WSAGetOverlappedResult(socket, &overlapped, &bytes, wait, &flags) && bytes == expected;
}

// A function of Microsoft's extensions.
template <typename Function> static Function extension(SOCKET socket, GUID id)
{
    Function function = nullptr;
    DWORD bytes = 0;
    CHECK(WSAIoctl(socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &id, sizeof id, &function, sizeof function, &bytes,
                   nullptr, nullptr) == 0);
    CHECK(bytes == sizeof function && function != nullptr);
    return function;
}

#endif
