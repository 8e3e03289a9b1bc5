/* limits: what both sides of a connection tell each other in making it, by librdmacm and libibverbs: private data of any length,
 * read limits that differ, refusals with data.
 *
 *   limits -s IP PORT [-i]     serves the connections of all cases
 *   limits -c IP PORT [-i]     makes them; -i: iWARP, which tells the lengths of private data and the limits exactly */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int ok, const char* what, int number, int line)
{
    if (!ok)
    {
        fprintf(stderr, "limits.c(%d), case %d: %s: %s\n", line, number, what, strerror(errno));
        exit(1);
    }
}

#define CHECK(condition) check(!!(condition), #condition, number, __LINE__)

typedef struct Side
{
    uint8_t said;    /* bytes of private data */
    uint8_t inbound; /* reads of the peer that it holds */
    uint8_t outbound;
} Side;

typedef struct Case
{
    Side client, server;
    int refused;
} Case;

/* No more private data than siw can send. */
static const Case cases[] = {
    {{0, 1, 1}, {0, 1, 1}, 0},    {{1, 4, 4}, {251, 4, 4}, 0}, {{251, 5, 3}, {1, 2, 7}, 0}, {{17, 8, 1}, {33, 1, 8}, 0},
    {{40, 16, 16}, {3, 1, 4}, 0}, {{2, 0, 0}, {2, 4, 4}, 0},   {{251, 1, 1}, {251, 0, 0}, 1}, {{1, 1, 1}, {1, 0, 0}, 1},
    {{9, 1, 1}, {0, 0, 0}, 1},
};

enum
{
    Cases = sizeof(cases) / sizeof(*cases),
    Size = 4096
};

static int number;
static int exact;
static struct rdma_event_channel* channel;
static char memory[Size] __attribute__((aligned(4096)));

/* The private data of a side in a case. */
static const char* words(int server, int count)
{
    static char text[2][256];
    int i;
    for (i = 0; i < count; i++)
    {
        text[server][i] = (char)('a' + (i + number + server) % 26);
    }
    return text[server];
}

/* The next event, with this private data; to be acknowledged. */
static struct rdma_cm_event* event(enum rdma_cm_event_type expected, int server, int said)
{
    struct rdma_cm_event* event;
    const struct rdma_conn_param* told;
    CHECK(rdma_get_cm_event(channel, &event) == 0);
    if (event->event != expected)
    {
        fprintf(stderr, "limits, case %d: %s (%d), expected %s\n", number, rdma_event_str(event->event), event->status,
                rdma_event_str(expected));
        exit(1);
    }
    told = &event->param.conn;
    if (said >= 0)
    {
        CHECK(exact ? told->private_data_len == said : told->private_data_len >= said);
        CHECK(said == 0 || memcmp(told->private_data, words(server, said), (size_t)said) == 0);
    }
    return event;
}

static void expect(enum rdma_cm_event_type expected, int server, int said)
{
    CHECK(rdma_ack_cm_event(event(expected, server, said)) == 0);
}

static struct rdma_conn_param parameters(const Side* side, int server)
{
    struct rdma_conn_param param = {.private_data = words(server, side->said), .private_data_len = side->said,
                                    .responder_resources = side->inbound, .initiator_depth = side->outbound,
                                    .retry_count = 7, .rnr_retry_count = 7};
    return param;
}

