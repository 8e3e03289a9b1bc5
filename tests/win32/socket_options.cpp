// SPDX-License-Identifier: MIT OR Apache-2.0
// Options of sockets: Windows' own, and those whose values differ.
#include "winsock.h"
#include <initializer_list>

// Options of Windows alone: those that Linux has under another name, and those that it has not.
static void options_that_only_windows_names()
{
    const SOCKET s = stream();
    const auto holds = [&](int level, int option, int value) {
        int got = 77, size = sizeof got;
        CHECK(setsockopt(s, level, option, reinterpret_cast<char*>(&value), sizeof value) == 0);
        CHECK(getsockopt(s, level, option, reinterpret_cast<char*>(&got), &size) == 0 && size == 4);
        CHECK(got == value);
    };
    for (const int value : {1, 0}) {
        holds(IPPROTO_IP, IP_DONTFRAGMENT, value);
        holds(SOL_SOCKET, SO_REUSE_UNICASTPORT, value);
    }
    for (const int seconds : {30, -1, 0})
        holds(IPPROTO_TCP, TCP_MAXRT, seconds);
    holds(IPPROTO_TCP, TCP_KEEPALIVE, 20);
    holds(SOL_SOCKET, SO_OPENTYPE, SO_SYNCHRONOUS_NONALERT);
    int value = SO_SYNCHRONOUS_ALERT, size = sizeof value;
    volatile SOCKET none = INVALID_SOCKET;
    CHECK(setsockopt(none, SOL_SOCKET, SO_OPENTYPE, &value, sizeof value) == 0);
    CHECK(getsockopt(s, SOL_SOCKET, SO_OPENTYPE, &value, &size) == 0 && value == SO_SYNCHRONOUS_ALERT);
    FAILS(setsockopt(s, SOL_SOCKET, SO_OPENTYPE, &value, 2), WSAEFAULT);
    FAILS(setsockopt(s, IPPROTO_TCP, TCP_MAXRT, nullptr, 4), WSAEFAULT);

    const struct {
        int level, option;
    } unknown[] = {
        {SOL_SOCKET, SO_CONDITIONAL_ACCEPT}, {SOL_SOCKET, SO_RANDOMIZE_PORT}, {SOL_SOCKET, SO_PORT_SCALABILITY},
        {SOL_SOCKET, PVD_CONFIG}, {IPPROTO_IP, IP_RECVIF}, {IPPROTO_TCP, TCP_TIMESTAMPS},
    };
    for (const auto& each : unknown) {
        FAILS(setsockopt(s, each.level, each.option, &value, sizeof value), WSAENOPROTOOPT);
        FAILS(getsockopt(s, each.level, each.option, &value, &size), WSAENOPROTOOPT);
    }
    WSABUF data = {1, reinterpret_cast<char*>(&value)};
    DWORD sent;
    FAILS(WSASend(s, &data, 1, &sent, MSG_PARTIAL, nullptr, nullptr), WSAEOPNOTSUPP);
    CHECK(closesocket(s) == 0);
}

static void time_outs_are_in_milliseconds()
{
    Pair pair;
    DWORD limit = 50, got = 0;
    int size = sizeof got;
    char byte;
    CHECK(setsockopt(pair.near_end, SOL_SOCKET, SO_RCVTIMEO, reinterpret_cast<char*>(&limit), sizeof limit) == 0);
    CHECK(getsockopt(pair.near_end, SOL_SOCKET, SO_RCVTIMEO, reinterpret_cast<char*>(&got), &size) == 0);
    CHECK(got == 50 && size == 4); // although the kernel counts in ticks
    const ULONGLONG start = GetTickCount64();
    FAILS(recv(pair.near_end, &byte, 1, 0), WSAETIMEDOUT);
    CHECK(GetTickCount64() - start >= 40);
    char both[2];
    CHECK(send(pair.far_end, "x", 1, 0) == 1 && recv(pair.near_end, both, sizeof both, MSG_WAITALL) == 1);
    // Linux's form, for code of Linux's in the same file.
    const timeval native = {1, 500000};
    CHECK(setsockopt(pair.near_end, SOL_SOCKET, SO_SNDTIMEO, &native, sizeof native) == 0);
    CHECK(getsockopt(pair.near_end, SOL_SOCKET, SO_SNDTIMEO, &got, &size) == 0 && got == 1500);
}

