// ndpp: a ping-pong between two processes over NetworkDirect, by Send, by RDMA Write or by RDMA Read.
//
// The client says in the private data of its connection request what is to be done, so the server needs no options but its
// own way to wait. Every size begins with a few rounds whose contents are verified at both ends; the timed rounds follow.
// The client always sends first, as iWARP demands of the side that connects.
#include "endpoint.h"

#include <vector>

enum class Transfer : UINT32
{
    Send,  // the data travel in messages, one way and back
    Write, // the data are written into the peer's memory, and a small message says so; one way and back
    Read,  // the client reads the server's memory; the server only looks on
};

struct Options
{
    bool Server = false;
    bool Verbose = false;
    SOCKADDR_INET Address;
    Transfer Operation = Transfer::Send;
    WaitMode Mode = WaitMode::Poll;
    UINT32 FirstSize = 1;
    UINT32 LastSize = 1 << 20;
    UINT32 Iterations = 0;
};

// The private data of the connection request and of its answer.
struct Hello
{
    UINT32 Magic;
    Transfer Operation;
    UINT32 FirstSize;
    UINT32 LastSize;
    UINT32 Iterations;
    UINT32 Token;
    UINT64 Address;
};

// The small message of Write and Read: which round it is about.
struct Note
{
    UINT32 Size;
    UINT32 Round;
};

static const USHORT DefaultPort = 54329;
static const UINT32 HelloMagic = 0x3170646e;
static const UINT32 VerifiedRounds = 4;
static const ULONG ReadLimit = 4;

// Sizes double; the last one is taken as it is.
static UINT32 NextSize(UINT32 size, UINT32 last)
{
    return size == last ? 0 : (size > last / 2 ? last : 2 * size);
}

// How many rounds make about 0.4 s for a round trip of 80 us and 60 bytes per us, which is what an emulated machine does.
// Anything faster is done sooner.
static UINT32 TimedRounds(const Hello& hello, UINT32 size)
{
    return hello.Iterations != 0 ? hello.Iterations : 400000 / (80 + 2 * size / 60);
}

// What one end holds and does in a round. Both ends lay their memory out in the same way.
class Player
{
public:
    Player(Endpoint& endpoint, const Hello& hello, bool server) : m_endpoint(endpoint), m_hello(hello), m_server(server)
    {
        m_stride = (hello.LastSize + 63u) & ~63u;
        m_outgoing = m_endpoint.Register(2 * m_stride + 2 * NoteStride);
        m_incoming = m_outgoing + m_stride;
        m_noteOut = reinterpret_cast<Note*>(m_incoming + m_stride);
        m_noteIn = reinterpret_cast<Note*>(m_incoming + m_stride + NoteStride);
    }

    // What the peer has to know to reach this end's memory: the outgoing data are read, the incoming ones written.
    Hello Introduction() const
    {
        Hello hello = m_hello;
        hello.Token = m_endpoint.RemoteToken();
        hello.Address = reinterpret_cast<ULONG_PTR>(m_hello.Operation == Transfer::Read ? m_outgoing : m_incoming);
        return hello;
    }

    void Meet(const Hello& peer)
    {
        m_peer = peer;
    }

    void PostReceive()
    {
        if (m_hello.Operation == Transfer::Send)
        {
            m_endpoint.PostReceive(m_incoming, m_hello.LastSize);
        }
        else
        {
            m_endpoint.PostReceive(m_noteIn, sizeof(*m_noteIn));
        }
    }

    // One round of the client. Returns what of it is to be timed, in ticks of the performance counter.
    LONGLONG RunRound(UINT32 size, UINT32 round, bool verify)
    {
        if (m_hello.Operation == Transfer::Read)
        {
            return FetchOnce(size, round, verify);
        }
        if (verify)
        {
            Fill(size, round);
        }
        PostReceive();
        const LONGLONG begin = Now();
        Transmit(size, round);
        Await(size, round);
        const LONGLONG ticks = Now() - begin;
        m_endpoint.WaitInitiated();
        if (verify)
        {
            Verify(size, round);
        }
        return ticks;
    }

