// SPDX-License-Identifier: MIT OR Apache-2.0
// Microsoft's extensions of Winsock, overlapped: AcceptEx, ConnectEx, DisconnectEx; datagrams with their senders, WSARecvMsg.
#include "overlapped.h"
#include <fcntl.h>
#include <atomic>
#include <initializer_list>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

template <typename Function> static Function extension(SOCKET socket, GUID id)
{
    Function function = nullptr;
    DWORD bytes = 0;
    CHECK(WSAIoctl(socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &id, sizeof id, &function, sizeof function, &bytes,
                   nullptr, nullptr) == 0);
    CHECK(bytes == sizeof function && function != nullptr);
    return function;
}

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
            timeval time = {0, 100000};
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

// On Linux such a receive would wait for ever.
static void nothing_is_received_without_an_address_of_ones_own()
{
    const SOCKET s = static_cast<SOCKET>(socket(AF_INET, SOCK_DGRAM, 0)), to = bound(SOCK_DGRAM);
    char data[4];
    Request request;
    FAILS(recv(s, data, sizeof data, 0), WSAEINVAL);
    FAILS(recvfrom(s, data, sizeof data, 0, nullptr, nullptr), WSAEINVAL);
    CHECK(receive(s, data, sizeof data, &request) == WSAEINVAL);
    // A send binds it.
    sockaddr_in target = name_of(to), own = {};
    int length = sizeof own;
    CHECK(sendto(s, "x", 1, 0, raw(target), sizeof target) == 1);
    CHECK(recvfrom(to, data, sizeof data, 0, raw(own), &length) == 1 && sendto(to, "y", 1, 0, raw(own), length) == 1);
    CHECK(recv(s, data, sizeof data, 0) == 1 && data[0] == 'y');
    CHECK(receive(s, data, sizeof data, &request) == WSA_IO_PENDING);
    CHECK(closesocket(s) == 0 && closesocket(to) == 0);
}

static void datagrams_with_their_senders()
{
    const SOCKET a = bound(SOCK_DGRAM), b = bound(SOCK_DGRAM);
    const HANDLE port = port_of(b);
    sockaddr_in to = name_of(b), from = {};
    int length = sizeof from;
    char data[4];
    DWORD flags = 0;
    WSABUF buffer = {sizeof data, data};
    Request request, sent;
    CHECK(WSARecvFrom(b, &buffer, 1, nullptr, &flags, raw(from), &length, &request, nullptr) == SOCKET_ERROR);
    CHECK(WSAGetLastError() == WSA_IO_PENDING);
    WSABUF out = {2, data};
    CHECK(WSASendTo(a, &out, 1, nullptr, 0, raw(to), sizeof to, &sent, nullptr) == 0);
    Packet packet = next(port);
    CHECK(packet.succeeded && packet.overlapped == &request && packet.bytes == 2);
    CHECK(from.sin_port == name_of(a).sin_port && length == sizeof from);
    // Longer than there is room.
    CHECK(receive(b, data, sizeof data, &request) == WSA_IO_PENDING);
    CHECK(sendto(a, "abcdefgh", 8, 0, raw(to), sizeof to) == 8);
    packet = next(port);
    CHECK(!packet.succeeded && packet.overlapped == &request && packet.bytes == 4 && packet.error == ERROR_MORE_DATA);
    CHECK(closesocket(a) == 0 && closesocket(b) == 0 && CloseHandle(port));
}

