/* The benchmark on NetworkDirect, as a Windows program is written. */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>

#include <initguid.h>
#include <ndspi.h>
#include <ndstatus.h>
#include <ndsupport.h>

#include "workloads.h"

/* An overlapped request. Its packet, where a completion port is used, may come while another one is waited for. */
struct request
{
    OVERLAPPED Overlapped;
    int Dequeued;
};

struct connection
{
    IND2QueuePair *Pair;
    IND2Connector *Connector;
    struct request Gone; /* NotifyDisconnect, at the server */
    HRESULT GoneStatus;
};

struct end
{
    const struct plan *plan;
    char *memory;
    HANDLE File;
    HANDLE Port;
    struct request Request;
    struct request Notify;
    IND2MemoryRegion *Region;
    UINT32 LocalToken;
    struct remote remote;
    IND2CompletionQueue *Queue;
    IND2Listener *Listener;
    uint32_t count;
    struct connection *connections;
};

static IND2Adapter *adapter;
static struct sockaddr_in own_address;

static void check(HRESULT hr, const char *call, int line)
{
    if (hr != ND_SUCCESS)
    {
        fail("nd.c:%d: %s: 0x%08x", line, call, (unsigned)hr);
    }
}

#define ND(call) check((call), #call, __LINE__)

static void device_open(const char *text)
{
    WSADATA data;
    own_address = parse_address(text, 0);
    CHECK(WSAStartup(MAKEWORD(2, 2), &data) == 0);
    ND(NdStartup());
    ND(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&own_address, sizeof(own_address), (void **)&adapter));
}

static struct end *new_end(void)
{
    static struct end end;
    memset(&end, 0, sizeof(end));
    return &end;
}

/* Waits for a request in the manner of the mode; `hr` is what the call that began it returned. */
static HRESULT finish(struct end *end, void *object, HRESULT hr, struct request *request)
{
    IND2Overlapped *overlapped = (IND2Overlapped *)object;
    OVERLAPPED *done;
    DWORD bytes;
    ULONG_PTR key;
    if (hr != ND_PENDING)
    {
        return hr;
    }
    switch (end->plan->mode)
    {
    case WAIT_POLL:
        while ((hr = IND2Overlapped_GetOverlappedResult(overlapped, &request->Overlapped, FALSE)) == ND_PENDING)
        {
            SwitchToThread();
        }
        return hr;
    case WAIT_EVENT:
        return IND2Overlapped_GetOverlappedResult(overlapped, &request->Overlapped, TRUE);
    default:
        while (!request->Dequeued)
        {
            done = NULL;
            GetQueuedCompletionStatus(end->Port, &bytes, &key, &done, INFINITE);
            CHECK(done != NULL);
            CONTAINING_RECORD(done, struct request, Overlapped)->Dequeued = 1;
        }
        request->Dequeued = 0;
        return IND2Overlapped_GetOverlappedResult(overlapped, &request->Overlapped, FALSE);
    }
}

#define FINISH(end, object, call) check(finish((end), (object), (call), &(end)->Request), #call, __LINE__)

static const ULONG region_flags =
    ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;

