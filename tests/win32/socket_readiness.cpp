// SPDX-License-Identifier: MIT OR Apache-2.0
// What a socket is ready for: select, WSAPoll, ioctlsocket, WSAEventSelect.
#define FD_SETSIZE 300
#include "winsock.h"
#include <thread>
#include <vector>

static sockaddr* raw(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

static void select_takes_many_sockets_and_rewrites_the_sets()
{
    const int count = 100;
    std::vector<Pair> pairs(count);
    fd_set readable, writable;
    timeval none = {0, 0};
    FD_ZERO(&readable);
    for (Pair& pair : pairs) {
        FD_SET(pair.near_end, &readable);
        FD_SET(pair.near_end, &readable); // is there already
    }
    CHECK(readable.fd_count == count);
    CHECK(select(0, &readable, nullptr, nullptr, &none) == 0 && readable.fd_count == 0);
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    for (Pair& pair : pairs) {
        FD_SET(pair.near_end, &readable);
        FD_SET(pair.near_end, &writable);
    }
    CHECK(send(pairs[7].far_end, "x", 1, 0) == 1 && send(pairs[70].far_end, "x", 1, 0) == 1);
    CHECK(is_readable(pairs[7].near_end) && is_readable(pairs[70].near_end));
    CHECK(select(-1, &readable, &writable, nullptr, nullptr) == count + 2);
    CHECK(readable.fd_count == 2 && readable.fd_array[0] == pairs[7].near_end && writable.fd_count == count);
    CHECK(FD_ISSET(pairs[70].near_end, &readable) && !FD_ISSET(pairs[71].near_end, &readable));
    FD_CLR(pairs[7].near_end, &readable);
    FD_CLR(pairs[7].near_end, &readable);
    CHECK(readable.fd_count == 1 && readable.fd_array[0] == pairs[70].near_end);

    FD_ZERO(&readable);
    FAILS(select(0, &readable, nullptr, nullptr, &none), WSAEINVAL);
    fd_set* const no_set = nullptr;
    FAILS(select(0, no_set, no_set, no_set, &none), WSAEINVAL);
    timeval negative = {-1, 0};
    FD_SET(pairs[0].near_end, &readable);
    FAILS(select(0, &readable, nullptr, nullptr, &negative), WSAEINVAL);
    FD_SET(INVALID_SOCKET, &readable);
    FAILS(select(0, &readable, nullptr, nullptr, &none), WSAENOTSOCK);

    // A socket that is not connected is neither readable nor writable, and does not end the wait for others.
    const SOCKET idle = stream();
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_SET(idle, &readable);
    FD_SET(idle, &writable);
    CHECK(select(0, &readable, &writable, nullptr, &none) == 0);
    FD_SET(idle, &readable);
    FD_SET(pairs[1].near_end, &readable);
    std::thread late([&] { CHECK(send(pairs[1].far_end, "x", 1, 0) == 1); });
    CHECK(select(0, &readable, nullptr, nullptr, nullptr) == 1 && FD_ISSET(pairs[1].near_end, &readable));
    late.join();
    // The end of the peer makes readable.
    CHECK(shutdown(pairs[2].far_end, SD_SEND) == 0 && is_readable(pairs[2].near_end));
    CHECK(closesocket(idle) == 0);
}

static void polls()
{
    Pair pair;
    WSAPOLLFD entries[2] = {};
    entries[0].fd = pair.near_end;
    entries[0].events = POLLIN;
    entries[1].fd = INVALID_SOCKET;
    CHECK(WSAPoll(entries, 2, 0) == 0 && entries[0].revents == 0);
    CHECK(send(pair.far_end, "x", 1, 0) == 1);
    CHECK(WSAPoll(entries, 2, -1) == 1 && (entries[0].revents & POLLIN) && entries[1].revents == POLLNVAL);
    // What waits and room have two names each.
    entries[0].events = POLLRDNORM | POLLWRNORM;
    CHECK(WSAPoll(entries, 1, -1) == 1 && (entries[0].revents & POLLIN) && (entries[0].revents & POLLOUT));
    entries[0].events = POLLIN | POLLOUT;
    CHECK(WSAPoll(entries, 1, -1) == 1 && (entries[0].revents & POLLRDNORM) && (entries[0].revents & POLLWRNORM));
    FAILS(WSAPoll(entries, 0, 0), WSAEINVAL);
    FAILS(WSAPoll(nullptr, 1, 0), WSAEFAULT);
    const SOCKET gone = stream();
    CHECK(closesocket(gone) == 0);
    entries[0].fd = gone;
    CHECK(WSAPoll(entries, 1, 0) == 1 && entries[0].revents == POLLNVAL);
    // The end of the peer's data is told unasked.
    entries[0].fd = pair.near_end;
    entries[0].events = POLLOUT;
    char data;
    CHECK(recv(pair.near_end, &data, 1, 0) == 1 && shutdown(pair.far_end, SD_SEND) == 0 && is_readable(pair.near_end));
    CHECK(WSAPoll(entries, 1, -1) == 1 && entries[0].revents == (POLLOUT | POLLHUP) && entries[0].events == POLLOUT);
    entries[0].events = POLLIN;
    CHECK(WSAPoll(entries, 1, -1) == 1 && entries[0].revents == (POLLIN | POLLHUP));
    // Linux's structure will do.
    pollfd native = {static_cast<int>(pair.near_end), POLLIN, 0};
    CHECK(WSAPoll(&native, 1, 0) == 1 && native.revents == (POLLIN | POLLHUP));
}

// A socket that was never connected has no events, until it is.
static void an_unconnected_socket_is_polled_in_vain()
{
    const SOCKET s = stream(), from = listener();
    WSAPOLLFD entries[2] = {};
    entries[0].fd = s;
    entries[0].events = POLLIN | POLLOUT;
    CHECK(WSAPoll(entries, 1, 0) == 0 && entries[0].revents == 0);
    CHECK(WSAPoll(entries, 1, 50) == 0 && entries[0].revents == 0);
    std::thread late([&] { reach(s, name_of(from)); });
    CHECK(WSAPoll(entries, 1, -1) == 1 && entries[0].revents == POLLOUT);
    late.join();
    // Another that is ready is told at once.
    const SOCKET idle = stream();
    entries[1].fd = idle;
    entries[1].events = POLLIN;
    CHECK(WSAPoll(entries, 2, -1) == 1 && entries[0].revents == POLLOUT && entries[1].revents == 0);
    // It is closed meanwhile.
    std::thread closing([&] { CHECK(closesocket(idle) == 0); });
    CHECK(WSAPoll(entries + 1, 1, -1) == 1 && entries[1].revents == POLLNVAL);
    closing.join();
    CHECK(closesocket(s) == 0 && closesocket(from) == 0);
}

// A connect that has failed is told as an error, though it has told so itself.
static void a_failed_connect_is_polled()
{
    const SOCKET s = stream(), nobody = bound();
    sockaddr_in address = name_of(nobody);
    FAILS(connect(s, raw(address), sizeof address), WSAECONNREFUSED);
    WSAPOLLFD entry = {};
    entry.fd = s;
    entry.events = POLLWRNORM;
    CHECK(WSAPoll(&entry, 1, -1) == 1 && entry.revents == (POLLWRNORM | POLLHUP | POLLERR));
    // Another attempt succeeds.
    CHECK(listen(nobody, 1) == 0);
    reach(s, address);
    CHECK(WSAPoll(&entry, 1, -1) == 1 && entry.revents == POLLWRNORM);
    CHECK(closesocket(s) == 0 && closesocket(nobody) == 0);
}

// A connection that is over, whoever has ended it, does not let a select for room wait for ever.
static void a_connection_that_is_over_has_room()
{
    for (const bool by_reset : {false, true}) {
        Pair pair;
        char byte;
        if (by_reset) {
            const LINGER at_once = {1, 0};
            CHECK(setsockopt(pair.far_end, SOL_SOCKET, SO_LINGER, reinterpret_cast<const char*>(&at_once), sizeof at_once) == 0);
            CHECK(closesocket(pair.far_end) == 0 && is_readable(pair.near_end));
            FAILS(recv(pair.near_end, &byte, 1, 0), WSAECONNRESET);
            pair.far_end = stream();
        } else {
            CHECK(shutdown(pair.far_end, SD_BOTH) == 0 && recv(pair.near_end, &byte, 1, 0) == 0);
            CHECK(shutdown(pair.near_end, SD_BOTH) == 0);
        }
        fd_set writable;
        FD_ZERO(&writable);
        FD_SET(pair.near_end, &writable);
        CHECK(select(0, nullptr, &writable, nullptr, nullptr) == 1);
    }
}

// A connection that the peer has reset before the program looks was made: what comes next tells of the reset.
static void a_connection_that_was_reset_at_once_was_made()
{
    enum Way { SELECT, POLL, BOTH, EVENTS, OPTION, CONNECT };
    const SOCKET from = listener();
    sockaddr_in address = name_of(from);
    for (const Way way : {SELECT, POLL, BOTH, EVENTS, OPTION, CONNECT}) {
        const SOCKET s = stream();
        do_not_wait(s);
        CHECK(connect(s, raw(address), sizeof address) == 0 || WSAGetLastError() == WSAEWOULDBLOCK);
        accept_and_reset(from, s);
        if (way == SELECT || way == BOTH) {
            fd_set writable, failed;
            FD_ZERO(&writable);
            FD_ZERO(&failed);
            FD_SET(s, &writable);
            FD_SET(s, &failed);
            CHECK(select(0, nullptr, &writable, &failed, nullptr) == 1 && FD_ISSET(s, &writable) && is_readable(s));
        }
        if (way == POLL || way == BOTH) {
            WSAPOLLFD entry = {s, POLLOUT, 0};
            CHECK(WSAPoll(&entry, 1, -1) == 1 && entry.revents == (POLLOUT | POLLHUP | POLLERR));
        }
        if (way == EVENTS) {
            const WSAEVENT event = WSACreateEvent();
            WSANETWORKEVENTS events = {};
            CHECK(WSAEventSelect(s, event, FD_CONNECT | FD_CLOSE) == 0);
            CHECK(WSAWaitForMultipleEvents(1, &event, FALSE, 60000, FALSE) == WSA_WAIT_EVENT_0);
            CHECK(WSAEnumNetworkEvents(s, event, &events) == 0 && events.lNetworkEvents == (FD_CONNECT | FD_CLOSE));
            CHECK(events.iErrorCode[FD_CONNECT_BIT] == 0 && events.iErrorCode[FD_CLOSE_BIT] == WSAECONNRESET);
            CHECK(WSACloseEvent(event));
        }
        if (way == OPTION || way == BOTH) {
            int error = 0, size = sizeof error;
            CHECK(getsockopt(s, SOL_SOCKET, SO_ERROR, reinterpret_cast<char*>(&error), &size) == 0 && error == WSAECONNRESET);
        }
        if (way == CONNECT || way == SELECT)
            FAILS(connect(s, raw(address), sizeof address), WSAEISCONN);
        char byte = 0;
        FAILS(recv(s, &byte, 1, 0), WSAECONNRESET);
        FAILS(send(s, &byte, 1, 0), WSAECONNRESET);
        FAILS(recv(s, &byte, 1, 0), WSAECONNRESET);
        CHECK(closesocket(s) == 0);
    }
    // Of those that wait, some find it so.
    const int connections = 300;
    std::thread resets([&] {
        for (int i = 0; i < connections; i++) {
            SOCKET accepted = accept(from, nullptr, nullptr);
            CHECK(accepted != INVALID_SOCKET);
            reset(accepted);
        }
    });
    for (int i = 0; i < connections; i++) {
        const SOCKET s = stream();
        char byte = 0;
        reach(s, address);
        FAILS(recv(s, &byte, 1, 0), WSAECONNRESET);
        CHECK(closesocket(s) == 0);
    }
    resets.join();
    CHECK(closesocket(from) == 0);
}

static void a_wait_for_addresses_needs_a_blocking_socket()
{
    const SOCKET s = stream();
    u_long on = 1;
    DWORD returned;
    CHECK(ioctlsocket(s, FIONBIO, &on) == 0);
    FAILS(WSAIoctl(s, SIO_ADDRESS_LIST_CHANGE, nullptr, 0, nullptr, 0, &returned, nullptr, nullptr), WSAEWOULDBLOCK);
    CHECK(closesocket(s) == 0);
}

static void what_waits_is_counted()
{
    Pair pair;
    u_long waiting = ~0ul;
    DWORD in_32_bits = 77;
    CHECK(ioctlsocket(pair.near_end, FIONREAD, &waiting) == 0 && waiting == 0);
    CHECK(send(pair.far_end, "abc", 3, 0) == 3 && is_readable(pair.near_end));
    CHECK(ioctlsocket(pair.near_end, FIONREAD, &in_32_bits) == 0 && in_32_bits == 3);
    DWORD returned = 0, number = 0;
    CHECK(WSAIoctl(pair.near_end, FIONREAD, nullptr, 0, &number, sizeof number, &returned, nullptr, nullptr) == 0);
    CHECK(number == 3 && returned == 4);
    FAILS(WSAIoctl(pair.near_end, FIONREAD, nullptr, 0, &number, 2, &returned, nullptr, nullptr), WSAEFAULT);
    CHECK(ioctlsocket(pair.near_end, SIOCATMARK, &waiting) == 0 && waiting == 1);
    FAILS(ioctlsocket(pair.near_end, 0x12345678, &waiting), WSAEOPNOTSUPP);
}

// What the events of a socket are, once they are set.
static WSANETWORKEVENTS next(SOCKET socket, WSAEVENT event)
{
    WSANETWORKEVENTS events = {};
    CHECK(WSAWaitForMultipleEvents(1, &event, FALSE, 60000, FALSE) == WSA_WAIT_EVENT_0);
    CHECK(WSAEnumNetworkEvents(socket, event, &events) == 0);
    return events;
}

static bool is_set(WSAEVENT event) { return WSAWaitForMultipleEvents(1, &event, FALSE, 0, FALSE) == WSA_WAIT_EVENT_0; }

// While events are selected, and before. A receive tells it; there is room to send all the same.
static void a_datagram_that_is_refused_is_an_event()
{
    for (const bool before : {false, true}) {
        const WSAEVENT event = WSACreateEvent();
        const SOCKET s = bound(SOCK_DGRAM), deaf = bound(SOCK_DGRAM);
        reach(s, name_of(deaf));
        CHECK(closesocket(deaf) == 0);
        if (before)
            CHECK(send(s, "x", 1, 0) == 1 && is_readable(s));
        CHECK(WSAEventSelect(s, event, FD_READ | FD_WRITE) == 0);
        if (before) {
            CHECK(next(s, event).lNetworkEvents == (FD_READ | FD_WRITE));
        } else {
            CHECK(next(s, event).lNetworkEvents == FD_WRITE && send(s, "x", 1, 0) == 1);
            CHECK(next(s, event).lNetworkEvents == FD_READ);
        }
        char byte;
        FAILS(recv(s, &byte, 1, 0), WSAECONNRESET);
        FAILS(recv(s, &byte, 1, 0), WSAEWOULDBLOCK);
        CHECK(!is_set(event) && closesocket(s) == 0 && WSACloseEvent(event));
    }
}

static void events_are_told_once_until_they_are_dealt_with()
{
    const WSAEVENT event = WSACreateEvent(), of_listener = WSACreateEvent();
    const SOCKET from = listener(), s = stream();
    CHECK(WSAEventSelect(from, of_listener, FD_ACCEPT | FD_CLOSE) == 0);
    CHECK(WSAEventSelect(s, event, FD_READ | FD_WRITE | FD_CONNECT | FD_CLOSE) == 0);
    CHECK(!is_set(event) && !is_set(of_listener));
    sockaddr_in address = name_of(from);
    FAILS(connect(s, raw(address), sizeof address), WSAEWOULDBLOCK);
    CHECK(next(from, of_listener).lNetworkEvents == FD_ACCEPT);
    LONG seen = 0;
    while (seen != (FD_CONNECT | FD_WRITE)) {
        const WSANETWORKEVENTS events = next(s, event);
        CHECK(events.iErrorCode[FD_CONNECT_BIT] == 0);
        seen |= events.lNetworkEvents;
    }
    SOCKET other = accept(from, nullptr, nullptr);
    CHECK(other != INVALID_SOCKET && !is_set(of_listener));

    // The socket's calls do not wait now, and FIONBIO cannot change that.
    char data[8];
    u_long off = 0;
    FAILS(recv(s, data, sizeof data, 0), WSAEWOULDBLOCK);
    FAILS(ioctlsocket(s, FIONBIO, &off), WSAEINVAL);

    CHECK(send(other, "abcd", 4, 0) == 4);
    CHECK(next(s, event).lNetworkEvents == FD_READ);
    CHECK(send(other, "efgh", 4, 0) == 4);
    CHECK(is_readable(s));
    CHECK(!is_set(event)); // it has been told, and not dealt with
    CHECK(recv(s, data, 4, 0) == 4);
    CHECK(next(s, event).lNetworkEvents == FD_READ); // there is more
    CHECK(recv(s, data, sizeof data, 0) == 4 && !is_set(event));

    // Room again, after there was none.
    std::vector<char> much(1 << 20);
    int sent = 0, count;
    while ((count = send(s, much.data(), much.size(), 0)) > 0)
        sent += count;
    CHECK(WSAGetLastError() == WSAEWOULDBLOCK && !is_set(event));
    for (int received = 0; received < sent; received += count)
        CHECK((count = recv(other, much.data(), much.size(), 0)) > 0);
    CHECK(next(s, event).lNetworkEvents == FD_WRITE);

    // The end comes after the data.
    CHECK(send(other, "ij", 2, 0) == 2 && closesocket(other) == 0);
    CHECK(next(s, event).lNetworkEvents == FD_READ);
    CHECK(recv(s, data, sizeof data, 0) == 2);
    const WSANETWORKEVENTS end = next(s, event);
    CHECK(end.lNetworkEvents == FD_CLOSE && end.iErrorCode[FD_CLOSE_BIT] == 0);
    CHECK(recv(s, data, sizeof data, 0) == 0);

    // None any more.
    CHECK(WSAEventSelect(s, nullptr, 0) == 0 && !is_set(event));
    CHECK(ioctlsocket(s, FIONBIO, &off) == 0);
    CHECK(closesocket(s) == 0 && closesocket(from) == 0);

    // One that fails.
    const SOCKET refused = stream();
    CHECK(WSAEventSelect(refused, event, FD_CONNECT) == 0);
    FAILS(connect(refused, raw(address), sizeof address), WSAEWOULDBLOCK);
    const WSANETWORKEVENTS failure = next(refused, event);
    CHECK(failure.lNetworkEvents == FD_CONNECT && failure.iErrorCode[FD_CONNECT_BIT] == WSAECONNREFUSED);
    FAILS(WSAEnumNetworkEvents(refused, event, nullptr), WSAEFAULT);
    CHECK(closesocket(refused) == 0 && WSACloseEvent(event) && WSACloseEvent(of_listener));
}

// As on Windows, another call that selects events begins with what has been told already, and what is not told is not written.
static void what_was_told_stays_told()
{
    const WSAEVENT event = WSACreateEvent();
    Pair pair;
    CHECK(WSAEventSelect(pair.near_end, event, FD_READ | FD_WRITE | FD_CLOSE) == 0);
    CHECK(next(pair.near_end, event).lNetworkEvents == FD_WRITE);
    for (const LONG events : {FD_WRITE | FD_READ, 0, FD_WRITE | FD_CLOSE}) {
        CHECK(WSAEventSelect(pair.near_end, events ? event : nullptr, events) == 0);
        CHECK(!is_set(event));
    }
    // Nothing says that it was connected, unless that is selected.
    CHECK(WSAEventSelect(pair.near_end, event, FD_CONNECT | FD_WRITE | FD_READ) == 0);
    CHECK(next(pair.near_end, event).lNetworkEvents == FD_CONNECT);
    CHECK(WSAEventSelect(pair.far_end, event, FD_CONNECT | FD_READ) == 0 && !is_set(event));

    CHECK(send(pair.far_end, "data", 4, 0) == 4 && WSAWaitForMultipleEvents(1, &event, FALSE, 60000, FALSE) == 0);
    WSANETWORKEVENTS found;
    memset(&found, 0x55, sizeof found);
    CHECK(WSAEnumNetworkEvents(pair.near_end, event, &found) == 0 && found.lNetworkEvents == FD_READ);
    CHECK(found.iErrorCode[FD_READ_BIT] == 0 && found.iErrorCode[FD_WRITE_BIT] == 0x55555555);
    // A receive takes back what was recorded, though the event stays set.
    char data[8];
    CHECK(send(pair.far_end, "data", 4, 0) == 4 && is_readable(pair.near_end) && recv(pair.near_end, data, 4, 0) == 4);
    CHECK(WSAWaitForMultipleEvents(1, &event, FALSE, 60000, FALSE) == 0 && recv(pair.near_end, data, 8, 0) == 4);
    CHECK(next(pair.near_end, event).lNetworkEvents == 0 && !is_set(event));
    CHECK(WSACloseEvent(event));
}

// What arrives after events were selected again is told, though the program has not dealt with what came before.
static void arrivals_after_another_selection_are_told()
{
    const WSAEVENT event = WSACreateEvent();
    Pair pair;
    CHECK(send(pair.far_end, "data", 4, 0) == 4 && is_readable(pair.near_end));
    CHECK(WSAEventSelect(pair.near_end, event, FD_READ) == 0 && next(pair.near_end, event).lNetworkEvents == FD_READ);
    // The kernel's report of the data is dealt with, too.
    CHECK(!is_set(event));
    CHECK(WSAEventSelect(pair.near_end, event, FD_READ) == 0 && !is_set(event));
    CHECK(send(pair.far_end, "more", 4, 0) == 4);
    CHECK(next(pair.near_end, event).lNetworkEvents == FD_READ);

    const SOCKET from = listener(), first = stream(), second = stream();
    CHECK(WSAEventSelect(from, event, FD_ACCEPT) == 0);
    reach(first, name_of(from));
    CHECK(next(from, event).lNetworkEvents == FD_ACCEPT && !is_set(event));
    CHECK(WSAEventSelect(from, event, FD_ACCEPT) == 0 && !is_set(event));
    reach(second, name_of(from));
    CHECK(next(from, event).lNetworkEvents == FD_ACCEPT);
    CHECK(closesocket(first) == 0 && closesocket(second) == 0 && closesocket(from) == 0 && WSACloseEvent(event));
}

// AcceptEx deals with FD_ACCEPT, as accept does.
static void acceptex_deals_with_connections()
{
    const WSAEVENT event = WSACreateEvent();
    const SOCKET from = listener(), first = stream(), second = stream(), third = stream(), served = stream();
    CHECK(WSAEventSelect(from, event, FD_ACCEPT) == 0);
    reach(first, name_of(from));
    CHECK(next(from, event).lNetworkEvents == FD_ACCEPT);
    reach(second, name_of(from));
    CHECK(!is_set(event));
    char addresses[2 * (sizeof(sockaddr_in) + 16)];
    OVERLAPPED overlapped = {};
    DWORD count;
    const DWORD room = sizeof(sockaddr_in) + 16;
    CHECK(!AcceptEx(from, served, addresses, 0, room, room, &count, &overlapped) && WSAGetLastError() == ERROR_IO_PENDING);
    CHECK(GetOverlappedResult(reinterpret_cast<HANDLE>(from), &overlapped, &count, TRUE));
    CHECK(next(from, event).lNetworkEvents == FD_ACCEPT); // there is another
    const SOCKET other = accept(from, nullptr, nullptr);
    CHECK(other != INVALID_SOCKET && !is_set(event));
    reach(third, name_of(from));
    CHECK(next(from, event).lNetworkEvents == FD_ACCEPT);
    for (const SOCKET socket : {first, second, third, served, other, from})
        CHECK(closesocket(socket) == 0);
    CHECK(WSACloseEvent(event));
}

// What the program has shut down is not the peer's end.
static void only_the_peer_closes()
{
    const WSAEVENT event = WSACreateEvent();
    for (const int how : {SD_RECEIVE, SD_BOTH}) {
        Pair pair;
        CHECK(WSAEventSelect(pair.near_end, event, FD_CLOSE) == 0);
        CHECK(shutdown(pair.near_end, how) == 0);
        CHECK(WSAEventSelect(pair.near_end, event, FD_CLOSE) == 0 && !is_set(event));
        // What comes now cannot be received. (With SD_BOTH it would be answered by a reset.)
        if (how == SD_RECEIVE)
            CHECK(send(pair.far_end, "data", 4, 0) == 4);
        CHECK(closesocket(pair.far_end) == 0);
        pair.far_end = stream();
        const WSANETWORKEVENTS end = next(pair.near_end, event);
        CHECK(end.lNetworkEvents == FD_CLOSE && end.iErrorCode[FD_CLOSE_BIT] == 0);
    }
    CHECK(WSACloseEvent(event));
}

// A connection waits as its listener does, and has its events.
static void a_connection_is_as_its_listener()
{
    char byte = 0;
    u_long on = 1, off = 0;
    for (const bool waits : { true, false }) {
        const SOCKET from = listener();
        const SOCKET s = stream();
        reach(s, name_of(from));
        if (!waits)
            CHECK(ioctlsocket(from, FIONBIO, &on) == 0);
        const SOCKET served = accept(from, nullptr, nullptr);
        CHECK(served != INVALID_SOCKET);
        if (waits)
            CHECK(send(s, &byte, 1, 0) == 1 && recv(served, &byte, 1, 0) == 1);
        else
            FAILS(recv(served, &byte, 1, 0), WSAEWOULDBLOCK);
        CHECK(closesocket(s) == 0 && closesocket(served) == 0 && closesocket(from) == 0);
    }

    const WSAEVENT event = WSACreateEvent();
    const SOCKET from = listener();
    CHECK(WSAEventSelect(from, event, FD_ACCEPT | FD_READ | FD_CLOSE) == 0);
    const SOCKET s = stream();
    reach(s, name_of(from));
    CHECK(next(from, event).lNetworkEvents == FD_ACCEPT);
    const SOCKET served = accept(from, nullptr, nullptr);
    CHECK(served != INVALID_SOCKET);
    FAILS(recv(served, &byte, 1, 0), WSAEWOULDBLOCK);
    FAILS(ioctlsocket(served, FIONBIO, &off), WSAEINVAL);
    CHECK(send(s, &byte, 1, 0) == 1);
    CHECK(next(served, event).lNetworkEvents == FD_READ);
    CHECK(recv(served, &byte, 1, 0) == 1 && closesocket(s) == 0);
    CHECK(next(served, event).lNetworkEvents == FD_CLOSE);
    CHECK(closesocket(served) == 0 && closesocket(from) == 0 && WSACloseEvent(event));
}

int main()
{
    return run({
        select_takes_many_sockets_and_rewrites_the_sets,
        polls,
        an_unconnected_socket_is_polled_in_vain,
        a_failed_connect_is_polled,
        a_connection_that_is_over_has_room,
        a_connection_that_was_reset_at_once_was_made,
        a_wait_for_addresses_needs_a_blocking_socket,
        what_waits_is_counted,
        events_are_told_once_until_they_are_dealt_with,
        a_datagram_that_is_refused_is_an_event,
        what_was_told_stays_told,
        arrivals_after_another_selection_are_told,
        acceptex_deals_with_connections,
        only_the_peer_closes,
        a_connection_is_as_its_listener,
    });
}
