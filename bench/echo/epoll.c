/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An echo server as one writes it for Linux.
 *
 *   epoll PORT [THREADS [one | each]]    prints its port (0: any), and serves until the standard input ends
 *
 * Each thread has an epoll set, over which the connections are spread; or there is one set for all threads, so that any of them
 * takes any connection, as with a completion port, and a connection that was told is armed anew when it is served.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUIRE(condition) do { if (!(condition)) { perror(#condition); exit(1); } } while (0)
enum { MOST_THREADS = 64 };

static int sets[MOST_THREADS], threads, count_of_sets, listener;

/* What has arrived goes back; a peer that does not read is waited for. */
static void echo(int set, int fd)
{
    char data[16384];
    const ssize_t got = recv(fd, data, sizeof data, 0);
    for (ssize_t sent = 0; sent < got;) {
        const ssize_t count = send(fd, data + sent, (size_t)(got - sent), MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN) {
            close(fd);
            return;
        }
        sent += count > 0 ? count : 0;
    }
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        close(fd);
        return;
    }
    if (count_of_sets < threads) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};
        REQUIRE(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event) == 0);
    }
}

static void *work(void *number)
{
    const int set = sets[(intptr_t)number % count_of_sets];
    for (;;) {
        struct epoll_event events[16];
        /* With one set for all, what a thread has taken no other can take. */
        const int count = epoll_wait(set, events, count_of_sets < threads ? 1 : 16, -1);
        for (int i = 0; i < count; i++)
            echo(set, events[i].data.fd);
    }
    return NULL;
}

static void *accept_all(void *unused)
{
    for (int turn = 0;; turn++) {
        const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
        REQUIRE(fd >= 0);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct epoll_event event = {.events = EPOLLIN | (count_of_sets < threads ? EPOLLONESHOT : 0), .data.fd = fd};
        REQUIRE(epoll_ctl(sets[turn % count_of_sets], EPOLL_CTL_ADD, fd, &event) == 0);
    }
    return unused;
}

int main(int argc, char *argv[])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    pthread_t thread;
    address.sin_port = htons((unsigned short)(argc > 1 ? atoi(argv[1]) : 0));
    threads = argc > 2 ? atoi(argv[2]) : 4;
    REQUIRE(threads > 0 && threads <= MOST_THREADS);
    count_of_sets = argc > 3 && strcmp(argv[3], "one") == 0 ? 1 : threads;
    REQUIRE((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    REQUIRE(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, SOMAXCONN) == 0);
    REQUIRE(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    for (intptr_t i = 0; i < threads; i++) {
        if (i < count_of_sets)
            REQUIRE((sets[i] = epoll_create1(EPOLL_CLOEXEC)) >= 0);
        REQUIRE(pthread_create(&thread, NULL, work, (void *)i) == 0);
    }
    REQUIRE(pthread_create(&thread, NULL, accept_all, NULL) == 0);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
