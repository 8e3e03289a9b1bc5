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

    // A shutdown that fails leaves the socket as it was.
    const SOCKET from = listener();
    FAILS(send(from, &byte, 1, 0), WSAENOTCONN);
    FAILS(recv(from, &byte, 1, 0), WSAENOTCONN);
    address = name_of(from);
    FAILS(connect(from, raw(address), sizeof address), WSAEINVAL);
    const SOCKET again = stream();
    FAILS(shutdown(again, SD_BOTH), WSAENOTCONN);
    reach(again, name_of(from));
    CHECK(send(again, &byte, 1, 0) == 1);
    CHECK(closesocket(again) == 0 && closesocket(from) == 0);

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

// With SO_EXCLUSIVEADDRUSE, too, connections that have ended hold nothing.
static SOCKET server(BOOL exclusive)
{
    const SOCKET s = stream();
    CHECK(setsockopt(s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, &exclusive, sizeof exclusive) == 0);
    return s;
}

static void a_listener_starts_again_at_once_and_a_holder_is_respected()
{
    for (const BOOL exclusive : {FALSE, TRUE}) {
        const SOCKET first = server(exclusive);
        sockaddr_in address = loopback(0);
        CHECK(bind(first, raw(address), sizeof address) == 0 && listen(first, 5) == 0);
        address = name_of(first);
        const SOCKET second = server(exclusive);
        FAILS(bind(second, raw(address), sizeof address), WSAEADDRINUSE);
        // The server's side closes first: its address is then held by a connection that winds up.
        const SOCKET client = stream();
        reach(client, address);
        const SOCKET served = accept(first, nullptr, nullptr);
        FAILS(listen(served, 1), WSAEISCONN);
        CHECK(shutdown(served, SD_SEND) == 0);
        char byte;
        CHECK(recv(client, &byte, 1, 0) == 0 && closesocket(client) == 0);
        CHECK(recv(served, &byte, 1, 0) == 0 && closesocket(served) == 0 && closesocket(first) == 0);
        CHECK(bind(second, raw(address), sizeof address) == 0);
        const SOCKET third = server(exclusive);
        CHECK(listen(second, 1) == 0);
        FAILS(bind(third, raw(address), sizeof address), WSAEADDRINUSE);
        CHECK(setsockopt(second, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, &exclusive, sizeof exclusive) == 0);
        CHECK(closesocket(second) == 0);
        // Bound is enough to hold one.
        const SOCKET holder = server(exclusive);
        address = loopback(0);
        CHECK(bind(holder, raw(address), sizeof address) == 0);
        address = name_of(holder);
        FAILS(bind(third, raw(address), sizeof address), WSAEADDRINUSE);
        CHECK(closesocket(holder) == 0 && closesocket(third) == 0);
    }
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

static void datagrams_end_without_a_connection()
{
    const SOCKET a = bound(SOCK_DGRAM), b = bound(SOCK_DGRAM);
    const sockaddr_in to = name_of(b);
    char byte = 0;
    FAILS(send(a, &byte, 1, 0), WSAENOTCONN);
    CHECK(shutdown(a, SD_SEND) == 0);
    FAILS(sendto(a, &byte, 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), WSAESHUTDOWN);
    CHECK(shutdown(b, SD_RECEIVE) == 0);
    FAILS(recv(b, &byte, 1, 0), WSAESHUTDOWN);
    u_long on = 1;
    CHECK(ioctlsocket(b, FIONBIO, &on) == 0);
    FAILS(recv(b, &byte, 1, 0), WSAESHUTDOWN);
    CHECK(closesocket(a) == 0 && closesocket(b) == 0);
}

// A connected datagram socket is told that nobody receives, but not by what it sends next.
static void a_refused_datagram_does_not_fail_the_next()
{
    const SOCKET nobody = bound(SOCK_DGRAM), s = bound(SOCK_DGRAM);
    reach(s, name_of(nobody));
    CHECK(closesocket(nobody) == 0);
    char data[] = "x";
    for (int i = 0; i < 10; i++)
        CHECK(send(s, data, 1, 0) == 1);
    for (int i = 0; i < 10; i++) {
        WSABUF out = {1, data};
        DWORD sent = 0;
        OVERLAPPED request = {};
        CHECK(WSASend(s, &out, 1, &sent, 0, &request, nullptr) == 0 && sent == 1);
    }
    FAILS(recv(s, data, 1, 0), WSAECONNRESET);
    CHECK(closesocket(s) == 0);
}

static void success_leaves_no_error()
{
    Pair pair;
    char data[] = "x";
    WSASetLastError(WSAEWOULDBLOCK);
    CHECK(send(pair.near_end, data, 1, 0) == 1 && WSAGetLastError() == 0);
    WSASetLastError(WSAEWOULDBLOCK);
    CHECK(recv(pair.far_end, data, 1, 0) == 1 && WSAGetLastError() == 0);
}

static void a_stream_tells_no_sender()
{
    Pair pair;
    char byte;
    sockaddr_in from;
    int length = sizeof from;
    CHECK(send(pair.far_end, "xy", 2, 0) == 2);
    CHECK(recvfrom(pair.near_end, &byte, 1, 0, raw(from), &length) == 1 && length == sizeof from);
    WSABUF one = {1, &byte};
    DWORD count = 0, flags = 0;
    CHECK(WSARecvFrom(pair.near_end, &one, 1, &count, &flags, raw(from), &length, nullptr, nullptr) == 0);
    CHECK(count == 1 && byte == 'y' && length == sizeof from);
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

int main()
{
    before_the_start_there_are_no_sockets();
    const int status = run({
        errors_are_in_the_last_error,
        sockets_in_the_wrong_state,
        bad_arguments,
        connections_by_the_longer_calls,
        a_condition_accepts_refuses_or_defers,
        a_peer_that_is_gone_is_an_error_and_no_signal,
        what_would_wait_says_so,
        a_listener_starts_again_at_once_and_a_holder_is_respected,
        datagrams,
        datagrams_end_without_a_connection,
        a_refused_datagram_does_not_fail_the_next,
        success_leaves_no_error,
        a_stream_tells_no_sender,
        buffers_in_pieces,
        linux_calls_take_sockets,
    });
    FAILS(socket(AF_INET, SOCK_STREAM, 0), WSANOTINITIALISED);
    return status;
}
