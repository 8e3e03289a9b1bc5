// SPDX-License-Identifier: MIT OR Apache-2.0
// What the programs of this folder share: checks, threads, and connections within the process.
#pragma once

#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <ndspi.h>
#include <ndstatus.h>
#include <ndsupport.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                                 \
    do {                                                                                                 \
        if (!(condition)) {                                                                              \
            fprintf(stderr, "%s:%d: %s, last error %lu\n", __FILE__, __LINE__, #condition, (unsigned long)GetLastError()); \
            abort();                                                                                     \
        }                                                                                                \
    } while (0)

#define EXPECT(status, call)                                                                             \
    do {                                                                                                 \
        const HRESULT answer_ = (call);                                                                  \
        if (answer_ != (status)) {                                                                       \
            fprintf(stderr, "%s:%d: %s: 0x%08x instead of 0x%08x\n", __FILE__, __LINE__, #call, (unsigned)answer_, (unsigned)(status)); \
            abort();                                                                                     \
        }                                                                                                \
    } while (0)

// A case of a program: its name is the argument that the program is called with.
struct Case {
    const char* name;
    void (*run)();
};

template <size_t Count> static int run_case(const Case (&cases)[Count], int argc, char** argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (const Case& one : cases)
            puts(one.name);
        return 0;
    }
    for (const Case& one : cases)
        if (argc == 2 && strcmp(argv[1], one.name) == 0) {
            one.run();
            return 0;
        }
    fprintf(stderr, "%s --list | CASE\n", argv[0]);
    return 2;
}

// A new event: manual reset, not set.
inline HANDLE event()
{
    const HANDLE made = CreateEvent(nullptr, TRUE, FALSE, nullptr);
    CHECK(made != nullptr);
    return made;
}

// Whether the thread of the kernel's number `thread` sleeps.
inline bool sleeps(pid_t thread)
{
    char path[64], text[512] = {};
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    FILE* file = fopen(path, "r");
    if (file == nullptr)
        return false;
    const size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    const char* end = length > 0 ? strrchr(text, ')') : nullptr;
    return end != nullptr && end[2] == 'S';
}

// A thread of the C library's, as a program on Linux makes it.
class Thread {
public:
    explicit Thread(std::function<void()> body) : m_shared(std::make_shared<Shared>())
    {
        m_shared->body = std::move(body);
        auto* handed = new std::shared_ptr<Shared>(m_shared);
        CHECK(pthread_create(&m_thread, nullptr, start, handed) == 0);
    }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    pthread_t pthread() const { return m_thread; }
    bool is_over() const { return m_shared->over; }

    // Returns once the thread sleeps.
    void wait_until_asleep() const
    {
        while (!m_shared->over && !(m_shared->number != 0 && sleeps(m_shared->number)))
            usleep(100);
    }

    void* join()
    {
        void* result;
        CHECK(pthread_join(m_thread, &result) == 0);
        return result;
    }

private:
    struct Shared {
        std::function<void()> body;
        std::atomic<pid_t> number{0};
        std::atomic<bool> over{false};
    };

    static void* start(void* handed)
    {
        const std::unique_ptr<std::shared_ptr<Shared>> shared(static_cast<std::shared_ptr<Shared>*>(handed));
        (*shared)->number = gettid();
        (*shared)->body();
        (*shared)->over = true;
        return nullptr;
    }

    std::shared_ptr<Shared> m_shared;
    pthread_t m_thread;
};

// ---------------------------------------------------------------------------------------------------------------------
// Connections

// The first IPv4 address that an adapter has.
inline sockaddr_in adapter_address()
{
    alignas(SOCKET_ADDRESS_LIST) char room[4096];
    auto* list = reinterpret_cast<SOCKET_ADDRESS_LIST*>(room);
    SIZE_T size = sizeof(room);
    static const HRESULT started = NdStartup();
    EXPECT(ND_SUCCESS, started);
    EXPECT(ND_SUCCESS, NdQueryAddressList(0, list, &size));
    for (int i = 0; i < list->iAddressCount; i++)
        if (list->Address[i].lpSockaddr->sa_family == AF_INET)
            return *reinterpret_cast<const sockaddr_in*>(list->Address[i].lpSockaddr);
    CHECK(!"an adapter with an IPv4 address");
    abort();
}

template <typename Interface> static void** out(Interface*& object)
{
    return reinterpret_cast<void**>(&object);
}

// One end of a connection. Fields are released by hand, as programs do.
struct End {
    static const ULONG Depth = 16, Size = 4096;

    sockaddr_in address = adapter_address();
    IND2Adapter* adapter = nullptr;
    HANDLE file = nullptr;
    IND2CompletionQueue* queue = nullptr;
    IND2QueuePair* pair = nullptr;
    IND2Connector* connector = nullptr;
    IND2MemoryRegion* region = nullptr;
    char memory[2 * Size] = {};

    End()
    {
        const auto* local = reinterpret_cast<const sockaddr*>(&address);
        EXPECT(ND_SUCCESS, NdOpenAdapter(IID_IND2Adapter, local, sizeof(address), out(adapter)));
        EXPECT(ND_SUCCESS, adapter->CreateOverlappedFile(&file));
        EXPECT(ND_SUCCESS, adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 2 * Depth, 0, 0, out(queue)));
        EXPECT(ND_SUCCESS, adapter->CreateQueuePair(IID_IND2QueuePair, queue, queue, this, Depth, Depth, 1, 1, 0, out(pair)));
        EXPECT(ND_SUCCESS, adapter->CreateConnector(IID_IND2Connector, file, out(connector)));
        EXPECT(ND_SUCCESS, adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, out(region)));
        OVERLAPPED ov = {};
        finish(region, region->Register(memory, sizeof(memory), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov), ov);
    }
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    ~End()
    {
        connector->Release();
        pair->Release();
        queue->Release();
        OVERLAPPED ov = {};
        finish(region, region->Deregister(&ov), ov);
        region->Release();
        CHECK(CloseHandle(file));
        adapter->Release();
    }

    static void finish(IND2Overlapped* object, HRESULT begun, OVERLAPPED& ov)
    {
        if (begun == ND_PENDING)
            begun = object->GetOverlappedResult(&ov, TRUE);
        EXPECT(ND_SUCCESS, begun);
    }

    IND2Listener* listen(sockaddr_in& at)
    {
        IND2Listener* listener;
        ULONG length = sizeof(at);
        EXPECT(ND_SUCCESS, adapter->CreateListener(IID_IND2Listener, file, out(listener)));
        EXPECT(ND_SUCCESS, listener->Bind(reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
        EXPECT(ND_SUCCESS, listener->Listen(8));
        EXPECT(ND_SUCCESS, listener->GetLocalAddress(reinterpret_cast<sockaddr*>(&at), &length));
        return listener;
    }

    HRESULT ask(const sockaddr_in& at, OVERLAPPED& ov)
    {
        EXPECT(ND_SUCCESS, connector->Bind(reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
        return connector->Connect(pair, reinterpret_cast<const sockaddr*>(&at), sizeof(at), 1, 1, nullptr, 0, &ov);
    }

    void receive()
    {
        const ND2_SGE piece = {memory + Size, Size, region->GetLocalToken()};
        EXPECT(ND_SUCCESS, pair->Receive(nullptr, &piece, 1));
    }

    void send(char byte)
    {
        const ND2_SGE piece = {memory, Size, region->GetLocalToken()};
        memset(memory, byte, Size);
        EXPECT(ND_SUCCESS, pair->Send(nullptr, &piece, 1, 0));
    }

    // The next result, sleeping until it is there.
    ND2_RESULT result()
    {
        for (;;) {
            ND2_RESULT found;
            if (queue->GetResults(&found, 1) == 1)
                return found;
            OVERLAPPED ov = {};
            finish(queue, queue->Notify(ND_CQ_NOTIFY_ANY, &ov), ov);
        }
    }
};

// Connects two ends; `active` is the one that asks.
inline void connect_ends(End& active, End& passive)
{
    sockaddr_in at;
    IND2Listener* listener = passive.listen(at);
    OVERLAPPED request = {}, connect = {}, accept = {}, complete = {};
    EXPECT(ND_PENDING, listener->GetConnectionRequest(passive.connector, &request));
    EXPECT(ND_PENDING, active.ask(at, connect));
    EXPECT(ND_SUCCESS, listener->GetOverlappedResult(&request, TRUE));
    EXPECT(ND_PENDING, passive.connector->Accept(passive.pair, 1, 1, nullptr, 0, &accept));
    EXPECT(ND_SUCCESS, active.connector->GetOverlappedResult(&connect, TRUE));
    EXPECT(ND_PENDING, active.connector->CompleteConnect(&complete));
    EXPECT(ND_SUCCESS, active.connector->GetOverlappedResult(&complete, TRUE));
    EXPECT(ND_SUCCESS, passive.connector->GetOverlappedResult(&accept, TRUE));
    listener->Release();
}

// A message from one to the other, whose contents are compared.
inline void pass_message(End& from, End& to, char byte)
{
    to.receive();
    from.send(byte);
    for (End* end : {&from, &to})
        EXPECT(ND_SUCCESS, end->result().Status);
    for (ULONG i = 0; i < End::Size; i++)
        CHECK(to.memory[End::Size + i] == byte);
}

inline void disconnect(End& end)
{
    OVERLAPPED ov = {};
    End::finish(end.connector, end.connector->Disconnect(&ov), ov);
}

// All of it once: two ends, a connection, messages, the end.
inline void live()
{
    End active, passive;
    connect_ends(active, passive);
    for (char byte = 1; byte < 5; byte++) {
        pass_message(active, passive, byte);
        pass_message(passive, active, byte);
    }
    disconnect(active);
    disconnect(passive);
}