// Control data that Windows has in another form, or asks for by another name.
static void control_data_are_those_of_windows()
{
    const int on = 1;
    char data[4];
    alignas(cmsghdr) char control[128];
    WSABUF buffer = {sizeof data, data};
    DWORD bytes = 0;
    // The control data of a datagram that a socket sends to itself.
    const auto come = [&](SOCKET s, sockaddr* address, int length) {
        CHECK(sendto(s, "abc", 3, 0, address, length) == 3);
        memset(control, 0x55, sizeof control);
        WSAMSG message = {};
        message.lpBuffers = &buffer;
        message.dwBufferCount = 1;
        message.Control = {sizeof control, control};
        CHECK(WSARecvMsg(s, &message, &bytes, nullptr, nullptr) == 0 && bytes == 3);
        return message;
    };
    const SOCKET four = bound(SOCK_DGRAM);
    const int service = 0x20;
    CHECK(setsockopt(four, IPPROTO_IP, IP_TOS, reinterpret_cast<const char*>(&service), sizeof service) == 0);
    CHECK(setsockopt(four, IPPROTO_IP, IP_RECVTOS, reinterpret_cast<const char*>(&on), sizeof on) == 0);
    CHECK(setsockopt(four, IPPROTO_IP, IP_PKTINFO, reinterpret_cast<const char*>(&on), sizeof on) == 0);
    sockaddr_in here = name_of(four);
    WSAMSG message = come(four, raw(here), sizeof here);
    int found = 0;
    for (WSACMSGHDR* each = WSA_CMSG_FIRSTHDR(&message); each != nullptr; each = WSA_CMSG_NXTHDR(&message, each))
        if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_TOS) {
            INT value;
            memcpy(&value, WSA_CMSG_DATA(each), sizeof value);
            CHECK(each->cmsg_len == WSA_CMSG_LEN(sizeof value) && value == service);
            found++;
        } else if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_PKTINFO) {
            found++;
        }
    CHECK(found == 2 && closesocket(four) == 0);

    const SOCKET six = static_cast<SOCKET>(socket(AF_INET6, SOCK_DGRAM, 0));
    sockaddr_in6 any = {};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_loopback;
    if (bind(six, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0)
        return; // no IPv6 here
    for (const int option : {IPV6_PKTINFO, IPV6_HOPLIMIT}) {
        int got = 0, length = sizeof got;
        CHECK(setsockopt(six, IPPROTO_IPV6, option, reinterpret_cast<const char*>(&on), sizeof on) == 0);
        CHECK(getsockopt(six, IPPROTO_IPV6, option, reinterpret_cast<char*>(&got), &length) == 0 && got == 1);
    }
    int length = sizeof any;
    CHECK(getsockname(six, reinterpret_cast<sockaddr*>(&any), &length) == 0);
    message = come(six, reinterpret_cast<sockaddr*>(&any), sizeof any);
    found = 0;
    for (WSACMSGHDR* each = WSA_CMSG_FIRSTHDR(&message); each != nullptr; each = WSA_CMSG_NXTHDR(&message, each))
        if (each->cmsg_level == IPPROTO_IPV6 && (each->cmsg_type == IPV6_PKTINFO || each->cmsg_type == IPV6_HOPLIMIT))
            found++;
    CHECK(found == 2 && closesocket(six) == 0);
}

// A datagram with its sender and a header of control data.
static void messages_come_with_their_control_data()
{
    LPFN_WSARECVMSG receive_message = nullptr;
    GUID id = WSAID_WSARECVMSG;
    DWORD bytes = 0;
    const SOCKET from = bound(SOCK_DGRAM), to = bound(SOCK_DGRAM);
    CHECK(WSAIoctl(to, SIO_GET_EXTENSION_FUNCTION_POINTER, &id, sizeof id, &receive_message, sizeof receive_message, &bytes,
                   nullptr, nullptr) == 0);
    const int on = 1;
    CHECK(setsockopt(to, IPPROTO_IP, IP_PKTINFO, reinterpret_cast<const char*>(&on), sizeof on) == 0);
    sockaddr_in target = name_of(to), source = name_of(from), sender;
    char data[4], control[64];
    WSABUF buffer = {sizeof data, data};
    const auto prepare = [&] {
        WSAMSG message = {};
        message.name = raw(sender);
        message.namelen = sizeof sender;
        message.lpBuffers = &buffer;
        message.dwBufferCount = 1;
        message.Control = {sizeof control, control};
        return message;
    };
    const auto came = [&](const WSAMSG& message) {
        const auto* header = reinterpret_cast<const cmsghdr*>(control);
        return message.namelen == sizeof sender && sender.sin_port == source.sin_port &&
               message.Control.len >= sizeof(cmsghdr) && header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO;
    };
    const auto send_bytes = [&](int length) {
        CHECK(sendto(from, "abcdefgh", length, 0, raw(target), sizeof target) == length);
    };

    WSAMSG message = prepare();
    send_bytes(3);
    CHECK(receive_message(to, &message, &bytes, nullptr, nullptr) == 0 && bytes == 3 && came(message));
    CHECK(message.dwFlags == 0 && memcmp(data, "abc", 3) == 0);

    Request request;
    message = prepare();
    memset(control, 0, sizeof control);
    CHECK(WSARecvMsg(to, &message, nullptr, &request, nullptr) == SOCKET_ERROR && WSAGetLastError() == WSA_IO_PENDING);
    send_bytes(4);
    CHECK(ended(to, request, 4) && came(message));

    // One that does not fit says so, and the flag, too.
    message = prepare();
    send_bytes(8);
    FAILS(WSARecvMsg(to, &message, &bytes, nullptr, nullptr), WSAEMSGSIZE);
    CHECK(message.dwFlags & MSG_TRUNC);
    // Control data that do not fit say so in the same way.
    for (const bool overlapped : {false, true}) {
        message = prepare();
        message.Control.len = sizeof(cmsghdr) + 1;
        send_bytes(2);
        if (overlapped) {
            DWORD flags = 0;
            CHECK(WSARecvMsg(to, &message, nullptr, &request, nullptr) == 0 || WSAGetLastError() == WSA_IO_PENDING);
            FAILS(WSAGetOverlappedResult(to, &request, &bytes, TRUE, &flags) - 1, WSAEMSGSIZE);
        } else {
            FAILS(WSARecvMsg(to, &message, &bytes, nullptr, nullptr), WSAEMSGSIZE);
        }
        CHECK(message.dwFlags == MSG_CTRUNC && memcmp(data, "ab", 2) == 0);
    }
    // Without room for control data or the sender.
    message = prepare();
    message.Control = {0, nullptr};
    message.name = nullptr;
    message.namelen = 0;
    send_bytes(2);
    CHECK(WSARecvMsg(to, &message, &bytes, nullptr, nullptr) == 0 && bytes == 2 && message.Control.len == 0);

    FAILS(WSARecvMsg(to, nullptr, &bytes, nullptr, nullptr), WSAEFAULT);
    message = prepare();
    FAILS(WSARecvMsg(to, &message, nullptr, nullptr, nullptr), WSAEFAULT);
    message.lpBuffers = nullptr;
    FAILS(WSARecvMsg(to, &message, &bytes, nullptr, nullptr), WSAEFAULT);
    message = prepare();
    FAILS(WSARecvMsg(INVALID_SOCKET, &message, &bytes, nullptr, nullptr), WSAENOTSOCK);
    Pair pair;
    FAILS(WSARecvMsg(pair.near_end, &message, &bytes, nullptr, nullptr), WSAEOPNOTSUPP);

    // What is pending when the socket is closed.
    CHECK(WSARecvMsg(to, &message, nullptr, &request, nullptr) == SOCKET_ERROR && WSAGetLastError() == WSA_IO_PENDING);
    CHECK(closesocket(to) == 0 && request.Internal == 0xC0000120);
    CHECK(closesocket(from) == 0);
}

