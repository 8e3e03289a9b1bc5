/* What is measured, for stacks with requests and completions. The program includes this after it has defined, for its
 * `struct end`:
 *
 *   end_open(end, plan)        the completion queue and the registered memory; `memory` is the local part
 *   end_close(end)
 *   pair_create(end, i)        a queue pair alone
 *   pair_connect(end, i)       the client's, created and connected; pair_accept: the server's
 *   pair_close(end, i)         disconnected, if connected, and destroyed
 *   post_receive, post_send, post_write, post_read(end, i, offset, size)
 *   reap(end)                  takes up to REAP_BATCH completions, calls completed() for each, and returns their number
 *   block(end)                 sleeps until there may be completions; may also just arm, and return
 *   register_once(end, memory, size)   registers and deregisters
 *
 * All is compiled as one unit, so that nothing stands between a loop and the stack that it measures. */
#ifndef WORKLOADS_H
#define WORKLOADS_H

#include "frame.h"

/* Kept by completed(), read by the loops. */
struct progress
{
    uint32_t received[MOST_PAIRS];
    uint32_t initiated[MOST_PAIRS];
    uint32_t total;
    /* The pairs with completions that a rate loop has not seen yet: to look at all of many, each time one message has come,
     * would cost more than the message. */
    uint32_t fresh[MOST_PAIRS];
    uint32_t fresh_pairs;
    uint8_t is_fresh[MOST_PAIRS];
};

static struct progress progress;

static inline void completed(uint32_t pair, int receive)
{
    if (receive)
    {
        progress.received[pair]++;
    }
    else
    {
        progress.initiated[pair]++;
    }
    progress.total++;
    if (!progress.is_fresh[pair])
    {
        progress.is_fresh[pair] = 1;
        progress.fresh[progress.fresh_pairs++] = pair;
    }
}

/* One of the pairs with completions that have not been seen yet; only if there are any. */
static inline uint32_t next_fresh(void)
{
    uint32_t pair = progress.fresh[--progress.fresh_pairs];
    progress.is_fresh[pair] = 0;
    return pair;
}

struct end;
static void end_open(struct end *end, const struct plan *plan);
static void end_close(struct end *end);
static void pair_create(struct end *end, uint32_t pair);
static void pair_connect(struct end *end, uint32_t pair);
static void pair_accept(struct end *end, uint32_t pair);
static void pair_close(struct end *end, uint32_t pair);
static inline void post_receive(struct end *end, uint32_t pair, uint32_t offset, uint32_t size);
static inline void post_send(struct end *end, uint32_t pair, uint32_t offset, uint32_t size);
static inline void post_write(struct end *end, uint32_t pair, uint32_t offset, uint32_t size);
static inline void post_read(struct end *end, uint32_t pair, uint32_t offset, uint32_t size);
static inline int reap(struct end *end);
static void block(struct end *end);
static void register_once(struct end *end, char *memory, uint32_t size);

static inline void advance(struct end *end, enum wait_mode mode)
{
    static uint32_t empty;
    if (reap(end) > 0)
    {
        return;
    }
    if (mode != WAIT_POLL)
    {
        block(end);
    }
    else if (++empty % polls_per_yield == 0)
    {
        sched_yield();
    }
}

/* How many receives a rate run keeps posted on each queue pair, and how many messages one credit stands for. */
static inline uint32_t window(const struct plan *plan)
{
    return 2 * plan->depth;
}

static inline uint32_t per_credit(const struct plan *plan)
{
    return (plan->depth + 1) / 2;
}

/* What queues must hold: the plan's depth, or the credits that come back. */
static inline uint32_t receive_depth(const struct plan *plan)
{
    return window(plan) + 4;
}

static inline uint32_t initiator_depth(const struct plan *plan)
{
    return plan->depth + 4;
}

/* Messages are received in the first half of the memory and sent from the second. */
static inline size_t memory_size(const struct plan *plan)
{
    return 2 * (((size_t)plan->size + 4095) & ~(size_t)4095);
}

static inline uint32_t source(const struct plan *plan)
{
    return (uint32_t)(memory_size(plan) / 2);
}

