// SPDX-License-Identifier: MIT OR Apache-2.0
// Connections by Microsoft's extensions of Winsock: AcceptEx, ConnectEx, DisconnectEx.
#include "overlapped.h"
#include <atomic>
#include <fcntl.h>
#include <thread>
#include <vector>

static void connections_by_extensions()
{
    const SOCKET from = listener();
    const auto accept_ex = extension<LPFN_ACCEPTEX>(from, WSAID_ACCEPTEX);
    const auto connect_ex = extension<LPFN_CONNECTEX>(from, WSAID_CONNECTEX);
    const auto disconnect_ex = extension<LPFN_DISCONNECTEX>(from, WSAID_DISCONNECTEX);
    const auto addresses = extension<LPFN_GETACCEPTEXSOCKADDRS>(from, WSAID_GETACCEPTEXSOCKADDRS);
    DWORD bytes = 0;
    GUID unknown = {1, 2, 3, {}};
    FAILS(WSAIoctl(from, SIO_GET_EXTENSION_FUNCTION_POINTER, &unknown, sizeof unknown, &unknown, 8, &bytes, nullptr,
                   nullptr),
          WSAEINVAL);
    const HANDLE port = port_of(from, nullptr, 1);
    sockaddr_in address = name_of(from);
    const DWORD room = sizeof(sockaddr_in) + 16;
    char buffer[8 + 2 * room];

    for (const DWORD data : {0, 8}) {
        const SOCKET accepted = stream(), s = bound();
        port_of(accepted, port, 2);
        port_of(s, port, 3);
        Request accepting, connecting;
        CHECK(!accept_ex(from, accepted, buffer, data, room, room, &bytes, &accepting));
        CHECK(WSAGetLastError() == WSA_IO_PENDING);
        char hello[] = "hello";
        CHECK(!connect_ex(s, raw(address), sizeof address, hello, 5, &bytes, &connecting) && WSAGetLastError() == WSA_IO_PENDING);
        // Two packets, in either order.
        for (int i = 0; i < 2; i++) {
            const Packet packet = next(port);
            CHECK(packet.succeeded);
            if (packet.overlapped == &accepting)
                CHECK(packet.key == 1 && packet.bytes == (data != 0 ? 5 : 0));
            else
                CHECK(packet.overlapped == &connecting && packet.key == 3 && packet.bytes == 5);
        }
        if (data != 0)
            CHECK(memcmp(buffer, "hello", 5) == 0);
        sockaddr *local, *remote;
        int local_length, remote_length;
        addresses(buffer, data, room, room, &local, &local_length, &remote, &remote_length);
        CHECK(local_length == sizeof address && remote_length == sizeof address);
        CHECK(reinterpret_cast<sockaddr_in*>(local)->sin_port == address.sin_port);
        CHECK(reinterpret_cast<sockaddr_in*>(remote)->sin_port == name_of(s).sin_port);
        CHECK(setsockopt(accepted, SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, &from, sizeof from) == 0);
        CHECK(setsockopt(s, SOL_SOCKET, SO_UPDATE_CONNECT_CONTEXT, nullptr, 0) == 0);
        CHECK(name_of(accepted).sin_port == address.sin_port);

        // The accepted socket is one like any other.
        char data_got[8];
        Request received;
        if (data == 0)
            CHECK(recv(accepted, data_got, 5, MSG_WAITALL) == 5);
        CHECK(receive(accepted, data_got, sizeof data_got, &received) == WSA_IO_PENDING);
        CHECK(send(s, "more", 4, 0) == 4);
        const Packet more = next(port);
        CHECK(more.overlapped == &received && more.bytes == 4 && more.key == 2);

        // And can be used for another connection.
        CHECK(disconnect_ex(s, nullptr, 0, 0));
        CHECK(recv(accepted, data_got, 1, 0) == 0);
        Request disconnecting;
        CHECK(!disconnect_ex(accepted, &disconnecting, TF_REUSE_SOCKET, 0) && WSAGetLastError() == WSA_IO_PENDING);
        CHECK(next(port).overlapped == &disconnecting);
        CHECK(!accept_ex(from, accepted, buffer, 0, room, room, &bytes, &accepting));
        const SOCKET again = stream();
        reach(again, address);
        CHECK(next(port).overlapped == &accepting);
        CHECK(send(again, "x", 1, 0) == 1);
        CHECK(began(receive(accepted, data_got, 1, &received)));
        CHECK(next(port).overlapped == &received);
        CHECK(closesocket(again) == 0 && closesocket(s) == 0 && closesocket(accepted) == 0);
    }

    // A plain accept on such a listener waits, as its program expects.
    std::thread late([&] {
        const SOCKET s = stream();
        reach(s, address);
        closesocket(s);
    });
    const SOCKET plain = accept(from, nullptr, nullptr);
    CHECK(plain != INVALID_SOCKET && closesocket(plain) == 0);
    late.join();
    CHECK(closesocket(from) == 0 && CloseHandle(port));
}