// A file of its own with this content, at its beginning.
static HANDLE file_with(const std::string& content)
{
    char path[MAX_PATH] = "/tmp/ndcompat-transmit-XXXXXX";
    close(mkstemp(path));
    const HANDLE file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, nullptr);
    CHECK(file != INVALID_HANDLE_VALUE);
    DWORD count;
    CHECK(WriteFile(file, content.data(), static_cast<DWORD>(content.size()), &count, nullptr) && count == content.size());
    CHECK(SetFilePointer(file, 0, nullptr, FILE_BEGIN) == 0);
    return file;
}

// Bytes before and after a file's, by a port, an event, or a call that waits; and what is refused.
static void files_are_sent()
{
    const size_t size = 300000;
    std::string content(size, ' ');
    for (size_t i = 0; i < size; i++)
        content[i] = static_cast<char>(i * 7 + i / 251);
    const HANDLE file = file_with(content);

    Pair pair;
    const auto transmit = extension<LPFN_TRANSMITFILE>(pair.near_end, WSAID_TRANSMITFILE);
    CHECK(transmit == static_cast<LPFN_TRANSMITFILE>(TransmitFile));
    std::string expected, got;
    std::thread reader([&] {
        char buffer[65536];
        for (int n; (n = static_cast<int>(recv(pair.far_end, buffer, sizeof buffer, 0))) > 0;)
            got.append(buffer, static_cast<size_t>(n));
    });
    TRANSMIT_FILE_BUFFERS around = {const_cast<char*>("<head>"), 6, const_cast<char*>("<tail>"), 6};
    const HANDLE port = port_of(pair.near_end, nullptr, 5);
    // All from a place in the file; nothing beyond its end.
    Request from_a_place;
    from_a_place.Offset = 1000;
    if (!transmit(pair.near_end, file, 0, 0, &from_a_place, &around, 0))
        CHECK(WSAGetLastError() == WSA_IO_PENDING);
    Packet packet = next(port);
    CHECK(packet.succeeded && packet.overlapped == &from_a_place && packet.bytes == size - 1000 + 12);
    expected += "<head>" + content.substr(1000) + "<tail>";
    // A part, at the file's own position, by a call that waits.
    CHECK(SetFilePointer(file, 10, nullptr, FILE_BEGIN) == 10);
    CHECK(TransmitFile(pair.near_end, file, 20, 4, nullptr, nullptr, TF_WRITE_BEHIND));
    expected += content.substr(10, 20);
    // No file at all; a place behind its end.
    CHECK(TransmitFile(pair.near_end, nullptr, 0, 0, nullptr, &around, 0));
    Request behind;
    behind.Offset = size + 5;
    CHECK(TransmitFile(pair.near_end, file, 7, 0, &behind, nullptr, 0) && next(port).bytes == 0);
    expected += "<head><tail>";

    const auto refuses = [&](SOCKET socket, HANDLE what, DWORD bytes, LPTRANSMIT_FILE_BUFFERS buffers, DWORD flags, DWORD error) {
        WSASetLastError(0);
        CHECK(!TransmitFile(socket, what, bytes, 0, nullptr, buffers, flags) && WSAGetLastError() == static_cast<int>(error));
    };
    const SOCKET unconnected = stream();
    TRANSMIT_FILE_BUFFERS nothing = {nullptr, 1, nullptr, 0};
    const HANDLE event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    refuses(INVALID_SOCKET, file, 0, nullptr, 0, WSAENOTSOCK);
    refuses(unconnected, file, 0, nullptr, 0, WSAENOTCONN);
    refuses(pair.near_end, event, 0, nullptr, 0, ERROR_INVALID_HANDLE);
    refuses(pair.near_end, file, 0, &nothing, 0, WSAEFAULT);
    refuses(pair.near_end, file, 0x7FFFFFFF, nullptr, 0, WSAEINVAL);
    refuses(pair.near_end, file, 0, nullptr, TF_REUSE_SOCKET, WSAEOPNOTSUPP);
    CHECK(closesocket(unconnected) == 0 && CloseHandle(event));

    // The end of the connection.
    CHECK(TransmitFile(pair.near_end, nullptr, 0, 0, nullptr, &around, TF_DISCONNECT));
    expected += "<head><tail>";
    reader.join();
    CHECK(got == expected);
    CHECK(CloseHandle(file) && CloseHandle(port));
}

