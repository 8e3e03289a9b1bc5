// SPDX-License-Identifier: MIT OR Apache-2.0
// Asio as it is, with its back end for Windows: sockets, accepts, timers, and requests of others that end as its handlers.
// Compiled with -include ndwin32.h.
#include "../check.h"

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <asio/windows/object_handle.hpp>
#include <asio/windows/overlapped_ptr.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <ndsupport.h>
#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#ifndef ASIO_HAS_IOCP
#error "not the back end for Windows"
#endif

using asio::ip::tcp;
using Error = asio::error_code;

struct Echo : std::enable_shared_from_this<Echo> {
    tcp::socket socket;
    char data[256];
    explicit Echo(tcp::socket from) : socket(std::move(from)) {}
    void read()
    {
        auto self = shared_from_this();
        socket.async_read_some(asio::buffer(data), [self](const Error &error, size_t bytes) {
            if (error) {
                CHECK(error == asio::error::eof);
                return;
            }
            asio::async_write(self->socket, asio::buffer(self->data, bytes), [self](const Error &failed, size_t) {
                CHECK(!failed);
                self->read();
            });
        });
    }
};

struct Client : std::enable_shared_from_this<Client> {
    tcp::socket socket;
    const unsigned number;
    int rounds = 3;
    std::atomic<int> &left;
    unsigned char sent[100], received[100];
    Client(asio::io_context &context, unsigned which, std::atomic<int> &clients)
        : socket(context), number(which), left(clients)
    {
    }
    void connect(const tcp::endpoint &to)
    {
        auto self = shared_from_this();
        socket.async_connect(to, [self](const Error &error) {
            CHECK(!error);
            self->round();
        });
    }
    void round()
    {
        if (rounds-- == 0) {
            left--;
            socket.close();
            return;
        }
        for (unsigned i = 0; i < sizeof sent; i++)
            sent[i] = static_cast<unsigned char>(number * 31 + static_cast<unsigned>(rounds) * 7 + i);
        auto self = shared_from_this();
        asio::async_write(socket, asio::buffer(sent), [self](const Error &error, size_t) {
            CHECK(!error);
            asio::async_read(self->socket, asio::buffer(self->received), [self](const Error &failed, size_t bytes) {
                CHECK(!failed && bytes == sizeof self->received && !memcmp(self->sent, self->received, bytes));
                self->round();
            });
        });
    }
};

static void accept(tcp::acceptor &acceptor, int count)
{
    if (count == 0)
        return;
    acceptor.async_accept([&acceptor, count](const Error &error, tcp::socket socket) {
        CHECK(!error);
        std::make_shared<Echo>(std::move(socket))->read();
        accept(acceptor, count - 1);
    });
}

static void a_thousand_connections_are_served_by_two_threads()
{
    const int connections = 1000;
    rlimit files;
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    asio::io_context context;
    tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    accept(acceptor, connections);
    std::atomic<int> left{connections};
    for (int i = 0; i < connections; i++)
        std::make_shared<Client>(context, static_cast<unsigned>(i), left)->connect(acceptor.local_endpoint());
    std::thread other([&] { context.run(); });
    context.run();
    other.join();
    CHECK(left == 0);
}

static void timers_and_events_end_as_handlers()
{
    asio::io_context context;
    int ended = 0;
    asio::steady_timer fires(context, std::chrono::milliseconds(1)), waits(context, std::chrono::hours(1));
    asio::windows::object_handle event(context, CreateEventW(nullptr, TRUE, FALSE, nullptr));
    waits.async_wait([&](const Error &error) { ended += error == asio::error::operation_aborted; });
    event.async_wait([&](const Error &error) {
        ended += !error;
        waits.cancel();
    });
    fires.async_wait([&](const Error &error) {
        ended += !error;
        CHECK(SetEvent(event.native_handle()));
    });
    context.run();
    CHECK(ended == 3);
}

static void requests_of_networkdirect_end_as_handlers()
{
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    IND2Adapter *adapter;
    IND2MemoryRegion *region;
    HANDLE file;
    CHECK(NdStartup() == ND_SUCCESS);
    CHECK(NdOpenAdapter(IID_IND2Adapter, reinterpret_cast<sockaddr *>(&here), sizeof here,
                        reinterpret_cast<void **>(&adapter)) == ND_SUCCESS);
    CHECK(adapter->CreateOverlappedFile(&file) == ND_SUCCESS);
    CHECK(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, reinterpret_cast<void **>(&region)) == ND_SUCCESS);

    asio::io_context context;
    Error error;
    asio::use_service<asio::detail::win_iocp_io_context>(context).register_handle(file, error);
    CHECK(!error);
    static char memory[4096];
    bool ended = false;
    asio::windows::overlapped_ptr request(context, [&](const Error &failed, size_t) {
        CHECK(!failed);
        ended = true;
    });
    const HRESULT status =
        region->Register(memory, sizeof memory, ND_MR_FLAG_ALLOW_LOCAL_WRITE, request.get());
    CHECK(status == ND_SUCCESS || status == ND_PENDING);
    request.release();
    context.run();
    CHECK(ended);
    region->Release();
    CHECK(CloseHandle(file));
    adapter->Release();
    CHECK(NdCleanup() == ND_SUCCESS);
}

int main()
{
    CHECK(setenv("NDCOMPAT_EMULATOR", "on", 1) == 0);
    a_thousand_connections_are_served_by_two_threads();
    timers_and_events_end_as_handlers();
    requests_of_networkdirect_end_as_handlers();
}
