// SPDX-License-Identifier: MIT OR Apache-2.0
// Overlapped sockets: completion by ports, events, waits and routines; order; cancelling; closing.
#include "overlapped.h"
#include "waits.h"
#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void requests_end_by_packets_in_their_order()
{
    Pair pair;
    const HANDLE port = port_of(pair.near_end, nullptr, 7);
    char data[3][4];
    Request requests[3];
    for (int i = 0; i < 3; i++)
        CHECK(receive(pair.near_end, data[i], 4, &requests[i]) == WSA_IO_PENDING);
    CHECK(is_empty(port) && !HasOverlappedIoCompleted(&requests[0]));
    CHECK(send(pair.far_end, "aaaabbbbcccc", 12, 0) == 12);
    for (int i = 0; i < 3; i++) {
        const Packet packet = next(port);
        CHECK(packet.succeeded && packet.overlapped == &requests[i] && packet.bytes == 4 && packet.key == 7);
        CHECK(data[i][0] == 'a' + i && data[i][3] == 'a' + i);
    }
    // What is done at once queues its packet, too.
    Request sent;
    CHECK(transmit(pair.near_end, "xyz", 3, &sent) == 0);
    const Packet packet = next(port);
    CHECK(packet.overlapped == &sent && packet.bytes == 3 && is_empty(port));
    // The end of the peer is a receive of nothing.
    CHECK(receive(pair.near_end, data[0], 4, &requests[0]) == WSA_IO_PENDING);
    CHECK(shutdown(pair.far_end, SD_SEND) == 0);
    const Packet end = next(port);
    CHECK(end.succeeded && end.overlapped == &requests[0] && end.bytes == 0);
    CHECK(receive(pair.near_end, data[0], 4, &requests[0]) == 0); // and stays so
    CHECK(next(port).bytes == 0);
    CHECK(CloseHandle(port));
}

static void success_can_be_told_by_the_call_alone()
{
    Pair pair;
    const HANDLE port = port_of(pair.near_end);
    CHECK(SetFileCompletionNotificationModes(reinterpret_cast<HANDLE>(pair.near_end),
                                             FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE));
    Request sent, received;
    char data[8];
    CHECK(transmit(pair.near_end, "ab", 2, &sent) == 0 && is_empty(port));
    CHECK(receive(pair.near_end, data, sizeof data, &received) == WSA_IO_PENDING);
    CHECK(send(pair.far_end, "cd", 2, 0) == 2);
    CHECK(next(port).overlapped == &received);
    // The low bit of the event: no packet, here without an event.
    Request quiet(reinterpret_cast<HANDLE>(ULONG_PTR{1}));
    CHECK(receive(pair.near_end, data, sizeof data, &quiet) == WSA_IO_PENDING);
    CHECK(send(pair.far_end, "cd", 2, 0) == 2 && ended(pair.near_end, quiet, 2) && is_empty(port));
    CHECK(CloseHandle(port));
}

static void requests_end_by_events_and_waits()
{
    Pair pair;
    const WSAEVENT event = WSACreateEvent();
    Request request(event), other;
    char data[8];
    DWORD bytes = 0, flags = 0;
    CHECK(WSASetEvent(event));
    CHECK(receive(pair.near_end, data, sizeof data, &request) == WSA_IO_PENDING);
    CHECK(WSAWaitForMultipleEvents(1, &event, TRUE, 0, FALSE) == WSA_WAIT_TIMEOUT);
    CHECK(!WSAGetOverlappedResult(pair.near_end, &request, &bytes, FALSE, &flags));
    CHECK(WSAGetLastError() == WSA_IO_INCOMPLETE);
    CHECK(send(pair.far_end, "ab", 2, 0) == 2);
    CHECK(WSAWaitForMultipleEvents(1, &event, TRUE, 10000, FALSE) == WSA_WAIT_EVENT_0);
    CHECK(ended(pair.near_end, request, 2, false));
    // The socket itself stands in for an event.
    CHECK(receive(pair.near_end, data, sizeof data, &other) == WSA_IO_PENDING);
    std::thread late([&] { CHECK(send(pair.far_end, "abc", 3, 0) == 3); });
    CHECK(WaitForSingleObject(reinterpret_cast<HANDLE>(pair.near_end), 10000) == WAIT_OBJECT_0);
    CHECK(GetOverlappedResult(reinterpret_cast<HANDLE>(pair.near_end), &other, &bytes, FALSE) && bytes == 3);
    late.join();
    FAILS(WSAGetOverlappedResult(pair.near_end, nullptr, &bytes, TRUE, &flags) ? 0 : SOCKET_ERROR, WSAEFAULT);
    FAILS(WSAGetOverlappedResult(pair.near_end, &request, nullptr, TRUE, &flags) ? 0 : SOCKET_ERROR, WSAEFAULT);
    CHECK(WSAGetOverlappedResult(pair.near_end, &request, &bytes, TRUE, nullptr)); // the flags need not be wanted
    CHECK(WSACloseEvent(event));
}

