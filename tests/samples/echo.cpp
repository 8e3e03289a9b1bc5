// SPDX-License-Identifier: MIT OR Apache-2.0
//
// An echo server in Windows style: AcceptEx, one completion port, some threads. And a client that checks what comes back.
//
//   echo server PORT [THREADS]            prints its port (0: any), and serves until the standard input ends
//   echo client PORT CONNECTIONS MESSAGES SIZE [THREADS]
//
// With many connections raise the limit on descriptors first (ulimit -n) on Linux.
#include <winsock2.h>
#include <ws2tcpip.h>
#include <mswsock.h>
#include <windows.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                          \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            fprintf(stderr, "%s:%d: %s, error %d\n", __FILE__, __LINE__, #condition, WSAGetLastError()); \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

static const DWORD AddressRoom = sizeof(sockaddr_in) + 16;
static const ULONG BufferSize = 16384;
static const int PendingAccepts = 64;

static HANDLE port;
static SOCKET listener;
static LPFN_ACCEPTEX acceptEx;
static LPFN_CONNECTEX connectEx;

// What a connection's one outstanding request is.
enum Stage { Accepting, Connecting, Receiving, Sending };

struct Connection {
    OVERLAPPED overlapped;
    Stage stage;
    SOCKET socket;
    ULONG done;        // of the message, by the client
    LONG messages;     // that the client still sends
    unsigned seed;     // of the message
    char addresses[2 * AddressRoom];
    char data[BufferSize];
};

// The client's.
static ULONG messageSize;
static volatile LONG connectionsLeft;
static HANDLE finished;

static SOCKET stream()
{
    const SOCKET socket = WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, nullptr, 0, WSA_FLAG_OVERLAPPED);
    REQUIRE(socket != INVALID_SOCKET);
    REQUIRE(CreateIoCompletionPort(reinterpret_cast<HANDLE>(socket), port, 0, 0) == port);
    return socket;
}

template <typename Function> static Function extension(SOCKET socket, GUID id)
{
    Function function = nullptr;
    DWORD bytes;
    REQUIRE(WSAIoctl(socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &id, sizeof id, &function, sizeof function, &bytes,
                     nullptr, nullptr) == 0);
    return function;
}

static void close(Connection* connection)
{
    closesocket(connection->socket);
    delete connection;
}

// What has become of a request: it goes on and ends in a packet, it has ended at once, or the connection is gone.
enum Outcome { Pending, Ended, Gone };

// What ends at once needs no packet, and nobody waits for the socket's own handle.
static void skip_packets(SOCKET socket)
{
    REQUIRE(SetFileCompletionNotificationModes(reinterpret_cast<HANDLE>(socket),
                                               FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE));
}

// Begins a request. If it ends at once, so many bytes were transferred.
static Outcome begin(Connection* connection, Stage stage, char* data, ULONG length, DWORD* bytes)
{
    WSABUF buffer = {length, data};
    DWORD flags = 0;
    connection->stage = stage;
    memset(&connection->overlapped, 0, sizeof connection->overlapped);
    const int result = stage == Receiving
                           ? WSARecv(connection->socket, &buffer, 1, bytes, &flags, &connection->overlapped, nullptr)
                           : WSASend(connection->socket, &buffer, 1, bytes, 0, &connection->overlapped, nullptr);
    return result == 0 ? Ended : WSAGetLastError() == WSA_IO_PENDING ? Pending : Gone;
}

static void accept_next()
{
    Connection* const connection = new Connection();
    connection->stage = Accepting;
    connection->socket = stream();
    DWORD bytes;
    REQUIRE(acceptEx(listener, connection->socket, connection->addresses, 0, AddressRoom, AddressRoom, &bytes,
                     &connection->overlapped) ||
            WSAGetLastError() == WSA_IO_PENDING);
}

// The server's side: what has arrived goes back.
static Outcome serve(Connection* connection, DWORD* bytes)
{
    switch (connection->stage) {
    case Accepting: {
        accept_next();
        skip_packets(connection->socket);
        const BOOL at_once = TRUE;
        setsockopt(connection->socket, SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, reinterpret_cast<char*>(&listener),
                   sizeof listener);
        setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<const char*>(&at_once), sizeof at_once);
        return begin(connection, Receiving, connection->data, BufferSize, bytes);
    }
    case Receiving:
        return *bytes == 0 ? Gone : begin(connection, Sending, connection->data, *bytes, bytes);
    default:
        return begin(connection, Receiving, connection->data, BufferSize, bytes);
    }
}

static char expected(unsigned seed, ULONG at) { return static_cast<char>(seed + at * 31 + (at >> 8)); }

static Outcome send_message(Connection* connection, DWORD* bytes)
{
    connection->seed += 7;
    for (ULONG i = 0; i < messageSize; i++)
        connection->data[i] = expected(connection->seed, i);
    connection->done = 0;
    return begin(connection, Sending, connection->data, messageSize, bytes);
}

