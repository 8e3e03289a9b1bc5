// One end of a NetworkDirect connection: the objects it takes, and three ways to wait for their work.
#pragma once

#include "ndsample.h"

#include <algorithm>

enum class WaitMode
{
    Poll,  // ask again and again: GetResults, GetOverlappedResult(FALSE)
    Event, // Notify, then sleep in GetOverlappedResult(TRUE) on an event
    Iocp,  // Notify, then sleep in GetQueuedCompletionStatus on an I/O completion port
};

// What moves the data. The numbers go over the wire.
enum class Transfer : UINT32
{
    Send,
    Write,
    Read,
};

// An overlapped request. Its packet, where a completion port is used, is found again by the OVERLAPPED.
struct Operation
{
    OVERLAPPED Overlapped;
    HANDLE Event;
    bool Dequeued;
};

// The context that the queue pair's completions bring back; any address will do.
static const ULONG_PTR QueuePairContext = 0x4e445050;

class Endpoint
{
public:
    // How often a polling end finds nothing before it offers its processor to somebody else.
    static const ULONG PollsPerYield = 256;

    // So many requests of each kind may be outstanding, unless the constructor is told otherwise.
    static const ULONG QueueDepth = 8;

    Endpoint(const SOCKADDR_INET& local, WaitMode mode, ULONG depth = QueueDepth) : m_mode(mode)
    {
        CHECK(NdOpenAdapter(IID_IND2Adapter, AsSockaddr(local), AddressLength(local),
                            reinterpret_cast<void**>(&m_adapter)));
        CHECK(m_adapter->CreateOverlappedFile(&m_file));
        if (m_mode == WaitMode::Iocp)
        {
            m_port = CreateIoCompletionPort(m_file, nullptr, reinterpret_cast<ULONG_PTR>(this), 0);
            CHECK_WIN32(m_port != nullptr);
        }
        CreateObjects(depth);
    }

    // On an adapter and a file that others use, too. It does not wait at a port: the file could have only one.
    Endpoint(IND2Adapter* adapter, HANDLE file, WaitMode mode, ULONG depth)
        : m_mode(mode), m_file(file), m_shares(true), m_adapter(adapter)
    {
        REQUIRE(m_mode != WaitMode::Iocp);
        m_adapter->AddRef();
        CreateObjects(depth);
    }

    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    // Children first, then what they were made from: every interface was held once, so every Release gives 0.
    ~Endpoint()
    {
        REQUIRE(ReleaseLast(m_connector) == 0);
        REQUIRE(ReleaseLast(m_pair) == 0);
        REQUIRE(ReleaseLast(m_queue) == 0);
        if (m_region != nullptr)
        {
            CHECK(Finish(m_region, m_region->Deregister(Begin(m_request)), m_request));
            REQUIRE(ReleaseLast(m_region) == 0);
        }
        if (m_shares)
        {
            m_adapter->Release();
        }
        else
        {
            CHECK_WIN32(CloseHandle(m_file));
            REQUIRE(ReleaseLast(m_adapter) == 0);
        }
        DestroyOperation(m_request);
        DestroyOperation(m_notify);
        if (m_port != nullptr)
        {
            CHECK_WIN32(CloseHandle(m_port));
        }
        if (m_memory != nullptr)
        {
            CHECK_WIN32(HeapFree(GetProcessHeap(), 0, m_memory));
        }
    }

    const ND2_ADAPTER_INFO& Info() const
    {
        return m_info;
    }

    IND2Connector* Connector() const
    {
        return m_connector;
    }

    // From now on this end polls, if it has not before.
    void Poll()
    {
        REQUIRE(m_mode != WaitMode::Iocp);
        m_mode = WaitMode::Poll;
    }

    // -----------------------------------------------------------------------------------------------------------------
    // Memory: one zeroed block of the process heap, registered for everything that the samples do with it.

