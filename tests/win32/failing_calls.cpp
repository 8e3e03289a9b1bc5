// SPDX-License-Identifier: MIT OR Apache-2.0
// The program's own functions of the C library, which stand before the real ones and pass on to them, but for the one call that is to
// fail. Without the Windows headers, which give `socket` and its kin another meaning.
#include "failing_calls.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

std::atomic<int> due{-1}, calls;
std::atomic<const char*> failed;

// Whether this call is the one.
static bool fails(const char* name, int error)
{
    if (due < 0 || calls++ != due)
        return false;
    failed = name;
    errno = error;
    return true;
}

#define NEXT(name) static const auto next = reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name))

extern "C" {
int epoll_create1(int flags) noexcept
{
    NEXT(epoll_create1);
    return fails("epoll_create1", EMFILE) ? -1 : next(flags);
}
int epoll_ctl(int set, int operation, int fd, epoll_event* event) noexcept
{
    NEXT(epoll_ctl);
    // To remove a descriptor that is there cannot fail.
    return operation != EPOLL_CTL_DEL && fails("epoll_ctl", ENOSPC) ? -1 : next(set, operation, fd, event);
}
int eventfd(unsigned count, int flags) noexcept
{
    static const auto next = reinterpret_cast<int (*)(unsigned, int)>(dlsym(RTLD_NEXT, "eventfd"));
    return fails("eventfd", EMFILE) ? -1 : next(count, flags);
}
int socket(int family, int type, int protocol) noexcept
{
    static const auto next = reinterpret_cast<int (*)(int, int, int)>(dlsym(RTLD_NEXT, "socket"));
    return fails("socket", EMFILE) ? -1 : next(family, type, protocol);
}
int accept4(int listener, sockaddr* address, socklen_t* length, int flags)
{
    static const auto next = reinterpret_cast<int (*)(int, sockaddr*, socklen_t*, int)>(dlsym(RTLD_NEXT, "accept4"));
    return fails("accept4", EMFILE) ? -1 : next(listener, address, length, flags);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) noexcept
{
    NEXT(pthread_create);
    return fails("pthread_create", EAGAIN) ? EAGAIN : next(thread, attributes, start, argument);
}
void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept
{
    static const auto next = reinterpret_cast<void* (*)(void*, size_t, int, int, int, off_t)>(dlsym(RTLD_NEXT, "mmap"));
    return fails("mmap", ENOMEM) ? MAP_FAILED : next(address, length, protection, flags, fd, offset);
}
}
