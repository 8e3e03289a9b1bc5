/* The benchmark on libfabric's verbs provider, or the one that BENCH_PROVIDER names, with connected endpoints (FI_EP_MSG). */
#include "workloads.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

struct end
{
    const struct plan *plan;
    char *memory;
    struct fid_mr *region;
    void *descriptor;
    struct remote remote;
    struct fid_cq *cq;
    uint32_t count;
    struct fid_ep **pairs;
};

static struct fi_info *info; /* at the client it leads to the server */
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *events;
static struct fid_pep *listener;

static void check(int status, const char *call, int line)
{
    if (status != 0)
    {
        fail("ofi.c:%d: %s: %s", line, call, fi_strerror(abs(status)));
    }
}

#define FI(call) check((int)(call), #call, __LINE__)

/* The least that the workloads need, and one thread: what makes the provider fastest. */
static struct fi_info *find(const char *address, const char *port, uint64_t flags)
{
    struct fi_info *hints = fi_allocinfo(), *found;
    const char *provider = getenv("BENCH_PROVIDER");
    CHECK(hints != NULL);
    hints->caps = FI_MSG | FI_RMA;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->ep_attr->type = FI_EP_MSG;
    hints->fabric_attr->prov_name = strdup(provider ? provider : "verbs");
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    FI(fi_getinfo(FI_VERSION(1, 17), address, port, flags, hints, &found));
    fi_freeinfo(hints);
    return found;
}

static void device_open(const char *text)
{
    struct fi_eq_attr attributes = {.wait_obj = FI_WAIT_UNSPEC};
    struct sockaddr_in address;
    size_t size = sizeof(address);
    uint16_t port;
    char name[8] = "0";
    if (!is_server)
    {
        hear(&port, sizeof(port));
        snprintf(name, sizeof(name), "%u", ntohs(port));
    }
    info = find(text, name, is_server ? FI_SOURCE : 0);
    FI(fi_fabric(info->fabric_attr, &fabric, NULL));
    FI(fi_eq_open(fabric, &attributes, &events, NULL));
    FI(fi_domain(fabric, info, &domain, NULL));
    if (is_server)
    {
        FI(fi_passive_ep(fabric, info, &listener, NULL));
        FI(fi_pep_bind(listener, &events->fid, 0));
        FI(fi_listen(listener));
        FI(fi_getname(&listener->fid, &address, &size));
        tell(&address.sin_port, sizeof(address.sin_port));
    }
}

static struct end *new_end(void)
{
    static struct end end;
    memset(&end, 0, sizeof(end));
    return &end;
}

static const uint64_t region_access = FI_SEND | FI_RECV | FI_WRITE | FI_READ | FI_REMOTE_WRITE | FI_REMOTE_READ;

static void end_open(struct end *end, const struct plan *plan)
{
    struct fi_cq_attr attributes = {.size = (initiator_depth(plan) + receive_depth(plan)) * plan->pairs,
                                    .format = FI_CQ_FORMAT_MSG,
                                    .wait_obj = plan->mode == WAIT_POLL ? FI_WAIT_NONE : FI_WAIT_UNSPEC};
    end->plan = plan;
    end->count = (plan->operation == OP_CONNECT || plan->operation == OP_PAIRS) ? plan->count + 1 : plan->pairs;
    end->pairs = (struct fid_ep **)new_buffer(end->count * sizeof(*end->pairs));
    end->memory = new_buffer(memory_size(plan));
    FI(fi_mr_reg(domain, end->memory, memory_size(plan), region_access, 0, 0, 0, &end->region, NULL));
    end->descriptor = fi_mr_desc(end->region);
    FI(fi_cq_open(domain, &attributes, &end->cq, NULL));
    if (plan->operation != OP_REGISTER && plan->operation != OP_PAIRS)
    {
        struct remote own = {(uintptr_t)end->memory, fi_mr_key(end->region)};
        tell(&own, sizeof(own));
        hear(&end->remote, sizeof(end->remote));
    }
}

static void end_close(struct end *end)
{
    FI(fi_close(&end->cq->fid));
    FI(fi_close(&end->region->fid));
    free_buffer(end->memory, memory_size(end->plan));
    free_buffer(end->pairs, end->count * sizeof(*end->pairs));
}

static void create_from(struct end *end, uint32_t i, struct fi_info *from)
{
    from->tx_attr->size = initiator_depth(end->plan);
    from->rx_attr->size = receive_depth(end->plan);
    if (from->tx_attr->inject_size > INLINE_LIMIT) /* on siw it is less: the provider finds no more than 2 bytes */
    {
        from->tx_attr->inject_size = INLINE_LIMIT;
    }
    from->tx_attr->iov_limit = 1;
    from->rx_attr->iov_limit = 1;
    FI(fi_endpoint(domain, from, &end->pairs[i], NULL));
    FI(fi_ep_bind(end->pairs[i], &events->fid, 0));
    FI(fi_ep_bind(end->pairs[i], &end->cq->fid, FI_TRANSMIT | FI_RECV));
    FI(fi_enable(end->pairs[i]));
}

