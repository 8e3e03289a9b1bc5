// SPDX-License-Identifier: MIT OR Apache-2.0
// The end of a connection by shutdown and DisconnectEx: what is being sent is sent before. The end of a socket under a thread.
#include "overlapped.h"
#include "waits.h"
#include <sys/stat.h>
#include <atomic>
#include <initializer_list>
#include <list>
#include <thread>
#include <vector>

// More than the sockets' own buffers hold.
static const std::vector<char> much(16 << 20, 'x');

// Receives all of it, and the end.
static void take(SOCKET socket, size_t size)
{
    std::vector<char> room(1 << 20);
    for (size_t done = 0; done < size;) {
        const int got = recv(socket, room.data(), static_cast<int>(room.size()), 0);
        CHECK(got > 0);
        done += static_cast<size_t>(got);
    }
    CHECK(recv(socket, room.data(), 1, 0) == 0);
}

static void each_direction_ends_by_a_call_of_its_own()
{
    Pair pair;
    char byte = 'x';
    WSABUF data = {1, &byte};
    FAILS(WSASendDisconnect(pair.near_end, &data), WSAENOPROTOOPT);
    FAILS(WSASendDisconnect(INVALID_SOCKET, nullptr), WSAENOTSOCK);
    CHECK(WSASendDisconnect(pair.near_end, nullptr) == 0 && recv(pair.far_end, &byte, 1, 0) == 0);
    FAILS(send(pair.near_end, &byte, 1, 0), WSAESHUTDOWN);
    CHECK(WSARecvDisconnect(pair.near_end, nullptr) == 0);
    FAILS(recv(pair.near_end, &byte, 1, 0), WSAESHUTDOWN);
}

static bool is_pending(const OVERLAPPED& request) { return !HasOverlappedIoCompleted(&request); }

static void output_ends_after_the_sends_that_pend()
{
    for (const int how : {SD_SEND, SD_BOTH}) {
        Pair pair;
        const HANDLE port = port_of(pair.near_end);
        Request sending[2], late;
        for (Request& request : sending)
            CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &request) == WSA_IO_PENDING);
        CHECK(shutdown(pair.near_end, how) == 0);
        CHECK(is_pending(sending[0]) && is_pending(sending[1]));
        CHECK(transmit(pair.near_end, "y", 1, &late) == WSAESHUTDOWN);
        take(pair.far_end, 2 * much.size());
        for (Request& request : sending) {
            const Packet packet = next(port);
            CHECK(packet.succeeded && packet.overlapped == &request && packet.bytes == much.size());
        }
        CHECK(transmit(pair.near_end, "y", 1, &late) == WSAESHUTDOWN && is_empty(port));
        FAILS(send(pair.near_end, "y", 1, 0), WSAESHUTDOWN);
        if (how == SD_SEND) {
            // The other direction goes on.
            char byte = 0;
            CHECK(send(pair.far_end, "z", 1, 0) == 1 && recv(pair.near_end, &byte, 1, 0) == 1 && byte == 'z');
        }
        CHECK(CloseHandle(port));
    }
}

static void output_ends_when_the_sends_before_are_cancelled()
{
    Pair pair;
    Request sending;
    CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &sending) == WSA_IO_PENDING);
    CHECK(shutdown(pair.near_end, SD_SEND) == 0);
    CHECK(CancelIoEx(reinterpret_cast<HANDLE>(pair.near_end), &sending));
    DWORD sent = 0, flags = 0;
    CHECK(!WSAGetOverlappedResult(pair.near_end, &sending, &sent, TRUE, &flags) && WSAGetLastError() == WSA_OPERATION_ABORTED);
    take(pair.far_end, sent);
}

