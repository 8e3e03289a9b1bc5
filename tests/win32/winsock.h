// SPDX-License-Identifier: MIT OR Apache-2.0
// What the programs about sockets share.
#ifndef WINSOCK_TEST_H
#define WINSOCK_TEST_H

#include <winsock2.h>
#include <ws2tcpip.h>
#include <mswsock.h>
#include <windows.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <initializer_list>

#define LAST_ERROR WSAGetLastError()
#include "../check.h"
// A call that fails with an error.
#define FAILS(call, code)                                      \
    do {                                                       \
        WSASetLastError(0);                                    \
        CHECK((call) == SOCKET_ERROR);                         \
        CHECK(WSAGetLastError() == (code));                    \
    } while (0)

static inline sockaddr_in loopback(USHORT port)
{
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.S_un.S_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = port;
    return address;
}

static inline SOCKET stream()
{
    const SOCKET socket = WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, nullptr, 0, WSA_FLAG_OVERLAPPED);
    CHECK(socket != INVALID_SOCKET);
    return socket;
}

static inline sockaddr_in name_of(SOCKET socket)
{
    sockaddr_in address = {};
    int length = sizeof address;
    CHECK(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0 && length == sizeof address);
    return address;
}

// A socket that is bound to a port of the loopback interface.
static inline SOCKET bound(int type = SOCK_STREAM)
{
    const SOCKET s = type == SOCK_STREAM ? stream() : static_cast<SOCKET>(socket(AF_INET, type, 0));
    CHECK(s != INVALID_SOCKET);
    const sockaddr_in address = loopback(0);
    CHECK(bind(s, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return s;
}

static inline SOCKET listener()
{
    const SOCKET socket = bound();
    CHECK(listen(socket, SOMAXCONN) == 0);
    return socket;
}

static inline void reach(SOCKET socket, const sockaddr_in& address)
{
    CHECK(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

// Two connected sockets.
struct Pair {
    SOCKET near_end, far_end;

    Pair()
    {
        const SOCKET from = listener();
        near_end = stream();
        reach(near_end, name_of(from));
        far_end = accept(from, nullptr, nullptr);
        CHECK(far_end != INVALID_SOCKET);
        CHECK(closesocket(from) == 0);
    }

    ~Pair()
    {
        closesocket(near_end);
        closesocket(far_end);
    }
};

// Closes a connection so that the peer hears of a reset.
static inline void reset(SOCKET& socket)
{
    const LINGER at_once = {1, 0};
    CHECK(setsockopt(socket, SOL_SOCKET, SO_LINGER, reinterpret_cast<const char*>(&at_once), sizeof at_once) == 0);
    CHECK(closesocket(socket) == 0);
    socket = INVALID_SOCKET;
}

// Accepts a connection that `socket` has asked for, and resets it. Nobody has asked for the error yet when it returns.
static inline void accept_and_reset(SOCKET from, SOCKET socket)
{
    SOCKET accepted = accept(from, nullptr, nullptr);
    CHECK(accepted != INVALID_SOCKET);
    reset(accepted);
    pollfd heard = {static_cast<int>(socket), 0, 0};
    CHECK(poll(&heard, 1, 60000) == 1);
}

static inline void do_not_wait(SOCKET socket)
{
    u_long on = 1;
    CHECK(ioctlsocket(socket, FIONBIO, &on) == 0);
}

static inline bool is_readable(SOCKET socket, LONG seconds = 10)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(socket, &set);
    timeval time = {seconds, 0};
    return select(0, &set, nullptr, nullptr, &time) == 1;
}

// Runs the tests one after the other, with Winsock started.
static inline int run(std::initializer_list<void (*)()> tests)
{
    WSADATA data;
    CHECK(WSAStartup(MAKEWORD(2, 2), &data) == 0);
    for (void (*test)() : tests) {
        // One that hangs ends the program.
        alarm(300);
        test();
    }
    CHECK(WSACleanup() == 0);
    puts("done");
    return 0;
}

#endif