static void end_open(struct end *end, const struct plan *plan)
{
    end->plan = plan;
    end->count = (plan->operation == OP_CONNECT || plan->operation == OP_PAIRS) ? plan->count + 1 : plan->pairs;
    end->connections = (struct connection *)new_buffer(end->count * sizeof(*end->connections));
    ND(IND2Adapter_CreateOverlappedFile(adapter, &end->File));
    if (plan->mode == WAIT_EVENT)
    {
        CHECK(end->Request.Overlapped.hEvent = CreateEvent(NULL, FALSE, FALSE, NULL));
        CHECK(end->Notify.Overlapped.hEvent = CreateEvent(NULL, FALSE, FALSE, NULL));
    }
    else if (plan->mode == WAIT_PORT)
    {
        CHECK(end->Port = CreateIoCompletionPort(end->File, NULL, 0, 0));
    }
    end->memory = new_buffer(memory_size(plan));
    ND(IND2Adapter_CreateMemoryRegion(adapter, &IID_IND2MemoryRegion, end->File, (void **)&end->Region));
    FINISH(end, end->Region, IND2MemoryRegion_Register(end->Region, end->memory, memory_size(plan),
                                                      region_flags | ND_MR_FLAG_RDMA_READ_SINK, &end->Request.Overlapped));
    end->LocalToken = IND2MemoryRegion_GetLocalToken(end->Region);
    ND(IND2Adapter_CreateCompletionQueue(adapter, &IID_IND2CompletionQueue, end->File,
                                         (initiator_depth(plan) + receive_depth(plan)) * plan->pairs, 0, 0,
                                         (void **)&end->Queue));
    if (plan->operation == OP_REGISTER || plan->operation == OP_PAIRS)
    {
        return;
    }
    struct remote own = {(uintptr_t)end->memory, IND2MemoryRegion_GetRemoteToken(end->Region)};
    tell(&own, sizeof(own));
    hear(&end->remote, sizeof(end->remote));

    /* The file of the listener is that of the connectors, so it lives as long as they do. */
    struct sockaddr_in address = own_address;
    ULONG size = sizeof(address);
    if (is_server)
    {
        ND(IND2Adapter_CreateListener(adapter, &IID_IND2Listener, end->File, (void **)&end->Listener));
        ND(IND2Listener_Bind(end->Listener, (struct sockaddr *)&address, sizeof(address)));
        ND(IND2Listener_Listen(end->Listener, 128));
        ND(IND2Listener_GetLocalAddress(end->Listener, (struct sockaddr *)&address, &size));
        tell(&address.sin_port, sizeof(address.sin_port));
    }
    else
    {
        hear(&own_address.sin_port, sizeof(own_address.sin_port));
    }
}

static void end_close(struct end *end)
{
    if (end->Listener != NULL)
    {
        IND2Listener_Release(end->Listener);
    }
    IND2CompletionQueue_Release(end->Queue);
    FINISH(end, end->Region, IND2MemoryRegion_Deregister(end->Region, &end->Request.Overlapped));
    IND2MemoryRegion_Release(end->Region);
    CloseHandle(end->File);
    if (end->plan->mode == WAIT_EVENT)
    {
        CloseHandle(end->Request.Overlapped.hEvent);
        CloseHandle(end->Notify.Overlapped.hEvent);
    }
    else if (end->plan->mode == WAIT_PORT)
    {
        CloseHandle(end->Port);
    }
    free_buffer(end->memory, memory_size(end->plan));
    free_buffer(end->connections, end->count * sizeof(*end->connections));
}

static void pair_create(struct end *end, uint32_t i)
{
    ND(IND2Adapter_CreateQueuePair(adapter, &IID_IND2QueuePair, (IUnknown *)end->Queue, (IUnknown *)end->Queue, NULL,
                                   receive_depth(end->plan), initiator_depth(end->plan), 1, 1, INLINE_LIMIT,
                                   (void **)&end->connections[i].Pair));
}

static void pair_connect(struct end *end, uint32_t i)
{
    struct connection *connection = &end->connections[i];
    struct sockaddr_in local = own_address, peer = own_address;
    local.sin_port = 0;
    pair_create(end, i);
    ND(IND2Adapter_CreateConnector(adapter, &IID_IND2Connector, end->File, (void **)&connection->Connector));
    ND(IND2Connector_Bind(connection->Connector, (struct sockaddr *)&local, sizeof(local)));
    FINISH(end, connection->Connector,
           IND2Connector_Connect(connection->Connector, (IUnknown *)connection->Pair, (struct sockaddr *)&peer,
                                 sizeof(peer), 16, 16, NULL, 0, &end->Request.Overlapped));
    FINISH(end, connection->Connector, IND2Connector_CompleteConnect(connection->Connector, &end->Request.Overlapped));
}