    // One round of the server; a receive has been posted before. Leaves the next one posted.
    void AnswerRound(UINT32 size, UINT32 round, bool verify)
    {
        Await(size, round);
        m_endpoint.WaitInitiated();
        if (verify)
        {
            if (m_hello.Operation != Transfer::Read)
            {
                Verify(size, round);
            }
            Fill(size, round);
        }
        PostReceive();
        Transmit(size, round);
    }

private:
    static const UINT32 NoteStride = 64;

    static LONGLONG Now()
    {
        LARGE_INTEGER counter;
        QueryPerformanceCounter(&counter);
        return counter.QuadPart;
    }

    // Sends the data, or puts them into the peer's memory and sends the note about them.
    void Transmit(UINT32 size, UINT32 round)
    {
        if (m_hello.Operation == Transfer::Send)
        {
            m_endpoint.PostSend(m_outgoing, size);
            return;
        }
        if (m_hello.Operation == Transfer::Write)
        {
            m_endpoint.PostSilentWrite(m_outgoing, size, m_peer.Address, m_peer.Token);
        }
        m_noteOut->Size = size;
        m_noteOut->Round = round;
        m_endpoint.PostSend(m_noteOut, sizeof(*m_noteOut));
    }

    // Waits for what the peer's Transmit sends.
    void Await(UINT32 size, UINT32 round)
    {
        const ULONG length = m_endpoint.WaitReceive();
        if (m_hello.Operation == Transfer::Send)
        {
            REQUIRE(length == size);
        }
        else
        {
            REQUIRE(length == sizeof(Note));
            REQUIRE(m_noteIn->Size == size && m_noteIn->Round == round);
        }
    }

    // The Read of the client. Before one that is verified the server is told to lay out this round's data.
    LONGLONG FetchOnce(UINT32 size, UINT32 round, bool verify)
    {
        if (verify)
        {
            PostReceive();
            Transmit(size, round);
            Await(size, round);
            m_endpoint.WaitInitiated();
        }
        const LONGLONG begin = Now();
        m_endpoint.PostRead(m_incoming, size, m_peer.Address, m_peer.Token);
        m_endpoint.WaitInitiated();
        const LONGLONG ticks = Now() - begin;
        if (verify)
        {
            Verify(size, round);
        }
        return ticks;
    }

    // Each round, size and direction has bytes of its own, so that nothing stale can pass for new.
    static char Pattern(UINT32 size, UINT32 round, bool fromServer, UINT32 position)
    {
        return static_cast<char>(size * 5 + round * 29 + (fromServer ? 101 : 0) + position + (position >> 8) * 3);
    }

    void Fill(UINT32 size, UINT32 round)
    {
        for (UINT32 i = 0; i < size; i++)
        {
            m_outgoing[i] = Pattern(size, round, m_server, i);
        }
    }

    void Verify(UINT32 size, UINT32 round) const
    {
        for (UINT32 i = 0; i < size; i++)
        {
            const char expected = Pattern(size, round, !m_server, i);
            if (m_incoming[i] != expected)
            {
                _ftprintf(stderr, _T("%s(%d): byte %u of %u in round %u is 0x%02x, expected 0x%02x\n"), _T(__FILE__),
                          __LINE__, i, size, round, m_incoming[i] & 0xff, expected & 0xff);
                exit(1);
            }
        }
    }

    Endpoint& m_endpoint;
    Hello m_hello;
    Hello m_peer;
    bool m_server;
    SIZE_T m_stride;
    char* m_outgoing;
    char* m_incoming;
    Note* m_noteOut;
    Note* m_noteIn;
};

static void PrintConnection(const Endpoint& endpoint, ULONG privateData)
{
    SOCKADDR_INET local;
    SOCKADDR_INET peer;
    ULONG localSize = sizeof(local);
    ULONG peerSize = sizeof(peer);
    ULONG inbound = 0;
    ULONG outbound = 0;
    IND2Connector* connector = endpoint.Connector();
    CHECK(connector->GetLocalAddress(reinterpret_cast<sockaddr*>(&local), &localSize));
    CHECK(connector->GetPeerAddress(reinterpret_cast<sockaddr*>(&peer), &peerSize));
    CHECK(connector->GetReadLimits(&inbound, &outbound));
    _tprintf(_T("connection    %s -> %s\n"), AddressText(local).c_str(), AddressText(peer).c_str());
    _tprintf(_T("  reads       inbound %lu, outbound %lu\n"), inbound, outbound);
    _tprintf(_T("  private     %lu bytes received, %lu of them ours\n"), privateData, (ULONG)sizeof(Hello));
}

