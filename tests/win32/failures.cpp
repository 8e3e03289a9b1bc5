// SPDX-License-Identifier: MIT OR Apache-2.0
// Each call of the system that can fail does so once, in a life of all that the runtime has: the Windows function says so with an
// error, or makes do; nothing hangs, nothing stays, and the same process then lives a whole life.
//
// See failing_calls.cpp for the calls.
#include "winsock.h"
#include "failing_calls.h"
#include <process.h>
#include <algorithm>
#include <atomic>
#include <climits>
#include <iterator>
#include <dirent.h>
#include <map>
#include <stdio.h>
#include <string>
#include <unistd.h>

// Where a life ended early.
struct Stop {
    const char* function;
    DWORD error;
};

// A function that fails says why.
#define NEED(condition)                                   \
    do {                                                  \
        SetLastError(0);                                  \
        if (!(condition))                                 \
            throw Stop{#condition, GetLastError()};       \
    } while (0)

struct Handle {
    HANDLE handle;
    explicit Handle(HANDLE handle = nullptr) : handle(handle) {}
    Handle(const Handle&) = delete;
    ~Handle() { if (handle) CHECK(CloseHandle(handle)); }
};

struct Socket {
    SOCKET socket = INVALID_SOCKET;
    Socket() = default;
    Socket(const Socket&) = delete;
    ~Socket() { if (socket != INVALID_SOCKET) CHECK(closesocket(socket) == 0); }
    void open() { NEED((socket = WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, nullptr, 0, WSA_FLAG_OVERLAPPED)) != INVALID_SOCKET); }
    void bind()
    {
        const sockaddr_in address = loopback(0);
        NEED(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    }
};

// What a callback has to do: count.
static std::atomic<int> ran;

static void ran_times(int times)
{
    while (ran < times)
        Sleep(1);
    CHECK(ran == times);
}

static void objects()
{
    Handle event, other, semaphore, timer;
    NEED((event.handle = CreateEventW(nullptr, FALSE, FALSE, nullptr)) != nullptr);
    NEED((other.handle = CreateEventW(nullptr, TRUE, FALSE, nullptr)) != nullptr);
    NEED((semaphore.handle = CreateSemaphoreW(nullptr, 0, 2, nullptr)) != nullptr);
    NEED((timer.handle = CreateWaitableTimerW(nullptr, FALSE, nullptr)) != nullptr);
    LARGE_INTEGER soon;
    soon.QuadPart = -10000;
    NEED(SetWaitableTimer(timer.handle, &soon, 0, nullptr, nullptr, FALSE));
    NEED(WaitForSingleObject(timer.handle, INFINITE) == WAIT_OBJECT_0);
    const HANDLE all[] = {event.handle, other.handle, semaphore.handle};
    CHECK(SetEvent(event.handle) && SetEvent(other.handle) && ReleaseSemaphore(semaphore.handle, 1, nullptr));
    NEED(WaitForMultipleObjects(3, all, TRUE, INFINITE) == WAIT_OBJECT_0);
    NEED(WaitForMultipleObjects(3, all, FALSE, 1) == WAIT_OBJECT_0 + 1);
    NEED(SignalObjectAndWait(event.handle, other.handle, INFINITE, FALSE) == WAIT_OBJECT_0);
}

static unsigned __stdcall thread(void* event)
{
    return WaitForSingleObject(event, INFINITE);
}

static void threads()
{
    Handle event, first, second;
    NEED((event.handle = CreateEventW(nullptr, TRUE, TRUE, nullptr)) != nullptr);
    NEED((first.handle = reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 0, thread, event.handle, 0, nullptr))) != nullptr);
    // The thread has the event until it ends.
    struct Join {
        HANDLE thread;
        ~Join() { CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0); }
    } join{first.handle};
    NEED((second.handle = CreateThread(nullptr, 0, [](void* e) -> DWORD { return thread(e); }, event.handle, CREATE_SUSPENDED, nullptr)) != nullptr);
    Join other{second.handle};
    NEED(ResumeThread(second.handle) == 1);
    const HANDLE both[] = {first.handle, second.handle};
    NEED(WaitForMultipleObjects(2, both, TRUE, INFINITE) == WAIT_OBJECT_0);
}