static void an_accept_pends_though_a_connection_waits()
{
    const SOCKET from = listener(), accepted = stream(), s = stream();
    // Not even this makes it succeed at once, with no packet.
    CHECK(SetFileCompletionNotificationModes(reinterpret_cast<HANDLE>(from), FILE_SKIP_COMPLETION_PORT_ON_SUCCESS));
    const HANDLE port = port_of(from);
    reach(s, name_of(from));
    const DWORD room = sizeof(sockaddr_in) + 16;
    char buffer[2 * room];
    Request request;
    CHECK(!AcceptEx(from, accepted, buffer, 0, room, room, nullptr, &request) && WSAGetLastError() == WSA_IO_PENDING);
    const Packet packet = next(port);
    CHECK(packet.succeeded && packet.overlapped == &request && is_empty(port));
    CHECK(closesocket(s) == 0 && closesocket(accepted) == 0 && closesocket(from) == 0 && CloseHandle(port));
}

static void an_accept_need_not_want_the_local_address()
{
    const SOCKET from = listener(), accepted = stream(), s = stream();
    const HANDLE port = port_of(from);
    const DWORD room = sizeof(sockaddr_in) + 16;
    char buffer[room];
    Request request;
    CHECK(!AcceptEx(from, accepted, buffer, 0, 0, room, nullptr, &request) && WSAGetLastError() == WSA_IO_PENDING);
    reach(s, name_of(from));
    CHECK(next(port).succeeded);
    sockaddr *local = nullptr, *remote = nullptr;
    int local_length = 77, remote_length = 0;
    GetAcceptExSockaddrs(buffer, 0, 0, room, &local, &local_length, &remote, &remote_length);
    CHECK(local == nullptr && local_length == 77 && remote_length == sizeof(sockaddr_in));
    CHECK(reinterpret_cast<sockaddr_in*>(remote)->sin_port == name_of(s).sin_port);
    const SOCKET another = stream();
    CHECK(!AcceptEx(from, another, buffer, 0, room, 0, nullptr, &request) && WSAGetLastError() == WSAEFAULT);
    CHECK(closesocket(another) == 0 && closesocket(s) == 0 && closesocket(accepted) == 0 && closesocket(from) == 0 && CloseHandle(port));
}