// Both wait for room, and the peer takes what comes bit by bit.
static void a_file_comes_after_the_sends_that_pend()
{
    Pair pair;
    give_little_room(pair);
    const std::string before(8 << 20, 'x'), content(1 << 20, 'y');
    const HANDLE file = file_with(content);
    Request sending;
    CHECK(transmit(pair.near_end, before.data(), static_cast<ULONG>(before.size()), &sending) == WSA_IO_PENDING);
    std::string got;
    std::thread reader([&] {
        char buffer[4096];
        for (int n; (n = recv(pair.far_end, buffer, sizeof buffer, 0)) > 0;)
            got.append(buffer, static_cast<size_t>(n));
    });
    CHECK(TransmitFile(pair.near_end, file, 0, 0, nullptr, nullptr, TF_DISCONNECT));
    reader.join();
    CHECK(got == before + content && ended(pair.near_end, sending, static_cast<DWORD>(before.size()), false) && CloseHandle(file));
}

// A peer that takes nothing: what waits for it is cancelled when the socket is closed.
static void a_file_that_nobody_takes_is_given_up()
{
    Pair pair;
    give_little_room(pair);
    std::vector<char> much(8 << 20);
    TRANSMIT_FILE_BUFFERS around = {much.data(), static_cast<DWORD>(much.size()), nullptr, 0};
    const HANDLE port = port_of(pair.near_end, nullptr, 5);
    Request request;
    CHECK(!TransmitFile(pair.near_end, nullptr, 0, 0, &request, &around, 0) && WSAGetLastError() == WSA_IO_PENDING);
    CHECK(closesocket(pair.near_end) == 0);
    const Packet packet = next(port);
    CHECK(!packet.succeeded && packet.error == ERROR_OPERATION_ABORTED && packet.overlapped == &request);
    CHECK(CloseHandle(port));
}

int main()
{
    return run({
        connections_by_extensions,
        an_accept_pends_though_a_connection_waits,
        an_accept_need_not_want_the_local_address,
        refused_cancelled_and_wrong_connections,
        a_connection_that_is_cancelled_is_not_made,
        a_socket_that_is_made_non_blocking_while_it_connects_stays_so,
        closing_the_socket_for_a_connection_ends_its_accept,
        sockets_for_connections_are_closed_at_any_moment,
        nothing_is_received_without_an_address_of_ones_own,
        datagrams_with_their_senders,
        messages_come_with_their_control_data,
        control_data_are_those_of_windows,
        files_are_sent,
        a_file_comes_after_the_sends_that_pend,
        a_file_that_nobody_takes_is_given_up,
    });
}