static void an_overlapped_call_on_what_is_shut_says_so()
{
    Pair pair;
    Request request;
    char byte;
    CHECK(shutdown(pair.near_end, SD_SEND) == 0);
    CHECK(transmit(pair.near_end, "x", 1, &request) == WSAESHUTDOWN);
    CHECK(send(pair.far_end, "x", 1, 0) == 1 && recv(pair.near_end, &byte, 1, 0) == 1);
    CHECK(shutdown(pair.near_end, SD_RECEIVE) == 0);
    CHECK(receive(pair.near_end, &byte, 1, &request) == WSAESHUTDOWN);
    // An address is missing.
    const SOCKET datagrams = bound(SOCK_DGRAM);
    CHECK(transmit(datagrams, "x", 1, &request) == WSAENOTCONN && closesocket(datagrams) == 0);
}

static void a_disconnect_waits_for_the_sends_before_it()
{
    for (const DWORD flags : {0, TF_REUSE_SOCKET}) {
        Pair pair;
        const HANDLE port = port_of(pair.near_end);
        Request sending, disconnecting, late;
        CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &sending) == WSA_IO_PENDING);
        CHECK(!DisconnectEx(pair.near_end, &disconnecting, flags, 0) && WSAGetLastError() == WSA_IO_PENDING);
        CHECK(is_pending(sending) && is_pending(disconnecting));
        CHECK(transmit(pair.near_end, "y", 1, &late) == WSAESHUTDOWN);
        take(pair.far_end, much.size());
        Packet packet = next(port);
        CHECK(packet.succeeded && packet.overlapped == &sending && packet.bytes == much.size());
        packet = next(port);
        CHECK(packet.succeeded && packet.overlapped == &disconnecting && packet.bytes == 0);
        if (flags == TF_REUSE_SOCKET) {
            const SOCKET from = listener();
            sockaddr_in address = name_of(from);
            CHECK(!ConnectEx(pair.near_end, raw(address), sizeof address, nullptr, 0, nullptr, &late));
            CHECK(WSAGetLastError() == WSA_IO_PENDING && next(port).overlapped == &late);
            CHECK(send(pair.near_end, "y", 1, 0) == 1 && closesocket(from) == 0);
        }
        CHECK(CloseHandle(port));
    }
}

static void a_disconnect_that_is_not_overlapped_waits_for_the_sends()
{
    for (const DWORD flags : {0, TF_REUSE_SOCKET}) {
        Pair pair;
        Request sending;
        CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &sending) == WSA_IO_PENDING);
        std::thread reader([&] { take(pair.far_end, much.size()); });
        CHECK(DisconnectEx(pair.near_end, nullptr, flags, 0));
        CHECK(ended(pair.near_end, sending, static_cast<DWORD>(much.size()), false));
        reader.join();
    }
}

// With receives that pend: they are no part of what is to be sent, and end with the peer's data, or with the socket that is made anew.
static void a_disconnect_leaves_receives_unless_the_socket_is_used_again()
{
    for (const DWORD flags : {0, TF_REUSE_SOCKET}) {
        Pair pair;
        const HANDLE port = port_of(pair.near_end);
        Request receiving, disconnecting;
        char byte = 0;
        CHECK(receive(pair.near_end, &byte, 1, &receiving) == WSA_IO_PENDING);
        // It always pends, and has one packet.
        CHECK(SetFileCompletionNotificationModes(reinterpret_cast<HANDLE>(pair.near_end), FILE_SKIP_COMPLETION_PORT_ON_SUCCESS));
        CHECK(!DisconnectEx(pair.near_end, &disconnecting, flags, 0) && WSAGetLastError() == WSA_IO_PENDING);
        if (flags == TF_REUSE_SOCKET) {
            const Packet packet = next(port);
            CHECK(packet.overlapped == &receiving && packet.error == ERROR_OPERATION_ABORTED);
        }
        Packet packet = next(port);
        CHECK(packet.overlapped == &disconnecting && packet.succeeded && packet.bytes == 0 && is_empty(port));
        if (flags == 0) {
            // What the peer sends until it ends, too, comes in.
            CHECK(recv(pair.far_end, &byte, 1, 0) == 0 && send(pair.far_end, "xy", 2, 0) == 2);
            packet = next(port);
            CHECK(packet.overlapped == &receiving && packet.succeeded && packet.bytes == 1 && byte == 'x');
            CHECK(recv(pair.near_end, &byte, 1, 0) == 1 && byte == 'y' && shutdown(pair.far_end, SD_SEND) == 0);
            CHECK(recv(pair.near_end, &byte, 1, 0) == 0);
        }
        CHECK(CloseHandle(port));
    }
}

