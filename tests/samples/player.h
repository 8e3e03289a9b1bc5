// One round of the ping-pong, as each end plays it.
//
// Send: the data travel in messages, one way and back. Write: each end writes the data into the peer's memory, and a small message
// says so. Read: the client reads the server's memory.
#pragma once

#include "endpoint.h"

// The private data of the connection request and of its answer.
struct Hello
{
    UINT32 Magic;
    Transfer Operation;
    UINT32 FirstSize;
    UINT32 LastSize;
    UINT32 Token;
    UINT64 Address;
};

// The small message of Write and Read: which round it is about.
struct Note
{
    UINT32 Size;
    UINT32 Round;
};

// Sizes double; the last one is taken as it is. 0 comes after it.
static UINT32 NextSize(UINT32 size, UINT32 last)
{
    return size == last ? 0 : (size > last / 2 ? last : 2 * size);
}

// So many rounds of each size are verified, before those that are timed.
static const UINT32 VerifiedRounds = 4;

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
    LONGLONG RunRound(UINT32 size, UINT32 round)
    {
        const bool verify = round < VerifiedRounds;
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

    // One round of the server; a receive has been posted before, and the next one is when it returns. What comes tells
    // whether this is the next round of this size or the first one of the next. False: the client has disconnected.
    bool AnswerRound(UINT32* size, UINT32* round)
    {
        const ULONG length = m_endpoint.WaitReceive();
        if (length == 0)
        {
            return false;
        }
        const UINT32 received = m_hello.Operation == Transfer::Send ? length : m_noteIn->Size;
        if (received != *size)
        {
            REQUIRE(received == NextSize(*size, m_hello.LastSize));
            *size = received;
            *round = 0;
        }
        CheckMessage(length, *size, *round);
        m_endpoint.WaitInitiated();
        if (*round < VerifiedRounds)
        {
            if (m_hello.Operation != Transfer::Read)
            {
                Verify(*size, *round);
            }
            Fill(*size, *round);
        }
        PostReceive();
        Transmit(*size, *round);
        ++*round;
        return true;
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

    // Checks that a message is what the peer's Transmit sends in this round.
    void CheckMessage(ULONG length, UINT32 size, UINT32 round) const
    {
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

    void Await(UINT32 size, UINT32 round)
    {
        CheckMessage(m_endpoint.WaitReceive(), size, round);
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