static void refused_cancelled_and_wrong_connections()
{
    // Nobody listens there, and nobody else gets the port.
    const SOCKET deaf = bound();
    sockaddr_in nowhere = name_of(deaf);
    const HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0);
    const SOCKET s = stream();
    port_of(s, port);
    Request request;
    const auto fails = [](BOOL result, int code) { CHECK(!result && WSAGetLastError() == code); };
    // Not bound yet; then refused.
    fails(ConnectEx(s, raw(nowhere), sizeof nowhere, nullptr, 0, nullptr, &request), WSAEINVAL);
    sockaddr_in any = loopback(0);
    CHECK(bind(s, raw(any), sizeof any) == 0);
    fails(ConnectEx(s, raw(nowhere), sizeof nowhere, nullptr, 0, nullptr, nullptr), ERROR_INVALID_PARAMETER);
    fails(ConnectEx(s, raw(nowhere), 3, nullptr, 0, nullptr, &request), WSAEFAULT);
    if (!ConnectEx(s, raw(nowhere), sizeof nowhere, nullptr, 0, nullptr, &request) &&
        WSAGetLastError() == WSA_IO_PENDING) {
        const Packet packet = next(port);
        CHECK(!packet.succeeded && packet.overlapped == &request && packet.error == ERROR_CONNECTION_REFUSED);
        DWORD bytes, flags;
        CHECK(!WSAGetOverlappedResult(s, &request, &bytes, FALSE, &flags) && WSAGetLastError() == WSAECONNREFUSED);
    } else
        CHECK(WSAGetLastError() == WSAECONNREFUSED);
    CHECK(closesocket(deaf) == 0);

    const SOCKET from = listener(), accepted = stream();
    port_of(from, port, 1);
    char buffer[128];
    const DWORD room = sizeof(sockaddr_in) + 16;
    fails(AcceptEx(from, accepted, buffer, 0, room, room, nullptr, nullptr), ERROR_INVALID_PARAMETER);
    fails(AcceptEx(from, accepted, nullptr, 0, room, room, nullptr, &request), WSAEFAULT);
    fails(AcceptEx(from, accepted, buffer, 0, room - 1, room, nullptr, &request), WSAEFAULT);
    fails(AcceptEx(from, accepted, buffer, 0, room, 0, nullptr, &request), WSAEFAULT);
    fails(AcceptEx(from, INVALID_SOCKET, buffer, 0, room, room, nullptr, &request), WSAENOTSOCK);
    fails(AcceptEx(accepted, s, buffer, 0, room, room, nullptr, &request), WSAEINVAL);
    fails(AcceptEx(from, from, buffer, 0, room, room, nullptr, &request), WSAEINVAL);
    fails(ConnectEx(from, raw(nowhere), sizeof nowhere, nullptr, 0, nullptr, &request), WSAEINVAL);
    fails(DisconnectEx(accepted, nullptr, 0, 0), WSAENOTCONN);

    fails(AcceptEx(from, accepted, buffer, 0, room, room, nullptr, &request), WSA_IO_PENDING);
    CHECK(CancelIoEx(reinterpret_cast<HANDLE>(from), &request));
    Packet packet = next(port);
    CHECK(packet.overlapped == &request && packet.error == ERROR_OPERATION_ABORTED && packet.key == 1);
    // A connection without its first data: still the listener's.
    fails(AcceptEx(from, accepted, buffer, 8, room, room, nullptr, &request), WSA_IO_PENDING);
    const SOCKET silent = stream();
    reach(silent, name_of(from));
    CHECK(is_empty(port));
    CHECK(CancelIoEx(reinterpret_cast<HANDLE>(from), &request));
    packet = next(port);
    CHECK(packet.overlapped == &request && packet.error == ERROR_OPERATION_ABORTED);
    CHECK(closesocket(silent) == 0);
    const SOCKET another = stream(), silent2 = stream();
    fails(AcceptEx(from, another, buffer, 8, room, room, nullptr, &request), WSA_IO_PENDING);
    reach(silent2, name_of(from));
    CHECK(is_empty(port));
    // The listener goes, and with it what waits.
    CHECK(closesocket(from) == 0);
    packet = next(port);
    CHECK(packet.overlapped == &request && packet.error == ERROR_OPERATION_ABORTED);
    CHECK(closesocket(another) == 0 && closesocket(silent2) == 0 && closesocket(accepted) == 0);
    CHECK(closesocket(s) == 0 && is_empty(port) && CloseHandle(port));
}

// A listener that has all connections it takes: another one pends until these are accepted.
struct Deaf {
    SOCKET from = bound();
    sockaddr_in address = name_of(from);
    std::vector<SOCKET> clients;

    Deaf()
    {
        CHECK(listen(from, 0) == 0);
        for (bool connects = true; connects;) {
            clients.push_back(stream());
            do_not_wait(clients.back());
            FAILS(connect(clients.back(), raw(address), sizeof address), WSAEWOULDBLOCK);
            fd_set set;
            FD_ZERO(&set);
            FD_SET(clients.back(), &set);
            timeval time = {1, 0};
            connects = select(0, nullptr, &set, nullptr, &time) == 1;
        }
    }