    char* Register(SIZE_T size)
    {
        m_memory = static_cast<char*>(HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, size));
        REQUIRE(m_memory != nullptr);
        const ULONG flags = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ |
                            ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_RDMA_READ_SINK;
        CHECK(m_adapter->CreateMemoryRegion(IID_IND2MemoryRegion, m_file, reinterpret_cast<void**>(&m_region)));
        CHECK(Finish(m_region, m_region->Register(m_memory, size, flags, Begin(m_request)), m_request));
        return m_memory;
    }

    UINT32 RemoteToken() const
    {
        return m_region->GetRemoteToken();
    }

    // -----------------------------------------------------------------------------------------------------------------
    // Connecting

    // Waits for one connection request at the address; it stays unanswered until Accept.
    void WaitForRequest(const SOCKADDR_INET& address)
    {
        IND2Listener* listener = nullptr;
        CHECK(m_adapter->CreateListener(IID_IND2Listener, m_file, reinterpret_cast<void**>(&listener)));
        CHECK(listener->Bind(AsSockaddr(address), AddressLength(address)));
        CHECK(listener->Listen(1));

        SOCKADDR_INET bound;
        ULONG size = sizeof(bound);
        CHECK(listener->GetLocalAddress(reinterpret_cast<sockaddr*>(&bound), &size));
        _tprintf(_T("listening on %s\n"), AddressText(bound).c_str());
        fflush(stdout); // whoever started this program may be waiting for the line

        CHECK(Finish(listener, listener->GetConnectionRequest(m_connector, Begin(m_request)), m_request));
        REQUIRE(ReleaseLast(listener) == 0);
    }

    void Accept(ULONG inboundReads, ULONG outboundReads, const void* data, ULONG size)
    {
        CHECK(Finish(m_connector,
                     m_connector->Accept(m_pair, inboundReads, outboundReads, data, size, Begin(m_request)),
                     m_request));
    }

    // The first half: afterwards the peer's answer is known, and CompleteConnect makes the connection usable.
    void Connect(const SOCKADDR_INET& local, const SOCKADDR_INET& peer, ULONG inboundReads, ULONG outboundReads,
                 const void* data, ULONG size)
    {
        CHECK(m_connector->Bind(AsSockaddr(local), AddressLength(local)));
        CHECK(Finish(m_connector,
                     m_connector->Connect(m_pair, AsSockaddr(peer), AddressLength(peer), inboundReads, outboundReads,
                                          data, size, Begin(m_request)),
                     m_request));
    }

    void CompleteConnect()
    {
        CHECK(Finish(m_connector, m_connector->CompleteConnect(Begin(m_request)), m_request));
    }

    // The peer's private data; a transport may pad it. Returns the length that the transport gives.
    ULONG GetPrivateData(void* data, ULONG size)
    {
        ULONG length = 0;
        EXPECT(ND_BUFFER_OVERFLOW, m_connector->GetPrivateData(nullptr, &length));
        REQUIRE(length >= size);

        char* buffer = static_cast<char*>(HeapAlloc(GetProcessHeap(), 0, length));
        REQUIRE(buffer != nullptr);
        CHECK(m_connector->GetPrivateData(buffer, &length));
        CopyMemory(data, buffer, size);
        CHECK_WIN32(HeapFree(GetProcessHeap(), 0, buffer));
        return length;
    }

    // -----------------------------------------------------------------------------------------------------------------
    // Disconnecting. It takes both sides: a Disconnect is complete when the peer has answered with its own.

    // To be called when the receives have come back as canceled, or when none is posted. While a NotifyDisconnect is pending,
    // the peer's disconnect leaves receives alone, so that only the end of the request would tell of it.
    void WaitForPeerToDisconnect()
    {
        CHECK(Finish(m_connector, m_connector->NotifyDisconnect(Begin(m_request)), m_request));
    }

    void Disconnect()
    {
        CHECK(Finish(m_connector, m_connector->Disconnect(Begin(m_request)), m_request));
    }

    // Ends the connection, in whatever state it is.
    void End()
    {
        Finish(m_connector, m_connector->Disconnect(Begin(m_request)), m_request);
    }

    // Receives that no message reached come back as canceled once the connection is gone.
    void WaitCanceledReceives(ULONG count)
    {
        while (m_canceledReceives < count)
        {
            Progress();
        }
    }

    // -----------------------------------------------------------------------------------------------------------------
    // Moving data

    void PostReceive(void* buffer, ULONG size)
    {
        const ND2_SGE sge = Sge(buffer, size);
        CHECK(m_pair->Receive(buffer, &sge, 1));
    }

    void PostSend(void* buffer, ULONG size)
    {
        const ND2_SGE sge = Sge(buffer, size);
        m_initiated++;
        CHECK(m_pair->Send(buffer, &sge, 1, InlineFlag(size)));
    }

    // A write without a completion of its own: the Send that follows it completes after it.
    void PostSilentWrite(void* buffer, ULONG size, UINT64 remoteAddress, UINT32 remoteToken)
    {
        const ND2_SGE sge = Sge(buffer, size);
        CHECK(m_pair->Write(buffer, &sge, 1, remoteAddress, remoteToken,
                            ND_OP_FLAG_SILENT_SUCCESS | InlineFlag(size)));
    }

    void PostWrite(void* buffer, ULONG size, UINT64 remoteAddress, UINT32 remoteToken)
    {
        const ND2_SGE sge = Sge(buffer, size);
        m_initiated++;
        CHECK(m_pair->Write(buffer, &sge, 1, remoteAddress, remoteToken, InlineFlag(size)));
    }

    void PostRead(void* buffer, ULONG size, UINT64 remoteAddress, UINT32 remoteToken)
    {
        const ND2_SGE sge = Sge(buffer, size);
        m_initiated++;
        CHECK(m_pair->Read(buffer, &sge, 1, remoteAddress, remoteToken, 0));
    }

    // Waits for one message; it has landed in the buffer that PostReceive was given. Returns its length (the last
    // one's, if several had come), or 0 (no message is empty) when the connection has ended.
    ULONG WaitReceive()
    {
        while (m_received == 0)
        {
            if (m_canceledReceives != 0)
            {
                return 0;
            }
            Progress();
        }
        m_received--;
        return m_receivedLength;
    }

    // Whether WaitReceive would return at once, as far as is known: nothing is asked for.
    bool HasReceived() const
    {
        return m_received != 0;
    }

    // Waits until no more than so many requests are under way from here. With none, the buffers may be changed.
    void WaitInitiated(ULONG most = 0)
    {
        while (m_initiated > most)
        {
            Progress();
        }
    }

