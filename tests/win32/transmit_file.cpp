// SPDX-License-Identifier: MIT OR Apache-2.0
// TransmitFile.
#include "overlapped.h"
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

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
        files_are_sent,
        a_file_comes_after_the_sends_that_pend,
        a_file_that_nobody_takes_is_given_up,
    });
}
