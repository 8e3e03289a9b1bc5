// ndperf: the other end of `nd perf` and `nd serve`, for machines where those are not: above all for Windows.
//
// The server takes any number of connections at a time, each in a thread of its own; the client has one.

// A failure ends the connection that it belongs to, not the server.
struct Failure
{
};
#define SAMPLE_FAILED() throw Failure()

#include "options.h"
#include "perf_protocol.h"

#include <memory>

struct Options : EndOptions
{
    bool Bandwidth = false;
    UINT32 Size = 64;
    UINT32 Depth = 32;
    UINT32 Milliseconds = 2000;
    UINT32 Connections = 0; // without end

    bool Flag(TCHAR letter)
    {
        return letter == _T('b') && (Bandwidth = true);
    }

    bool Parse(TCHAR letter, const TCHAR* value)
    {
        switch (letter)
        {
        case _T('l'):
            return ParseNumber(value, &Size);
        case _T('q'):
            return ParseNumber(value, &Depth) && Depth <= 1024;
        case _T('t'):
            return ParseNumber(value, &Milliseconds);
        case _T('n'):
            return ParseNumber(value, &Connections);
        }
        return false;
    }
};

static const USHORT DefaultPort = 7650;
static const UINT32 OwnReceives = 4; // of a client
static const ULONG MostReads = 16;

// ---------------------------------------------------------------------------------------------------------------------
// The server

// Sends back what comes.
static void Echo(Endpoint& endpoint, char* memory, UINT32 size)
{
    char* const answer = memory + 2 * static_cast<SIZE_T>(size);
    for (UINT32 at = 0;; at ^= 1)
    {
        const ULONG length = endpoint.WaitReceive();
        if (length == 0)
        {
            return;
        }
        char* const message = memory + at * static_cast<SIZE_T>(size);
        endpoint.WaitInitiated();
        CopyMemory(answer, message, length);
        endpoint.PostReceive(message, size);
        endpoint.PostSend(answer, length);
    }
}

// Takes what comes, and says after each half of the receives that there is room for as many again.
static void Sink(Endpoint& endpoint, char* memory, UINT32 size)
{
    const UINT32 receives = ReceivesFor(size), batch = receives / 2;
    char* const credit = memory + receives * static_cast<SIZE_T>(size);
    PutNumber(reinterpret_cast<BYTE*>(credit), batch);
    for (UINT32 taken = 0; endpoint.WaitReceive() != 0; taken++)
    {
        endpoint.PostReceive(memory + taken % receives * static_cast<SIZE_T>(size), size);
        if (taken % batch == batch - 1)
        {
            endpoint.WaitInitiated();
            endpoint.PostSend(credit, CreditSize);
        }
    }
}

// A connection, from its request to its end.
static void ServeOne(Endpoint& endpoint)
{
    Request request;
    if (!GetRequest(endpoint, &request))
    {
        static const char reason[] = "ndperf does not understand what is asked";
        CHECK(endpoint.Connector()->Reject(reason, sizeof(reason)));
        return;
    }
    if (request.Polls)
    {
        endpoint.Poll();
    }
    const UINT32 receives = request.What == Purpose::Echo ? 2
        : request.What == Purpose::Sink                   ? ReceivesFor(request.Size)
                                                          : 0;
    const SIZE_T size = request.Size;
    char* memory = nullptr;
    BYTE answer[HelloSize] = {};
    CopyMemory(answer, Magic, sizeof(Magic));
    if (request.What == Purpose::Memory)
    {
        memory = endpoint.Register(size * request.Depth);
        const UINT64 address = reinterpret_cast<ULONG_PTR>(memory);
        const UINT32 token = endpoint.RemoteToken(); // in network order already
        PutNumber(answer + 4, static_cast<UINT32>(address >> 32));
        PutNumber(answer + 8, static_cast<UINT32>(address));
        CopyMemory(answer + 12, &token, sizeof(token));
    }
    else
    {
        // And room for what is sent.
        memory = endpoint.Register((receives + 1) * size + CreditSize);
        for (UINT32 i = 0; i < receives; i++)
        {
            endpoint.PostReceive(memory + i * size, request.Size);
        }
    }
    const ULONG reads = std::min(MostReads, endpoint.Info().MaxInboundReadLimit);
    endpoint.Accept(reads, 0, answer, sizeof(answer));
    switch (request.What)
    {
    case Purpose::Echo:
        Echo(endpoint, memory, request.Size);
        break;
    case Purpose::Sink:
        Sink(endpoint, memory, request.Size);
        break;
    default:
        endpoint.WaitForPeerToDisconnect();
        break;
    }
    endpoint.End();
}

