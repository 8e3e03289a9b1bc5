// ndpeer: the NetworkDirect end of conversations with programs that know only rdma_cm and verbs.
//
//   ndpeer rping     rdma-core's rping: the server reads the client's buffer, then writes it back into another
//   ndpeer cmatose   rdma-core's ucmatose: the server sends messages, the client answers with as many
//   ndpeer peer      peer.c beside this file: both sides send, write and read, and say something when they connect
#include "../samples/endpoint.h"
#include "protocol.h"

#include <string.h>

struct Options
{
    const char* Protocol = nullptr;
    bool Server = false;
    bool PeerDisconnects = false;
    SOCKADDR_INET Address;
    ULONG Count = 4;
    ULONG Size = 64;
};

static const ULONG Reads = 1;

static SOCKADDR_INET LocalAddressFor(const SOCKADDR_INET& peer)
{
    SOCKADDR_INET local;
    SIZE_T size = sizeof(local);
    CHECK(NdResolveAddress(AsSockaddr(peer), AddressLength(peer), reinterpret_cast<sockaddr*>(&local), &size));
    return local;
}

// Makes the connection in either role. What the peer said is compared with `expected`, as far as that goes.
static void MakeConnection(Endpoint& endpoint, const Options& options, const char* said, const char* expected)
{
    char heard[64] = {};
    const ULONG saidSize = static_cast<ULONG>(strlen(said));
    const ULONG expectedSize = static_cast<ULONG>(strlen(expected));
    if (options.Server)
    {
        endpoint.WaitForRequest(options.Address);
        endpoint.GetPrivateData(heard, expectedSize);
        endpoint.Accept(Reads, Reads, said, saidSize);
    }
    else
    {
        endpoint.Connect(LocalAddressFor(options.Address), options.Address, Reads, Reads, said, saidSize);
        if (expectedSize != 0)
        {
            endpoint.GetPrivateData(heard, expectedSize);
        }
        endpoint.CompleteConnect();
    }
    REQUIRE(memcmp(heard, expected, expectedSize) == 0);
}

// Ends the connection, from here or after the peer. The receive that is always outstanding comes back either way.
static void EndConnection(Endpoint& endpoint, bool peerFirst)
{
    if (peerFirst)
    {
        endpoint.WaitCanceledReceives(1);
    }
    endpoint.Disconnect();
    endpoint.WaitCanceledReceives(1);
}

// ---------------------------------------------------------------------------------------------------------------------
// rping

static void AnnounceTo(Endpoint& endpoint, Announcement* out, const void* buffer, ULONG size)
{
    out->Address = ToBigEndian64(reinterpret_cast<ULONG_PTR>(buffer));
    out->Token = endpoint.RemoteToken(); // in network order already
    out->Size = htonl(size);
    endpoint.PostSend(out, sizeof(*out));
    endpoint.WaitInitiated();
}

// Waits for a message of rping's one size, and prepares for the next. False when the connection has ended.
static bool Next(Endpoint& endpoint, Announcement* in)
{
    const ULONG length = endpoint.WaitReceive();
    if (length == 0)
    {
        return false;
    }
    REQUIRE(length == sizeof(*in));
    return true;
}

static void RpingServer(const Options& options)
{
    Endpoint endpoint(options.Address, WaitMode::Event);
    char* memory = endpoint.Register(2 * PageSize + options.Size);
    Announcement* in = reinterpret_cast<Announcement*>(memory);
    Announcement* out = reinterpret_cast<Announcement*>(memory + PageSize);
    char* data = memory + 2 * PageSize;
    endpoint.PostReceive(in, sizeof(*in));
    MakeConnection(endpoint, options, "", "");

    ULONG rounds = 0;
    for (; Next(endpoint, in); rounds++)
    {
        const Announcement source = *in;
        REQUIRE(ntohl(source.Size) <= options.Size);
        endpoint.PostReceive(in, sizeof(*in));
        endpoint.PostRead(data, ntohl(source.Size), FromBigEndian64(source.Address), source.Token);
        endpoint.WaitInitiated();
        REQUIRE(strncmp(data, "rdma-ping-", 10) == 0);
        endpoint.PostSend(out, sizeof(*out)); // "go ahead": its contents do not matter

        REQUIRE(Next(endpoint, in));
        const Announcement sink = *in;
        endpoint.PostReceive(in, sizeof(*in));
        endpoint.PostSilentWrite(data, ntohl(sink.Size), FromBigEndian64(sink.Address), sink.Token);
        endpoint.PostSend(out, sizeof(*out)); // arrives after what was written
        endpoint.WaitInitiated();
    }
    REQUIRE(rounds == options.Count);
    EndConnection(endpoint, true);
}

