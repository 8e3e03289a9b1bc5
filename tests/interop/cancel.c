/* Cancels threads that wait for events, as the server of rping does, and joins them; on the emulator (ci/emulated). */

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s: failed\n", what);
        exit(1);
    }
}

static void *wait_for_connections(void *channel)
{
    struct rdma_cm_event *event;

    rdma_get_cm_event(channel, &event);
    return NULL;
}

static void *wait_for_completions(void *channel)
{
    struct ibv_cq *cq;
    void *context;

    ibv_get_cq_event(channel, &cq, &context);
    return NULL;
}

static void *wait_for_the_device(void *context)
{
    struct ibv_async_event event;

    ibv_get_async_event(context, &event);
    return NULL;
}

/* A thread that has had time to wait is cancelled, and one that has not. */
static void cancel(void *(*waits)(void *), void *object, const char *what)
{
    const useconds_t pauses[] = {0, 10000, 250000};
    pthread_t thread;
    void *result;
    size_t at;

    for (at = 0; at < sizeof(pauses) / sizeof(pauses[0]); at++) {
        check(pthread_create(&thread, NULL, waits, object) == 0, "pthread_create");
        usleep(pauses[at]);
        check(pthread_cancel(thread) == 0, "pthread_cancel");
        check(pthread_join(thread, &result) == 0, "pthread_join");
        check(result == PTHREAD_CANCELED, what);
    }
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_event_channel *events = rdma_create_event_channel();
    struct ibv_comp_channel *completions;
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    struct ibv_cq *cq;

    alarm(60);
    check(events != NULL, "rdma_create_event_channel");
    check(rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    check(rdma_bind_addr(id, (struct sockaddr *)&at) == 0, "rdma_bind_addr");
    completions = ibv_create_comp_channel(id->verbs);
    check(completions != NULL, "ibv_create_comp_channel");
    cq = ibv_create_cq(id->verbs, 1, NULL, completions, 0);
    check(cq != NULL && ibv_req_notify_cq(cq, 0) == 0, "ibv_create_cq");
    cancel(wait_for_connections, events, "rdma_get_cm_event");
    cancel(wait_for_completions, completions, "ibv_get_cq_event");
    cancel(wait_for_the_device, id->verbs, "ibv_get_async_event");

    /* All can still be used. */
    at.sin_port = htons(1);
    check(rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, 1000) == 0, "rdma_resolve_addr");
    check(rdma_get_cm_event(events, &event) == 0, "rdma_get_cm_event");
    check(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && rdma_ack_cm_event(event) == 0, "the event");
    check(ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(completions) == 0, "ibv_destroy_comp_channel");
    check(rdma_destroy_id(id) == 0, "rdma_destroy_id");
    rdma_destroy_event_channel(events);
    return 0;
}