static void pair_accept(struct end *end, uint32_t i)
{
    struct connection *connection = &end->connections[i];
    ND(IND2Adapter_CreateConnector(adapter, &IID_IND2Connector, end->File, (void **)&connection->Connector));
    FINISH(end, end->Listener,
           IND2Listener_GetConnectionRequest(end->Listener, (IUnknown *)connection->Connector, &end->Request.Overlapped));
    pair_create(end, i);
    FINISH(end, connection->Connector,
           IND2Connector_Accept(connection->Connector, (IUnknown *)connection->Pair, 16, 16, NULL, 0, &end->Request.Overlapped));
    if (end->plan->mode == WAIT_EVENT)
    {
        CHECK(connection->Gone.Overlapped.hEvent = CreateEvent(NULL, TRUE, FALSE, NULL));
    }
    connection->GoneStatus = IND2Connector_NotifyDisconnect(connection->Connector, &connection->Gone.Overlapped);
}

static void pair_close(struct end *end, uint32_t i)
{
    struct connection *connection = &end->connections[i];
    if (connection->Connector != NULL)
    {
        if (is_server)
        {
            check(finish(end, connection->Connector, connection->GoneStatus, &connection->Gone), "NotifyDisconnect",
                  __LINE__);
        }
        FINISH(end, connection->Connector, IND2Connector_Disconnect(connection->Connector, &end->Request.Overlapped));
        IND2Connector_Release(connection->Connector);
        if (connection->Gone.Overlapped.hEvent != NULL)
        {
            CloseHandle(connection->Gone.Overlapped.hEvent);
        }
    }
    IND2QueuePair_Release(connection->Pair);
}

/* A request carries its queue pair's number, and in the low bit whether it is a receive. */
static inline void post_receive(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    ND2_SGE sge = {end->memory + offset, size, end->LocalToken};
    ND(IND2QueuePair_Receive(end->connections[i].Pair, (void *)(uintptr_t)(i << 1 | 1), &sge, 1));
}

static inline void post_send(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    ND2_SGE sge = {end->memory + offset, size, end->LocalToken};
    ND(IND2QueuePair_Send(end->connections[i].Pair, (void *)(uintptr_t)(i << 1), &sge, 1,
                          size <= INLINE_LIMIT ? ND_OP_FLAG_INLINE : 0));
}

static inline void post_write(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    ND2_SGE sge = {end->memory + offset, size, end->LocalToken};
    ND(IND2QueuePair_Write(end->connections[i].Pair, (void *)(uintptr_t)(i << 1), &sge, 1, end->remote.address + offset,
                           (UINT32)end->remote.key, size <= INLINE_LIMIT ? ND_OP_FLAG_INLINE : 0));
}

static inline void post_read(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    ND2_SGE sge = {end->memory + offset, size, end->LocalToken};
    ND(IND2QueuePair_Read(end->connections[i].Pair, (void *)(uintptr_t)(i << 1), &sge, 1, end->remote.address + offset,
                          (UINT32)end->remote.key, 0));
}

static inline int reap(struct end *end)
{
    ND2_RESULT results[REAP_BATCH];
    ULONG count = IND2CompletionQueue_GetResults(end->Queue, results, REAP_BATCH);
    for (ULONG k = 0; k < count; k++)
    {
        uintptr_t context = (uintptr_t)results[k].RequestContext;
        if (__builtin_expect(results[k].Status != ND_SUCCESS, 0))
        {
            fail("completion: 0x%08x", (unsigned)results[k].Status);
        }
        completed((uint32_t)(context >> 1), context & 1);
    }
    return (int)count;
}

static void block(struct end *end)
{
    HRESULT hr = IND2CompletionQueue_Notify(end->Queue, ND_CQ_NOTIFY_ANY, &end->Notify.Overlapped);
    check(finish(end, end->Queue, hr, &end->Notify), "Notify", __LINE__);
}

static void register_once(struct end *end, char *memory, uint32_t size)
{
    IND2MemoryRegion *region;
    ND(IND2Adapter_CreateMemoryRegion(adapter, &IID_IND2MemoryRegion, end->File, (void **)&region));
    FINISH(end, region, IND2MemoryRegion_Register(region, memory, size, region_flags, &end->Request.Overlapped));
    FINISH(end, region, IND2MemoryRegion_Deregister(region, &end->Request.Overlapped));
    IND2MemoryRegion_Release(region);
}