    ~Deaf()
    {
        for (const SOCKET client : clients)
            CHECK(closesocket(client) == 0);
        CHECK(closesocket(from) == 0);
    }
};

static bool waits(SOCKET socket) { return (fcntl(static_cast<int>(socket), F_GETFL) & O_NONBLOCK) == 0; }

// The socket is as before, and can be connected to another.
static void a_connection_that_is_cancelled_is_not_made()
{
    Deaf deaf;
    const SOCKET from = listener(), s = bound();
    const HANDLE port = port_of(s);
    sockaddr_in other = name_of(from);
    Request request;
    CHECK(!ConnectEx(s, raw(deaf.address), sizeof deaf.address, nullptr, 0, nullptr, &request) && WSAGetLastError() == WSA_IO_PENDING);
    CHECK(CancelIoEx(reinterpret_cast<HANDLE>(s), &request));
    Packet packet = next(port);
    CHECK(packet.overlapped == &request && packet.error == ERROR_OPERATION_ABORTED && waits(s));
    CHECK(!ConnectEx(s, raw(other), sizeof other, nullptr, 0, nullptr, &request) && WSAGetLastError() == WSA_IO_PENDING);
    packet = next(port);
    CHECK(packet.succeeded && packet.overlapped == &request && waits(s));
    CHECK(closesocket(s) == 0 && closesocket(from) == 0 && CloseHandle(port));
}

// The peer has reset it before anybody has looked: what comes next tells of that.
static void a_connection_that_was_reset_at_once_was_made()
{
    const SOCKET from = listener();
    sockaddr_in address = name_of(from);
    for (const bool overlapped : {false, true}) {
        const SOCKET s = bound();
        const HANDLE port = port_of(s);
        Request request;
        CHECK(!ConnectEx(s, raw(address), sizeof address, nullptr, 0, nullptr, &request) && WSAGetLastError() == WSA_IO_PENDING);
        accept_and_reset(from, s);
        Packet packet = next(port);
        CHECK(packet.succeeded && packet.overlapped == &request);
        CHECK(setsockopt(s, SOL_SOCKET, SO_UPDATE_CONNECT_CONTEXT, nullptr, 0) == 0);
        char byte = 0;
        if (overlapped) {
            const int result = receive(s, &byte, 1, &request);
            if (result == WSA_IO_PENDING) {
                packet = next(port);
                CHECK(!packet.succeeded && packet.error == ERROR_NETNAME_DELETED && packet.overlapped == &request);
            } else
                CHECK(result == WSAECONNRESET);
        } else
            FAILS(recv(s, &byte, 1, 0), WSAECONNRESET);
        CHECK(closesocket(s) == 0 && CloseHandle(port));
    }
    CHECK(closesocket(from) == 0);
}

// What the program says of waiting while the connection is made stands afterwards.
static void a_socket_that_is_made_non_blocking_while_it_connects_stays_so()
{
    for (const bool by_events : {false, true}) {
        Deaf deaf;
        const SOCKET s = bound();
        const HANDLE port = port_of(s);
        Request request;
        CHECK(!ConnectEx(s, raw(deaf.address), sizeof deaf.address, nullptr, 0, nullptr, &request) && WSAGetLastError() == WSA_IO_PENDING);
        const WSAEVENT event = WSACreateEvent();
        if (by_events)
            CHECK(WSAEventSelect(s, event, FD_READ) == 0);
        else
            do_not_wait(s);
        // The others come first.
        for (USHORT port_of_peer = 0; port_of_peer != name_of(s).sin_port;) {
            sockaddr_in peer = {};
            int length = sizeof peer;
            const SOCKET accepted = accept(deaf.from, raw(peer), &length);
            CHECK(accepted != INVALID_SOCKET && closesocket(accepted) == 0);
            port_of_peer = peer.sin_port;
        }
        const Packet packet = next(port);
        CHECK(packet.succeeded && packet.overlapped == &request && !waits(s));
        CHECK(closesocket(s) == 0 && CloseHandle(port) && WSACloseEvent(event));
    }
}