static void RunServer(const Options& options)
{
    Endpoint endpoint(options.Address, options.Mode);
    if (options.Verbose)
    {
        PrintAdapter(endpoint.Info(), AddressText(options.Address));
    }
    endpoint.WaitForRequest(options.Address);

    Hello client;
    const ULONG received = endpoint.GetPrivateData(&client, sizeof(client));
    REQUIRE(client.Magic == HelloMagic);
    REQUIRE(client.FirstSize != 0 && client.FirstSize <= client.LastSize);
    REQUIRE(client.LastSize <= endpoint.Info().MaxTransferLength);

    Player player(endpoint, client, true);
    player.Meet(client);
    player.PostReceive();
    const Hello answer = player.Introduction();
    endpoint.Accept(ReadLimit, ReadLimit, &answer, sizeof(answer));
    if (options.Verbose)
    {
        PrintConnection(endpoint, received);
    }

    for (UINT32 size = client.FirstSize; size != 0; size = NextSize(size, client.LastSize))
    {
        const UINT32 timed = client.Operation == Transfer::Read ? 0 : TimedRounds(client, size);
        for (UINT32 round = 0; round < VerifiedRounds + timed; round++)
        {
            player.AnswerRound(size, round, round < VerifiedRounds);
        }
    }
    endpoint.WaitInitiated();

    endpoint.WaitForPeerToDisconnect();
    endpoint.Disconnect();
    endpoint.WaitCanceledReceives(1);
    _tprintf(_T("done\n"));
}

static void PrintRow(UINT32 size, std::vector<LONGLONG>& ticks, bool roundTrips)
{
    LARGE_INTEGER frequency;
    QueryPerformanceFrequency(&frequency);
    const double scale = 1e6 / static_cast<double>(frequency.QuadPart) / (roundTrips ? 2 : 1);

    std::sort(ticks.begin(), ticks.end());
    double sum = 0;
    for (LONGLONG value : ticks)
    {
        sum += static_cast<double>(value);
    }
    const double average = scale * sum / static_cast<double>(ticks.size());
    _tprintf(_T("%10u %10u %12.2f %12.2f %12.2f %12.2f\n"), size, static_cast<UINT32>(ticks.size()),
             scale * static_cast<double>(ticks.front()), scale * static_cast<double>(ticks[ticks.size() / 2]), average,
             average == 0 ? 0 : size / average);
    fflush(stdout);
}

static void RunClient(const Options& options)
{
    SOCKADDR_INET local;
    SIZE_T localSize = sizeof(local);
    CHECK(NdResolveAddress(AsSockaddr(options.Address), AddressLength(options.Address),
                           reinterpret_cast<sockaddr*>(&local), &localSize));

    Endpoint endpoint(local, options.Mode);
    const ND2_ADAPTER_INFO& info = endpoint.Info();
    PrintAdapter(info, AddressText(local));
    REQUIRE(info.MaxCallerData >= sizeof(Hello) && info.MaxCalleeData >= sizeof(Hello));

    Hello plan;
    ZeroMemory(&plan, sizeof(plan));
    plan.Magic = HelloMagic;
    plan.Operation = options.Operation;
    plan.LastSize = std::min<UINT32>(options.LastSize, info.MaxTransferLength);
    plan.FirstSize = std::min(options.FirstSize, plan.LastSize);
    plan.Iterations = options.Iterations;

    Player player(endpoint, plan, false);
    const Hello introduction = player.Introduction();
    endpoint.Connect(local, options.Address, ReadLimit, ReadLimit, &introduction, sizeof(introduction));
    Hello server;
    const ULONG received = endpoint.GetPrivateData(&server, sizeof(server));
    REQUIRE(server.Magic == HelloMagic);
    player.Meet(server);
    endpoint.CompleteConnect();
    PrintConnection(endpoint, received);

    static const TCHAR* const operations[] = {_T("send"), _T("write"), _T("read")};
    static const TCHAR* const modes[] = {_T("polling"), _T("waiting for an event"), _T("waiting at a completion port")};
    const bool roundTrips = options.Operation != Transfer::Read;
    _tprintf(_T("%s, %s; latency is %s\n"), operations[static_cast<int>(options.Operation)],
             modes[static_cast<int>(options.Mode)], roundTrips ? _T("half a round trip") : _T("that of one read"));
    _tprintf(_T("%10s %10s %12s %12s %12s %12s\n"), _T("bytes"), _T("iterations"), _T("min us"), _T("median us"),
             _T("average us"), _T("MB/s"));

    for (UINT32 size = plan.FirstSize; size != 0; size = NextSize(size, plan.LastSize))
    {
        const UINT32 timed = TimedRounds(plan, size);
        std::vector<LONGLONG> ticks;
        ticks.reserve(timed);
        for (UINT32 round = 0; round < VerifiedRounds + timed; round++)
        {
            const LONGLONG elapsed = player.RunRound(size, round, round < VerifiedRounds);
            if (round >= VerifiedRounds)
            {
                ticks.push_back(elapsed);
            }
        }
        PrintRow(size, ticks, roundTrips);
    }

    endpoint.Disconnect();
}

