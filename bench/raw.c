/* The benchmark on plain libibverbs and librdmacm, as good as we can write it: what the others are compared with.
 * WAIT_PORT has no equal here; it waits as WAIT_EVENT does. */
#include "workloads.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

struct end
{
    const struct plan *plan;
    char *memory;
    struct ibv_mr *region;
    struct remote remote;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    int armed;
    unsigned unacknowledged;
    uint32_t count; /* of ids */
    struct rdma_cm_id **ids;
    struct ibv_qp **pairs;
};

static struct rdma_event_channel *events;
static struct rdma_cm_id *listener; /* at the client: just what opens the device */
static struct ibv_pd *domain;
static struct sockaddr_in server_address;

static void device_open(const char *text)
{
    struct sockaddr_in address = parse_address(text, 0);
    CHECK(events = rdma_create_event_channel());
    CHECK(rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) == 0);
    CHECK(rdma_bind_addr(listener, (struct sockaddr *)&address) == 0);
    CHECK(domain = ibv_alloc_pd(listener->verbs));
    server_address = address;
    if (is_server)
    {
        CHECK(rdma_listen(listener, 128) == 0);
        server_address.sin_port = rdma_get_src_port(listener);
        tell(&server_address.sin_port, sizeof(server_address.sin_port));
    }
    else
    {
        hear(&server_address.sin_port, sizeof(server_address.sin_port));
    }
}

static struct rdma_cm_id *early; /* a request that came while something else was awaited, as it does over iWARP */

static struct rdma_cm_id *next_event(enum rdma_cm_event_type expected)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id = early;
    enum rdma_cm_event_type type;
    if (expected == RDMA_CM_EVENT_CONNECT_REQUEST && id != NULL)
    {
        early = NULL;
        return id;
    }
    for (;;)
    {
        CHECK(rdma_get_cm_event(events, &event) == 0);
        id = event->id;
        type = event->event;
        CHECK(rdma_ack_cm_event(event) == 0);
        if (type == expected)
        {
            return id;
        }
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST && early == NULL)
        {
            early = id;
        }
        else if (type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
        {
            fail("%s instead of %s", rdma_event_str(type), rdma_event_str(expected));
        }
    }
}

static struct end *new_end(void)
{
    static struct end end;
    memset(&end, 0, sizeof(end));
    return &end;
}