static void CALLBACK on_work(PTP_CALLBACK_INSTANCE, void*, PTP_WORK) { ran++; }
static void CALLBACK on_timer(PTP_CALLBACK_INSTANCE, void*, PTP_TIMER) { ran++; }
static void CALLBACK on_wait(PTP_CALLBACK_INSTANCE, void*, PTP_WAIT, TP_WAIT_RESULT) { ran++; }
static void CALLBACK on_simple(PTP_CALLBACK_INSTANCE, void*) { ran++; }
static void CALLBACK on_registered(void*, BOOLEAN) { ran++; }

// What may be made is made, and then works: to submit work, to set a timer or a wait cannot fail.
static void pool()
{
    Handle event;
    ran = 0;
    NEED((event.handle = CreateEventW(nullptr, TRUE, TRUE, nullptr)) != nullptr);
    PTP_WORK work;
    NEED((work = CreateThreadpoolWork(on_work, nullptr, nullptr)) != nullptr);
    SubmitThreadpoolWork(work);
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);
    ran_times(2);
    PTP_TIMER timer;
    NEED((timer = CreateThreadpoolTimer(on_timer, nullptr, nullptr)) != nullptr);
    LARGE_INTEGER soon;
    soon.QuadPart = -10000;
    FILETIME time = {soon.LowPart, static_cast<DWORD>(soon.HighPart)};
    SetThreadpoolTimer(timer, &time, 0, 0);
    ran_times(3);
    WaitForThreadpoolTimerCallbacks(timer, FALSE);
    CloseThreadpoolTimer(timer);
    PTP_WAIT wait;
    NEED((wait = CreateThreadpoolWait(on_wait, nullptr, nullptr)) != nullptr);
    SetThreadpoolWait(wait, event.handle, nullptr);
    ran_times(4);
    WaitForThreadpoolWaitCallbacks(wait, FALSE);
    CloseThreadpoolWait(wait);
    NEED(TrySubmitThreadpoolCallback(on_simple, nullptr, nullptr));
    ran_times(5);
    NEED(QueueUserWorkItem([](void*) -> DWORD { ran++; return 0; }, nullptr, WT_EXECUTEDEFAULT));
    ran_times(6);
    HANDLE registered;
    NEED(RegisterWaitForSingleObject(&registered, event.handle, on_registered, nullptr, INFINITE, WT_EXECUTEONLYONCE));
    ran_times(7);
    CHECK(UnregisterWaitEx(registered, INVALID_HANDLE_VALUE));
    HANDLE queued;
    NEED(CreateTimerQueueTimer(&queued, nullptr, on_registered, nullptr, 1, 0, WT_EXECUTEONLYONCE));
    ran_times(8);
    CHECK(DeleteTimerQueueTimer(nullptr, queued, INVALID_HANDLE_VALUE));
}

static void memory()
{
    Handle section;
    NEED((section.handle = CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, 1 << 16, nullptr)) != nullptr);
    void* view;
    NEED((view = MapViewOfFile(section.handle, FILE_MAP_ALL_ACCESS, 0, 0, 0)) != nullptr);
    memset(view, 1, 1 << 16);
    CHECK(UnmapViewOfFile(view));
    void* pages;
    NEED((pages = VirtualAlloc(nullptr, 1 << 20, MEM_RESERVE, PAGE_READWRITE)) != nullptr);
    struct Free {
        void* pages;
        ~Free() { CHECK(VirtualFree(pages, 0, MEM_RELEASE)); }
    } free{pages};
    NEED(VirtualAlloc(pages, 1 << 16, MEM_COMMIT, PAGE_READWRITE) == pages);
    memset(pages, 1, 1 << 16);
    HANDLE heap;
    NEED((heap = HeapCreate(0, 0, 0)) != nullptr);
    void* const bytes = HeapAlloc(heap, HEAP_ZERO_MEMORY, 1 << 12);
    CHECK(HeapDestroy(heap));
    NEED(bytes != nullptr);
}