static void RpingClient(const Options& options)
{
    Endpoint endpoint(LocalAddressFor(options.Address), WaitMode::Event);
    char* memory = endpoint.Register(2 * PageSize + 2 * options.Size);
    Announcement* in = reinterpret_cast<Announcement*>(memory);
    Announcement* out = reinterpret_cast<Announcement*>(memory + PageSize);
    char* source = memory + 2 * PageSize;
    char* sink = source + options.Size;
    endpoint.PostReceive(in, sizeof(*in));
    MakeConnection(endpoint, options, "", "");

    for (ULONG round = 0; round < options.Count; round++)
    {
        // Text up to the last byte, which ends it: the server treats what it has read as a string.
        const int prefix = snprintf(source, options.Size, "rdma-ping-%u: ", round);
        memset(source + prefix, 'A' + static_cast<int>(round % 26), options.Size - static_cast<ULONG>(prefix) - 1);
        source[options.Size - 1] = 0;

        AnnounceTo(endpoint, out, source, options.Size);
        REQUIRE(Next(endpoint, in));
        endpoint.PostReceive(in, sizeof(*in));
        AnnounceTo(endpoint, out, sink, options.Size);
        REQUIRE(Next(endpoint, in));
        endpoint.PostReceive(in, sizeof(*in));
        REQUIRE(memcmp(source, sink, options.Size) == 0);
    }
    EndConnection(endpoint, false);
}

// ---------------------------------------------------------------------------------------------------------------------
// ucmatose

static void Cmatose(const Options& options)
{
    REQUIRE(options.Count < Endpoint::QueueDepth);
    Endpoint endpoint(options.Server ? options.Address : LocalAddressFor(options.Address), WaitMode::Event);
    char* memory = endpoint.Register((Endpoint::QueueDepth + 1) * options.Size);
    // One more than there are messages: it comes back when the connection ends.
    for (ULONG i = 0; i <= options.Count; i++)
    {
        endpoint.PostReceive(memory + i * options.Size, options.Size);
    }
    MakeConnection(endpoint, options, "", "");

    auto sendAll = [&] {
        for (ULONG i = 0; i < options.Count; i++)
        {
            endpoint.PostSend(memory + Endpoint::QueueDepth * options.Size, options.Size);
        }
        endpoint.WaitInitiated();
    };
    auto receiveAll = [&] {
        for (ULONG i = 0; i < options.Count; i++)
        {
            REQUIRE(endpoint.WaitReceive() == options.Size);
        }
    };
    if (options.Server)
    {
        // An iWARP client takes no message before it knows that its request was granted.
        Sleep(500);
        sendAll();
        receiveAll();
    }
    else
    {
        receiveAll();
        sendAll();
    }
    EndConnection(endpoint, !options.Server);
}

// ---------------------------------------------------------------------------------------------------------------------
// peer.c

// Writes to the peer's memory, reads it back, and says so.
static void MyTurn(Endpoint& endpoint, char* memory, const Announcement& peer, bool server)
{
    REQUIRE(ntohl(peer.Size) == TransferSize);
    FillPattern(memory + SourceAt, server);
    const UINT64 target = FromBigEndian64(peer.Address);
    endpoint.PostSilentWrite(memory + SourceAt, TransferSize, target, peer.Token);
    endpoint.PostRead(memory + BackAt, TransferSize, target, peer.Token);
    endpoint.WaitInitiated();
    REQUIRE(HasPattern(memory + BackAt, server));
    endpoint.PostSend(memory + OutAt, sizeof(Announcement));
    endpoint.WaitInitiated();
}