static DWORD WINAPI ServeInThread(void* argument)
{
    const std::unique_ptr<Endpoint> endpoint(static_cast<Endpoint*>(argument));
    try
    {
        ServeOne(*endpoint);
    }
    catch (const Failure&)
    {
        endpoint->End(); // what has failed is said already
    }
    return 0;
}

static void RunServer(const Options& options)
{
    IND2Adapter* adapter = nullptr;
    CHECK(NdOpenAdapter(IID_IND2Adapter, AsSockaddr(options.Address), AddressLength(options.Address),
                        reinterpret_cast<void**>(&adapter)));
    HANDLE file = nullptr;
    CHECK(adapter->CreateOverlappedFile(&file));
    IND2Listener* listener = nullptr;
    CHECK(adapter->CreateListener(IID_IND2Listener, file, reinterpret_cast<void**>(&listener)));
    CHECK(listener->Bind(AsSockaddr(options.Address), AddressLength(options.Address)));
    CHECK(listener->Listen(0));
    SOCKADDR_INET bound;
    ULONG length = sizeof(bound);
    CHECK(listener->GetLocalAddress(reinterpret_cast<sockaddr*>(&bound), &length));
    _tprintf(_T("listening on %s\n"), AddressText(bound).c_str());
    fflush(stdout);

    OVERLAPPED overlapped;
    ZeroMemory(&overlapped, sizeof(overlapped));
    overlapped.hEvent = CreateEvent(nullptr, TRUE, FALSE, nullptr);
    CHECK_WIN32(overlapped.hEvent != nullptr);
    std::vector<HANDLE> threads;
    for (UINT32 number = 0; options.Connections == 0 || number < options.Connections; number++)
    {
        std::unique_ptr<Endpoint> endpoint(new Endpoint(adapter, file, WaitMode::Event, Receives));
        HRESULT hr = listener->GetConnectionRequest(endpoint->Connector(), &overlapped);
        if (hr == ND_PENDING)
        {
            hr = listener->GetOverlappedResult(&overlapped, TRUE);
        }
        CHECK(hr);
        const HANDLE thread = CreateThread(nullptr, 0, ServeInThread, endpoint.get(), 0, nullptr);
        CHECK_WIN32(thread != nullptr);
        endpoint.release();
        if (options.Connections == 0)
        {
            CloseHandle(thread);
        }
        else
        {
            threads.push_back(thread);
        }
    }
    for (HANDLE thread : threads)
    {
        CHECK_WIN32(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
        CloseHandle(thread);
    }
    CloseHandle(overlapped.hEvent);
    listener->Release();
    CloseHandle(file);
    adapter->Release();
}

// ---------------------------------------------------------------------------------------------------------------------
// The client

static LONGLONG Now()
{
    LARGE_INTEGER counter;
    QueryPerformanceCounter(&counter);
    return counter.QuadPart;
}

class Client
{
public:
    Client(const Options& options, Endpoint& endpoint)
        : m_options(options), m_endpoint(endpoint), m_echoed(options.Operation == Transfer::Send && !options.Bandwidth)
    {
        const bool sends = options.Operation == Transfer::Send;
        m_receiveSize = m_echoed ? options.Size : CreditSize;
        m_memory = endpoint.Register(options.Size + OwnReceives * static_cast<SIZE_T>(m_receiveSize));
        m_receives = m_memory + options.Size;
        for (UINT32 i = 0; sends && i < OwnReceives; i++)
        {
            PostReceive();
        }
    }

    void Connect(const SOCKADDR_INET& local)
    {
        const bool sends = m_options.Operation == Transfer::Send;
        BYTE hello[HelloSize] = {};
        CopyMemory(hello, Magic, sizeof(Magic));
        hello[4] = static_cast<BYTE>(m_echoed ? Purpose::Echo : sends ? Purpose::Sink : Purpose::Memory);
        hello[5] = m_options.Mode == WaitMode::Poll;
        const UINT32 silence = std::min<UINT32>(m_options.Milliseconds / 1000 + 1, 0xFFFF);
        hello[6] = static_cast<BYTE>(silence >> 8);
        hello[7] = static_cast<BYTE>(silence);
        PutNumber(hello + 8, m_options.Size);
        PutNumber(hello + 12, sends && m_options.Bandwidth ? m_options.Depth : 1);
        const ULONG reads = std::min(MostReads, m_endpoint.Info().MaxOutboundReadLimit);
        m_endpoint.Connect(local, m_options.Address, 0, reads, hello, sizeof(hello));
        BYTE answer[HelloSize];
        REQUIRE(GetHello(m_endpoint, answer));
        m_endpoint.CompleteConnect();
        m_remote = static_cast<UINT64>(GetNumber(answer + 4)) << 32 | GetNumber(answer + 8);
        CopyMemory(&m_token, answer + 12, sizeof(m_token));
    }

    // One request at a time. Returns the times, in ticks of the performance counter.
    std::vector<LONGLONG> Latency(LONGLONG end)
    {
        std::vector<LONGLONG> times;
        LONGLONG now = Now();
        do
        {
            const LONGLONG begin = now;
            Post();
            if (m_echoed)
            {
                REQUIRE(m_endpoint.WaitReceive() == m_options.Size);
            }
            else
            {
                m_endpoint.WaitInitiated();
            }
            now = Now();
            times.push_back(now - begin);
            if (m_echoed)
            {
                m_endpoint.WaitInitiated();
                PostReceive();
                now = Now();
            }
        } while (now < end);
        return times;
    }

    // As many requests as may be under way. Returns how many there were.
    UINT64 Bandwidth(LONGLONG end)
    {
        const bool sends = m_options.Operation == Transfer::Send;
        UINT64 count = 0;
        UINT64 credits = ReceivesFor(m_options.Size);
        do
        {
            while (sends && (credits == 0 || m_endpoint.HasReceived()))
            {
                REQUIRE(m_endpoint.WaitReceive() == CreditSize);
                credits += GetNumber(m_receives + m_next * m_receiveSize);
                PostReceive();
            }
            m_endpoint.WaitInitiated(m_options.Depth - 1);
            Post();
            credits -= sends ? 1 : 0;
            count++;
        } while (Now() < end);
        m_endpoint.WaitInitiated();
        return count;
    }

private:
    // The buffer whose turn it is: receives complete in the order in which they were posted.
    void PostReceive()
    {
        m_endpoint.PostReceive(m_receives + m_next * m_receiveSize, m_receiveSize);
        m_next = (m_next + 1) % OwnReceives;
    }

    void Post()
    {
        switch (m_options.Operation)
        {
        case Transfer::Send:
            m_endpoint.PostSend(m_memory, m_options.Size);
            break;
        case Transfer::Write:
            m_endpoint.PostWrite(m_memory, m_options.Size, m_remote, m_token);
            break;
        default:
            m_endpoint.PostRead(m_memory, m_options.Size, m_remote, m_token);
            break;
        }
    }

    const Options& m_options;
    Endpoint& m_endpoint;
    const bool m_echoed;
    char* m_memory;
    char* m_receives;
    ULONG m_receiveSize;
    SIZE_T m_next = 0;
    UINT64 m_remote = 0;
    UINT32 m_token = 0;
};

static void RunClient(const Options& options)
{
    SOCKADDR_INET local;
    SIZE_T length = sizeof(local);
    CHECK(NdResolveAddress(AsSockaddr(options.Address), AddressLength(options.Address),
                           reinterpret_cast<sockaddr*>(&local), &length));
    Endpoint endpoint(local, options.Mode, std::max(options.Depth, OwnReceives));
    Client client(options, endpoint);
    client.Connect(local);

    LARGE_INTEGER frequency;
    QueryPerformanceFrequency(&frequency);
    const double tick = 1 / static_cast<double>(frequency.QuadPart);
    const LONGLONG begin = Now();
    const LONGLONG end = begin + frequency.QuadPart * options.Milliseconds / 1000;
    static const TCHAR* const operations[] = {_T("send"), _T("write"), _T("read")};
    const TCHAR* const operation = operations[static_cast<int>(options.Operation)];
    if (options.Bandwidth)
    {
        const double count = static_cast<double>(client.Bandwidth(end));
        const double seconds = static_cast<double>(Now() - begin) * tick;
        _tprintf(_T("%s, %u bytes: %.0f requests, %.0f per second, %.1f MB/s\n"), operation, options.Size, count,
                 count / seconds, count * options.Size / seconds / 1e6);
    }
    else
    {
        std::vector<LONGLONG> times = client.Latency(end);
        std::sort(times.begin(), times.end());
        const bool halved = options.Operation == Transfer::Send;
        const auto at = [&](double part) {
            const SIZE_T index = static_cast<SIZE_T>(part * static_cast<double>(times.size() - 1));
            return static_cast<double>(times[index]) * tick * 1e6 / (halved ? 2 : 1);
        };
        _tprintf(_T("%s, %u bytes: %u requests, us %s: p50 %.2f, p90 %.2f, p99 %.2f, max %.2f\n"), operation,
                 options.Size, static_cast<UINT32>(times.size()),
                 halved ? _T("for half a round trip") : _T("until completion"), at(0.5), at(0.9), at(0.99), at(1));
    }
    endpoint.Disconnect();
}

// ---------------------------------------------------------------------------------------------------------------------
// The command line

static int Usage(const TCHAR* program)
{
    _ftprintf(stderr,
              _T("usage: %s -s <ip[:port]> [-n connections]\n")
              _T("       %s -c <ip[:port]> [-o send|write|read] [-b] [-w poll|event|iocp] [-l bytes] [-q depth] [-t ms]\n")
              _T("  -s  serve nd perf, nd ping and ndperf at this address     -n  end after so many connections\n")
              _T("  -c  measure to the server at this address                 -o  what the requests are (send)\n")
              _T("  -b  bandwidth instead of latency                          -w  how to wait (poll)\n")
              _T("  -l  bytes of a message (64)                               -q  requests under way, with -b (32)\n")
              _T("  -t  how long to measure, in milliseconds (2000)\n")
              _T("The port is %u if none is given; [::1]:port is the form with an IPv6 address.\n"),
              program, program, DefaultPort);
    return 2;
}

int _tmain(int argc, TCHAR* argv[])
{
    try
    {
        WSADATA wsaData;
        REQUIRE(WSAStartup(MAKEWORD(2, 2), &wsaData) == 0);
        Options options;
        if (!ParseOptions(argc, argv, DefaultPort, &options))
        {
            return Usage(argv[0]);
        }
        CHECK(NdStartup());
        if (options.Server)
        {
            RunServer(options);
        }
        else
        {
            RunClient(options);
        }
        CHECK(NdCleanup());
        REQUIRE(WSACleanup() == 0);
        return 0;
    }
    catch (const Failure&)
    {
        return 1;
    }
}