static ino_t inode_of(SOCKET socket)
{
    struct stat status;
    CHECK(fstat(static_cast<int>(socket), &status) == 0);
    return status.st_ino;
}

// While it is made anew, another thread asks for the result of the receive that this has cancelled. Once the close of the former one lingers.
static void a_socket_that_is_used_again_stays_on_its_port()
{
    const SOCKET from = listener(), s = stream();
    const HANDLE port = port_of(s);
    port_of(from, port, 1);
    const DWORD room = sizeof(sockaddr_in) + 16;
    char buffer[2 * room], byte;
    for (int i = 0; i < 100; i++) {
        const bool lingers = i == 0;
        SOCKET client = stream();
        Request accepting, receiving;
        CHECK(!AcceptEx(from, s, buffer, 0, room, room, nullptr, &accepting) && WSAGetLastError() == WSA_IO_PENDING);
        reach(client, name_of(from));
        CHECK(next(port).overlapped == &accepting);
        CHECK(receive(s, &byte, 1, &receiving) == WSA_IO_PENDING && send(client, "x", 1, 0) == 1);
        CHECK(next(port).overlapped == &receiving);
        CHECK(receive(s, &byte, 1, &receiving) == WSA_IO_PENDING);
        if (lingers) {
            const LINGER longer = {1, 10};
            CHECK(setsockopt(s, SOL_SOCKET, SO_LINGER, reinterpret_cast<const char*>(&longer), sizeof longer) == 0);
            do_not_wait(s);
            while (send(s, much.data(), static_cast<int>(much.size()), 0) > 0) {}
        }
        const ino_t former = inode_of(s);
        std::atomic<bool> over{false};
        std::thread worker([&] {
            const Packet packet = next(port);
            CHECK(packet.overlapped == &receiving && packet.error == ERROR_OPERATION_ABORTED);
            CHECK(!lingers || comes_true([&] { return inode_of(s) != former; }));
            do {
                DWORD bytes, flags;
                CHECK(!WSAGetOverlappedResult(s, &receiving, &bytes, FALSE, &flags) && WSAGetLastError() == WSA_OPERATION_ABORTED);
                if (lingers && client != INVALID_SOCKET)
                    reset(client);
            } while (!over);
        });
        CHECK(DisconnectEx(s, nullptr, TF_REUSE_SOCKET, 0));
        over = true;
        worker.join();
        CHECK(lingers || closesocket(client) == 0);
    }
    CHECK(closesocket(s) == 0 && closesocket(from) == 0 && CloseHandle(port));
}

// As with sends: what pends goes on, and gets what comes; nothing more is begun.
static void input_ends_after_the_receives_that_pend()
{
    for (const int how : {SD_RECEIVE, SD_BOTH}) {
        Pair pair;
        const HANDLE port = port_of(pair.near_end);
        Request receiving[2], late;
        char data[8] = {};
        CHECK(receive(pair.near_end, data, 4, &receiving[0]) == WSA_IO_PENDING);
        CHECK(receive(pair.near_end, data + 4, 4, &receiving[1]) == WSA_IO_PENDING);
        CHECK(shutdown(pair.near_end, how) == 0 && is_empty(port));
        FAILS(recv(pair.near_end, data, 1, 0), WSAESHUTDOWN);
        CHECK(receive(pair.near_end, data, 1, &late) == WSAESHUTDOWN);
        CHECK(send(pair.far_end, "abcd", 4, 0) == 4);
        Packet packet = next(port);
        CHECK(packet.overlapped == &receiving[0] && packet.succeeded && packet.bytes == 4 && memcmp(data, "abcd", 4) == 0);
        CHECK(shutdown(pair.far_end, SD_SEND) == 0);
        packet = next(port);
        CHECK(packet.overlapped == &receiving[1] && packet.succeeded && packet.bytes == 0);
        FAILS(recv(pair.near_end, data, 1, 0), WSAESHUTDOWN);
        CHECK(CloseHandle(port));
    }
    // What has come before is not received afterwards.
    Pair pair;
    char byte;
    CHECK(send(pair.far_end, "x", 1, 0) == 1 && is_readable(pair.near_end) && shutdown(pair.near_end, SD_RECEIVE) == 0);
    FAILS(recv(pair.near_end, &byte, 1, 0), WSAESHUTDOWN);
}

