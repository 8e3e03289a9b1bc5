/* ndexchange: one message each way over NetworkDirect, in C: the client sends a ping, the server a pong, and each
 * checks what it got. Waiting is done on events; then the client disconnects, and the server learns of it. */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <tchar.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initguid.h>
#include <ndspi.h>
#include <ndstatus.h>
#include <ndsupport.h>

#define DEFAULT_PORT 54330
#define MESSAGE_SIZE 64
#define PATIENCE_MS 30000

static const char ping[] = "ping from the client";
static const char pong[] = "pong from the server";

/* A failure names the place, the call and the status, and ends the program. */
static void check(HRESULT hr, const TCHAR *call, int line)
{
    if (hr != ND_SUCCESS)
    {
        fflush(stdout);
        _ftprintf(stderr, _T("%s(%d): %s: 0x%08lX\n"), _T(__FILE__), line, call, hr);
        exit(1);
    }
}

static void require(int ok, const TCHAR *condition, int line)
{
    if (!ok)
    {
        fflush(stdout);
        _ftprintf(stderr, _T("%s(%d): %s: does not hold, last error %lu\n"), _T(__FILE__), line, condition,
                  GetLastError());
        exit(1);
    }
}

#define CHECK(call) check((call), _T(#call), __LINE__)
#define REQUIRE(condition) require((condition) != 0, _T(#condition), __LINE__)

/* Everything that one end of the connection consists of. */
typedef struct END
{
    IND2Adapter *Adapter;
    IND2CompletionQueue *Queue;
    IND2MemoryRegion *Region;
    IND2QueuePair *Pair;
    IND2Connector *Connector;
    HANDLE File;
    OVERLAPPED Request;
    char *Outgoing;
    char *Incoming;
} END;

static ULONG address_length(const SOCKADDR_INET *address)
{
    return address->si_family == AF_INET ? sizeof(address->Ipv4) : sizeof(address->Ipv6);
}

static BOOL parse_address(TCHAR *text, SOCKADDR_INET *address)
{
    static const ADDRESS_FAMILY families[] = {AF_INET, AF_INET6};
    size_t i;

    for (i = 0; i < _countof(families); i++)
    {
        INT length = sizeof(*address);
        ZeroMemory(address, sizeof(*address));
        if (WSAStringToAddress(text, families[i], NULL, (struct sockaddr *)address, &length) == 0)
        {
            if (address->Ipv4.sin_port == 0)
            {
                address->Ipv4.sin_port = htons(DEFAULT_PORT);
            }
            return TRUE;
        }
    }
    return FALSE;
}

/* Waits, on its event, for a request that a method has begun. */
static HRESULT finish(IND2Overlapped *object, HRESULT hr, OVERLAPPED *request)
{
    return hr == ND_PENDING ? object->lpVtbl->GetOverlappedResult(object, request, TRUE) : hr;
}

#define FINISH(end, object, call) CHECK(finish((IND2Overlapped *)(object), (call), &(end)->Request))

static void open_end(END *end, const SOCKADDR_INET *local)
{
    const ULONG flags = ND_MR_FLAG_ALLOW_LOCAL_WRITE;

    ZeroMemory(end, sizeof(*end));
    end->Request.hEvent = CreateEvent(NULL, FALSE, FALSE, NULL);
    REQUIRE(end->Request.hEvent != NULL);
    end->Outgoing = (char *)HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, 2 * MESSAGE_SIZE);
    REQUIRE(end->Outgoing != NULL);
    end->Incoming = end->Outgoing + MESSAGE_SIZE;

    CHECK(NdOpenAdapter(&IID_IND2Adapter, (const struct sockaddr *)local, address_length(local),
                        (void **)&end->Adapter));
    CHECK(end->Adapter->lpVtbl->CreateOverlappedFile(end->Adapter, &end->File));
    CHECK(end->Adapter->lpVtbl->CreateMemoryRegion(end->Adapter, &IID_IND2MemoryRegion, end->File,
                                                   (void **)&end->Region));
    FINISH(end, end->Region,
           end->Region->lpVtbl->Register(end->Region, end->Outgoing, 2 * MESSAGE_SIZE, flags, &end->Request));
    CHECK(end->Adapter->lpVtbl->CreateCompletionQueue(end->Adapter, &IID_IND2CompletionQueue, end->File, 4, 0, 0,
                                                      (void **)&end->Queue));
    CHECK(end->Adapter->lpVtbl->CreateQueuePair(end->Adapter, &IID_IND2QueuePair, (IUnknown *)end->Queue,
                                                (IUnknown *)end->Queue, end, 2, 2, 1, 1, 0, (void **)&end->Pair));
    CHECK(end->Adapter->lpVtbl->CreateConnector(end->Adapter, &IID_IND2Connector, end->File,
                                                (void **)&end->Connector));
}