static void connect_all(struct end *end, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->pairs; i++)
    {
        if (is_server)
        {
            pair_accept(end, i);
        }
        else
        {
            pair_connect(end, i);
        }
    }
}

static void close_all(struct end *end, uint32_t count)
{
    meet();
    for (uint32_t i = 0; i < count; i++)
    {
        pair_close(end, i);
    }
}

/* One message there and back. The send's own completion is taken when it comes: nobody waits for it alone. */
static inline void round_trip(struct end *end, const struct plan *plan, uint32_t number)
{
    if (!is_server)
    {
        post_send(end, 0, source(plan), plan->size);
    }
    while (progress.received[0] == number)
    {
        advance(end, plan->mode);
    }
    post_receive(end, 0, 0, plan->size);
    if (is_server)
    {
        post_send(end, 0, source(plan), plan->size);
    }
    while (progress.initiated[0] + plan->depth <= number)
    {
        advance(end, plan->mode);
    }
}

static void run_ping(struct end *end, const struct plan *plan)
{
    uint32_t warm = plan->count / 10 + 1, number = 0;
    uint64_t *times = new_times(plan->count);
    post_receive(end, 0, 0, plan->size);
    post_receive(end, 0, 0, plan->size);
    meet();
    for (; number < warm; number++)
    {
        round_trip(end, plan, number);
    }
    struct usage before = usage_now();
    uint64_t begin = before.time;
    for (uint32_t i = 0; i < plan->count; i++, number++)
    {
        round_trip(end, plan, number);
        uint64_t ended = now();
        times[i] = ended - begin;
        begin = ended;
    }
    struct usage used = usage_since(before);
    while (progress.initiated[0] < number)
    {
        advance(end, plan->mode);
    }
    if (!is_server)
    {
        print_latency(times, plan->count, 2, used);
    }
    free_times(times, plan->count);
}

/* A write or read, until it is complete at this side. The server has nothing to do. */
static void run_remote(struct end *end, const struct plan *plan)
{
    uint32_t warm = plan->count / 10 + 1;
    uint64_t *times;
    struct usage before = {0};
    if (is_server)
    {
        return;
    }
    times = new_times(plan->count);
    for (uint32_t i = 0; i < warm + plan->count; i++)
    {
        if (i == warm)
        {
            before = usage_now();
        }
        uint64_t begin = now();
        if (plan->operation == OP_WRITE)
        {
            post_write(end, 0, source(plan), plan->size);
        }
        else
        {
            post_read(end, 0, 0, plan->size);
        }
        while (progress.initiated[0] == i)
        {
            advance(end, plan->mode);
        }
        times[i < warm ? 0 : i - warm] = now() - begin;
    }
    print_latency(times, plan->count, 1, usage_since(before));
    free_times(times, plan->count);
}

/* Sends or writes, as many at a time as the depth allows; the server gives credits for sends, so that no message ever
 * finds no receive. */
static void run_rate_client(struct end *end, const struct plan *plan)
{
    uint32_t posted[MOST_PAIRS] = {0}, credits[MOST_PAIRS] = {0}, done[MOST_PAIRS] = {0};
    uint32_t left = plan->pairs * plan->count;
    int sends = plan->operation == OP_SENDS;
    struct effort before = effort_now();
    for (uint32_t i = plan->pairs; i-- > 0;)
    {
        progress.is_fresh[i] = 1;
        progress.fresh[progress.fresh_pairs++] = i;
    }
    while (left > 0)
    {
        while (progress.fresh_pairs > 0)
        {
            uint32_t i = next_fresh();
            left -= progress.initiated[i] - done[i];
            done[i] = progress.initiated[i];
            for (; sends && credits[i] < progress.received[i]; credits[i]++)
            {
                post_receive(end, i, 0, 1);
            }
            while (posted[i] < plan->count && posted[i] - progress.initiated[i] < plan->depth &&
                   (!sends || posted[i] - credits[i] * per_credit(plan) < window(plan)))
            {
                if (sends)
                {
                    post_send(end, i, source(plan), plan->size);
                }
                else
                {
                    post_write(end, i, source(plan), plan->size);
                }
                posted[i]++;
            }
        }
        if (left > 0)
        {
            advance(end, plan->mode);
        }
    }
    print_rate((uint64_t)plan->pairs * plan->count, before);
}