static void ports()
{
    Handle port;
    NEED((port.handle = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0)) != nullptr);
    NEED(PostQueuedCompletionStatus(port.handle, 1, 2, nullptr));
    DWORD bytes;
    ULONG_PTR key;
    OVERLAPPED* overlapped;
    NEED(GetQueuedCompletionStatus(port.handle, &bytes, &key, &overlapped, INFINITE));
    CHECK(bytes == 1 && key == 2 && overlapped == nullptr);
}

// An overlapped call: its result, whenever it comes.
template <typename Call> static DWORD done(SOCKET socket, Call call)
{
    WSAOVERLAPPED overlapped = {};
    Handle event(WSACreateEvent());
    NEED((overlapped.hEvent = event.handle) != nullptr);
    WSASetLastError(0);
    if (!call(&overlapped) && WSAGetLastError() != WSA_IO_PENDING)
        throw Stop{"an overlapped call", static_cast<DWORD>(WSAGetLastError())};
    DWORD bytes, flags;
    NEED(WSAGetOverlappedResult(socket, &overlapped, &bytes, TRUE, &flags));
    return bytes;
}

static void CALLBACK on_io(PTP_CALLBACK_INSTANCE, void*, void*, ULONG error, ULONG_PTR, PTP_IO)
{
    if (error == 0)
        ran++;
    else
        ran += 1000;
}