static void close_end(END *end)
{
    REQUIRE(end->Connector->lpVtbl->Release(end->Connector) == 0);
    REQUIRE(end->Pair->lpVtbl->Release(end->Pair) == 0);
    REQUIRE(end->Queue->lpVtbl->Release(end->Queue) == 0);
    FINISH(end, end->Region, end->Region->lpVtbl->Deregister(end->Region, &end->Request));
    REQUIRE(end->Region->lpVtbl->Release(end->Region) == 0);
    REQUIRE(CloseHandle(end->File));
    REQUIRE(end->Adapter->lpVtbl->Release(end->Adapter) == 0);
    REQUIRE(CloseHandle(end->Request.hEvent));
    REQUIRE(HeapFree(GetProcessHeap(), 0, end->Outgoing));
}

static void post_receive(END *end)
{
    ND2_SGE sge;

    sge.Buffer = end->Incoming;
    sge.BufferLength = MESSAGE_SIZE;
    sge.MemoryRegionToken = end->Region->lpVtbl->GetLocalToken(end->Region);
    CHECK(end->Pair->lpVtbl->Receive(end->Pair, end->Incoming, &sge, 1));
}

static void post_send(END *end, const char *text)
{
    ND2_SGE sge;

    strcpy_s(end->Outgoing, MESSAGE_SIZE, text);
    sge.Buffer = end->Outgoing;
    sge.BufferLength = (ULONG)strlen(text) + 1;
    sge.MemoryRegionToken = end->Region->lpVtbl->GetLocalToken(end->Region);
    CHECK(end->Pair->lpVtbl->Send(end->Pair, end->Outgoing, &sge, 1, 0));
}

/* Waits for completions until as many sends and receives are done as asked for; checks the message received. */
static void wait_for(END *end, int sends, int receives, const char *expected)
{
    while (sends > 0 || receives > 0)
    {
        ND2_RESULT result;
        if (end->Queue->lpVtbl->GetResults(end->Queue, &result, 1) == 0)
        {
            FINISH(end, end->Queue, end->Queue->lpVtbl->Notify(end->Queue, ND_CQ_NOTIFY_ANY, &end->Request));
            continue;
        }
        CHECK(result.Status);
        REQUIRE(result.QueuePairContext == end);
        if (result.RequestType == Nd2RequestTypeReceive)
        {
            REQUIRE(result.RequestContext == end->Incoming);
            REQUIRE(result.BytesTransferred == strlen(expected) + 1);
            REQUIRE(strcmp(end->Incoming, expected) == 0);
            receives--;
        }
        else
        {
            REQUIRE(result.RequestType == Nd2RequestTypeSend);
            REQUIRE(result.RequestContext == end->Outgoing);
            sends--;
        }
    }
    REQUIRE(sends == 0 && receives == 0);
}

