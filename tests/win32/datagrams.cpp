// SPDX-License-Identifier: MIT OR Apache-2.0
// Overlapped datagrams: their senders, their control data, WSARecvMsg.
#include "overlapped.h"
#include <numeric>
#include <vector>

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

static void a_datagram_that_nobody_serves_ends_a_receive()
{
    const SOCKET a = bound(SOCK_DGRAM), nobody = bound(SOCK_DGRAM);
    const HANDLE port = port_of(a);
    const sockaddr_in to = name_of(nobody);
    CHECK(connect(a, raw(const_cast<sockaddr_in&>(to)), sizeof to) == 0 && closesocket(nobody) == 0);
    char data[4];
    Request request;
    CHECK(receive(a, data, sizeof data, &request) == WSA_IO_PENDING);
    CHECK(send(a, "x", 1, 0) == 1);
    const Packet packet = next(port);
    CHECK(!packet.succeeded && packet.overlapped == &request && packet.error == ERROR_PORT_UNREACHABLE);
    DWORD bytes, flags;
    CHECK(!WSAGetOverlappedResult(a, &request, &bytes, FALSE, &flags) && WSAGetLastError() == WSAECONNRESET);
    CHECK(closesocket(a) == 0 && CloseHandle(port));
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

// The control data of a send say from which address; they, the message and the address are the program's again when the call returns.
static void a_message_is_sent_with_its_control_data()
{
    const SOCKET to = bound(SOCK_DGRAM), from = static_cast<SOCKET>(socket(AF_INET, SOCK_DGRAM, 0));
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    CHECK(bind(from, raw(any), sizeof any) == 0);
    const HANDLE port = port_of(from);
    for (const bool overlapped : {false, true}) {
        sockaddr_in address = name_of(to), sender = {};
        alignas(cmsghdr) char control[WSA_CMSG_SPACE(sizeof(IN_PKTINFO))] = {};
        char data[] = "hello", got[8];
        WSABUF buffer = {5, data};
        WSAMSG message = {raw(address), sizeof address, &buffer, 1, {sizeof control, control}, 0};
        WSACMSGHDR* const header = WSA_CMSG_FIRSTHDR(&message);
        header->cmsg_level = IPPROTO_IP;
        header->cmsg_type = IP_PKTINFO;
        header->cmsg_len = WSA_CMSG_LEN(sizeof(IN_PKTINFO));
        IN_PKTINFO info = {};
        // Another address of the loopback interface than the usual one.
        info.ipi_spec_dst.s_addr = htonl(INADDR_LOOPBACK + 1);
        memcpy(WSA_CMSG_DATA(header), &info, sizeof info);
        Request request;
        DWORD sent = 0;
        const int result = WSASendMsg(from, &message, 0, overlapped ? nullptr : &sent, overlapped ? &request : nullptr, nullptr);
        CHECK(result == 0 || (overlapped && WSAGetLastError() == WSA_IO_PENDING));
        memset(control, 0x55, sizeof control);
        memset(&address, 0x55, sizeof address);
        message = {};
        if (overlapped) {
            const Packet packet = next(port);
            CHECK(packet.succeeded && packet.bytes == 5 && packet.overlapped == &request);
        } else
            CHECK(sent == 5);
        int length = sizeof sender;
        CHECK(recvfrom(to, got, sizeof got, 0, raw(sender), &length) == 5 && memcmp(got, data, 5) == 0);
        CHECK(sender.sin_addr.s_addr == htonl(INADDR_LOOPBACK + 1) && sender.sin_port == name_of(from).sin_port);
    }
    CHECK(closesocket(to) == 0 && closesocket(from) == 0 && CloseHandle(port));
}

// More buffers than Linux takes at a time: they are one datagram all the same.
static void thousands_of_buffers_are_one_datagram()
{
    const SOCKET from = bound(SOCK_DGRAM), to = bound(SOCK_DGRAM);
    sockaddr_in target = name_of(to), source = name_of(from), sender = {};
    const DWORD count = 5000;
    const DWORD size = 3 * count;
    std::vector<char> sent(size), got(size);
    std::iota(sent.begin(), sent.end(), '\1');
    std::vector<WSABUF> out(count), in(count);
    for (DWORD i = 0; i < count; i++) {
        out[i] = {3, &sent[3 * i]};
        // Of other lengths, some of them none.
        in[i] = {i % 2 == 0 ? 0u : 6u, &got[i % 2 == 0 ? 0 : 3 * (i - 1)]};
    }
    alignas(cmsghdr) char control[WSA_CMSG_SPACE(sizeof(IN_PKTINFO))] = {};
    for (const bool overlapped : {false, true}) {
        for (const bool message : {false, true}) {
            Request sending, receiving;
            DWORD bytes = 0, flags = 0;
            int length = sizeof sender;
            WSAMSG told = {raw(target), sizeof target, out.data(), count, {sizeof control, control}, 0};
            WSACMSGHDR* const header = WSA_CMSG_FIRSTHDR(&told);
            header->cmsg_level = IPPROTO_IP;
            header->cmsg_type = IP_PKTINFO;
            header->cmsg_len = WSA_CMSG_LEN(sizeof(IN_PKTINFO));
            const auto receives = [&](LPDWORD received, Request* request) {
                return WSARecvFrom(to, in.data(), count, received, &flags, raw(sender), &length, request, nullptr);
            };
            const auto sends = [&](LPDWORD done, Request* request) {
                return message ? WSASendMsg(from, &told, 0, done, request, nullptr)
                               : WSASendTo(from, out.data(), count, done, 0, raw(target), sizeof target, request, nullptr);
            };
            if (overlapped) {
                CHECK(receives(nullptr, &receiving) == SOCKET_ERROR && WSAGetLastError() == WSA_IO_PENDING);
                CHECK(began(sends(nullptr, &sending) == 0 ? 0 : WSAGetLastError()));
                CHECK(ended(from, sending, size) && ended(to, receiving, size));
            } else {
                CHECK(sends(&bytes, nullptr) == 0 && bytes == size);
                CHECK(receives(&bytes, nullptr) == 0 && bytes == size);
            }
            CHECK(got == sent && length == sizeof sender && sender.sin_port == source.sin_port);
            std::fill(got.begin(), got.end(), '\0');
        }
    }
    // One that is too long for the buffers fills them.
    DWORD bytes = 0, flags = 0;
    CHECK(sendto(from, sent.data(), static_cast<int>(size), 0, raw(target), sizeof target) == static_cast<int>(size));
    FAILS(WSARecv(to, in.data(), 2000, &bytes, &flags, nullptr, nullptr), WSAEMSGSIZE);
    CHECK(std::equal(got.begin(), got.begin() + 6000, sent.begin()) && got[6000] == 0);
    // And one that is too long for the network is none.
    const std::vector<WSABUF> much(count, WSABUF{size, sent.data()});
    FAILS(WSASendTo(from, const_cast<WSABUF*>(much.data()), count, &bytes, 0, raw(target), sizeof target, nullptr, nullptr), WSAEMSGSIZE);
    CHECK(closesocket(from) == 0 && closesocket(to) == 0);
}

// On a datagram socket; a stream's sends have no use for an address.
static void an_address_that_is_cut_off_is_a_fault()
{
    const SOCKET from = bound(SOCK_DGRAM), to = bound(SOCK_DGRAM);
    sockaddr_in target = name_of(to);
    sockaddr_in6 six = {};
    six.sin6_family = AF_INET6;
    char byte = 'x';
    WSABUF buffer = {1, &byte};
    DWORD bytes = 0;
    WSAMSG message = {};
    message.lpBuffers = &buffer;
    message.dwBufferCount = 1;
    Pair pair;
    for (const int length : {0, 1, 2, 8, 15}) {
        FAILS(sendto(from, &byte, 1, 0, raw(target), static_cast<socklen_t>(length)), WSAEFAULT);
        for (Request* request : {static_cast<Request*>(nullptr), new Request}) {
            FAILS(WSASendTo(from, &buffer, 1, &bytes, 0, raw(target), length, request, nullptr), WSAEFAULT);
            message.name = raw(target);
            message.namelen = length;
            FAILS(WSASendMsg(from, &message, 0, &bytes, request, nullptr), WSAEFAULT);
            delete request;
        }
        CHECK(sendto(pair.near_end, &byte, 1, 0, raw(target), static_cast<socklen_t>(length)) == 1);
    }
    FAILS(WSASendTo(from, &buffer, 1, &bytes, 0, reinterpret_cast<sockaddr*>(&six), sizeof six - 1, nullptr, nullptr), WSAEFAULT);
    FAILS(sendto(-1, &byte, 1, 0, raw(target), 8), WSAENOTSOCK);
    // It is whole, or there is none.
    CHECK(sendto(from, &byte, 1, 0, raw(target), sizeof target) == 1);
    CHECK(connect(from, raw(target), sizeof target) == 0 && sendto(from, &byte, 1, 0, nullptr, 0) == 1);
    CHECK(closesocket(from) == 0 && closesocket(to) == 0);
}

int main()
{
    return run({
        thousands_of_buffers_are_one_datagram,
        an_address_that_is_cut_off_is_a_fault,
        a_message_is_sent_with_its_control_data,
        nothing_is_received_without_an_address_of_ones_own,
        datagrams_with_their_senders,
        a_datagram_that_nobody_serves_ends_a_receive,
        messages_come_with_their_control_data,
        control_data_are_those_of_windows,
    });
}