static void nobody_waits_and_it_ends_all_the_same()
{
    Pair pair;
    Request request;
    char data[8];
    CHECK(receive(pair.near_end, data, sizeof data, &request) == WSA_IO_PENDING);
    CHECK(send(pair.far_end, "ab", 2, 0) == 2);
    CHECK(comes_true([&] { return HasOverlappedIoCompleted(&request); }));
    CHECK(request.InternalHigh == 2);
}

static void a_send_ends_when_all_of_it_is_sent()
{
    Pair pair;
    give_little_room(pair);
    std::vector<char> much(8 << 20), got(much.size());
    for (size_t i = 0; i < much.size(); i++)
        much[i] = static_cast<char>(i * 7 + i / 251);
    const ULONG half = static_cast<ULONG>(much.size() / 2);
    Request first, second;
    CHECK(transmit(pair.near_end, much.data(), half, &first) == WSA_IO_PENDING);
    CHECK(transmit(pair.near_end, much.data() + half, half, &second) == WSA_IO_PENDING);
    // All of it in one receive.
    Request received;
    CHECK(began(receive(pair.far_end, got.data(), static_cast<ULONG>(got.size()), &received, MSG_WAITALL)));
    CHECK(ended(pair.far_end, received, static_cast<DWORD>(got.size())));
    CHECK(ended(pair.near_end, first, half) && ended(pair.near_end, second, half));
    CHECK(got == much);
}

// What stays in the socket cannot be waited for until it fills the buffer.
static void all_of_it_is_not_for_looking()
{
    Pair pair;
    Request request;
    char data[8];
    DWORD bytes = 0, flags = MSG_PEEK | MSG_WAITALL;
    WSABUF buffer = {sizeof data, data};
    CHECK(send(pair.far_end, "ab", 2, 0) == 2 && is_readable(pair.near_end));
    CHECK(receive(pair.near_end, data, sizeof data, &request, flags) == WSAEOPNOTSUPP);
    FAILS(WSARecv(pair.near_end, &buffer, 1, &bytes, &flags, nullptr, nullptr), WSAEOPNOTSUPP);
    FAILS(recv(pair.near_end, data, sizeof data, MSG_OOB | MSG_WAITALL), WSAEOPNOTSUPP);
    CHECK(recv(pair.near_end, data, 2, MSG_WAITALL) == 2);
}

static void a_receive_without_room_waits_for_data()
{
    Pair pair;
    Request request;
    char data[8];
    CHECK(receive(pair.near_end, nullptr, 0, &request) == WSA_IO_PENDING);
    CHECK(send(pair.far_end, "ab", 2, 0) == 2);
    CHECK(ended(pair.near_end, request, 0));
    CHECK(receive(pair.near_end, nullptr, 0, &request) == 0);
    CHECK(recv(pair.near_end, data, sizeof data, 0) == 2);
}

static void cancelled_requests_say_so()
{
    Pair pair;
    const HANDLE file = reinterpret_cast<HANDLE>(pair.near_end), port = port_of(pair.near_end);
    Request first, second;
    char data[8];
    CHECK(receive(pair.near_end, data, 4, &first) == WSA_IO_PENDING);
    CHECK(receive(pair.near_end, data + 4, 4, &second) == WSA_IO_PENDING);
    CHECK(CancelIoEx(file, &second));
    Packet packet = next(port);
    CHECK(!packet.succeeded && packet.overlapped == &second && packet.error == ERROR_OPERATION_ABORTED);
    DWORD bytes, flags;
    CHECK(!WSAGetOverlappedResult(pair.near_end, &second, &bytes, FALSE, &flags));
    CHECK(WSAGetLastError() == WSA_OPERATION_ABORTED);
    CHECK(!CancelIoEx(file, &second) && GetLastError() == ERROR_NOT_FOUND);
    // Another thread's requests are no business of CancelIo.
    std::thread([&] { CHECK(CancelIo(file)); }).join();
    CHECK(is_empty(port));
    CHECK(CancelIo(file));
    CHECK(next(port).overlapped == &first);
    // Nothing was lost.
    CHECK(send(pair.far_end, "abcd", 4, 0) == 4 && recv(pair.near_end, data, 8, 0) == 4);
    CHECK(CloseHandle(port));
}

