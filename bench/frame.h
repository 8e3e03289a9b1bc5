/* What all benchmark programs share: the plan of a run, the clock, counters, and the channel between the two ends.
 *
 * A program is started with the address of a device. It forks: the child serves, the parent is the client, reads plans
 * from standard input, one a line, runs each with the server, and prints one line of JSON for each. So a program for
 * each stack can stay up and the caller can take turns between them.
 *
 *   OPERATION MODE SIZE DEPTH PAIRS COUNT
 *
 * OPERATION  ping (send and receive, half a round trip), write, read: latency, one at a time
 *            sends, writes: rate, DEPTH at a time on each of PAIRS queue pairs
 *            connect: COUNT connections; register: COUNT registrations; pairs: COUNT queue pairs without a connection
 * MODE       poll, event or port: how the ends wait */
#ifndef FRAME_H
#define FRAME_H

#include <errno.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum operation
{
    OP_PING,
    OP_WRITE,
    OP_READ,
    OP_SENDS,
    OP_WRITES,
    OP_CONNECT,
    OP_REGISTER,
    OP_PAIRS,
    OPERATIONS
};

enum wait_mode
{
    WAIT_POLL,
    WAIT_EVENT,
    WAIT_PORT,
    WAIT_MODES
};

struct plan
{
    enum operation operation;
    enum wait_mode mode;
    uint32_t size;
    uint32_t depth;
    uint32_t pairs;
    uint32_t count;
};

enum
{
    INLINE_LIMIT = 64,    /* messages up to this size travel in the request, in every stack */
    REAP_BATCH = 16,      /* completions taken at a time */
    MOST_PAIRS = 64
};

/* The other end's memory, for reads and writes. */
struct remote
{
    uint64_t address;
    uint64_t key;
};

static int is_server;
static uint32_t polls_per_yield = 64; /* empty polls until a polling end offers its processor to the other one */
static int control; /* to the other process */

/* ------------------------------------------------------------------------------------------------------------------
 * Failures are told on standard output as a result, for whoever waits for one. */

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    char text[400], line[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++)
    {
        if (*c == '"' || *c == '\\' || *c == '\n')
        {
            *c = '\'';
        }
    }
    int length = snprintf(line, sizeof(line), "{\"error\": \"%s: %s\"}\n", is_server ? "server" : "client", text);
    if (write(STDOUT_FILENO, line, (size_t)length) < 0)
    {
        perror(line);
    }
    _exit(1);
}

#define CHECK(condition)                                                                                               \
    do                                                                                                                 \
    {                                                                                                                  \
        if (__builtin_expect(!(condition), 0))                                                                         \
        {                                                                                                              \
            fail("%s:%d: %s: %s", __FILE__, __LINE__, #condition, strerror(errno));                                    \
        }                                                                                                              \
    } while (0)

/* ------------------------------------------------------------------------------------------------------------------
 * Between the two ends */

static void tell(const void *data, size_t size)
{
    CHECK(send(control, data, size, MSG_NOSIGNAL) == (ssize_t)size);
}

static void hear(void *data, size_t size)
{
    CHECK(recv(control, data, size, MSG_WAITALL) == (ssize_t)size);
}

/* Neither end goes on before the other is here. */
static void meet(void)
{
    char token = 0;
    tell(&token, 1);
    hear(&token, 1);
}

static inline struct sockaddr_in parse_address(const char *text, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    unsigned a, b, c, d;
    CHECK(sscanf(text, "%u.%u.%u.%u", &a, &b, &c, &d) == 4);
    address.sin_addr.s_addr = htonl(a << 24 | b << 16 | c << 8 | d);
    return address;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Measuring */

static inline uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* What the thread that measures has used, and how often threads that the stack has for itself ran. System calls are
 * counted by the kernel's tracepoint, which slows every one of them down: only when asked for, in processes of their own. */
struct usage
{
    uint64_t time;
    uint64_t calls;
    uint64_t switches;
    uint64_t elsewhere;
};

static int call_counter = -1;

static void open_call_counter(void)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attributes)};
    FILE *file = fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "r");
    unsigned long long id;
    CHECK(file != NULL && fscanf(file, "%llu", &id) == 1);
    fclose(file);
    attributes.config = id;
    call_counter = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    CHECK(call_counter >= 0);
}

static struct usage usage_now(void)
{
    struct usage usage = {0};
    struct rusage process, thread;
    getrusage(RUSAGE_THREAD, &thread);
    getrusage(RUSAGE_SELF, &process);
    usage.switches = (uint64_t)(thread.ru_nvcsw + thread.ru_nivcsw);
    usage.elsewhere = (uint64_t)(process.ru_nvcsw + process.ru_nivcsw) - usage.switches;
    if (call_counter >= 0)
    {
        CHECK(read(call_counter, &usage.calls, sizeof(usage.calls)) == sizeof(usage.calls));
    }
    usage.time = now();
    return usage;
}

/* From before to now, less what taking two of them costs. */
static struct usage usage_since(struct usage before)
{
    struct usage after = usage_now(), again = usage_now();
    /* A switch between the two counts of one usage is in one of them only. */
    uint64_t elsewhere = after.elsewhere > before.elsewhere ? after.elsewhere - before.elsewhere : 0;
    return (struct usage){after.time - before.time, after.calls - before.calls - (again.calls - after.calls),
                          after.switches - before.switches, elsewhere};
}