private:
    void CreateObjects(ULONG depth)
    {
        m_info = QueryAdapter(m_adapter);
        CreateOperation(m_request);
        CreateOperation(m_notify);

        m_inlineLimit = std::min(m_info.InlineRequestThreshold, m_info.MaxInlineDataSize);
        CHECK(m_adapter->CreateCompletionQueue(IID_IND2CompletionQueue, m_file, 2 * depth, 0, 0,
                                               reinterpret_cast<void**>(&m_queue)));
        CHECK(m_adapter->CreateQueuePair(IID_IND2QueuePair, m_queue, m_queue,
                                         reinterpret_cast<void*>(QueuePairContext), depth, depth, 1, 1, m_inlineLimit,
                                         reinterpret_cast<void**>(&m_pair)));
        CHECK(m_adapter->CreateConnector(IID_IND2Connector, m_file, reinterpret_cast<void**>(&m_connector)));
    }

    ND2_SGE Sge(void* buffer, ULONG size) const
    {
        ND2_SGE sge;
        sge.Buffer = buffer;
        sge.BufferLength = size;
        sge.MemoryRegionToken = m_region->GetLocalToken();
        return sge;
    }

    ULONG InlineFlag(ULONG size) const
    {
        return size <= m_inlineLimit ? ND_OP_FLAG_INLINE : 0;
    }

    static const TCHAR* RequestName(ND2_REQUEST_TYPE type)
    {
        switch (type)
        {
        case Nd2RequestTypeReceive:
            return _T("completion of a Receive");
        case Nd2RequestTypeSend:
            return _T("completion of a Send");
        case Nd2RequestTypeRead:
            return _T("completion of a Read");
        case Nd2RequestTypeWrite:
            return _T("completion of a Write");
        default:
            return _T("completion of something never asked for");
        }
    }

    // Takes what is complete, and waits if that is nothing.
    void Progress()
    {
        ND2_RESULT results[4];
        const ULONG count = m_queue->GetResults(results, _countof(results));
        for (ULONG i = 0; i < count; i++)
        {
            const ND2_RESULT& result = results[i];
            REQUIRE(reinterpret_cast<ULONG_PTR>(result.QueuePairContext) == QueuePairContext);
            if (result.RequestType == Nd2RequestTypeReceive && result.Status == ND_CANCELED)
            {
                m_canceledReceives++;
                continue;
            }
            CheckStatus(result.Status, ND_SUCCESS, RequestName(result.RequestType), _T(__FILE__), __LINE__);
            REQUIRE(static_cast<char*>(result.RequestContext) >= m_memory);
            if (result.RequestType == Nd2RequestTypeReceive)
            {
                m_received++;
                m_receivedLength = result.BytesTransferred;
            }
            else
            {
                REQUIRE(m_initiated != 0);
                m_initiated--;
            }
        }
        if (count == 0)
        {
            Block();
        }
    }

    // Sleeps until the completion queue has something new. Notify also completes at once for what came before it.
    void Block()
    {
        if (m_mode != WaitMode::Poll)
        {
            CHECK(Finish(m_queue, m_queue->Notify(ND_CQ_NOTIFY_ANY, Begin(m_notify)), m_notify));
        }
        else if (++m_emptyPolls % PollsPerYield == 0)
        {
            SwitchToThread(); // where processors are few, the peer or a software device may need this one
        }
    }

    void CreateOperation(Operation& operation)
    {
        ZeroMemory(&operation, sizeof(operation));
        if (m_mode == WaitMode::Event)
        {
            operation.Event = CreateEvent(nullptr, TRUE, FALSE, nullptr);
            CHECK_WIN32(operation.Event != nullptr);
        }
    }

    void DestroyOperation(Operation& operation)
    {
        if (operation.Event != nullptr)
        {
            CHECK_WIN32(CloseHandle(operation.Event));
        }
    }

    OVERLAPPED* Begin(Operation& operation)
    {
        ZeroMemory(&operation.Overlapped, sizeof(operation.Overlapped));
        operation.Overlapped.hEvent = operation.Event;
        operation.Dequeued = false;
        return &operation.Overlapped;
    }

    // Waits for a request in the manner of the mode; `hr` is what the call that began it returned.
    HRESULT Finish(IND2Overlapped* object, HRESULT hr, Operation& operation)
    {
        if (hr != ND_PENDING)
        {
            return hr;
        }
        switch (m_mode)
        {
        case WaitMode::Poll:
            while ((hr = object->GetOverlappedResult(&operation.Overlapped, FALSE)) == ND_PENDING)
            {
                SwitchToThread();
            }
            return hr;
        case WaitMode::Event:
            return object->GetOverlappedResult(&operation.Overlapped, TRUE);
        default:
            while (!operation.Dequeued)
            {
                DequeuePacket();
            }
            return object->GetOverlappedResult(&operation.Overlapped, FALSE);
        }
    }

    // One packet is one completed request, not always the awaited one: the peer may disconnect at any time.
    void DequeuePacket()
    {
        DWORD bytes = 0;
        ULONG_PTR key = 0;
        OVERLAPPED* overlapped = nullptr;
        const BOOL ok = GetQueuedCompletionStatus(m_port, &bytes, &key, &overlapped, INFINITE);
        CHECK_WIN32(ok || overlapped != nullptr);
        REQUIRE(key == reinterpret_cast<ULONG_PTR>(this));
        CONTAINING_RECORD(overlapped, Operation, Overlapped)->Dequeued = true;
    }

    WaitMode m_mode;
    ND2_ADAPTER_INFO m_info;
    ULONG m_inlineLimit = 0;

    HANDLE m_file = nullptr;
    bool m_shares = false; // adapter and file are another's
    HANDLE m_port = nullptr;
    IND2Adapter* m_adapter = nullptr;
    IND2CompletionQueue* m_queue = nullptr;
    IND2QueuePair* m_pair = nullptr;
    IND2Connector* m_connector = nullptr;
    IND2MemoryRegion* m_region = nullptr;
    char* m_memory = nullptr;

    Operation m_request;  // whatever is waited for at once
    Operation m_notify;   // the completion queue's notification

    ULONG m_initiated = 0; // sends and reads without a completion yet
    ULONG m_received = 0;  // messages that nobody has asked for yet
    ULONG m_receivedLength = 0;
    ULONG m_canceledReceives = 0;
    ULONG m_emptyPolls = 0;
};