static void PeersTurn(Endpoint& endpoint, char* memory, bool server)
{
    Announcement* in = reinterpret_cast<Announcement*>(memory + InAt);
    REQUIRE(Next(endpoint, in));
    endpoint.PostReceive(in, sizeof(*in));
    REQUIRE(HasPattern(memory + TargetAt, !server));
}

static void Converse(const Options& options)
{
    Endpoint endpoint(options.Server ? options.Address : LocalAddressFor(options.Address), WaitMode::Event);
    char* memory = endpoint.Register(MemorySize);
    Announcement* in = reinterpret_cast<Announcement*>(memory + InAt);
    Announcement* out = reinterpret_cast<Announcement*>(memory + OutAt);
    endpoint.PostReceive(in, sizeof(*in));
    MakeConnection(endpoint, options, SaidBy(options.Server), SaidBy(!options.Server));

    // The client speaks first, as iWARP demands.
    Announcement peer;
    if (!options.Server)
    {
        AnnounceTo(endpoint, out, memory + TargetAt, TransferSize);
    }
    REQUIRE(Next(endpoint, in));
    peer = *in;
    endpoint.PostReceive(in, sizeof(*in));
    if (options.Server)
    {
        AnnounceTo(endpoint, out, memory + TargetAt, TransferSize);
        PeersTurn(endpoint, memory, true);
        MyTurn(endpoint, memory, peer, true);
    }
    else
    {
        MyTurn(endpoint, memory, peer, false);
        PeersTurn(endpoint, memory, false);
    }
    EndConnection(endpoint, options.PeerDisconnects);
}

// ---------------------------------------------------------------------------------------------------------------------

static int Usage()
{
    fprintf(stderr, "usage: ndpeer rping|cmatose|peer -s|-c <ip:port> [-C count] [-S size] [-w]\n"
                    "  -s serve one peer at the address   -c connect to it   -w wait for the peer to disconnect\n");
    return 2;
}

static bool Parse(int argc, TCHAR** argv, Options* options)
{
    if (argc < 4)
    {
        return false;
    }
    options->Protocol = argv[1];
    bool address = false;
    for (int i = 2; i < argc; i++)
    {
        const bool more = i + 1 < argc;
        if ((strcmp(argv[i], "-s") == 0 || strcmp(argv[i], "-c") == 0) && more)
        {
            options->Server = argv[i][1] == 's';
            address = ParseAddress(argv[++i], 0, &options->Address);
        }
        else if (strcmp(argv[i], "-C") == 0 && more)
        {
            options->Count = static_cast<ULONG>(strtoul(argv[++i], nullptr, 10));
        }
        else if (strcmp(argv[i], "-S") == 0 && more)
        {
            options->Size = static_cast<ULONG>(strtoul(argv[++i], nullptr, 10));
        }
        else if (strcmp(argv[i], "-w") == 0)
        {
            options->PeerDisconnects = true;
        }
        else
        {
            return false;
        }
    }
    return address;
}

int main(int argc, char** argv)
{
    Options options;
    if (!Parse(argc, argv, &options))
    {
        return Usage();
    }
    WSADATA data;
    REQUIRE(WSAStartup(MAKEWORD(2, 2), &data) == 0);
    CHECK(NdStartup());
    if (strcmp(options.Protocol, "rping") == 0)
    {
        options.Server ? RpingServer(options) : RpingClient(options);
    }
    else if (strcmp(options.Protocol, "cmatose") == 0)
    {
        Cmatose(options);
    }
    else if (strcmp(options.Protocol, "peer") == 0)
    {
        Converse(options);
    }
    else
    {
        return Usage();
    }
    CHECK(NdCleanup());
    WSACleanup();
    printf("done\n");
    return 0;
}