static void closing_ends_all_requests()
{
    Pair pair;
    const HANDLE port = port_of(pair.near_end);
    std::vector<Request> requests(20);
    char data[8];
    for (int i = 0; i < 10; i++)
        CHECK(receive(pair.near_end, data, sizeof data, &requests[i]) == WSA_IO_PENDING);
    std::vector<char> much(16 << 20);
    for (int i = 10; i < 20; i++)
        CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &requests[i]) == WSA_IO_PENDING);
    const SOCKET socket = pair.near_end;
    CHECK(closesocket(socket) == 0);
    bool seen[20] = {};
    for (int i = 0; i < 20; i++) {
        const Packet packet = next(port);
        CHECK(!packet.succeeded && packet.error == ERROR_OPERATION_ABORTED);
        bool& mine = seen[static_cast<Request*>(packet.overlapped) - requests.data()];
        CHECK(!mine);
        mine = true;
    }
    CHECK(is_empty(port));
    CHECK(receive(socket, data, sizeof data, &requests[0]) == WSAENOTSOCK);
    pair.near_end = INVALID_SOCKET;
    CHECK(CloseHandle(port));
}

static void a_reset_ends_requests_with_an_error()
{
    Pair pair;
    const HANDLE port = port_of(pair.near_end);
    Request request;
    char data[8];
    CHECK(receive(pair.near_end, data, sizeof data, &request) == WSA_IO_PENDING);
    reset(pair.far_end);
    const Packet packet = next(port);
    CHECK(!packet.succeeded && packet.overlapped == &request && packet.error == ERROR_NETNAME_DELETED);
    DWORD bytes, flags;
    CHECK(!WSAGetOverlappedResult(pair.near_end, &request, &bytes, FALSE, &flags));
    CHECK(WSAGetLastError() == WSAECONNRESET);
    // From now on it is the call that fails, and queues nothing.
    CHECK(transmit(pair.near_end, data, sizeof data, &request) == WSAECONNRESET);
    CHECK(is_empty(port));
    CHECK(CloseHandle(port));
}

// Not only by the first call that meets it: the rest is no end of the data.
static void a_reset_is_told_each_time()
{
    for (const ULONG size : {8, 0}) {
        Pair pair;
        const HANDLE port = port_of(pair.near_end);
        Request requests[2];
        char data[8];
        for (Request& request : requests)
            CHECK(receive(pair.near_end, data, size, &request) == WSA_IO_PENDING);
        reset(pair.far_end);
        for (Request& request : requests) {
            const Packet packet = next(port);
            CHECK(!packet.succeeded && packet.overlapped == &request && packet.error == ERROR_NETNAME_DELETED);
        }
        for (int i = 0; i < 2; i++) {
            FAILS(recv(pair.near_end, data, sizeof data, 0), WSAECONNRESET);
            FAILS(send(pair.near_end, data, sizeof data, 0), WSAECONNRESET);
            CHECK(receive(pair.near_end, data, size, &requests[0]) == WSAECONNRESET);
        }
        CHECK(CloseHandle(port));
    }
    // Whoever asks for the error of the socket.
    Pair pair;
    reset(pair.far_end);
    char byte;
    int error = 0, length = sizeof error;
    CHECK(is_readable(pair.near_end));
    CHECK(getsockopt(pair.near_end, SOL_SOCKET, SO_ERROR, reinterpret_cast<char*>(&error), &length) == 0 && error == WSAECONNRESET);
    FAILS(recv(pair.near_end, &byte, 1, 0), WSAECONNRESET);
}