static void run_server(const SOCKADDR_INET *address)
{
    END end;
    OVERLAPPED gone;
    IND2Listener *listener = NULL;
    HRESULT hr;

    open_end(&end, address);
    CHECK(end.Adapter->lpVtbl->CreateListener(end.Adapter, &IID_IND2Listener, end.File, (void **)&listener));
    CHECK(listener->lpVtbl->Bind(listener, (const struct sockaddr *)address, address_length(address)));
    CHECK(listener->lpVtbl->Listen(listener, 0));
    _tprintf(_T("listening\n"));
    fflush(stdout); /* whoever started this program may be waiting for the line */
    FINISH(&end, listener,
           listener->lpVtbl->GetConnectionRequest(listener, (IUnknown *)end.Connector, &end.Request));

    post_receive(&end);
    FINISH(&end, end.Connector,
           end.Connector->lpVtbl->Accept(end.Connector, (IUnknown *)end.Pair, 0, 0, NULL, 0, &end.Request));

    ZeroMemory(&gone, sizeof(gone));
    gone.hEvent = CreateEvent(NULL, TRUE, FALSE, NULL);
    REQUIRE(gone.hEvent != NULL);
    hr = end.Connector->lpVtbl->NotifyDisconnect(end.Connector, &gone);
    REQUIRE(hr == ND_PENDING || hr == ND_SUCCESS);

    wait_for(&end, 0, 1, ping);
    _tprintf(_T("received: %hs\n"), end.Incoming);
    post_send(&end, pong);
    wait_for(&end, 1, 0, "");

    if (hr == ND_PENDING)
    {
        REQUIRE(WaitForSingleObject(gone.hEvent, PATIENCE_MS) == WAIT_OBJECT_0);
        hr = end.Connector->lpVtbl->GetOverlappedResult(end.Connector, &gone, FALSE);
    }
    CHECK(hr);
    FINISH(&end, end.Connector, end.Connector->lpVtbl->Disconnect(end.Connector, &end.Request));

    REQUIRE(listener->lpVtbl->Release(listener) == 0);
    close_end(&end);
    REQUIRE(CloseHandle(gone.hEvent));
}

static void run_client(const SOCKADDR_INET *server)
{
    END end;
    SOCKADDR_INET local;
    SIZE_T length = sizeof(local);

    CHECK(NdResolveAddress((const struct sockaddr *)server, address_length(server), (struct sockaddr *)&local, &length));
    open_end(&end, &local);
    CHECK(end.Connector->lpVtbl->Bind(end.Connector, (const struct sockaddr *)&local, address_length(&local)));
    FINISH(&end, end.Connector,
           end.Connector->lpVtbl->Connect(end.Connector, (IUnknown *)end.Pair, (const struct sockaddr *)server,
                                          address_length(server), 0, 0, NULL, 0, &end.Request));
    FINISH(&end, end.Connector, end.Connector->lpVtbl->CompleteConnect(end.Connector, &end.Request));

    post_receive(&end);
    post_send(&end, ping);
    wait_for(&end, 1, 1, pong);
    _tprintf(_T("received: %hs\n"), end.Incoming);

    FINISH(&end, end.Connector, end.Connector->lpVtbl->Disconnect(end.Connector, &end.Request));
    close_end(&end);
}

int _tmain(int argc, TCHAR *argv[])
{
    WSADATA wsaData;
    SOCKADDR_INET address;
    BOOL server;

    REQUIRE(WSAStartup(MAKEWORD(2, 2), &wsaData) == 0);
    server = argc == 3 && _tcscmp(argv[1], _T("-s")) == 0;
    if (argc != 3 || (!server && _tcscmp(argv[1], _T("-c")) != 0) || !parse_address(argv[2], &address))
    {
        _ftprintf(stderr, _T("usage: %s -s|-c <ip[:port]>\nserves, or connects to, the address\n"), argv[0]);
        return 2;
    }

    CHECK(NdStartup());
    if (server)
    {
        run_server(&address);
    }
    else
    {
        run_client(&address);
    }
    CHECK(NdCleanup());
    REQUIRE(WSACleanup() == 0);
    return 0;
}