static struct ibv_mr* prepare(struct rdma_cm_id* id)
{
    struct ibv_qp_init_attr attributes = {.cap = {32, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_mr* region;
    CHECK(rdma_create_qp(id, NULL, &attributes) == 0);
    CHECK(region = ibv_reg_mr(id->pd, memory, Size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
    return region;
}

static void end(struct rdma_cm_id* id, struct ibv_mr* region)
{
    rdma_destroy_qp(id);
    CHECK(ibv_dereg_mr(region) == 0);
    CHECK(rdma_destroy_id(id) == 0);
}

static void completion(struct ibv_cq* cq, enum ibv_wc_opcode opcode)
{
    struct ibv_wc done;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &done)) == 0)
    {
    }
    CHECK(count == 1);
    if (done.status != IBV_WC_SUCCESS)
    {
        fprintf(stderr, "limits, case %d: %s\n", number, ibv_wc_status_str(done.status));
        exit(1);
    }
    CHECK(done.opcode == opcode);
}

/* The client says by a message where its memory is, the server reads as much at once as was agreed, and answers. */
static void serve(const Case* now)
{
    struct rdma_conn_param param = parameters(&now->server, 1);
    struct rdma_cm_event* asked = event(RDMA_CM_EVENT_CONNECT_REQUEST, 0, now->client.said);
    struct rdma_cm_id* id = asked->id;
    struct ibv_mr* region;
    struct ibv_recv_wr receive = {.num_sge = 1}, *unreceived;
    struct ibv_send_wr read = {.num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED}, *unsent;
    struct ibv_sge into, from;
    uint64_t where[2];
    int reads = now->server.outbound < now->client.inbound ? now->server.outbound : now->client.inbound, i;
    if (exact)
    {
        CHECK(asked->param.conn.responder_resources == now->client.outbound);
        CHECK(asked->param.conn.initiator_depth == now->client.inbound);
    }
    CHECK(rdma_ack_cm_event(asked) == 0);
    if (now->refused)
    {
        CHECK(rdma_reject(id, param.private_data, param.private_data_len) == 0);
        CHECK(rdma_destroy_id(id) == 0);
        return;
    }
    region = prepare(id);
    into = (struct ibv_sge){(uintptr_t)memory, sizeof(where), region->lkey};
    receive.sg_list = &into;
    CHECK(ibv_post_recv(id->qp, &receive, &unreceived) == 0);
    CHECK(rdma_accept(id, &param) == 0);
    expect(RDMA_CM_EVENT_ESTABLISHED, 0, -1);
    completion(id->recv_cq, IBV_WC_RECV);
    memcpy(where, memory, sizeof(where));
    from = (struct ibv_sge){(uintptr_t)memory + 64, 64, region->lkey};
    read.sg_list = &from;
    read.wr.rdma.remote_addr = where[0];
    read.wr.rdma.rkey = (uint32_t)where[1];
    for (i = 0; i < reads; i++)
    {
        CHECK(ibv_post_send(id->qp, &read, &unsent) == 0);
    }
    for (i = 0; i < reads; i++)
    {
        completion(id->send_cq, IBV_WC_RDMA_READ);
    }
    CHECK(rdma_disconnect(id) == 0);
    expect(RDMA_CM_EVENT_DISCONNECTED, 0, -1);
    end(id, region);
}

static void make(const Case* now, struct sockaddr* address)
{
    struct rdma_conn_param param = parameters(&now->client, 0);
    struct rdma_cm_id* id;
    struct ibv_mr* region;
    struct ibv_send_wr send = {.num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *unsent;
    struct ibv_sge what;
    uint64_t where[2];
    CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
    CHECK(rdma_resolve_addr(id, NULL, address, 2000) == 0);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0, -1);
    CHECK(rdma_resolve_route(id, 2000) == 0);
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0, -1);
    region = prepare(id);
    CHECK(rdma_connect(id, &param) == 0);
    if (now->refused)
    {
        expect(RDMA_CM_EVENT_REJECTED, 1, now->server.said);
        end(id, region);
        return;
    }
    expect(RDMA_CM_EVENT_ESTABLISHED, 1, now->server.said);
    where[0] = (uintptr_t)memory;
    where[1] = region->rkey;
    memcpy(memory, where, sizeof(where));
    what = (struct ibv_sge){(uintptr_t)memory, sizeof(where), region->lkey};
    send.sg_list = &what;
    CHECK(ibv_post_send(id->qp, &send, &unsent) == 0);
    completion(id->send_cq, IBV_WC_SEND);
    expect(RDMA_CM_EVENT_DISCONNECTED, 1, -1);
    end(id, region);
}

int main(int argc, char** argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct rdma_cm_id* listener;
    int server = argc > 1 && strcmp(argv[1], "-s") == 0;
    if (argc < 4 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
    {
        fprintf(stderr, "usage: limits -s|-c IP PORT [-i]\n");
        return 2;
    }
    address.sin_port = htons((uint16_t)atoi(argv[3]));
    exact = argc > 4;
    CHECK(channel = rdma_create_event_channel());
    if (server)
    {
        CHECK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
        CHECK(rdma_bind_addr(listener, (struct sockaddr*)&address) == 0);
        CHECK(rdma_listen(listener, 4) == 0);
    }
    for (number = 0; number < Cases; number++)
    {
        if (server)
        {
            serve(&cases[number]);
        }
        else
        {
            make(&cases[number], (struct sockaddr*)&address);
        }
    }
    printf("%d cases\n", Cases);
    return 0;
}
