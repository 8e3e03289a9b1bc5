// SPDX-License-Identifier: MIT OR Apache-2.0
// Winsock's plain calls: what they return on Windows, and which error.
#include "winsock.h"
#include <errno.h>
#include <poll.h>
#include <thread>
#include <unistd.h>
#include <vector>

static sockaddr* raw(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

static void before_the_start_there_are_no_sockets()
{
    char text[256];
    addrinfo* list;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(SOCKET{5}, &set);
    FAILS(socket(AF_INET, SOCK_STREAM, 0), WSANOTINITIALISED);
    CHECK(WSASocketA(AF_INET, SOCK_STREAM, 0, nullptr, 0, 0) == INVALID_SOCKET);
    FAILS(gethostname(text, static_cast<int>(sizeof text)), WSANOTINITIALISED);
    FAILS(select(0, &set, nullptr, nullptr, nullptr), WSANOTINITIALISED);
    CHECK(getaddrinfo("127.0.0.1", nullptr, nullptr, &list) == WSANOTINITIALISED);
    CHECK(gethostbyname("localhost") == nullptr && WSAGetLastError() == WSANOTINITIALISED);
    CHECK(WSACleanup() == SOCKET_ERROR && WSAGetLastError() == WSANOTINITIALISED);
}

static void errors_are_in_the_last_error()
{
    // Where nobody listens.
    const SOCKET gone = bound();
    sockaddr_in nowhere = name_of(gone);
    CHECK(closesocket(gone) == 0);
    const SOCKET s = stream();
    FAILS(connect(s, raw(nowhere), sizeof nowhere), WSAECONNREFUSED);
    CHECK(errno == ECONNREFUSED);
    CHECK(closesocket(s) == 0);

    // What is no socket any more, and what never was one.
    char byte = 0;
    int length = sizeof nowhere;
    FAILS(closesocket(s), WSAENOTSOCK);
    FAILS(send(s, &byte, 1, 0), WSAENOTSOCK);
    volatile SOCKET none = INVALID_SOCKET;
    FAILS(recv(none, &byte, 1, 0), WSAENOTSOCK);
    FAILS(bind(s, raw(nowhere), sizeof nowhere), WSAENOTSOCK);
    FAILS(listen(s, 1), WSAENOTSOCK);
    FAILS(shutdown(s, SD_BOTH), WSAENOTSOCK);
    FAILS(getsockname(s, raw(nowhere), &length), WSAENOTSOCK);
    FAILS(connect(s, raw(nowhere), sizeof nowhere), WSAENOTSOCK);
    CHECK(accept(s, nullptr, nullptr) == INVALID_SOCKET && WSAGetLastError() == WSAENOTSOCK);
    int file[2];
    CHECK(pipe(file) == 0);
    FAILS(send(file[1], &byte, 1, 0), WSAENOTSOCK);
    FAILS(closesocket(static_cast<SOCKET>(file[0])), WSAENOTSOCK);
    close(file[0]);
    close(file[1]);
}

static void sockets_in_the_wrong_state()
{
    char byte = 0;
    sockaddr_in address = loopback(0);
    int length = sizeof address;
    const SOCKET s = stream();
    FAILS(getsockname(s, raw(address), &length), WSAEINVAL);
    FAILS(getpeername(s, raw(address), &length), WSAENOTCONN);
    FAILS(send(s, &byte, 1, 0), WSAENOTCONN);
    FAILS(recv(s, &byte, 1, 0), WSAENOTCONN);
    FAILS(shutdown(s, SD_SEND), WSAENOTCONN);
    FAILS(listen(s, 5), WSAEINVAL);
    CHECK(accept(s, nullptr, nullptr) == INVALID_SOCKET && WSAGetLastError() == WSAEINVAL);
    CHECK(bind(s, raw(address), sizeof address) == 0);
    FAILS(bind(s, raw(address), sizeof address), WSAEINVAL);
    CHECK(closesocket(s) == 0);

    Pair pair;
    address = name_of(pair.far_end);
    FAILS(connect(pair.near_end, raw(address), sizeof address), WSAEISCONN);
    FAILS(shutdown(pair.near_end, 7), WSAEINVAL);
    CHECK(shutdown(pair.near_end, SD_SEND) == 0);
    FAILS(send(pair.near_end, &byte, 1, 0), WSAESHUTDOWN);
    CHECK(recv(pair.far_end, &byte, 1, 0) == 0);
    CHECK(shutdown(pair.far_end, SD_RECEIVE) == 0);
    FAILS(recv(pair.far_end, &byte, 1, 0), WSAESHUTDOWN);
}

static void bad_arguments()
{
    char byte = 0;
    sockaddr_in address = loopback(0);
    int length = 4;
    Pair pair;
    const SOCKET s = stream();
    FAILS(bind(s, nullptr, sizeof address), WSAEFAULT);
    FAILS(bind(s, raw(address), 4), WSAEFAULT);
    address = loopback(1);
    FAILS(connect(s, raw(address), 4), WSAEFAULT);
    address = loopback(0);
    FAILS(connect(s, raw(address), sizeof address), WSAEADDRNOTAVAIL);
    address.sin_addr.s_addr = 0;
    address.sin_port = htons(80);
    FAILS(connect(s, raw(address), sizeof address), WSAEADDRNOTAVAIL);
    const SOCKET datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    FAILS(connect(datagrams, raw(address), sizeof address), WSAEADDRNOTAVAIL);
    CHECK(closesocket(datagrams) == 0);
    FAILS(getsockname(pair.near_end, raw(address), &length), WSAEFAULT);
    FAILS(getpeername(pair.near_end, nullptr, nullptr), WSAEFAULT);
    FAILS(send(pair.near_end, nullptr, 1, 0), WSAEFAULT);
    FAILS(recv(pair.near_end, nullptr, 1, 0), WSAEFAULT);
    FAILS(recv(pair.near_end, &byte, -1, 0), WSAEFAULT);
    FAILS(ioctlsocket(s, FIONBIO, static_cast<u_long*>(nullptr)), WSAEFAULT);
    FAILS(WSAEventSelect(s, nullptr, FD_READ), WSAEINVAL);
    const SOCKET from = listener();
    length = 4;
    CHECK(accept(from, raw(address), &length) == INVALID_SOCKET && WSAGetLastError() == WSAEFAULT);
    FAILS(socket(-1, SOCK_STREAM, 0), WSAEAFNOSUPPORT);
    CHECK(closesocket(from) == 0 && closesocket(s) == 0);
}

// A condition of WSAAccept: what it answers, and the ports of the connections that it was asked about.
struct Gate {
    int answer;
    u_short caller, callee;
};

static int CALLBACK ask(LPWSABUF caller, LPWSABUF callerData, LPQOS, LPQOS, LPWSABUF callee, LPWSABUF, GROUP*, DWORD_PTR data)
{
    Gate* const gate = reinterpret_cast<Gate*>(data);
    CHECK(caller->len == sizeof(sockaddr_in) && callee->len == sizeof(sockaddr_in) && callerData == nullptr);
    gate->caller = reinterpret_cast<sockaddr_in*>(caller->buf)->sin_port;
    gate->callee = reinterpret_cast<sockaddr_in*>(callee->buf)->sin_port;
    return gate->answer;
}

static void a_condition_accepts_refuses_or_defers()
{
    const SOCKET from = listener();
    sockaddr_in address = name_of(from), peer = {};
    Gate gate = {CF_ACCEPT, 0, 0};
    const DWORD_PTR data = reinterpret_cast<DWORD_PTR>(&gate);
    const auto fails = [&](int answer, int error) {
        gate.answer = answer;
        WSASetLastError(0);
        CHECK(WSAAccept(from, nullptr, nullptr, ask, data) == INVALID_SOCKET && WSAGetLastError() == error);
    };
    SOCKET s = stream();
    CHECK(connect(s, raw(address), sizeof address) == 0);
    int length = sizeof peer;
    SOCKET accepted = WSAAccept(from, raw(peer), &length, ask, data);
    CHECK(accepted != INVALID_SOCKET && peer.sin_port == name_of(s).sin_port && gate.caller == peer.sin_port && gate.callee == address.sin_port);
    CHECK(closesocket(accepted) == 0 && closesocket(s) == 0);

    s = stream();
    CHECK(connect(s, raw(address), sizeof address) == 0);
    fails(CF_REJECT, WSAECONNREFUSED);
    char byte;
    CHECK(recv(s, &byte, 1, 0) == SOCKET_ERROR && WSAGetLastError() == WSAECONNRESET && closesocket(s) == 0);

    s = stream();
    CHECK(connect(s, raw(address), sizeof address) == 0);
    for (int i = 0; i < 2; i++)
        fails(CF_DEFER, WSATRY_AGAIN);
    CHECK(gate.caller == name_of(s).sin_port);
    length = 4;
    CHECK(WSAAccept(from, raw(peer), &length, ask, data) == INVALID_SOCKET && WSAGetLastError() == WSAEFAULT);
    length = sizeof peer;
    peer = {};
    accepted = WSAAccept(from, raw(peer), &length, nullptr, 0);
    CHECK(accepted != INVALID_SOCKET && peer.sin_port == gate.caller && length == sizeof peer);
    CHECK(send(s, "y", 1, 0) == 1 && recv(accepted, &byte, 1, 0) == 1 && byte == 'y' && closesocket(accepted) == 0 && closesocket(s) == 0);
    do_not_wait(from);
    gate.caller = 0;
    fails(CF_ACCEPT, WSAEWOULDBLOCK);
    CHECK(gate.caller == 0 && closesocket(from) == 0);
    fails(CF_ACCEPT, WSAENOTSOCK);
}

// WSAConnect and WSAAccept, without what Linux has not: data, qualities of service.
static void connections_by_the_longer_calls()
{
    const SOCKET from = listener(), s = stream();
    sockaddr_in address = name_of(from), peer = {};
    CHECK(WSAConnect(s, raw(address), sizeof address, nullptr, nullptr, nullptr, nullptr) == 0);
    int length = sizeof peer;
    const SOCKET accepted = WSAAccept(from, raw(peer), &length, nullptr, 0);
    CHECK(accepted != INVALID_SOCKET && length == sizeof peer && peer.sin_port == name_of(s).sin_port);
    char byte = 0;
    CHECK(send(s, "x", 1, 0) == 1 && recv(accepted, &byte, 1, 0) == 1 && byte == 'x');

    // The wrong state, and bad arguments.
    FAILS(WSAConnect(s, raw(address), sizeof address, nullptr, nullptr, nullptr, nullptr), WSAEISCONN);
    const SOCKET other = stream();
    WSABUF data = {1, &byte};
    FAILS(WSAConnect(other, nullptr, sizeof address, nullptr, nullptr, nullptr, nullptr), WSAEFAULT);
    FAILS(WSAConnect(other, raw(address), 4, nullptr, nullptr, nullptr, nullptr), WSAEFAULT);
    FAILS(WSAConnect(other, raw(address), -1, nullptr, nullptr, nullptr, nullptr), WSAEINVAL);
    FAILS(WSAConnect(other, raw(address), sizeof address, &data, nullptr, nullptr, nullptr), WSAEOPNOTSUPP);
    FAILS(WSAConnect(other, raw(address), sizeof address, nullptr, &data, nullptr, nullptr), WSAEOPNOTSUPP);
    const auto refuses = [&](SOCKET listening, sockaddr* to, int* room, int error) {
        WSASetLastError(0);
        CHECK(WSAAccept(listening, to, room, nullptr, 0) == INVALID_SOCKET && WSAGetLastError() == error);
    };
    length = 4;
    refuses(from, raw(peer), &length, WSAEFAULT);
    refuses(from, raw(peer), nullptr, WSAEFAULT);
    refuses(other, nullptr, nullptr, WSAEINVAL);
    do_not_wait(from);
    refuses(from, nullptr, nullptr, WSAEWOULDBLOCK);
    CHECK(closesocket(from) == 0 && closesocket(accepted) == 0);
    refuses(from, nullptr, nullptr, WSAENOTSOCK);
    refuses(INVALID_SOCKET, nullptr, nullptr, WSAENOTSOCK);
    FAILS(WSAConnect(from, raw(address), sizeof address, nullptr, nullptr, nullptr, nullptr), WSAENOTSOCK);
    FAILS(WSAConnect(other, raw(address), sizeof address, nullptr, nullptr, nullptr, nullptr), WSAECONNREFUSED);
    do_not_wait(other);
    FAILS(WSAConnect(other, raw(address), sizeof address, nullptr, nullptr, nullptr, nullptr), WSAEWOULDBLOCK);
    CHECK(closesocket(s) == 0 && closesocket(other) == 0);
}

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

// A listed protocol makes a socket, and numbers can be ordered for it.
static void protocols_and_numbers()
{
    DWORD size = 0;
    int tcp[] = {IPPROTO_TCP, 0};
    FAILS(WSAEnumProtocols(tcp, nullptr, &size), WSAENOBUFS);
    std::vector<WSAPROTOCOL_INFO> found(size / sizeof(WSAPROTOCOL_INFO));
    CHECK(found.size() == 2 && WSAEnumProtocols(tcp, found.data(), &size) == 2);
    const SOCKET s = WSASocket(FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, found.data(), 0, 0);
    CHECK(s != INVALID_SOCKET);
    ULONG narrow = 0;
    u_long wide = ~0ul;
    u_short small = 0;
    CHECK(WSAHtonl(s, 0x01020304, &narrow) == 0 && narrow == 0x04030201 && WSANtohl(s, narrow, &wide) == 0 && wide == 0x01020304);
    CHECK(WSAHtons(s, 0x0102, &small) == 0 && small == 0x0201 && WSANtohs(s, small, &small) == 0 && small == 0x0102);
    FAILS(WSAHtonl(s, 1, static_cast<u_long*>(nullptr)), WSAEFAULT);
    CHECK(closesocket(s) == 0);
    FAILS(WSANtohl(s, 1, &narrow), WSAENOTSOCK);
}

static void a_peer_that_is_gone_is_an_error_and_no_signal()
{
    char data[65536] = {};
    Pair pair;
    reset(pair.far_end);
    CHECK(is_readable(pair.near_end));
    FAILS(recv(pair.near_end, data, sizeof data, 0), WSAECONNRESET);
    for (int i = 0; i < 3; i++)
        FAILS(send(pair.near_end, data, sizeof data, 0), WSAECONNRESET);
}

static void what_would_wait_says_so()
{
    char byte = 0;
    Pair pair;
    do_not_wait(pair.near_end);
    FAILS(recv(pair.near_end, &byte, 1, 0), WSAEWOULDBLOCK);
    const SOCKET from = listener();
    ULONG on = 1; // the other width
    CHECK(ioctlsocket(from, FIONBIO, &on) == 0);
    CHECK(accept(from, nullptr, nullptr) == INVALID_SOCKET && WSAGetLastError() == WSAEWOULDBLOCK);

    // A connection that does not wait.
    const SOCKET s = stream();
    do_not_wait(s);
    sockaddr_in address = name_of(from);
    FAILS(connect(s, raw(address), sizeof address), WSAEWOULDBLOCK);
    fd_set writable, failed;
    FD_ZERO(&writable);
    FD_ZERO(&failed);
    FD_SET(s, &writable);
    FD_SET(s, &failed);
    CHECK(select(0, nullptr, &writable, &failed, nullptr) == 1);
    CHECK(FD_ISSET(s, &writable) && !FD_ISSET(s, &failed));
    FAILS(connect(s, raw(address), sizeof address), WSAEISCONN);
    CHECK(closesocket(from) == 0 && closesocket(s) == 0);

    // And one that fails.
    const SOCKET refused = stream();
    do_not_wait(refused);
    FAILS(connect(refused, raw(address), sizeof address), WSAEWOULDBLOCK);
    fd_set readable;
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_ZERO(&failed);
    FD_SET(refused, &readable);
    FD_SET(refused, &writable);
    FD_SET(refused, &failed);
    CHECK(select(0, &readable, &writable, &failed, nullptr) == 1);
    CHECK(FD_ISSET(refused, &failed) && readable.fd_count == 0 && writable.fd_count == 0);
    int error = 0, size = sizeof error;
    CHECK(getsockopt(refused, SOL_SOCKET, SO_ERROR, reinterpret_cast<char*>(&error), &size) == 0);
    CHECK(error == WSAECONNREFUSED && size == 4);
    CHECK(closesocket(refused) == 0);
}

static void time_outs_are_in_milliseconds()
{
    Pair pair;
    DWORD limit = 50, got = 0;
    int size = sizeof got;
    char byte;
    CHECK(setsockopt(pair.near_end, SOL_SOCKET, SO_RCVTIMEO, reinterpret_cast<char*>(&limit), sizeof limit) == 0);
    CHECK(getsockopt(pair.near_end, SOL_SOCKET, SO_RCVTIMEO, reinterpret_cast<char*>(&got), &size) == 0);
    CHECK(got >= 50 && got < 60 && size == 4); // the kernel counts in ticks
    const ULONGLONG start = GetTickCount64();
    FAILS(recv(pair.near_end, &byte, 1, 0), WSAETIMEDOUT);
    CHECK(GetTickCount64() - start >= 40);
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

static void a_listener_starts_again_at_once_and_a_holder_is_respected()
{
    const SOCKET first = listener();
    sockaddr_in address = name_of(first);
    const SOCKET second = stream();
    FAILS(bind(second, raw(address), sizeof address), WSAEADDRINUSE);
    // The server's side closes first: its address is then held by a connection that winds up.
    const SOCKET client = stream();
    reach(client, address);
    const SOCKET served = accept(first, nullptr, nullptr);
    CHECK(shutdown(served, SD_SEND) == 0);
    char byte;
    CHECK(recv(client, &byte, 1, 0) == 0 && closesocket(client) == 0);
    CHECK(recv(served, &byte, 1, 0) == 0 && closesocket(served) == 0 && closesocket(first) == 0);
    CHECK(bind(second, raw(address), sizeof address) == 0);
    const SOCKET third = stream();
    CHECK(listen(second, 1) == 0);
    FAILS(bind(third, raw(address), sizeof address), WSAEADDRINUSE);
    CHECK(closesocket(second) == 0);
    // Bound is enough to hold one.
    const SOCKET holder = bound();
    address = name_of(holder);
    FAILS(bind(third, raw(address), sizeof address), WSAEADDRINUSE);
    CHECK(closesocket(holder) == 0 && closesocket(third) == 0);
}

static void datagrams()
{
    const SOCKET a = bound(SOCK_DGRAM), b = bound(SOCK_DGRAM);
    sockaddr_in to = name_of(b), from = {};
    CHECK(sendto(a, "abcdef", 6, 0, raw(to), sizeof to) == 6);
    char data[4] = {};
    int length = sizeof from;
    // Longer than the buffer: what fits is there, the rest is lost.
    FAILS(recvfrom(b, data, sizeof data, 0, raw(from), &length), WSAEMSGSIZE);
    CHECK(memcmp(data, "abcd", 4) == 0 && length == sizeof from && from.sin_port == name_of(a).sin_port);
    WSABUF parts[2] = {{2, data}, {2, data + 2}};
    DWORD count = 0, flags = 0;
    CHECK(WSASendTo(a, parts, 2, &count, 0, raw(to), sizeof to, nullptr, nullptr) == 0 && count == 4);
    memset(data, 0, sizeof data);
    CHECK(WSARecvFrom(b, parts, 2, &count, &flags, raw(from), &length, nullptr, nullptr) == 0 && count == 4);
    CHECK(memcmp(data, "abcd", 4) == 0 && flags == 0);
    // Nobody takes it: told by a reset, to who is connected.
    CHECK(connect(a, raw(to), sizeof to) == 0 && closesocket(b) == 0 && send(a, "x", 1, 0) == 1);
    CHECK(is_readable(a));
    FAILS(recv(a, data, sizeof data, 0), WSAECONNRESET);
    CHECK(closesocket(a) == 0);
}

static void buffers_in_pieces()
{
    Pair pair;
    char first[] = "abc", second[] = "defg", got[8] = {};
    WSABUF parts[3] = {{3, first}, {0, nullptr}, {4, second}};
    DWORD count = 0, flags = 0;
    CHECK(WSASend(pair.near_end, parts, 3, &count, 0, nullptr, nullptr) == 0 && count == 7);
    WSABUF into[2] = {{5, got}, {3, got + 5}};
    flags = MSG_PEEK;
    CHECK(is_readable(pair.far_end));
    CHECK(WSARecv(pair.far_end, into, 1, &count, &flags, nullptr, nullptr) == 0 && count == 5);
    flags = 0;
    CHECK(WSARecv(pair.far_end, into, 2, &count, &flags, nullptr, nullptr) == 0 && count == 7);
    CHECK(strcmp(got, "abcdefg") == 0);
    FAILS(WSASend(pair.near_end, nullptr, 1, &count, 0, nullptr, nullptr), WSAEFAULT);
    FAILS(WSASend(pair.near_end, parts, 3, nullptr, 0, nullptr, nullptr), WSAEFAULT);
    FAILS(WSARecv(pair.near_end, into, 1, &count, nullptr, nullptr, nullptr), WSAEFAULT);
    FAILS(WSARecv(INVALID_SOCKET, into, 1, &count, &flags, nullptr, nullptr), WSAENOTSOCK);
}

static void names()
{
    char host[256], tiny[1];
    CHECK(gethostname(host, static_cast<int>(sizeof host)) == 0 && host[0] != '\0');
    FAILS(gethostname(tiny, static_cast<int>(sizeof tiny)), WSAEFAULT);
    addrinfo hints = {}, *list = nullptr;
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_socktype = SOCK_STREAM;
    CHECK(getaddrinfo("127.0.0.1", "80", &hints, &list) == 0 && list->ai_family == AF_INET);
    CHECK(reinterpret_cast<sockaddr_in*>(list->ai_addr)->sin_port == htons(80));
    freeaddrinfo(list);
    CHECK(getaddrinfo("no number", "80", &hints, &list) == WSAHOST_NOT_FOUND && list == nullptr);
    CHECK(WSAGetLastError() == WSAHOST_NOT_FOUND && EAI_NONAME == WSAHOST_NOT_FOUND);
    CHECK(gai_strerror(WSAHOST_NOT_FOUND)[0] != '\0');
    ADDRINFOW wide_hints = {}, *wide = nullptr;
    wide_hints.ai_family = AF_INET;
    wide_hints.ai_flags = AI_NUMERICHOST | AI_CANONNAME;
    CHECK(GetAddrInfoW(L"127.0.0.1", L"81", &wide_hints, &wide) == 0);
    CHECK(wide->ai_addrlen == sizeof(sockaddr_in) && wcscmp(wide->ai_canonname, L"127.0.0.1") == 0);
    WCHAR name[64], service[16];
    CHECK(GetNameInfoW(wide->ai_addr, sizeof(sockaddr_in), name, 64, service, 16, NI_NUMERICHOST | NI_NUMERICSERV) == 0);
    CHECK(wcscmp(name, L"127.0.0.1") == 0 && wcscmp(service, L"81") == 0);
    CHECK(GetNameInfoW(wide->ai_addr, sizeof(sockaddr_in), name, 3, nullptr, 0, NI_NUMERICHOST) != 0);
    FreeAddrInfoW(wide);
    FreeAddrInfoW(nullptr);
    const hostent* const own = gethostbyname("127.0.0.1");
    CHECK(own != nullptr && own->h_addrtype == AF_INET && own->h_length == 4);
    CHECK(getservbyname("no such service", "tcp") == nullptr && WSAGetLastError() == WSANO_DATA);
}

// A peer must be able to use what a name stands for: of the loopback interface only if there is no other one.
static void the_own_name_stands_for_the_addresses_of_the_interfaces()
{
    char host[256];
    CHECK(gethostname(host, static_cast<int>(sizeof host)) == 0);
    const hostent* const own = gethostbyname(host);
    CHECK(own != nullptr && strcmp(own->h_name, host) == 0 && own->h_aliases[0] == nullptr);
    CHECK(own->h_addrtype == AF_INET && own->h_length == 4 && own->h_addr_list[0] != nullptr);
    addrinfo hints = {};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_CANONNAME;
    for (const char* const name : {static_cast<const char*>(host), "", "..localmachine"}) {
        addrinfo* list = nullptr;
        CHECK(getaddrinfo(name, "80", &hints, &list) == 0 && strcmp(list->ai_canonname, host) == 0);
        int at = 0;
        for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next, at++) {
            const sockaddr_in* const address = reinterpret_cast<const sockaddr_in*>(entry->ai_addr);
            CHECK(entry->ai_family == AF_INET && address->sin_port == htons(80) && own->h_addr_list[at] != nullptr);
            CHECK(memcmp(&address->sin_addr, own->h_addr_list[at], 4) == 0);
            CHECK((address->sin_addr.s_addr & htonl(0xff000000)) != htonl(0x7f000000) || own->h_addr_list[1] == nullptr);
            // It is an address of this machine.
            const SOCKET socket_of_it = socket(AF_INET, SOCK_STREAM, 0);
            sockaddr_in bound = *address;
            bound.sin_port = 0;
            CHECK(bind(socket_of_it, reinterpret_cast<sockaddr*>(&bound), sizeof bound) == 0);
            closesocket(socket_of_it);
        }
        CHECK(own->h_addr_list[at] == nullptr);
        freeaddrinfo(list);
    }
    hints.ai_flags = AI_NUMERICHOST;
    addrinfo* list = nullptr;
    CHECK(getaddrinfo(host, nullptr, &hints, &list) == WSAHOST_NOT_FOUND && list == nullptr);
    const hostent* const anonymous = gethostbyname(nullptr);
    CHECK(anonymous != nullptr && strcmp(anonymous->h_name, host) == 0);
}

static void linux_calls_take_sockets()
{
    Pair pair;
    CHECK(write(static_cast<int>(pair.near_end), "ab", 2) == 2);
    char data[2];
    CHECK(read(static_cast<int>(pair.far_end), data, 2) == 2 && data[0] == 'a');
    pollfd entry = {static_cast<int>(pair.near_end), POLLOUT, 0};
    CHECK(poll(&entry, 1, 0) == 1);
    // And a socket that Linux has made is one.
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(send(ends[0], "x", 1, 0) == 1 && recv(ends[1], data, 1, 0) == 1);
    CHECK(closesocket(static_cast<SOCKET>(ends[0])) == 0 && recv(ends[1], data, 1, 0) == 0);
    CHECK(closesocket(static_cast<SOCKET>(ends[1])) == 0);
}

// What libraries ask before they use a socket as a handle.
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
    before_the_start_there_are_no_sockets();
    WSADATA data;
    CHECK(WSAStartup(MAKEWORD(2, 2), &data) == 0);
    for (void (*test)() : {
             errors_are_in_the_last_error,
             sockets_in_the_wrong_state,
             bad_arguments,
             connections_by_the_longer_calls,
             a_condition_accepts_refuses_or_defers,
             options_that_only_windows_names,
             protocols_and_numbers,
             a_socket_tells_its_protocol,
             a_peer_that_is_gone_is_an_error_and_no_signal,
             what_would_wait_says_so,
             time_outs_are_in_milliseconds,
             options,
             a_listener_starts_again_at_once_and_a_holder_is_respected,
             datagrams,
             buffers_in_pieces,
             names,
             the_own_name_stands_for_the_addresses_of_the_interfaces,
             linux_calls_take_sockets,
         })
        test();
    CHECK(WSACleanup() == 0);
    FAILS(socket(AF_INET, SOCK_STREAM, 0), WSANOTINITIALISED);
    puts("done");
    return 0;
}