static void end_open(struct end *end, const struct plan *plan)
{
    uint32_t entries = (initiator_depth(plan) + receive_depth(plan)) * plan->pairs;
    end->plan = plan;
    end->count = (plan->operation == OP_CONNECT || plan->operation == OP_PAIRS) ? plan->count + 1 : plan->pairs;
    CHECK(end->ids = (struct rdma_cm_id **)new_buffer(end->count * sizeof(*end->ids)));
    CHECK(end->pairs = (struct ibv_qp **)new_buffer(end->count * sizeof(*end->pairs)));
    end->memory = new_buffer(memory_size(plan));
    CHECK(end->region = ibv_reg_mr(domain, end->memory, memory_size(plan),
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
    if (plan->mode != WAIT_POLL)
    {
        CHECK(end->channel = ibv_create_comp_channel(listener->verbs));
    }
    CHECK(end->cq = ibv_create_cq(listener->verbs, (int)entries, NULL, end->channel, 0));
    if (plan->operation != OP_REGISTER && plan->operation != OP_PAIRS)
    {
        struct remote own = {(uintptr_t)end->memory, end->region->rkey};
        tell(&own, sizeof(own));
        hear(&end->remote, sizeof(end->remote));
    }
}

static void end_close(struct end *end)
{
    ibv_ack_cq_events(end->cq, end->unacknowledged);
    CHECK(ibv_destroy_cq(end->cq) == 0);
    CHECK(end->channel == NULL || ibv_destroy_comp_channel(end->channel) == 0);
    CHECK(ibv_dereg_mr(end->region) == 0);
    free_buffer(end->memory, memory_size(end->plan));
    free_buffer(end->ids, end->count * sizeof(*end->ids));
    free_buffer(end->pairs, end->count * sizeof(*end->pairs));
}

static struct ibv_qp_init_attr pair_attributes(struct end *end)
{
    return (struct ibv_qp_init_attr){.send_cq = end->cq,
                                     .recv_cq = end->cq,
                                     .cap = {initiator_depth(end->plan), receive_depth(end->plan), 1, 1, INLINE_LIMIT},
                                     .qp_type = IBV_QPT_RC};
}

static void pair_create(struct end *end, uint32_t i)
{
    struct ibv_qp_init_attr attributes = pair_attributes(end);
    CHECK(end->pairs[i] = ibv_create_qp(domain, &attributes));
}

static struct rdma_conn_param connection_parameters(void)
{
    return (struct rdma_conn_param){
        .responder_resources = 16, .initiator_depth = 16, .retry_count = 6, .rnr_retry_count = 6};
}

static void create_on(struct end *end, uint32_t i, struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attributes = pair_attributes(end);
    CHECK(rdma_create_qp(id, domain, &attributes) == 0);
    end->ids[i] = id;
    end->pairs[i] = id->qp;
}

static void pair_connect(struct end *end, uint32_t i)
{
    struct rdma_conn_param parameters = connection_parameters();
    struct sockaddr_in local = server_address;
    struct rdma_cm_id *id;
    local.sin_port = 0;
    CHECK(rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0);
    CHECK(rdma_resolve_addr(id, (struct sockaddr *)&local, (struct sockaddr *)&server_address, 2000) == 0);
    next_event(RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(rdma_resolve_route(id, 2000) == 0);
    next_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
    create_on(end, i, id);
    CHECK(rdma_connect(id, &parameters) == 0);
    next_event(RDMA_CM_EVENT_ESTABLISHED);
}

static void pair_accept(struct end *end, uint32_t i)
{
    struct rdma_conn_param parameters = connection_parameters();
    struct rdma_cm_id *id = next_event(RDMA_CM_EVENT_CONNECT_REQUEST);
    create_on(end, i, id);
    CHECK(rdma_accept(id, &parameters) == 0);
    next_event(RDMA_CM_EVENT_ESTABLISHED);
}

static void pair_close(struct end *end, uint32_t i)
{
    struct rdma_cm_id *id = end->ids[i];
    if (id == NULL)
    {
        CHECK(ibv_destroy_qp(end->pairs[i]) == 0);
        return;
    }
    if (!is_server)
    {
        CHECK(rdma_disconnect(id) == 0);
    }
    next_event(RDMA_CM_EVENT_DISCONNECTED);
    if (is_server)
    {
        rdma_disconnect(id); /* the answer; iWARP needs none, and refuses */
    }
    rdma_destroy_qp(id);
    CHECK(rdma_destroy_id(id) == 0);
}

/* A request carries its queue pair's number, and in the low bit whether it is a receive. */
static inline void post_receive(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    struct ibv_sge sge = {(uintptr_t)end->memory + offset, size, end->region->lkey};
    struct ibv_recv_wr request = {.wr_id = i << 1 | 1, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(ibv_post_recv(end->pairs[i], &request, &bad) == 0);
}

static inline void post(struct end *end, uint32_t i, uint32_t offset, uint32_t size, enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {(uintptr_t)end->memory + offset, size, end->region->lkey};
    struct ibv_send_wr request, *bad;
    request.wr_id = i << 1;
    request.next = NULL;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags =
        IBV_SEND_SIGNALED | (opcode != IBV_WR_RDMA_READ && size <= INLINE_LIMIT ? IBV_SEND_INLINE : 0);
    if (opcode != IBV_WR_SEND)
    {
        request.wr.rdma.remote_addr = end->remote.address + offset;
        request.wr.rdma.rkey = (uint32_t)end->remote.key;
    }
    CHECK(ibv_post_send(end->pairs[i], &request, &bad) == 0);
}

static inline void post_send(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    post(end, i, offset, size, IBV_WR_SEND);
}

static inline void post_write(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    post(end, i, offset, size, IBV_WR_RDMA_WRITE);
}

static inline void post_read(struct end *end, uint32_t i, uint32_t offset, uint32_t size)
{
    post(end, i, offset, size, IBV_WR_RDMA_READ);
}

static inline int reap(struct end *end)
{
    struct ibv_wc completions[REAP_BATCH];
    int count = ibv_poll_cq(end->cq, REAP_BATCH, completions);
    for (int k = 0; k < count; k++)
    {
        if (__builtin_expect(completions[k].status != IBV_WC_SUCCESS, 0))
        {
            fail("completion: %s", ibv_wc_status_str(completions[k].status));
        }
        completed((uint32_t)(completions[k].wr_id >> 1), completions[k].wr_id & 1);
    }
    return count;
}

/* The queue is looked at once more between arming it and sleeping. */
static void block(struct end *end)
{
    struct ibv_cq *cq;
    void *context;
    if (!end->armed)
    {
        CHECK(ibv_req_notify_cq(end->cq, 0) == 0);
        end->armed = 1;
        return;
    }
    CHECK(ibv_get_cq_event(end->channel, &cq, &context) == 0);
    end->unacknowledged++; /* acknowledged together: each costs a lock */
    end->armed = 0;
}

static void register_once(struct end *end, char *memory, uint32_t size)
{
    (void)end;
    struct ibv_mr *region = ibv_reg_mr(
        domain, memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    CHECK(region != NULL);
    CHECK(ibv_dereg_mr(region) == 0);
}