static void pair_create(struct end *end, uint32_t i)
{
    create_from(end, i, info);
}

static struct fi_info *early; /* a request that came while something else was awaited, as it does over iWARP */

/* The next event, which must be this one; a connection request brings an info. */
static struct fi_info *next_event(uint32_t expected)
{
    struct fi_info *request = early;
    if (expected == FI_CONNREQ && request != NULL)
    {
        early = NULL;
        return request;
    }
    char buffer[512];
    struct fi_eq_cm_entry *entry = (struct fi_eq_cm_entry *)buffer;
    uint32_t event;
    ssize_t size = fi_eq_sread(events, &event, buffer, sizeof(buffer), -1, 0);
    if (size == -FI_EAVAIL)
    {
        struct fi_eq_err_entry error = {0};
        fi_eq_readerr(events, &error, 0);
        fail("instead of event %u: %s", expected, fi_strerror(error.err));
    }
    if (size >= 0 && event == FI_CONNREQ && expected != FI_CONNREQ && early == NULL)
    {
        early = entry->info;
        return next_event(expected);
    }
    if (size < 0 || event != expected)
    {
        fail("event %u (%zd) instead of %u", event, size, expected);
    }
    return entry->info;
}

static void pair_connect(struct end *end, uint32_t i)
{
    create_from(end, i, info);
    FI(fi_connect(end->pairs[i], info->dest_addr, NULL, 0));
    next_event(FI_CONNECTED);
}

static void pair_accept(struct end *end, uint32_t i)
{
    struct fi_info *request = next_event(FI_CONNREQ);
    create_from(end, i, request);
    FI(fi_accept(end->pairs[i], NULL, 0));
    next_event(FI_CONNECTED);
    fi_freeinfo(request);
}

static void pair_close(struct end *end, uint32_t i)
{
    if (end->plan->operation != OP_PAIRS)
    {
        if (!is_server)
        {
            FI(fi_shutdown(end->pairs[i], 0));
        }
        next_event(FI_SHUTDOWN);
    }
    FI(fi_close(&end->pairs[i]->fid));
}

/* A request carries its queue pair's number, and in the low bit whether it is a receive. */
static inline void *context(uint32_t i, int receive)
{
    return (void *)(uintptr_t)(i << 1 | (unsigned)receive);
}

static inline void post_receive(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    FI(fi_recv(end->pairs[i], end->memory + offset, size, end->descriptor, 0, context(i, 1)));
}

static inline void post_send(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    FI(fi_send(end->pairs[i], end->memory + offset, size, end->descriptor, 0, context(i, 0)));
}

static inline void post_write(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    FI(fi_write(end->pairs[i], end->memory + offset, size, end->descriptor, 0, end->remote.address + offset,
                end->remote.key, context(i, 0)));
}

static inline void post_read(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    FI(fi_read(end->pairs[i], end->memory + offset, size, end->descriptor, 0, end->remote.address + offset,
               end->remote.key, context(i, 0)));
}

static void failed_completion(struct end *end, ssize_t status)
{
    struct fi_cq_err_entry error = {0};
    if (status == -FI_EAVAIL && fi_cq_readerr(end->cq, &error, 0) > 0)
    {
        fail("completion: %s (%d)", fi_strerror(error.err), error.prov_errno);
    }
    fail("completion queue: %s", fi_strerror((int)-status));
}

static inline int take(struct end *end, const struct fi_cq_msg_entry *entries, ssize_t count)
{
    if (count == -FI_EAGAIN || count == -FI_EINTR)
    {
        return 0;
    }
    if (__builtin_expect(count < 0, 0))
    {
        failed_completion(end, count);
    }
    for (ssize_t k = 0; k < count; k++)
    {
        uintptr_t context = (uintptr_t)entries[k].op_context;
        completed((uint32_t)(context >> 1), context & 1);
    }
    return (int)count;
}

static inline int reap(struct end *end)
{
    struct fi_cq_msg_entry entries[REAP_BATCH];
    return take(end, entries, fi_cq_read(end->cq, entries, REAP_BATCH));
}

static void block(struct end *end)
{
    struct fi_cq_msg_entry entries[REAP_BATCH];
    take(end, entries, fi_cq_sread(end->cq, entries, REAP_BATCH, NULL, -1));
}

static void register_once(struct end *end, char *memory, uint32_t size)
{
    (void)end;
    struct fid_mr *region;
    FI(fi_mr_reg(domain, memory, size, region_access, 0, 0, 0, &region, NULL));
    FI(fi_close(&region->fid));
}