// The client's side: a message, all of it back, the next one.
static Outcome play(Connection* connection, DWORD* bytes)
{
    switch (connection->stage) {
    case Connecting:
        REQUIRE(setsockopt(connection->socket, SOL_SOCKET, SO_UPDATE_CONNECT_CONTEXT, nullptr, 0) == 0);
        skip_packets(connection->socket);
        return send_message(connection, bytes);
    case Sending:
        REQUIRE(*bytes == messageSize);
        memset(connection->data, 0, messageSize);
        return begin(connection, Receiving, connection->data, messageSize, bytes);
    default:
        REQUIRE(*bytes != 0);
        connection->done += *bytes;
        if (connection->done < messageSize)
            return begin(connection, Receiving, connection->data + connection->done, messageSize - connection->done,
                         bytes);
        for (ULONG i = 0; i < messageSize; i++)
            REQUIRE(connection->data[i] == expected(connection->seed, i));
        return --connection->messages > 0 ? send_message(connection, bytes) : Gone;
    }
}

static unsigned __stdcall work(void* is_server)
{
    for (;;) {
        DWORD bytes;
        ULONG_PTR key;
        OVERLAPPED* overlapped;
        const BOOL succeeded = GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, INFINITE);
        if (overlapped == nullptr)
            return 0; // told to stop, or the port is closed
        Connection* const connection = CONTAINING_RECORD(overlapped, Connection, overlapped);
        Outcome outcome = succeeded ? Ended : Gone;
        while (outcome == Ended)
            outcome = is_server != nullptr ? serve(connection, &bytes) : play(connection, &bytes);
        if (outcome == Pending)
            continue;
        if (is_server != nullptr) {
            close(connection);
            continue;
        }
        REQUIRE(succeeded && connection->messages == 0);
        close(connection);
        if (InterlockedDecrement(&connectionsLeft) == 0)
            SetEvent(finished);
    }
}

static sockaddr_in loopback(int number)
{
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<u_short>(number));
    return address;
}

static void run_server(int number)
{
    listener = stream();
    sockaddr_in address = loopback(number);
    int length = sizeof address;
    REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener, SOMAXCONN) == 0);
    REQUIRE(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    acceptEx = extension<LPFN_ACCEPTEX>(listener, WSAID_ACCEPTEX);
    for (int i = 0; i < PendingAccepts; i++)
        accept_next();
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    while (getchar() != EOF) {
    }
}

static void run_client(int number, int connections, int messages)
{
    sockaddr_in to = loopback(number), any = loopback(0);
    connectionsLeft = connections;
    finished = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    LARGE_INTEGER start, end, frequency;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&start);
    for (int i = 0; i < connections; i++) {
        Connection* const connection = new Connection();
        connection->stage = Connecting;
        connection->socket = stream();
        connection->messages = messages;
        connection->seed = static_cast<unsigned>(i);
        REQUIRE(bind(connection->socket, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0);
        if (connectEx == nullptr)
            connectEx = extension<LPFN_CONNECTEX>(connection->socket, WSAID_CONNECTEX);
        REQUIRE(connectEx(connection->socket, reinterpret_cast<sockaddr*>(&to), sizeof to, nullptr, 0, nullptr,
                          &connection->overlapped) ||
                WSAGetLastError() == WSA_IO_PENDING);
    }
    REQUIRE(WaitForSingleObject(finished, INFINITE) == WAIT_OBJECT_0);
    QueryPerformanceCounter(&end);
    const double seconds = static_cast<double>(end.QuadPart - start.QuadPart) / static_cast<double>(frequency.QuadPart);
    printf("%.0f messages a second\n", static_cast<double>(connections) * messages / seconds);
}

int main(int argc, char* argv[])
{
    const bool is_server = argc >= 3 && strcmp(argv[1], "server") == 0;
    if (!is_server && !(argc >= 6 && strcmp(argv[1], "client") == 0)) {
        fprintf(stderr, "usage: echo server PORT [THREADS] | echo client PORT CONNECTIONS MESSAGES SIZE [THREADS]\n");
        return 2;
    }
    WSADATA data;
    REQUIRE(WSAStartup(MAKEWORD(2, 2), &data) == 0);
    const int at = is_server ? 3 : 6, threads = argc > at ? atoi(argv[at]) : 4;
    REQUIRE((port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0)) != nullptr);
    messageSize = is_server ? 0 : static_cast<ULONG>(atoi(argv[5]));
    REQUIRE(messageSize <= BufferSize);
    for (int i = 0; i < threads; i++) {
        const uintptr_t thread = _beginthreadex(nullptr, 0, work, is_server ? &port : nullptr, 0, nullptr);
        REQUIRE(thread != 0);
        CloseHandle(reinterpret_cast<HANDLE>(thread));
    }
    if (is_server)
        run_server(atoi(argv[2]));
    else
        run_client(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    return 0;
}