static void run_rate_server(struct end *end, const struct plan *plan)
{
    uint32_t taken[MOST_PAIRS] = {0}, given[MOST_PAIRS] = {0}, left = plan->pairs * plan->count;
    while (left > 0)
    {
        advance(end, plan->mode);
        while (progress.fresh_pairs > 0)
        {
            uint32_t i = next_fresh();
            for (; taken[i] < progress.received[i]; taken[i]++, left--)
            {
                post_receive(end, i, 0, plan->size);
            }
            for (; (given[i] + 1) * per_credit(plan) <= taken[i]; given[i]++)
            {
                post_send(end, i, source(plan), 1);
            }
        }
    }
}

static void run_rate(struct end *end, const struct plan *plan)
{
    if (plan->operation == OP_SENDS)
    {
        for (uint32_t i = 0; i < plan->pairs; i++)
        {
            for (uint32_t k = 0; k < (is_server ? window(plan) : 5); k++)
            {
                post_receive(end, i, 0, is_server ? plan->size : 1);
            }
        }
    }
    meet();
    if (!is_server)
    {
        run_rate_client(end, plan);
    }
    else if (plan->operation == OP_SENDS)
    {
        run_rate_server(end, plan);
    }
}

/* Connections, one after the other, all kept until the last one is there. The first one warms up. */
static void run_connect(struct end *end, const struct plan *plan)
{
    uint64_t *times = new_times(plan->count + 1);
    struct memory before = {0, 0};
    for (uint32_t i = 0; i <= plan->count; i++)
    {
        if (is_server)
        {
            pair_accept(end, i);
            continue;
        }
        if (i == 1)
        {
            before = memory_now();
        }
        uint64_t begin = now();
        pair_connect(end, i);
        times[i] = now() - begin;
    }
    if (!is_server)
    {
        print_made(times + 1, plan->count, memory_since(before));
    }
    free_times(times, plan->count + 1);
    close_all(end, plan->count + 1);
}

static void run_pairs(struct end *end, const struct plan *plan)
{
    uint64_t *times = new_times(plan->count + 1);
    pair_create(end, 0);
    struct memory before = memory_now();
    for (uint32_t i = 1; i <= plan->count; i++)
    {
        uint64_t begin = now();
        pair_create(end, i);
        times[i] = now() - begin;
    }
    print_made(times + 1, plan->count, memory_since(before));
    free_times(times, plan->count + 1);
    for (uint32_t i = 0; i <= plan->count; i++)
    {
        pair_close(end, i);
    }
}

static void run_register(struct end *end, const struct plan *plan)
{
    char *memory = new_buffer(plan->size);
    uint64_t *times = new_times(plan->count);
    register_once(end, memory, plan->size);
    for (uint32_t i = 0; i < plan->count; i++)
    {
        uint64_t begin = now();
        register_once(end, memory, plan->size);
        times[i] = now() - begin;
    }
    print_made(times, plan->count, (struct memory){0, 0});
    free_times(times, plan->count);
    free_buffer(memory, plan->size);
}

static struct end *new_end(void);

static void run_plan(const struct plan *plan)
{
    struct end *end = new_end();
    memset(&progress, 0, sizeof(progress));
    int alone = plan->operation == OP_REGISTER || plan->operation == OP_PAIRS;
    if (alone && is_server)
    {
        return;
    }
    end_open(end, plan);
    switch (plan->operation)
    {
    case OP_REGISTER:
        run_register(end, plan);
        break;
    case OP_PAIRS:
        run_pairs(end, plan);
        break;
    case OP_CONNECT:
        run_connect(end, plan);
        break;
    default:
        connect_all(end, plan);
        if (plan->operation == OP_PING)
        {
            run_ping(end, plan);
        }
        else if (plan->operation == OP_SENDS || plan->operation == OP_WRITES)
        {
            run_rate(end, plan);
        }
        else
        {
            meet();
            run_remote(end, plan);
        }
        close_all(end, plan->pairs);
    }
    end_close(end);
}

#endif