// ---------------------------------------------------------------------------------------------------------------------
// The command line

static int Usage(const TCHAR* program)
{
    _ftprintf(stderr,
              _T("usage: %s -s <ip[:port]> [-w poll|event|iocp] [-v]\n")
              _T("       %s -c <ip[:port]> [-o send|write|read] [-w poll|event|iocp] [-f first] [-l last] [-n count]\n")
              _T("  -s  serve one client at this address      -c  connect to the server at this address\n")
              _T("  -o  what moves the data (send)            -w  how to wait (poll)\n")
              _T("  -f  first size in bytes (1)               -l  last size in bytes (1048576)\n")
              _T("  -n  timed rounds of each size (as many as take about half a second)\n")
              _T("  -v  the server describes its adapter and the connection too\n")
              _T("The port is %u if none is given; [::1]:port is the form with an IPv6 address.\n"),
              program, program, DefaultPort);
    return 2;
}

template <typename Choice>
static bool Choose(const TCHAR* text, const TCHAR* const (&names)[3], Choice* choice)
{
    for (int i = 0; i < 3; i++)
    {
        if (_tcscmp(text, names[i]) == 0)
        {
            *choice = static_cast<Choice>(i);
            return true;
        }
    }
    return false;
}

static bool ParseNumber(const TCHAR* text, UINT32* number)
{
    TCHAR* end = nullptr;
    const unsigned long value = _tcstoul(text, &end, 10);
    *number = static_cast<UINT32>(value);
    return value != 0 && value <= 1u << 30 && *end == 0;
}

static bool ParseOptions(int argc, TCHAR* argv[], Options* options)
{
    static const TCHAR* const operations[3] = {_T("send"), _T("write"), _T("read")};
    static const TCHAR* const modes[3] = {_T("poll"), _T("event"), _T("iocp")};

    bool addressed = false;
    for (int i = 1; i < argc; i++)
    {
        if (_tcscmp(argv[i], _T("-v")) == 0)
        {
            options->Verbose = true;
            continue;
        }
        if (argv[i][0] != _T('-') || argv[i][1] == 0 || argv[i][2] != 0 || i + 1 == argc)
        {
            return false;
        }
        TCHAR* value = argv[i + 1];
        bool ok = false;
        switch (argv[i][1])
        {
        case _T('s'):
        case _T('c'):
            options->Server = argv[i][1] == _T('s');
            ok = !addressed && ParseAddress(value, DefaultPort, &options->Address);
            addressed = true;
            break;
        case _T('o'):
            ok = Choose(value, operations, &options->Operation);
            break;
        case _T('w'):
            ok = Choose(value, modes, &options->Mode);
            break;
        case _T('f'):
            ok = ParseNumber(value, &options->FirstSize);
            break;
        case _T('l'):
            ok = ParseNumber(value, &options->LastSize);
            break;
        case _T('n'):
            ok = ParseNumber(value, &options->Iterations);
            break;
        }
        if (!ok)
        {
            _ftprintf(stderr, _T("%s %s: not understood\n"), argv[i], value);
            return false;
        }
        i++;
    }
    return addressed && options->FirstSize <= options->LastSize;
}

int _tmain(int argc, TCHAR* argv[])
{
    WSADATA wsaData;
    REQUIRE(WSAStartup(MAKEWORD(2, 2), &wsaData) == 0);

    Options options;
    if (!ParseOptions(argc, argv, &options))
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
