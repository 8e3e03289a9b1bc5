// The protocol of `nd perf` and `nd serve`: docs/nd.md describes it.
//
// The private data of the connection request and of its answer are 16 bytes, with numbers in network order.
#pragma once

#include "endpoint.h"

#include <vector>

static const UINT32 Receives = 64; // of a server that takes messages, at most
static const ULONG CreditSize = 4;
static const UINT64 MostMemory = 1 << 30;

enum class Purpose : BYTE
{
    Echo = 1,
    Sink = 2,
    Memory = 3,
};

static const ULONG HelloSize = 16;
static const BYTE Magic[4] = {'N', 'D', 'P', '1'};

struct Request
{
    Purpose What;
    bool Polls;
    UINT32 Size;
    UINT32 Depth;
};

static void PutNumber(BYTE* at, UINT32 number)
{
    number = htonl(number);
    CopyMemory(at, &number, sizeof(number));
}

static UINT32 GetNumber(const void* at)
{
    UINT32 number;
    CopyMemory(&number, at, sizeof(number));
    return ntohl(number);
}

// The first bytes of what the peer has sent along; transports may pad it. False: it has sent less, or something else.
static bool GetHello(Endpoint& endpoint, BYTE (&hello)[HelloSize])
{
    ULONG length = 0;
    EXPECT(ND_BUFFER_OVERFLOW, endpoint.Connector()->GetPrivateData(nullptr, &length));
    std::vector<BYTE> data(length);
    CHECK(endpoint.Connector()->GetPrivateData(data.data(), &length));
    if (length < HelloSize || memcmp(data.data(), Magic, sizeof(Magic)) != 0)
    {
        return false;
    }
    CopyMemory(hello, data.data(), HelloSize);
    return true;
}

// The receives of a server that takes messages of a size: as many as fit into its memory. A credit is for half of them.
static UINT32 ReceivesFor(UINT32 size)
{
    return static_cast<UINT32>(std::max<UINT64>(2, std::min<UINT64>(Receives, MostMemory / size))) & ~1u;
}

// What a server needs for this besides small change.
static UINT64 MemoryFor(const Request& request)
{
    const UINT64 size = request.Size;
    return request.What == Purpose::Echo ? 3 * size
        : request.What == Purpose::Sink  ? ReceivesFor(request.Size) * size
                                         : request.Depth * size;
}

static bool GetRequest(Endpoint& endpoint, Request* request)
{
    BYTE hello[HelloSize];
    if (!GetHello(endpoint, hello))
    {
        return false;
    }
    request->What = static_cast<Purpose>(hello[4]);
    request->Polls = hello[5] != 0;
    request->Size = GetNumber(hello + 8);
    request->Depth = GetNumber(hello + 12);
    return hello[4] >= 1 && hello[4] <= 3 && request->Size != 0 && request->Depth != 0 &&
           MemoryFor(*request) <= MostMemory;
}