static HANDLE called;
static void CALLBACK on_completion(DWORD status, DWORD bytes, OVERLAPPED* overlapped)
{
    overlapped->Offset = status == 0 ? bytes : ~0u;
    SetEvent(called);
}

static void callbacks_of_the_pool()
{
    Pair pair;
    called = CreateEventW(nullptr, FALSE, FALSE, nullptr);
    CHECK(BindIoCompletionCallback(reinterpret_cast<HANDLE>(pair.near_end), on_completion, 0));
    Request request;
    char data[8];
    CHECK(receive(pair.near_end, data, sizeof data, &request) == WSA_IO_PENDING);
    CHECK(send(pair.far_end, "abc", 3, 0) == 3);
    CHECK(WaitForSingleObject(called, 10000) == WAIT_OBJECT_0 && request.Offset == 3);
    CHECK(CloseHandle(called));
}

static DWORD routine_calls, routine_error, routine_bytes;
static void CALLBACK routine(DWORD error, DWORD bytes, OVERLAPPED*, DWORD)
{
    routine_calls++;
    routine_error = error;
    routine_bytes = bytes;
}

static void completion_routines_run_in_alertable_waits()
{
    Pair pair;
    // What hEvent holds is the program's.
    Request request(reinterpret_cast<HANDLE>(ULONG_PTR{0x12345})), second;
    char data[8];
    WSABUF buffer = {sizeof data, data};
    DWORD flags = 0;
    CHECK(WSARecv(pair.near_end, &buffer, 1, nullptr, &flags, &request, routine) == SOCKET_ERROR);
    CHECK(WSAGetLastError() == WSA_IO_PENDING);
    CHECK(SleepEx(0, TRUE) == 0 && routine_calls == 0);
    CHECK(send(pair.far_end, "abc", 3, 0) == 3);
    CHECK(comes_true([&] { return HasOverlappedIoCompleted(&request); }));
    CHECK(routine_calls == 0);
    CHECK(SleepEx(10000, TRUE) == WAIT_IO_COMPLETION);
    CHECK(routine_calls == 1 && routine_error == 0 && routine_bytes == 3);
    // Done at once: told by the routine all the same.
    CHECK(WSASend(pair.near_end, &buffer, 1, nullptr, 0, &second, routine) == 0 && routine_calls == 1);
    CHECK(SleepEx(0, TRUE) == WAIT_IO_COMPLETION && routine_calls == 2 && routine_bytes == sizeof data);
    // Cancelled; and not on a port.
    CHECK(WSARecv(pair.near_end, &buffer, 1, nullptr, &flags, &request, routine) == SOCKET_ERROR);
    CHECK(CancelIo(reinterpret_cast<HANDLE>(pair.near_end)));
    CHECK(SleepEx(10000, TRUE) == WAIT_IO_COMPLETION && routine_error == WSA_OPERATION_ABORTED);
    const HANDLE port = port_of(pair.near_end);
    FAILS(WSARecv(pair.near_end, &buffer, 1, nullptr, &flags, &request, routine), WSAEINVAL);
    CHECK(CloseHandle(port));
}

// Many threads send and receive on one pair, and each byte comes once and in order.
static void threads_share_a_socket()
{
    Pair pair;
    const HANDLE port = port_of(pair.near_end);
    const int count = 2000;
    std::vector<Request> requests(count);
    std::vector<int> got(count, -1);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++)
        CHECK(receive(pair.near_end, &got[i], sizeof got[i], &requests[i], MSG_WAITALL) == WSA_IO_PENDING);
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            for (;;) {
                const Packet packet = next(port);
                if (packet.overlapped == nullptr)
                    return;
                CHECK(packet.succeeded && packet.bytes == sizeof(int));
                if (packet.overlapped == &requests[count - 1])
                    for (int j = 0; j < 4; j++)
                        PostQueuedCompletionStatus(port, 0, 0, nullptr);
            }
        });
    for (int i = 0; i < count; i++)
        CHECK(send(pair.far_end, &i, sizeof i, 0) == sizeof i);
    for (std::thread& thread : threads)
        thread.join();
    for (int i = 0; i < count; i++)
        CHECK(got[i] == i);
    CHECK(CloseHandle(port));
}

// What ReadFile and WriteFile come to: 0 done, else the error.
static DWORD file_error(BOOL done) { return done ? 0 : GetLastError(); }

