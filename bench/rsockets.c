/* The benchmark on librdmacm's rsockets, or, with PLAIN_TCP, on the kernel's sockets: a stream, so there are no requests to
 * post, no reads, and no depth. What it shares with the others is messages to and fro, a stream of them, and connections. */
#include "frame.h"

#include <netinet/tcp.h>
#include <poll.h>
#ifdef PLAIN_TCP
#define rsocket socket
#define rbind bind
#define rlisten listen
#define rgetsockname getsockname
#define raccept accept
#define rconnect connect
#define rsetsockopt setsockopt
#define rsend(stream, data, size, flags) send(stream, data, size, (flags) | MSG_NOSIGNAL)
#define rrecv recv
#define rclose close
#else
#include <rdma/rsocket.h>
#endif

static struct sockaddr_in server_address;
static int listener;

static void device_open(const char *text)
{
    socklen_t size = sizeof(server_address);
    server_address = parse_address(text, 0);
    if (is_server)
    {
        CHECK((listener = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
        CHECK(rbind(listener, (struct sockaddr *)&server_address, size) == 0);
        CHECK(rlisten(listener, 128) == 0);
        CHECK(rgetsockname(listener, (struct sockaddr *)&server_address, &size) == 0);
        tell(&server_address.sin_port, sizeof(server_address.sin_port));
    }
    else
    {
        hear(&server_address.sin_port, sizeof(server_address.sin_port));
    }
}

static int open_connection(void)
{
    int on = 1, stream;
    if (is_server)
    {
        CHECK((stream = raccept(listener, NULL, NULL)) >= 0);
    }
    else
    {
        CHECK((stream = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
        CHECK(rconnect(stream, (struct sockaddr *)&server_address, sizeof(server_address)) == 0);
    }
    CHECK(rsetsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
    return stream;
}

/* Polling never sleeps; otherwise the call does, after the 10 us of polling that rsockets always does first. */
static int flags_for(const struct plan *plan)
{
    return plan->mode == WAIT_POLL ? MSG_DONTWAIT : 0;
}

static inline void pause_for(ssize_t result)
{
    static uint32_t empty;
    CHECK(result > 0 || (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)));
    if (result < 0 && ++empty % polls_per_yield == 0)
    {
        sched_yield();
    }
}

static inline void send_all(int stream, const char *data, size_t size, int flags)
{
    for (size_t done = 0; done < size;)
    {
        ssize_t sent = rsend(stream, data + done, size - done, flags);
        pause_for(sent);
        done += sent > 0 ? (size_t)sent : 0;
    }
}

static inline void receive_all(int stream, char *data, size_t size, int flags)
{
    for (size_t done = 0; done < size;)
    {
        ssize_t received = rrecv(stream, data + done, size - done, flags);
        pause_for(received);
        done += received > 0 ? (size_t)received : 0;
    }
}

static void run_ping(const struct plan *plan, char *memory)
{
    uint32_t warm = plan->count / 10 + 1;
    int stream = open_connection(), flags = flags_for(plan);
    uint64_t *times = new_times(plan->count), begin = 0;
    struct usage before = {0};
    meet();
    for (uint32_t i = 0; i < warm + plan->count; i++)
    {
        if (i == warm)
        {
            before = usage_now();
            begin = before.time;
        }
        if (is_server)
        {
            receive_all(stream, memory, plan->size, flags);
            send_all(stream, memory, plan->size, flags);
            continue;
        }
        send_all(stream, memory, plan->size, flags);
        receive_all(stream, memory, plan->size, flags);
        if (i >= warm)
        {
            uint64_t ended = now();
            times[i - warm] = ended - begin;
            begin = ended;
        }
    }
    if (!is_server)
    {
        print_latency(times, plan->count, 2, usage_since(before));
    }
    free_times(times, plan->count);
    meet();
    CHECK(rclose(stream) == 0);
}

/* Messages one way, and one byte back when all have come. */
static void run_sends(const struct plan *plan, char *memory)
{
    int streams[MOST_PAIRS], flags = flags_for(plan);
    for (uint32_t k = 0; k < plan->pairs; k++)
    {
        streams[k] = open_connection();
    }
    meet();
    struct effort before = effort_now();
    for (uint32_t i = 0; i < plan->count; i++)
    {
        for (uint32_t k = 0; k < plan->pairs; k++)
        {
            if (is_server)
            {
                receive_all(streams[k], memory, plan->size, flags);
            }
            else
            {
                send_all(streams[k], memory, plan->size, flags);
            }
        }
    }
    if (is_server)
    {
        send_all(streams[0], memory, 1, flags);
    }
    else
    {
        receive_all(streams[0], memory, 1, flags);
        print_rate((uint64_t)plan->pairs * plan->count, before);
    }
    meet();
    for (uint32_t k = 0; k < plan->pairs; k++)
    {
        CHECK(rclose(streams[k]) == 0);
    }
}

static void run_connect(const struct plan *plan)
{
    int *streams = (int *)new_buffer((plan->count + 1) * sizeof(*streams));
    uint64_t *times = new_times(plan->count + 1);
    struct memory before = {0, 0};
    for (uint32_t i = 0; i <= plan->count; i++)
    {
        if (i == 1)
        {
            before = memory_now();
        }
        uint64_t begin = now();
        streams[i] = open_connection();
        times[i] = now() - begin;
    }
    if (!is_server)
    {
        print_made(times + 1, plan->count, memory_since(before));
    }
    meet();
    for (uint32_t i = 0; i <= plan->count; i++)
    {
        CHECK(rclose(streams[i]) == 0);
    }
    free_times(times, plan->count + 1);
    free_buffer(streams, (plan->count + 1) * sizeof(*streams));
}

static void run_plan(const struct plan *plan)
{
    char *memory = new_buffer(plan->size);
    switch (plan->operation)
    {
    case OP_PING:
        run_ping(plan, memory);
        break;
    case OP_SENDS:
        run_sends(plan, memory);
        break;
    case OP_CONNECT:
        run_connect(plan);
        break;
    default:
        fail("a stream has no such operation");
    }
    free_buffer(memory, plan->size);
}