static void options()
{
    Pair pair;
    const SOCKET s = pair.near_end;
    // One byte of a BOOL.
    const char yes = 1;
    BOOL flag = FALSE;
    int size = sizeof flag;
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0);
    CHECK(getsockopt(s, IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<char*>(&flag), &size) == 0 && flag == TRUE);
    CHECK(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes) == 0);
    char byte = 7;
    size = 1;
    CHECK(getsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &byte, &size) == 0 && byte == 1 && size == 1);
    // The u_short pair of Windows.
    const u_short linger[2] = {1, 3};
    LINGER got = {};
    CHECK(setsockopt(s, SOL_SOCKET, SO_LINGER, reinterpret_cast<const char*>(linger), sizeof linger) == 0);
    size = sizeof got;
    CHECK(getsockopt(s, SOL_SOCKET, SO_LINGER, &got, &size) == 0 && got.l_onoff == 1 && got.l_linger == 3);
    BOOL does_not = TRUE;
    size = sizeof does_not;
    CHECK(getsockopt(s, SOL_SOCKET, SO_DONTLINGER, &does_not, &size) == 0 && does_not == FALSE);
    int buffer = 30000;
    CHECK(setsockopt(s, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) == 0);
    CHECK(getsockopt(s, SOL_SOCKET, SO_RCVBUF, &buffer, &size) == 0 && buffer == 30000);
    int seconds = -5;
    CHECK(getsockopt(s, SOL_SOCKET, SO_CONNECT_TIME, &seconds, &size) == 0 && seconds >= 0 && seconds < 60);
    const SOCKET unconnected = stream();
    CHECK(getsockopt(unconnected, SOL_SOCKET, SO_CONNECT_TIME, &seconds, &size) == 0 && seconds == -1);
    FAILS(setsockopt(unconnected, SOL_SOCKET, SO_UPDATE_CONNECT_CONTEXT, nullptr, 0), WSAENOTCONN);
    CHECK(setsockopt(s, SOL_SOCKET, SO_UPDATE_CONNECT_CONTEXT, nullptr, 0) == 0);
    // One excludes the other.
    CHECK(setsockopt(unconnected, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, &buffer, sizeof buffer) == 0);
    FAILS(setsockopt(unconnected, SOL_SOCKET, SO_REUSEADDR, &buffer, sizeof buffer), WSAEINVAL);
    CHECK(closesocket(unconnected) == 0);
    // Too small, too many, unknown.
    size = 2;
    FAILS(getsockopt(s, SOL_SOCKET, SO_TYPE, &seconds, &size), WSAEFAULT);
    FAILS(getsockopt(s, SOL_SOCKET, SO_TYPE, nullptr, &size), WSAEFAULT);
    FAILS(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, nullptr, 4), WSAEFAULT);
    FAILS(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &buffer, 0), WSAEFAULT);
    size = sizeof seconds;
    FAILS(getsockopt(s, SOL_SOCKET, 0x7ABC, &seconds, &size), WSAENOPROTOOPT);
    // IPv6 only, unless told otherwise.
    const SOCKET v6 = socket(AF_INET6, SOCK_STREAM, 0);
    if (v6 != INVALID_SOCKET) {
        BOOL only = FALSE;
        size = sizeof only;
        CHECK(getsockopt(v6, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) == 0 && only == TRUE);
        CHECK(closesocket(v6) == 0);
    }
}

// What libraries ask before they use a socket as a handle.
// On Windows, no buffer saves a copy. Here the connection keeps those that it has.
static void no_buffer_does_not_slow_a_connection()
{
    Pair pair;
    const auto ask = [](SOCKET s, int option) {
        int size = -1, length = sizeof size;
        CHECK(getsockopt(s, SOL_SOCKET, option, reinterpret_cast<char*>(&size), &length) == 0 && length == 4);
        return size;
    };
    const auto set = [](SOCKET s, int option, int size) {
        CHECK(setsockopt(s, SOL_SOCKET, option, reinterpret_cast<char*>(&size), sizeof size) == 0);
    };
    set(pair.near_end, SO_SNDBUF, 0);
    set(pair.far_end, SO_RCVBUF, 0);
    CHECK(ask(pair.near_end, SO_SNDBUF) == 0 && ask(pair.near_end, SO_RCVBUF) > 0 && ask(pair.far_end, SO_RCVBUF) == 0);
    u_long no_wait = 1;
    CHECK(ioctlsocket(pair.near_end, FIONBIO, &no_wait) == 0);
    static const char data[32768] = {};
    CHECK(send(pair.near_end, data, sizeof data, 0) == sizeof data);
    set(pair.near_end, SO_SNDBUF, 20000);
    CHECK(ask(pair.near_end, SO_SNDBUF) == 20000);
}

static void a_socket_tells_its_protocol()
{
    for (const int family : {AF_INET, AF_INET6})
        for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
            const SOCKET s = static_cast<SOCKET>(socket(family, type, 0));
            WSAPROTOCOL_INFOW wide;
            WSAPROTOCOL_INFOA narrow;
            int length = sizeof wide;
            CHECK(getsockopt(s, SOL_SOCKET, SO_PROTOCOL_INFOW, reinterpret_cast<char*>(&wide), &length) == 0);
            CHECK(length == sizeof wide && wide.iAddressFamily == family && wide.iSocketType == type && wide.iVersion == 2);
            CHECK(wide.iProtocol == (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP));
            CHECK((wide.dwServiceFlags1 & XP1_IFS_HANDLES) && wide.ProtocolChain.ChainLen == 1);
            CHECK(((wide.dwServiceFlags1 & XP1_CONNECTIONLESS) != 0) == (type == SOCK_DGRAM));
            CHECK(wide.iMaxSockAddr == static_cast<int>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
            length = sizeof narrow;
            CHECK(getsockopt(s, SOL_SOCKET, SO_PROTOCOL_INFOA, reinterpret_cast<char*>(&narrow), &length) == 0);
            CHECK(length == sizeof narrow && narrow.iSocketType == type && strncmp(narrow.szProtocol, type == SOCK_STREAM ? "TCP" : "UDP", 3) == 0);
            length = sizeof narrow - 1;
            FAILS(getsockopt(s, SOL_SOCKET, SO_PROTOCOL_INFOA, reinterpret_cast<char*>(&narrow), &length), WSAEFAULT);
            CHECK(closesocket(s) == 0);
            length = sizeof wide;
            FAILS(getsockopt(s, SOL_SOCKET, SO_PROTOCOL_INFOW, reinterpret_cast<char*>(&wide), &length), WSAENOTSOCK);
        }
}

int main()
{
    return run({
        options_that_only_windows_names,
        time_outs_are_in_milliseconds,
        options,
        no_buffer_does_not_slow_a_connection,
        a_socket_tells_its_protocol,
    });
}