// The socket that was to become a connection goes first.
static void closing_the_socket_for_a_connection_ends_its_accept()
{
    const SOCKET from = listener();
    const HANDLE port = port_of(from);
    char buffer[128];
    const DWORD room = sizeof(sockaddr_in) + 16;
    for (const bool bound : {false, true}) {
        const SOCKET into = stream();
        if (bound)
            port_of(into, port);
        Request accepting, again;
        CHECK(!AcceptEx(from, into, buffer, 0, room, room, nullptr, &accepting) && WSAGetLastError() == WSA_IO_PENDING);
        // It is for one request at a time.
        CHECK(!AcceptEx(from, into, buffer, 0, room, room, nullptr, &again) && WSAGetLastError() == WSAEINVAL);
        CHECK(closesocket(into) == 0);
        Packet packet = next(port);
        CHECK(packet.overlapped == &accepting && packet.error == ERROR_OPERATION_ABORTED);
        // Whoever has its number now keeps it, and the next request gets the connection.
        const SOCKET others[] = {listener(), listener()};
        const SOCKET second = stream(), client = stream();
        const sockaddr_in names[] = {name_of(others[0]), name_of(others[1])};
        CHECK(!AcceptEx(from, second, buffer, 0, room, room, nullptr, &again) && WSAGetLastError() == WSA_IO_PENDING);
        reach(client, name_of(from));
        packet = next(port);
        CHECK(packet.succeeded && packet.overlapped == &again);
        CHECK(send(second, "x", 1, 0) == 1 && recv(client, buffer, 1, 0) == 1);
        for (int i = 0; i < 2; i++) {
            const SOCKET other = stream();
            reach(other, names[i]);
            CHECK(name_of(others[i]).sin_port == names[i].sin_port && closesocket(other) == 0 && closesocket(others[i]) == 0);
        }
        CHECK(closesocket(second) == 0 && closesocket(client) == 0 && is_empty(port));
    }
    CHECK(closesocket(from) == 0 && CloseHandle(port));
}

// At any moment, with clients that come and go: each request ends once, and bystanders keep their sockets.
static void sockets_for_connections_are_closed_at_any_moment()
{
    const SOCKET from = listener();
    const HANDLE port = port_of(from);
    std::atomic<bool> over{false};
    std::thread clients([&] {
        while (!over) {
            SOCKET client = stream();
            reach(client, name_of(from));
            reset(client);
        }
    });
    std::thread bystander([&] {
        while (!over) {
            const SOCKET own = listener();
            const sockaddr_in name = name_of(own);
            SwitchToThread();
            CHECK(name_of(own).sin_port == name.sin_port && closesocket(own) == 0);
        }
    });
    char buffer[128];
    const DWORD room = sizeof(sockaddr_in) + 16;
    for (int i = 0; i < 1000; i++) {
        const SOCKET into = stream();
        Request accepting;
        CHECK(!AcceptEx(from, into, buffer, 0, room, room, nullptr, &accepting) && WSAGetLastError() == WSA_IO_PENDING);
        if (i % 3 == 0)
            SwitchToThread();
        CHECK(closesocket(into) == 0);
        const Packet packet = next(port);
        CHECK(packet.overlapped == &accepting && (packet.succeeded || packet.error == ERROR_OPERATION_ABORTED));
        CHECK(is_empty(port));
    }
    over = true;
    clients.join();
    bystander.join();
    CHECK(closesocket(from) == 0 && CloseHandle(port));
}

int main()
{
    return run({
        connections_by_extensions,
        an_accept_pends_though_a_connection_waits,
        an_accept_need_not_want_the_local_address,
        refused_cancelled_and_wrong_connections,
        a_connection_that_is_cancelled_is_not_made,
        a_connection_that_was_reset_at_once_was_made,
        a_socket_that_is_made_non_blocking_while_it_connects_stays_so,
        closing_the_socket_for_a_connection_ends_its_accept,
        sockets_for_connections_are_closed_at_any_moment,
    });
}