static void sockets_are_read_and_written_as_files()
{
    Pair pair;
    const HANDLE near_file = reinterpret_cast<HANDLE>(pair.near_end), far_file = reinterpret_cast<HANDLE>(pair.far_end);
    char data[8] = {};
    DWORD count = 99;
    // Without an OVERLAPPED they wait.
    CHECK(WriteFile(far_file, "abc", 3, &count, nullptr) && count == 3);
    CHECK(ReadFile(near_file, data, sizeof data, &count, nullptr) && count == 3 && memcmp(data, "abc", 3) == 0);
    // With one they are requests like any other.
    const HANDLE port = port_of(pair.near_end);
    Request reading, writing, wrong;
    CHECK(file_error(ReadFile(near_file, data, sizeof data, &count, &reading)) == ERROR_IO_PENDING && count == 0);
    CHECK(WriteFile(far_file, "defg", 4, nullptr, &writing));
    CHECK(GetOverlappedResult(far_file, &writing, &count, TRUE) && count == 4);
    const Packet packet = next(port);
    CHECK(packet.succeeded && packet.overlapped == &reading && packet.bytes == 4 && memcmp(data, "defg", 4) == 0);
    // Both at the position of the socket, whatever the OVERLAPPED says.
    writing.Offset = 1000;
    CHECK(WriteFile(far_file, "hi", 2, &count, &writing) && count == 2);
    for (const char expected : {'h', 'i'}) {
        reading.Offset = 5;
        const DWORD error = file_error(ReadFile(near_file, data, 1, nullptr, &reading));
        CHECK(error == 0 || error == ERROR_IO_PENDING);
        CHECK(next(port).overlapped == &reading && data[0] == expected);
    }

    CHECK(file_error(ReadFile(near_file, nullptr, 1, &count, &wrong)) == ERROR_NOACCESS);
    CHECK(file_error(WriteFile(near_file, nullptr, 1, &count, &wrong)) == ERROR_NOACCESS);
    CHECK(file_error(ReadFile(near_file, data, 1, nullptr, nullptr)) == ERROR_INVALID_PARAMETER);
    CHECK(file_error(WriteFile(near_file, data, 1, nullptr, nullptr)) == ERROR_INVALID_PARAMETER);
    const SOCKET lonely = stream();
    CHECK(file_error(WriteFile(reinterpret_cast<HANDLE>(lonely), data, 1, &count, nullptr)) == ERROR_PIPE_NOT_CONNECTED);
    CHECK(closesocket(lonely) == 0);
    CHECK(file_error(ReadFile(reinterpret_cast<HANDLE>(lonely), data, 1, &count, &wrong)) == ERROR_INVALID_HANDLE);

    // Closing ends what is pending, and the end of a stream is nothing.
    CHECK(file_error(ReadFile(near_file, data, 1, nullptr, &reading)) == ERROR_IO_PENDING);
    CHECK(CancelIoEx(near_file, &reading));
    Packet cancelled = next(port);
    CHECK(!cancelled.succeeded && cancelled.overlapped == &reading && cancelled.error == ERROR_OPERATION_ABORTED);
    CHECK(shutdown(pair.far_end, SD_SEND) == 0);
    CHECK(ReadFile(near_file, data, 1, &count, nullptr) && count == 0);
    CHECK(CloseHandle(port));
}

// Who waits for room to send is told of it, though a socket is not watched for that before.
static void a_send_that_waits_for_room_is_told_of_it_while_receives_are_pending()
{
    Pair pair;
    const HANDLE port = port_of(pair.near_end);
    char byte;
    Request receiving, sending;
    CHECK(receive(pair.near_end, &byte, 1, &receiving) == WSA_IO_PENDING);
    std::vector<char> much(16 << 20, 'x'), room(much.size());
    CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &sending) == WSA_IO_PENDING);
    CHECK(is_empty(port));
    std::thread reader([&] {
        for (size_t done = 0; done < room.size();) {
            const int got = recv(pair.far_end, room.data() + done, static_cast<int>(room.size() - done), 0);
            CHECK(got > 0);
            done += static_cast<size_t>(got);
        }
    });
    Packet packet = next(port, 60000);
    CHECK(packet.succeeded && packet.overlapped == &sending && packet.bytes == much.size());
    reader.join();
    CHECK(send(pair.far_end, "y", 1, 0) == 1);
    packet = next(port);
    CHECK(packet.succeeded && packet.overlapped == &receiving && byte == 'y');
    CHECK(CloseHandle(port));
}