struct memory
{
    int64_t heap;
    int64_t resident;
};

static struct memory memory_now(void)
{
    struct mallinfo2 heap = mallinfo2();
    FILE *file = fopen("/proc/self/statm", "r");
    long long pages;
    CHECK(file != NULL && fscanf(file, "%*d %lld", &pages) == 1);
    fclose(file);
    return (struct memory){(int64_t)(heap.uordblks + heap.hblkhd), pages * sysconf(_SC_PAGESIZE)};
}

static struct memory memory_since(struct memory before)
{
    struct memory after = memory_now();
    return (struct memory){after.heap - before.heap, after.resident - before.resident};
}

/* Page-aligned zeroed memory, off the heap, so that it is in nobody's figures. */
static char *new_buffer(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void free_buffer(void *memory, size_t size)
{
    CHECK(munmap(memory, size) == 0);
}

static uint64_t *new_times(uint32_t count)
{
    return (uint64_t *)new_buffer(count * sizeof(uint64_t));
}

static void free_times(uint64_t *times, uint32_t count)
{
    free_buffer(times, count * sizeof(*times));
}

/* ------------------------------------------------------------------------------------------------------------------
 * Results */

/* Latencies in ns; `parts` is 2 where half a round trip is meant. */
static void print_latency(uint64_t *times, uint32_t count, unsigned parts, struct usage used)
{
    qsort(times, count, sizeof(*times), by_value);
    double unit = 1000.0 * parts;
    printf("{\"value\": %.4f, \"calls\": %.3f, \"switches\": %.3f, \"elsewhere\": %.1f}\n",
           (double)times[count / 2] / unit, (double)used.calls / count, (double)used.switches / count,
           (double)used.elsewhere * 1e9 / (double)used.time);
    fflush(stdout);
}

struct effort
{
    uint64_t time;
    uint64_t processor; /* the time that this thread has had of a processor */
};

static struct effort effort_now(void)
{
    struct timespec thread;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &thread);
    return (struct effort){now(), (uint64_t)thread.tv_sec * 1000000000 + (uint64_t)thread.tv_nsec};
}

static void print_rate(uint64_t count, struct effort before)
{
    struct effort after = effort_now();
    printf("{\"value\": %.4f, \"processor\": %.4f}\n", (double)count * 1e9 / (double)(after.time - before.time),
           (double)(after.processor - before.processor) / (double)count);
    fflush(stdout);
}

/* How many can be made in a second, by the median of what each took, and the memory that each has taken. */
static void print_made(uint64_t *times, uint32_t count, struct memory used)
{
    qsort(times, count, sizeof(*times), by_value);
    printf("{\"value\": %.4f, \"heap\": %.1f, \"resident\": %.1f}\n", 1e9 / (double)times[count / 2],
           (double)used.heap / count, (double)used.resident / count);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The stack, as each program defines it */

static void device_open(const char *address);    /* called in each process once; the server tells where it listens */
static void run_plan(const struct plan *plan);   /* both ends; the client prints the result */

static int parse_plan(const char *line, struct plan *plan)
{
    static const char *const operations[OPERATIONS] = {"ping",   "write",   "read",     "sends",
                                                       "writes", "connect", "register", "pairs"};
    static const char *const modes[WAIT_MODES] = {"poll", "event", "port"};
    char operation[16], mode[16];
    if (sscanf(line, "%15s %15s %u %u %u %u", operation, mode, &plan->size, &plan->depth, &plan->pairs, &plan->count) != 6)
    {
        return 0;
    }
    for (plan->operation = 0; strcmp(operation, operations[plan->operation]) != 0;)
    {
        if (++plan->operation == OPERATIONS)
        {
            return 0;
        }
    }
    for (plan->mode = 0; strcmp(mode, modes[plan->mode]) != 0;)
    {
        if (++plan->mode == WAIT_MODES)
        {
            return 0;
        }
    }
    return plan->size > 0 && plan->depth > 0 && plan->count > 0 && plan->pairs > 0 && plan->pairs <= MOST_PAIRS;
}

int main(int argc, char **argv)
{
    int sockets[2], counting = 0, i;
    struct plan plan;
    char line[128];
    for (i = 1; i < argc - 1; i++)
    {
        counting |= strcmp(argv[i], "--count") == 0;
        polls_per_yield = strcmp(argv[i], "--alone") == 0 ? 1 : polls_per_yield;
    }
    if (i != argc - 1)
    {
        fprintf(stderr,
                "usage: %s [--count] [--alone] ADDRESS\n"
                "reads plans from standard input; see bench/frame.h\n"
                "  --count  system calls, too      --alone  both ends have but one processor\n",
                argv[0]);
        return 2;
    }
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    is_server = child == 0;
    control = sockets[is_server];
    close(sockets[!is_server]);
    if (is_server)
    {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    if (counting)
    {
        open_call_counter();
    }
    device_open(argv[argc - 1]);
    if (is_server)
    {
        while (recv(control, &plan, sizeof(plan), MSG_WAITALL) == sizeof(plan))
        {
            run_plan(&plan);
        }
        _exit(0);
    }
    while (fgets(line, sizeof(line), stdin))
    {
        if (!parse_plan(line, &plan))
        {
            fail("not understood: %s", line);
        }
        tell(&plan, sizeof(plan));
        run_plan(&plan);
    }
    return 0;
}

#endif
