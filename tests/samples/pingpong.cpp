// ndpp: a ping-pong between two processes over NetworkDirect, by Send, by RDMA Write or by RDMA Read.
//
// The client says in the private data of its connection request what is to be done, so the server needs no options but its
// own way to wait. Every size begins with a few rounds whose contents are verified at both ends; the timed rounds follow.
// The client always sends first, as iWARP demands of the side that connects.
#include "options.h"
#include "player.h"

#include <vector>

struct Options : EndOptions
{
    bool Verbose = false;
    UINT32 FirstSize = 1;
    UINT32 LastSize = 1 << 20;
    UINT32 Iterations = 0;

    bool Flag(TCHAR letter)
    {
        return letter == _T('v') && (Verbose = true);
    }

    bool Parse(TCHAR letter, const TCHAR* value)
    {
        switch (letter)
        {
        case _T('f'):
            return ParseNumber(value, &FirstSize);
        case _T('l'):
            return ParseNumber(value, &LastSize);
        case _T('n'):
            return ParseNumber(value, &Iterations);
        }
        return false;
    }
};

static const USHORT DefaultPort = 54329;
static const UINT32 HelloMagic = 0x3170646e;
static const ULONG ReadLimit = 4;

// What the peer proposes. It is known once its request, or its answer, has come, and until the connection is made.
struct Terms
{
    Hello Peer;
    ULONG PrivateDataLength;
    ULONG InboundReads;
    ULONG OutboundReads;
};

static Terms GetTerms(Endpoint& endpoint)
{
    Terms terms;
    terms.PrivateDataLength = endpoint.GetPrivateData(&terms.Peer, sizeof(terms.Peer));
    CHECK(endpoint.Connector()->GetReadLimits(&terms.InboundReads, &terms.OutboundReads));
    REQUIRE(terms.Peer.Magic == HelloMagic);
    return terms;
}

static void PrintConnection(const Endpoint& endpoint, const Terms& terms)
{
    SOCKADDR_INET local;
    SOCKADDR_INET peer;
    ULONG localSize = sizeof(local);
    ULONG peerSize = sizeof(peer);
    CHECK(endpoint.Connector()->GetLocalAddress(reinterpret_cast<sockaddr*>(&local), &localSize));
    CHECK(endpoint.Connector()->GetPeerAddress(reinterpret_cast<sockaddr*>(&peer), &peerSize));
    _tprintf(_T("connection    %s -> %s\n"), AddressText(local).c_str(), AddressText(peer).c_str());
    _tprintf(_T("  reads       inbound %lu, outbound %lu\n"), terms.InboundReads, terms.OutboundReads);
    _tprintf(_T("  private     %lu bytes received, %lu of them ours\n"), terms.PrivateDataLength, (ULONG)sizeof(Hello));
}

static void RunServer(const Options& options)
{
    Endpoint endpoint(options.Address, options.Mode);
    if (options.Verbose)
    {
        PrintAdapter(endpoint.Info(), AddressText(options.Address));
    }
    endpoint.WaitForRequest(options.Address);

    const Terms terms = GetTerms(endpoint);
    const Hello& client = terms.Peer;
    REQUIRE(client.FirstSize != 0 && client.FirstSize <= client.LastSize);
    REQUIRE(client.LastSize <= endpoint.Info().MaxTransferLength);

    Player player(endpoint, client, true);
    player.Meet(client);
    player.PostReceive();
    const Hello answer = player.Introduction();
    endpoint.Accept(ReadLimit, ReadLimit, &answer, sizeof(answer));
    if (options.Verbose)
    {
        PrintConnection(endpoint, terms);
    }

    UINT32 size = client.FirstSize;
    UINT32 round = 0;
    while (player.AnswerRound(&size, &round))
    {
    }
    REQUIRE(size == client.LastSize);
    endpoint.WaitInitiated();

    endpoint.WaitForPeerToDisconnect();
    endpoint.Disconnect();
    endpoint.WaitCanceledReceives(1);
    _tprintf(_T("done\n"));
}

// All rounds of one size. Without a count, as many are timed as go into a third of a second, and no more than 5000.
static std::vector<LONGLONG> RunSize(Player& player, UINT32 size, UINT32 count)
{
    LARGE_INTEGER frequency;
    QueryPerformanceFrequency(&frequency);
    const LONGLONG budget = frequency.QuadPart / 3;

    UINT32 round = 0;
    while (round < VerifiedRounds)
    {
        player.RunRound(size, round++);
    }

    std::vector<LONGLONG> ticks;
    ticks.reserve(count != 0 ? count : 5000);
    LONGLONG spent = 0;
    while (count != 0 ? ticks.size() < count : ticks.size() < 5000 && spent < budget)
    {
        ticks.push_back(player.RunRound(size, round++));
        spent += ticks.back();
    }
    return ticks;
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

    Player player(endpoint, plan, false);
    const Hello introduction = player.Introduction();
    endpoint.Connect(local, options.Address, ReadLimit, ReadLimit, &introduction, sizeof(introduction));
    const Terms terms = GetTerms(endpoint);
    player.Meet(terms.Peer);
    endpoint.CompleteConnect();
    PrintConnection(endpoint, terms);

    static const TCHAR* const operations[] = {_T("send"), _T("write"), _T("read")};
    static const TCHAR* const modes[] = {_T("polling"), _T("waiting for an event"), _T("waiting at a completion port")};
    const bool roundTrips = options.Operation != Transfer::Read;
    _tprintf(_T("%s, %s; latency is %s\n"), operations[static_cast<int>(options.Operation)],
             modes[static_cast<int>(options.Mode)], roundTrips ? _T("half a round trip") : _T("that of one read"));
    _tprintf(_T("%10s %10s %12s %12s %12s %12s\n"), _T("bytes"), _T("iterations"), _T("min us"), _T("median us"),
             _T("average us"), _T("MB/s"));

    for (UINT32 size = plan.FirstSize; size != 0; size = NextSize(size, plan.LastSize))
    {
        std::vector<LONGLONG> ticks = RunSize(player, size, options.Iterations);
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
              _T("  -n  timed rounds of each size (as many as go into a third of a second)\n")
              _T("  -v  the server describes its adapter and the connection too\n")
              _T("The port is %u if none is given; [::1]:port is the form with an IPv6 address.\n"),
              program, program, DefaultPort);
    return 2;
}

int _tmain(int argc, TCHAR* argv[])
{
    WSADATA wsaData;
    REQUIRE(WSAStartup(MAKEWORD(2, 2), &wsaData) == 0);

    Options options;
    if (!ParseOptions(argc, argv, DefaultPort, &options) || options.FirstSize > options.LastSize)
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
