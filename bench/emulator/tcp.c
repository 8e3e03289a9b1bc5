/*
 * The workloads of softiwarp/examples/bench.rs on plain TCP: what they cost without a device in between.
 *
 * tcp server PORT
 * tcp client PORT latency|rate|bandwidth SIZE DEPTH COUNT poll|block
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PARTS 100

enum workload
{
    LATENCY,
    RATE,
    BANDWIDTH
};

struct plan
{
    uint32_t workload, size, depth, count, polls;
};

static char area[8 << 20];
static int end, flags;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void put(size_t size)
{
    for (size_t at = 0; at < size;)
    {
        ssize_t count = send(end, area + at, size - at, MSG_NOSIGNAL | flags);
        if (count < 0 && errno != EAGAIN)
        {
            fail("send");
        }
        at += count > 0 ? (size_t)count : 0;
    }
}

static void get(size_t size)
{
    for (size_t at = 0; at < size;)
    {
        ssize_t count = recv(end, area + (at % (4 << 20)), size - at > (4 << 20) ? 4 << 20 : size - at, flags);
        if (count == 0 || (count < 0 && errno != EAGAIN))
        {
            fail("recv");
        }
        at += count > 0 ? (size_t)count : 0;
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double run(const struct plan *plan, int begins)
{
    double best = 1e300;
    size_t burst = plan->workload == LATENCY ? 1 : plan->depth;
    size_t back = plan->workload == LATENCY ? plan->size : 1;
    size_t rounds = plan->count / burst < PARTS ? PARTS : plan->count / burst;
    flags = plan->polls ? MSG_DONTWAIT : 0;
    for (int part = 0; part < PARTS; part++)
    {
        double begin = now();
        for (size_t round = 0; round < rounds / PARTS; round++)
        {
            if (begins)
            {
                for (size_t i = 0; i < burst; i++)
                {
                    put(plan->size);
                }
                get(back);
            }
            else
            {
                get(burst * plan->size);
                put(back);
            }
        }
        double each = (now() - begin) / (double)(rounds / PARTS * burst * (plan->workload == LATENCY ? 2 : 1));
        best = each < best ? each : best;
    }
    return best;
}

int main(int count, char **words)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct plan plan = {0};
    int one = 1, serves = count == 3 && strcmp(words[1], "server") == 0;
    if (!serves && !(count == 8 && strcmp(words[1], "client") == 0))
    {
        fprintf(stderr, "tcp server PORT | tcp client PORT WORKLOAD SIZE DEPTH COUNT poll|block\n");
        return 2;
    }
    at.sin_port = htons((uint16_t)atoi(words[2]));
    int socket_ = socket(AF_INET, SOCK_STREAM, 0);
    memset(area, 1, sizeof(area));
    if (serves)
    {
        setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(socket_, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(socket_, 1) != 0)
        {
            fail("listen");
        }
        end = accept(socket_, NULL, NULL);
        get(sizeof(plan));
        memcpy(&plan, area, sizeof(plan));
    }
    else
    {
        end = socket_;
        if (connect(end, (struct sockaddr *)&at, sizeof(at)) != 0)
        {
            fail("connect");
        }
        plan.workload = words[3][0] == 'l' ? LATENCY : words[3][0] == 'r' ? RATE : BANDWIDTH;
        plan.size = (uint32_t)atoi(words[4]);
        plan.depth = (uint32_t)atoi(words[5]);
        plan.count = (uint32_t)atoi(words[6]);
        plan.polls = strcmp(words[7], "poll") == 0;
        memcpy(area, &plan, sizeof(plan));
        put(sizeof(plan));
    }
    setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    double best = run(&plan, !serves);
    if (!serves)
    {
        printf("%.1f\n", best);
    }
    return 0;
}
