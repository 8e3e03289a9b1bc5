// SPDX-License-Identifier: MIT OR Apache-2.0
// What threads hand to each other through every means of the runtime: plain memory, which only the hand-over orders.
// Under ThreadSanitizer a hand-over that does not order it is found. With an argument the program does something wrong
// itself, so that one sees that the sanitizer would notice: `race`, `overflow`.
#include <atomic>
#include <process.h>
#include <winsock2.h>
#include <windows.h>
#include <ndcompat.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#define LAST_ERROR GetLastError()
#include "../check.h"

static const int Rounds = 2000;
// Written and read without any protection of its own.
static int plain;

template <typename Body> static unsigned __stdcall call(void* body)
{
    (*static_cast<Body*>(body))();
    return 0;
}

// Runs a body on two threads, which are told apart by their number, and waits for both.
template <typename Body> static void on_two_threads(Body body)
{
    auto second = [&] { body(1); };
    const HANDLE thread = reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 0, call<decltype(second)>, &second, 0, nullptr));
    CHECK(thread != nullptr);
    body(0);
    CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    CHECK(CloseHandle(thread));
}

static void ports()
{
    HANDLE port[2];
    for (HANDLE& one : port)
        CHECK((one = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0)) != nullptr);
    plain = 0;
    CHECK(PostQueuedCompletionStatus(port[0], 0, 0, nullptr));
    on_two_threads([&](int me) {
        for (int i = 0; i < Rounds; i++) {
            DWORD bytes;
            ULONG_PTR key;
            OVERLAPPED* overlapped;
            CHECK(GetQueuedCompletionStatus(port[me], &bytes, &key, &overlapped, INFINITE));
            CHECK(key == static_cast<ULONG_PTR>(plain));
            plain++;
            CHECK(PostQueuedCompletionStatus(port[!me], 0, key + 1, nullptr));
        }
    });
    CHECK(plain == 2 * Rounds);
    for (HANDLE one : port)
        CHECK(CloseHandle(one));
}

// Many packets that nobody waits for, each with memory of its own.
static void streams()
{
    const HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0);
    std::vector<int> items(20 * Rounds);
    on_two_threads([&](int me) {
        for (size_t i = 0; i < items.size(); i++) {
            if (me == 0) {
                items[i] = 5;
                CHECK(PostQueuedCompletionStatus(port, 0, i, nullptr));
                continue;
            }
            OVERLAPPED_ENTRY entries[8];
            ULONG count;
            CHECK(GetQueuedCompletionStatusEx(port, entries, ARRAYSIZE(entries), &count, INFINITE, FALSE));
            for (ULONG n = 0; n < count; n++) {
                CHECK(entries[n].lpCompletionKey == i + n);
                items[i + n]++;
            }
            i += count - 1;
        }
    });
    CHECK(items.front() == 6 && items.back() == 6);
    CHECK(CloseHandle(port));
}

static void events()
{
    HANDLE event[2];
    for (HANDLE& one : event)
        CHECK((one = CreateEvent(nullptr, FALSE, FALSE, nullptr)) != nullptr);
    plain = 0;
    CHECK(SetEvent(event[0]));
    on_two_threads([&](int me) {
        for (int i = 0; i < Rounds; i++) {
            if (i % 3 == 0) {
                pollfd ready = {ndcompat_event_fd(event[me]), POLLIN, 0};
                CHECK(poll(&ready, 1, -1) == 1);
                CHECK(WaitForSingleObject(event[me], 0) == WAIT_OBJECT_0);
            } else {
                CHECK(WaitForMultipleObjects(1, &event[me], i % 2, INFINITE) == WAIT_OBJECT_0);
            }
            plain++;
            CHECK(SetEvent(event[!me]));
        }
    });
    CHECK(plain == 2 * Rounds);
    for (HANDLE one : event)
        CHECK(CloseHandle(one));
}

static void locks()
{
    CRITICAL_SECTION section;
    InitializeCriticalSection(&section);
    SRWLOCK lock = SRWLOCK_INIT;
    CONDITION_VARIABLE turns = CONDITION_VARIABLE_INIT;
    int turn = 0, guarded = 0;
    on_two_threads([&](int me) {
        for (int i = 0; i < Rounds; i++) {
            EnterCriticalSection(&section);
            guarded++;
            LeaveCriticalSection(&section);

            AcquireSRWLockExclusive(&lock);
            while (turn != me)
                CHECK(SleepConditionVariableSRW(&turns, &lock, INFINITE, 0));
            turn = !me;
            ReleaseSRWLockExclusive(&lock);
            WakeAllConditionVariable(&turns);

            AcquireSRWLockShared(&lock);
            CHECK(turn == 0 || turn == 1);
            ReleaseSRWLockShared(&lock);
        }
    });
    CHECK(guarded == 2 * Rounds);
    DeleteCriticalSection(&section);
}

static void addresses()
{
    volatile LONG turn = 0;
    plain = 0;
    on_two_threads([&](int me) {
        for (int i = 0; i < Rounds; i++) {
            LONG other = !me;
            while (InterlockedCompareExchange(&turn, me, me) != me)
                CHECK(WaitOnAddress(&turn, &other, sizeof turn, INFINITE));
            plain++;
            InterlockedExchange(&turn, !me);
            WakeByAddressSingle(const_cast<LONG*>(&turn));
        }
    });
    CHECK(plain == 2 * Rounds);
}

static void race()
{
    // Both run: what one does at its end would order its work before that of one that begins later.
    static std::atomic<int> begun;
    on_two_threads([](int) {
        begun.fetch_add(1, std::memory_order_relaxed);
        while (begun.load(std::memory_order_relaxed) < 2)
            SwitchToThread();
        for (int i = 0; i < Rounds; i++)
            plain++;
    });
}

static void overflow()
{
    volatile size_t size = 100;
    char* const block = static_cast<char*>(HeapAlloc(GetProcessHeap(), 0, size));
    memset(block, 0, size + 1);
    HeapFree(GetProcessHeap(), 0, block);
}

int main(int argc, char* argv[])
{
    const char* const fault = argc > 1 ? argv[1] : "";
    if (strcmp(fault, "race") == 0)
        race();
    else if (strcmp(fault, "overflow") == 0)
        overflow();
    for (void (*test)() : {ports, streams, events, locks, addresses})
        test();
    puts("done");
    return 0;
}