// More buffers than Linux takes at a time.
static void thousands_of_buffers_are_one_request()
{
    Pair pair;
    const DWORD count = 5000;
    const int size = count * sizeof(int);
    std::vector<int> sent(count), got(count);
    std::vector<WSABUF> from(count), to(count);
    for (DWORD i = 0; i < count; i++) {
        sent[i] = static_cast<int>(i);
        from[i] = {sizeof(int), reinterpret_cast<char*>(&sent[i])};
        to[i] = {sizeof(int), reinterpret_cast<char*>(&got[i])};
    }
    for (const bool overlapped : {true, false}) {
        Request sending, receiving;
        DWORD bytes = 0, flags = MSG_WAITALL;
        if (overlapped)
            CHECK(WSARecv(pair.far_end, to.data(), count, nullptr, &flags, &receiving, nullptr) == SOCKET_ERROR &&
                  WSAGetLastError() == WSA_IO_PENDING);
        const int result = WSASend(pair.near_end, from.data(), count, &bytes, 0, overlapped ? &sending : nullptr, nullptr);
        CHECK(overlapped ? began(result == 0 ? 0 : WSAGetLastError()) : result == 0 && bytes == static_cast<DWORD>(size));
        if (overlapped) {
            CHECK(ended(pair.near_end, sending, static_cast<DWORD>(size)) && ended(pair.far_end, receiving, static_cast<DWORD>(size)));
        } else {
            CHECK(WSARecv(pair.far_end, to.data(), count, &bytes, &flags, nullptr, nullptr) == 0 && bytes == static_cast<DWORD>(size));
        }
        CHECK(got == sent);
        std::fill(got.begin(), got.end(), 0);
    }
}

// A receive that gets less than its buffers hold may leave data in the socket all the same.
static void what_a_short_receive_leaves_is_received_next()
{
    for (const bool urgent : {false, true}) {
        Pair pair;
        // From here on, an edge tells of new data.
        char byte = 0;
        WSABUF one = {1, &byte};
        Request first;
        DWORD flags = 0;
        CHECK(WSARecv(pair.far_end, &one, 1, nullptr, &flags, &first, nullptr) == SOCKET_ERROR &&
              WSAGetLastError() == WSA_IO_PENDING);
        CHECK(send(pair.near_end, "x", 1, 0) == 1 && ended(pair.far_end, first, 1));
        std::string sent = "abcdef";
        if (urgent) {
            CHECK(send(pair.near_end, "abc", 3, 0) == 3 && send(pair.near_end, "!", 1, MSG_OOB) == 1 &&
                  send(pair.near_end, "def", 3, 0) == 3);
        } else {
            sent.assign(20000, 'y');
            CHECK(send(pair.near_end, sent.data(), 20000, 0) == 20000);
        }
        std::string got(sent.size(), '\0');
        for (size_t done = 0; done < got.size();) {
            // As many buffers as there are bytes, or four bytes each.
            const size_t size = urgent ? 1 : 4;
            std::vector<WSABUF> to;
            for (size_t at = done; at < got.size(); at += size)
                to.push_back({static_cast<ULONG>(std::min(size, got.size() - at)), &got[at]});
            Request receiving;
            DWORD bytes = 0;
            flags = 0;
            const int result = WSARecv(pair.far_end, to.data(), static_cast<DWORD>(to.size()), nullptr, &flags, &receiving, nullptr);
            CHECK(began(result == 0 ? 0 : WSAGetLastError()));
            CHECK(WSAGetOverlappedResult(pair.far_end, &receiving, &bytes, TRUE, &flags) && bytes > 0);
            done += bytes;
        }
        CHECK(got == sent);
    }
}