static void sockets()
{
    Socket listener, server, client;
    listener.open();
    listener.bind();
    NEED(listen(listener.socket, 4) == 0);
    server.open();
    client.open();
    client.bind();
    char addresses[64], text[4] = "abc", got[8] = {};
    DWORD bytes;
    OVERLAPPED accepted = {};
    Handle event(WSACreateEvent());
    NEED((accepted.hEvent = event.handle) != nullptr);
    WSASetLastError(0);
    if (!AcceptEx(listener.socket, server.socket, addresses, 0, 32, 32, &bytes, &accepted) && WSAGetLastError() != ERROR_IO_PENDING)
        throw Stop{"AcceptEx", static_cast<DWORD>(WSAGetLastError())};
    // Whatever happens below, it is over before its memory is gone.
    struct Over {
        SOCKET socket;
        OVERLAPPED* request;
        ~Over()
        {
            DWORD bytes, flags;
            CancelIoEx(reinterpret_cast<HANDLE>(socket), request);
            WSAGetOverlappedResult(socket, request, &bytes, TRUE, &flags);
        }
    } over{listener.socket, &accepted};
    GUID id = WSAID_CONNECTEX;
    LPFN_CONNECTEX connect_ex;
    NEED(WSAIoctl(client.socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &id, sizeof id, &connect_ex, sizeof connect_ex, &bytes, nullptr, nullptr) == 0);
    const sockaddr_in at = name_of(listener.socket);
    done(client.socket, [&](OVERLAPPED* o) { return connect_ex(client.socket, reinterpret_cast<const sockaddr*>(&at), sizeof at, nullptr, 0, nullptr, o); });
    DWORD flags = 0;
    NEED(WSAGetOverlappedResult(listener.socket, &accepted, &bytes, TRUE, &flags));
    NEED(setsockopt(server.socket, SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, reinterpret_cast<const char*>(&listener.socket), sizeof listener.socket) == 0);
    WSABUF out = {sizeof text, text}, in = {sizeof got, got};
    done(client.socket, [&](OVERLAPPED* o) { return WSASend(client.socket, &out, 1, nullptr, 0, o, nullptr) == 0; });
    CHECK(done(server.socket, [&](OVERLAPPED* o) { flags = 0; return WSARecv(server.socket, &in, 1, nullptr, &flags, o, nullptr) == 0; }) == sizeof text);
    CHECK(memcmp(text, got, sizeof text) == 0);

    // The other direction by way of the thread pool.
    ran = 0;
    PTP_IO io;
    NEED((io = CreateThreadpoolIo(reinterpret_cast<HANDLE>(server.socket), on_io, nullptr, nullptr)) != nullptr);
    struct Close {
        PTP_IO io;
        ~Close() { CloseThreadpoolIo(io); }
    } close{io};
    OVERLAPPED receive = {};
    StartThreadpoolIo(io);
    flags = 0;
    if (WSARecv(server.socket, &in, 1, nullptr, &flags, &receive, nullptr) != 0 && WSAGetLastError() != WSA_IO_PENDING) {
        const DWORD error = WSAGetLastError();
        CancelThreadpoolIo(io);
        throw Stop{"WSARecv", error};
    }
    CHECK(send(client.socket, text, sizeof text, 0) == sizeof text);
    WaitForThreadpoolIoCallbacks(io, FALSE);
    ran_times(1);

    // And in the older ways.
    WSAEVENT readable;
    NEED((readable = WSACreateEvent()) != nullptr);
    Handle owner(readable);
    NEED(WSAEventSelect(client.socket, readable, FD_READ | FD_CLOSE) == 0);
    CHECK(send(server.socket, text, sizeof text, 0) == sizeof text);
    NEED(WSAWaitForMultipleEvents(1, &readable, FALSE, WSA_INFINITE, FALSE) == WSA_WAIT_EVENT_0);
    NEED(WSAEventSelect(client.socket, nullptr, 0) == 0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(client.socket, &set);
    NEED(select(0, &set, nullptr, nullptr, nullptr) == 1);
    WSAPOLLFD one = {client.socket, POLLRDNORM, 0};
    NEED(WSAPoll(&one, 1, -1) == 1);
    // What pends until somebody cancels it.
    OVERLAPPED changed = {};
    WSASetLastError(0);
    CHECK(WSAIoctl(client.socket, SIO_ADDRESS_LIST_CHANGE, nullptr, 0, nullptr, 0, &bytes, &changed, nullptr) == SOCKET_ERROR);
    if (WSAGetLastError() != WSA_IO_PENDING)
        throw Stop{"SIO_ADDRESS_LIST_CHANGE", static_cast<DWORD>(WSAGetLastError())};
    CHECK(CancelIoEx(reinterpret_cast<HANDLE>(client.socket), &changed));
    CHECK(!WSAGetOverlappedResult(client.socket, &changed, &bytes, TRUE, &flags) && WSAGetLastError() == WSA_OPERATION_ABORTED);
}

// An accepting thread by blocking calls.
static void blocking()
{
    Socket listener, client, server;
    listener.open();
    listener.bind();
    NEED(listen(listener.socket, 1) == 0);
    client.open();
    const sockaddr_in at = name_of(listener.socket);
    NEED(connect(client.socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    NEED((server.socket = accept(listener.socket, nullptr, nullptr)) != INVALID_SOCKET);
    NEED(shutdown(client.socket, SD_SEND) == 0);
    char byte;
    NEED(recv(server.socket, &byte, 1, 0) == 0);
}

static bool life(Stop* stop)
{
    bool whole = true;
    for (void (*part)() : {objects, threads, pool, memory, ports, sockets, blocking}) {
        try {
            part();
        } catch (const Stop& early) {
            *stop = early;
            whole = false;
        }
    }
    return whole;
}

static int entries(const char* folder)
{
    DIR* const opened = opendir(folder);
    CHECK(opened != nullptr);
    int count = 0;
    while (readdir(opened) != nullptr)
        count++;
    closedir(opened);
    return count;
}

// Descriptors and threads, once they are no more than so many, or after a while.
static void count(int descriptors, int threads, int now[2])
{
    for (int tries = 0; tries < 60000; tries++) {
        now[0] = entries("/proc/self/fd");
        now[1] = entries("/proc/self/task");
        if (now[0] <= descriptors && now[1] <= threads)
            return;
        usleep(1000);
    }
}

// Counts when nothing has changed for a while.
static void count_at_rest(int now[2])
{
    int last[2] = {0, 0};
    for (int same = 0; same < 50; same++) {
        count(INT_MAX, INT_MAX, now);
        if (now[0] != last[0] || now[1] != last[1])
            same = 0;
        last[0] = now[0], last[1] = now[1];
        usleep(1000);
    }
}

static void hangs(int)
{
    fprintf(stderr, "a life hangs after call %d, %s\n", due.load(), failed ? failed.load() : "none");
    abort();
}

// Lives, or says where it hangs.
static bool timed_life(Stop* stop)
{
    alarm(60);
    const bool whole = life(stop);
    alarm(0);
    return whole;
}

// Lives once while a call fails. Returns whether it could, and the next life does.
static bool disturbed(int number)
{
    Stop stop = {};
    failed = nullptr;
    calls = 0;
    due = number;
    const bool whole = timed_life(&stop);
    due = -1;
    if (!failed)
        return false;
    if (getenv("FAILURES_SHOWN"))
        fprintf(stderr, "%d %s: %s, %lu\n", number, failed.load(), whole ? "nothing" : stop.function, whole ? 0 : stop.error);
    // What is short: memory, descriptors, threads.
    const DWORD told[] = {ERROR_NOT_ENOUGH_MEMORY, ERROR_NO_SYSTEM_RESOURCES, ERROR_TOO_MANY_OPEN_FILES, WSAEMFILE, WSAENOBUFS};
    if (!whole && std::find(std::begin(told), std::end(told), stop.error) == std::end(told)) {
        fprintf(stderr, "call %d, %s: %s fails with %lu\n", number, failed.load(), stop.function, stop.error);
        exit(1);
    }
    if (!timed_life(&stop)) {
        fprintf(stderr, "after call %d, %s: %s, %lu\n", number, failed.load(), stop.function, stop.error);
        exit(1);
    }
    return true;
}

// All calls, one after the other, in one process.
static void walk(std::map<std::string, int>& functions)
{
    int before[2], now[2];
    count_at_rest(before);
    // The pool has a few threads more now and then.
    before[1] += 4;
    for (int number = 0; disturbed(number); number++) {
        functions[failed.load()]++;
        count(before[0], before[1], now);
        if (now[0] > before[0] || now[1] > before[1]) {
            fprintf(stderr, "call %d, %s: %d descriptors and %d threads, not %d and %d\n", number, failed.load(), now[0], now[1], before[0],
                before[1]);
            exit(1);
        }
    }
}

// Each call in a process of its own: what a process does once only, it does in its first life.
static void new_processes(const char* program, std::map<std::string, int>& functions)
{
    for (int number = 0;; number++) {
        const std::string command = std::string(program) + " " + std::to_string(number);
        FILE* const child = popen(command.c_str(), "r");
        CHECK(child != nullptr);
        char function[32] = {};
        const bool said = fgets(function, sizeof function, child) != nullptr;
        CHECK(pclose(child) == 0);
        if (!said)
            return;
        functions[function]++;
    }
}

static void print(const char* where, const std::map<std::string, int>& functions)
{
    int number = 0;
    for (const auto& function : functions)
        number += function.second;
    printf("%s: %d calls of %zu functions failed:", where, number, functions.size());
    for (const auto& function : functions)
        printf(" %s %d", function.first.c_str(), function.second);
    printf("\n");
    CHECK(number > 20);
}

int main(int argc, char** argv)
{
    WSADATA data;
    CHECK(WSAStartup(MAKEWORD(2, 2), &data) == 0);
    signal(SIGALRM, hangs);
    if (argc == 2) {
        if (disturbed(atoi(argv[1])))
            fputs(failed.load(), stdout);
        return 0;
    }
    Stop stop = {};
    // Threads of the pool start, and stay for a while.
    for (int i = 0; i < 2; i++)
        if (!timed_life(&stop)) {
            fprintf(stderr, "%s, %lu\n", stop.function, stop.error);
            return 1;
        }
    std::map<std::string, int> functions, first;
    walk(functions);
    print("in one process", functions);
    new_processes(argv[0], first);
    print("in new processes", first);
    return 0;
}
