/* peer: a plain librdmacm and libibverbs program, without any of NetworkDirect, for ndpeer to talk to.
 *
 *   peer -s IP PORT [-w]     serves one connection
 *   peer -c IP PORT [-w]     makes one; -w: the other side disconnects first */
#include "protocol.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int ok, const char* what, int line)
{
    if (!ok)
    {
        fprintf(stderr, "peer.c(%d): %s: %s\n", line, what, strerror(errno));
        exit(1);
    }
}

#define CHECK(condition) check(!!(condition), #condition, __LINE__)

static struct rdma_event_channel* channel;
static struct rdma_cm_id* id;
static struct ibv_mr* region;
static char* memory;

/* Waits for the next event, which must be this one. A request's id becomes ours. */
static void wait_event(enum rdma_cm_event_type expected, const char* said)
{
    struct rdma_cm_event* event;
    CHECK(rdma_get_cm_event(channel, &event) == 0);
    if (event->event != expected)
    {
        fprintf(stderr, "peer: %s (%d), expected %s\n", rdma_event_str(event->event), event->status,
                rdma_event_str(expected));
        exit(1);
    }
    if (said)
    {
        size_t length = strlen(said);
        CHECK(event->param.conn.private_data_len >= length);
        CHECK(memcmp(event->param.conn.private_data, said, length) == 0);
    }
    if (expected == RDMA_CM_EVENT_CONNECT_REQUEST)
    {
        id = event->id;
    }
    CHECK(rdma_ack_cm_event(event) == 0);
}

static void post_receive(void)
{
    struct ibv_sge sge = {(uintptr_t)(memory + InAt), sizeof(Announcement), region->lkey};
    struct ibv_recv_wr request = {.wr_id = InAt, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(ibv_post_recv(id->qp, &request, &bad) == 0);
}

/* Waits for one completion; a sleep in between is not worth its lines here. */
static void wait_completion(struct ibv_cq* cq, uint32_t length)
{
    struct ibv_wc completion;
    int count;
    while ((count = ibv_poll_cq(cq, 1, &completion)) == 0)
    {
    }
    CHECK(count == 1);
    if (completion.status != IBV_WC_SUCCESS)
    {
        fprintf(stderr, "peer: %s\n", ibv_wc_status_str(completion.status));
        exit(1);
    }
    CHECK(length == 0 || completion.byte_len == length);
}

static void wait_message(Announcement* message)
{
    wait_completion(id->recv_cq, sizeof(Announcement));
    memcpy(message, memory + InAt, sizeof(*message));
    post_receive();
}

static void post(enum ibv_wr_opcode opcode, int at, uint32_t length, const Announcement* remote)
{
    struct ibv_sge sge = {(uintptr_t)(memory + at), length, region->lkey};
    struct ibv_send_wr request = {.sg_list = &sge, .num_sge = 1, .opcode = opcode,
                                  .send_flags = IBV_SEND_SIGNALED}, *bad;
    if (remote)
    {
        request.wr.rdma.remote_addr = FromBigEndian64(remote->Address);
        request.wr.rdma.rkey = ntohl(remote->Token);
    }
    CHECK(ibv_post_send(id->qp, &request, &bad) == 0);
    wait_completion(id->send_cq, 0);
}

static void announce(void)
{
    Announcement* out = (Announcement*)(memory + OutAt);
    out->Address = ToBigEndian64((uintptr_t)(memory + TargetAt));
    out->Token = htonl(region->rkey);
    out->Size = htonl(TransferSize);
    post(IBV_WR_SEND, OutAt, sizeof(*out), NULL);
}

/* The queue pair and the memory, once the id has a device. */
static void prepare(void)
{
    struct ibv_qp_init_attr attributes = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(rdma_create_qp(id, NULL, &attributes) == 0);
    CHECK((memory = aligned_alloc(PageSize, MemorySize)) != NULL);
    memset(memory, 0, MemorySize);
    CHECK(region = ibv_reg_mr(id->pd, memory, MemorySize,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
    post_receive();
}

static struct rdma_conn_param parameters(const char* said)
{
    struct rdma_conn_param param = {.private_data = said, .private_data_len = (uint8_t)strlen(said),
                                    .responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
                                    .rnr_retry_count = 7};
    return param;
}

static void serve(struct rdma_cm_id* listener, struct sockaddr* address)
{
    struct rdma_conn_param param = parameters(SaidBy(1));
    CHECK(rdma_bind_addr(listener, address) == 0);
    CHECK(rdma_listen(listener, 1) == 0);
    printf("listening\n");
    fflush(stdout);
    wait_event(RDMA_CM_EVENT_CONNECT_REQUEST, SaidBy(0));
    prepare();
    CHECK(rdma_accept(id, &param) == 0);
    wait_event(RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static void connect_to(struct sockaddr* address)
{
    struct rdma_conn_param param = parameters(SaidBy(0));
    CHECK(rdma_resolve_addr(id, NULL, address, 2000) == 0);
    wait_event(RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
    CHECK(rdma_resolve_route(id, 2000) == 0);
    wait_event(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
    prepare();
    CHECK(rdma_connect(id, &param) == 0);
    wait_event(RDMA_CM_EVENT_ESTABLISHED, SaidBy(1));
}

static void my_turn(const Announcement* peer, int server)
{
    CHECK(ntohl(peer->Size) == TransferSize);
    FillPattern(memory + SourceAt, server);
    post(IBV_WR_RDMA_WRITE, SourceAt, TransferSize, peer);
    post(IBV_WR_RDMA_READ, BackAt, TransferSize, peer);
    CHECK(HasPattern(memory + BackAt, server));
    post(IBV_WR_SEND, OutAt, sizeof(Announcement), NULL);
}

static void peers_turn(int server)
{
    Announcement message;
    wait_message(&message);
    CHECK(HasPattern(memory + TargetAt, !server));
}

int main(int argc, char** argv)
{
    int server = argc > 3 && strcmp(argv[1], "-s") == 0;
    int peer_first = argc > 4 && strcmp(argv[4], "-w") == 0;
    struct addrinfo *address, hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct rdma_cm_id* first;
    Announcement peer;
    if (argc < 4 || (!server && strcmp(argv[1], "-c") != 0))
    {
        fprintf(stderr, "usage: peer -s|-c IP PORT [-w]\n");
        return 2;
    }
    CHECK(getaddrinfo(argv[2], argv[3], &hints, &address) == 0);
    CHECK(channel = rdma_create_event_channel());
    CHECK(rdma_create_id(channel, &first, NULL, RDMA_PS_TCP) == 0);
    if (server)
    {
        serve(first, address->ai_addr);
        wait_message(&peer);
        announce();
        peers_turn(1);
        my_turn(&peer, 1);
    }
    else
    {
        id = first;
        connect_to(address->ai_addr);
        announce();
        wait_message(&peer);
        my_turn(&peer, 0);
        peers_turn(0);
    }
    if (peer_first)
    {
        wait_event(RDMA_CM_EVENT_DISCONNECTED, NULL);
        CHECK(rdma_disconnect(id) == 0 || errno == EINVAL); /* iWARP has nothing left to end */
    }
    else
    {
        CHECK(rdma_disconnect(id) == 0);
        wait_event(RDMA_CM_EVENT_DISCONNECTED, NULL);
    }
    CHECK(ibv_dereg_mr(region) == 0);
    rdma_destroy_qp(id);
    CHECK(rdma_destroy_id(id) == 0);
    CHECK(!server || rdma_destroy_id(first) == 0);
    rdma_destroy_event_channel(channel);
    freeaddrinfo(address);
    printf("done\n");
    return 0;
}