// What a call without an OVERLAPPED sends comes after the requests that pend, as on Windows.
static void a_plain_send_comes_after_the_requests_that_pend()
{
    const std::vector<char> much(8 << 20, 'x');
    for (const bool by_port : {false, true}) {
        Pair pair;
        give_little_room(pair);
        const HANDLE port = by_port ? port_of(pair.near_end) : nullptr;
        Request sending[2];
        for (Request& request : sending)
            CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &request) == WSA_IO_PENDING);
        // One that may not wait so long.
        const DWORD time = 50;
        CHECK(setsockopt(pair.near_end, SOL_SOCKET, SO_SNDTIMEO, reinterpret_cast<const char*>(&time), sizeof time) == 0);
        FAILS(send(pair.near_end, "late", 4, 0), WSAETIMEDOUT);
        const DWORD none = 0;
        CHECK(setsockopt(pair.near_end, SOL_SOCKET, SO_SNDTIMEO, reinterpret_cast<const char*>(&none), sizeof none) == 0);
        std::thread sender([&] { CHECK(send(pair.near_end, "tail", 4, 0) == 4 && shutdown(pair.near_end, SD_SEND) == 0); });
        std::string got;
        std::vector<char> room(1 << 20);
        for (int count; (count = recv(pair.far_end, room.data(), static_cast<int>(room.size()), 0)) > 0;)
            got.append(room.data(), static_cast<size_t>(count));
        sender.join();
        CHECK(got.size() == 2 * much.size() + 4 && got.find_first_not_of('x') == 2 * much.size() && got.substr(2 * much.size()) == "tail");
        if (by_port) {
            // Its own packet there is none of.
            CHECK(next(port).overlapped == &sending[0] && next(port).overlapped == &sending[1] && is_empty(port) && CloseHandle(port));
        } else {
            CHECK(ended(pair.near_end, sending[0], static_cast<DWORD>(much.size())));
            CHECK(ended(pair.near_end, sending[1], static_cast<DWORD>(much.size())));
        }
    }
    // A forked child sends what is its own only.
    {
        Pair pair;
        give_little_room(pair);
        Request sending;
        CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &sending) == WSA_IO_PENDING);
        const pid_t child = fork();
        if (child == 0)
            _exit(send(pair.near_end, "child", 5, 0) == 5 ? 0 : 1);
        std::vector<char> room(1 << 20);
        size_t total = 0, others = 0;
        int count, status = -1;
        while (total < much.size() + 5 && (count = recv(pair.far_end, room.data(), static_cast<int>(room.size()), 0)) > 0) {
            total += static_cast<size_t>(count);
            others += static_cast<size_t>(count - std::count(room.begin(), room.begin() + count, 'x'));
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(ended(pair.near_end, sending, static_cast<DWORD>(much.size())) && shutdown(pair.near_end, SD_SEND) == 0);
        CHECK(total == much.size() + 5 && others == 5 && recv(pair.far_end, room.data(), 1, 0) == 0);
    }
    // The socket is closed under it.
    Pair pair;
    give_little_room(pair);
    Request sending;
    CHECK(transmit(pair.near_end, much.data(), static_cast<ULONG>(much.size()), &sending) == WSA_IO_PENDING);
    std::atomic<bool> begun{false};
    std::thread sender([&] {
        begun = true;
        const int sent = send(pair.near_end, "tail", 4, 0);
        CHECK(sent == SOCKET_ERROR && (WSAGetLastError() == WSAEINTR || WSAGetLastError() == WSAENOTSOCK));
    });
    CHECK(comes_true([&] { return begun.load(); }));
    Sleep(20);
    CHECK(closesocket(pair.near_end) == 0);
    sender.join();
    pair.near_end = INVALID_SOCKET;
}

int main()
{
    return run({
        requests_end_by_packets_in_their_order,
        success_can_be_told_by_the_call_alone,
        requests_end_by_events_and_waits,
        nobody_waits_and_it_ends_all_the_same,
        a_send_ends_when_all_of_it_is_sent,
        all_of_it_is_not_for_looking,
        a_receive_without_room_waits_for_data,
        cancelled_requests_say_so,
        closing_ends_all_requests,
        a_reset_ends_requests_with_an_error,
        a_reset_is_told_each_time,
        callbacks_of_the_pool,
        completion_routines_run_in_alertable_waits,
        threads_share_a_socket,
        thousands_of_buffers_are_one_request,
        what_a_short_receive_leaves_is_received_next,
        sockets_are_read_and_written_as_files,
        a_send_that_waits_for_room_is_told_of_it_while_receives_are_pending,
        a_plain_send_comes_after_the_requests_that_pend,
    });
}