// Another thread closes the socket under a DisconnectEx that waits for its sends; and the peer resets the connection.
static void a_disconnect_that_waits_ends_with_the_socket_or_the_connection()
{
    for (const bool closed : {true, false}) {
        Pair pair;
        const HANDLE port = port_of(pair.near_end);
        Request sending;
        CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &sending) == WSA_IO_PENDING);
        BOOL done = FALSE;
        int error = 0;
        std::thread waiting([&] {
            done = DisconnectEx(pair.near_end, nullptr, 0, 0);
            error = WSAGetLastError();
        });
        // It waits when nothing more may be sent. What was begun before pends behind the first.
        std::list<Request> others(1);
        while (transmit(pair.near_end, nullptr, 0, &others.back()) == WSA_IO_PENDING)
            others.emplace_back();
        CHECK(WSAGetLastError() == WSAESHUTDOWN);
        others.pop_back();
        if (closed) {
            CHECK(closesocket(pair.near_end) == 0);
            waiting.join();
            CHECK(!done && error == WSAEINTR);
        } else {
            reset(pair.far_end);
            waiting.join();
            CHECK(done);
        }
        const DWORD expected = closed ? ERROR_OPERATION_ABORTED : ERROR_NETNAME_DELETED;
        Packet packet = next(port);
        CHECK(packet.overlapped == &sending && packet.error == expected);
        for (Request& request : others) {
            packet = next(port);
            CHECK(packet.overlapped == &request && packet.error == expected);
        }
        CHECK(is_empty(port));
        if (closed)
            pair.near_end = INVALID_SOCKET;
        CHECK(CloseHandle(port));
    }
}

// How servers on Windows stop: another thread closes the listener under accept.
static void closing_a_listener_ends_its_accept()
{
    const SOCKET from = listener();
    const sockaddr_in address = name_of(from);
    int error = 0;
    std::thread acceptor([&] {
        SOCKET accepted;
        while ((accepted = accept(from, nullptr, nullptr)) != INVALID_SOCKET)
            CHECK(closesocket(accepted) == 0);
        error = WSAGetLastError();
    });
    // Afterwards it waits for the next, or is about to.
    const SOCKET client = stream();
    reach(client, address);
    char byte;
    CHECK(recv(client, &byte, 1, 0) == 0 && closesocket(client) == 0);
    CHECK(closesocket(from) == 0);
    acceptor.join();
    CHECK(error == WSAEINTR || error == WSAENOTSOCK);
    const SOCKET again = stream();
    CHECK(bind(again, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && listen(again, 1) == 0 && closesocket(again) == 0);
}

int main()
{
    return run({
        each_direction_ends_by_a_call_of_its_own,
        output_ends_after_the_sends_that_pend,
        output_ends_when_the_sends_before_are_cancelled,
        an_overlapped_call_on_what_is_shut_says_so,
        a_disconnect_waits_for_the_sends_before_it,
        a_disconnect_that_is_not_overlapped_waits_for_the_sends,
        a_disconnect_leaves_receives_unless_the_socket_is_used_again,
        a_socket_that_is_used_again_stays_on_its_port,
        input_ends_after_the_receives_that_pend,
        a_disconnect_that_waits_ends_with_the_socket_or_the_connection,
        closing_a_listener_ends_its_accept,
    });
}
