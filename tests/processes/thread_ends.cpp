// SPDX-License-Identifier: MIT OR Apache-2.0
// How threads end while the library is at work: by pthread_cancel, with requests pending, with destructors that use the library.
#include "processes.h"

#include <io.h>
#include <wchar.h>

#include <fcntl.h>

#include <string>

// ---------------------------------------------------------------------------------------------------------------------
// pthread_cancel

// A wait without end, and what ends it.
struct Wait {
    std::function<void()> wait;
    std::function<void()> satisfy;
};

// What the library is in the middle of stays whole: cancelling waits until the call is over.
static void cancel_waits(const std::vector<Wait>& waits)
{
    for (const Wait& wait : waits) {
        bool done = false;
        Thread thread([&] {
            wait.wait();
            done = true;
            // A sleep may be over before it is cancelled.
            for (;;)
                pause();
        });
        thread.wait_until_asleep();
        CHECK(pthread_cancel(thread.pthread()) == 0);
        wait.satisfy();
        CHECK(thread.join() == PTHREAD_CANCELED && done);
    }
}

static void cancel_objects()
{
    static HANDLE one = event(), port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0);
    static SRWLOCK lock = SRWLOCK_INIT;
    static CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
    static CRITICAL_SECTION section;
    static LONG word = 0, same = 0;
    static bool holds = false;
    static int silent[2];
    WSADATA data;
    CHECK(WSAStartup(MAKEWORD(2, 2), &data) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, silent) == 0);
    InitializeCriticalSection(&section);
    AcquireSRWLockExclusive(&lock);
    EnterCriticalSection(&section);
    cancel_waits({
        {[] { CHECK(WaitForSingleObject(one, INFINITE) == WAIT_OBJECT_0); }, [] { SetEvent(one); }},
        {[] { Sleep(50); }, [] {}},
        {[] { CHECK(SleepEx(50, TRUE) == 0); }, [] {}},
        {[] {
             DWORD bytes;
             ULONG_PTR key;
             OVERLAPPED* ov;
             CHECK(GetQueuedCompletionStatus(port, &bytes, &key, &ov, INFINITE));
         },
         [] { PostQueuedCompletionStatus(port, 0, 0, nullptr); }},
        {[] { AcquireSRWLockExclusive(&lock), ReleaseSRWLockExclusive(&lock); }, [] { ReleaseSRWLockExclusive(&lock); }},
        {[] { EnterCriticalSection(&section), LeaveCriticalSection(&section); }, [] { LeaveCriticalSection(&section); }},
        {[] {
             AcquireSRWLockExclusive(&lock);
             while (!holds)
                 CHECK(SleepConditionVariableSRW(&condition, &lock, INFINITE, 0));
             ReleaseSRWLockExclusive(&lock);
         },
         [] {
             AcquireSRWLockExclusive(&lock);
             holds = true;
             ReleaseSRWLockExclusive(&lock);
             WakeConditionVariable(&condition);
         }},
        {[] {
             while (*static_cast<volatile LONG*>(&word) == 0)
                 CHECK(WaitOnAddress(&word, &same, sizeof(word), INFINITE));
         },
         [] { InterlockedExchange(&word, 1), WakeByAddressAll(&word); }},
        {[] {
             WSAPOLLFD entry = {};
             entry.fd = silent[0];
             entry.events = POLLRDNORM;
             CHECK(WSAPoll(&entry, 1, -1) == 1);
         },
         [] { CHECK(write(silent[1], "x", 1) == 1); }},
        {[] {
             char bytes[2];
             CHECK(recv(silent[0], bytes, 1, 0) == 1 && recv(silent[0], bytes, 1, 0) == 1);
         },
         [] { CHECK(write(silent[1], "y", 1) == 1); }},
    });
}

static void cancel_requests()
{
    static End active, passive;
    connect_ends(active, passive);
    static OVERLAPPED notify = {}, ended = {};
    EXPECT(ND_PENDING, passive.queue->Notify(ND_CQ_NOTIFY_ANY, &notify));
    EXPECT(ND_PENDING, active.connector->NotifyDisconnect(&ended));
    cancel_waits({
        {[] { EXPECT(ND_SUCCESS, passive.queue->GetOverlappedResult(&notify, TRUE)); },
         [] {
             passive.receive();
             active.send(5);
         }},
        {[] { EXPECT(ND_SUCCESS, active.connector->GetOverlappedResult(&ended, TRUE)); }, [] { disconnect(passive); }},
    });
}

// Runs `body` on a thread that has been cancelled before: it does its work, and the thread ends after it.
static void run_cancelled(const std::function<void()>& body)
{
    std::atomic<bool> cancelled{false}, over{false};
    Thread thread([&] {
        while (!cancelled)
            sched_yield();
        body();
        over = true;
        pthread_testcancel();
    });
    CHECK(pthread_cancel(thread.pthread()) == 0);
    cancelled = true;
    CHECK(thread.join() == PTHREAD_CANCELED && over);
}

// The calls of a life. Without the data path, which some drivers serve by system calls that are points of cancellation.
static void cancel_before()
{
    run_cancelled([] {
        End active, passive;
        connect_ends(active, passive);
        OVERLAPPED notify = {};
        EXPECT(ND_PENDING, active.queue->Notify(ND_CQ_NOTIFY_ANY, &notify));
        EXPECT(ND_SUCCESS, active.queue->CancelOverlappedRequests());
        EXPECT(ND_CANCELED, active.queue->GetOverlappedResult(&notify, TRUE));
        EXPECT(ND_SUCCESS, active.pair->Flush());
        disconnect(active);
        disconnect(passive);
    });
    live();
}

// Streams, descriptors and commands of Microsoft's C library. Afterwards nobody holds the stream.
static void cancel_streams()
{
    static int input[2], output[2];
    static char bytes[65536];
    CHECK(pipe(input) == 0 && pipe(output) == 0);
    static FILE *const reader = fdopen(input[0], "r"), *const writer = fdopen(output[1], "w");
    CHECK(reader != nullptr && writer != nullptr && setvbuf(writer, nullptr, _IONBF, 0) == 0);
    static std::string reads = "read line </proc/self/fd/" + std::to_string(input[0]);
    static std::wstring wide_reads(reads.begin(), reads.end());
    static wchar_t line[16];
    static int number;
    static const auto say = [](const char* text) { CHECK(write(input[1], text, strlen(text)) == static_cast<ssize_t>(strlen(text))); };
    static const auto fill = [] {
        CHECK(fcntl(output[1], F_SETFL, O_NONBLOCK) == 0);
        while (write(output[1], bytes, sizeof(bytes)) > 0) {
        }
        CHECK(errno == EAGAIN && fcntl(output[1], F_SETFL, 0) == 0);
    };
    static const auto drain = [] { CHECK(read(output[0], bytes, sizeof(bytes)) > 4096); };
    cancel_waits({
        {[] { CHECK(fgetws(line, 16, reader) == line && !wcscmp(line, L"ab\n")); }, [] { say("ab\n"); }},
        {[] { CHECK(fgetwc(reader) == L'\u00E4'); }, [] { say("\xC3\xA4"); }},
        {[] { CHECK(fwscanf(reader, L"%d", &number) == 1 && number == 5 && fgetwc(reader) == L'\n'); }, [] { say("5\n"); }},
        {[] { CHECK(fscanf(reader, "%d", &number) == 1 && number == 6 && fgetwc(reader) == L'\n'); }, [] { say("6\n"); }},
        {[] { CHECK(_wsystem(wide_reads.c_str()) == 0); }, [] { say("\n"); }},
        {[] { CHECK(_pclose(_popen(reads.c_str(), "r")) == 0); }, [] { say("\n"); }},
    });
    const std::function<void()> writes[] = {
        [] { CHECK(_write(output[1], "x", 1) == 1); },
        [] { CHECK(fprintf(writer, "%d", 5) == 1); },
        [] { CHECK(fwprintf(writer, L"%d", 5) == 1); },
        [] { CHECK(fputws(L"x", writer) >= 0); },
    };
    for (const auto& one : writes) {
        fill();
        cancel_waits({{one, drain}});
    }
    fill();
    drain();
    Thread([] {
        say("z");
        CHECK(fgetwc(reader) == L'z' && fputws(L"y", writer) >= 0);
    }).join();
}

// What frequent calls do seldom, and what they call of the program.
static void cancel_frequent_calls()
{
    static const HANDLE limited = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 1);
    static int held[2], silent[2];
    static std::atomic<bool> took{false};
    static const auto take = [](ULONG_PTR expected) {
        DWORD bytes;
        ULONG_PTR key;
        OVERLAPPED* ov;
        CHECK(GetQueuedCompletionStatus(limited, &bytes, &key, &ov, INFINITE) && key == expected);
    };
    static const auto queue = [] { CHECK(QueueUserAPC([](ULONG_PTR) { pthread_testcancel(); }, GetCurrentThread(), 0)); };
    WSADATA data;
    CHECK(WSAStartup(MAKEWORD(2, 2), &data) == 0 && pipe(held) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, silent) == 0);
    // A port whose only running thread sleeps where the library does not see it.
    CHECK(PostQueuedCompletionStatus(limited, 0, 1, nullptr));
    Thread sleeper([] {
        char byte;
        take(1);
        took = true;
        CHECK(read(held[0], &byte, 1) == 1);
    });
    while (!took)
        sched_yield();
    CHECK(PostQueuedCompletionStatus(limited, 0, 2, nullptr));
    run_cancelled([] { take(2); });
    CHECK(write(held[1], "x", 1) == 1);
    sleeper.join();
    // A socket whose events are selected.
    CHECK(WSAEventSelect(silent[0], event(), FD_READ) == 0 && write(silent[1], "x", 1) == 1);
    run_cancelled([] {
        char byte;
        CHECK(recv(silent[0], &byte, 1, 0) == 1);
    });
    // Asynchronous procedure calls.
    run_cancelled([] {
        queue();
        CHECK(WaitForSingleObjectEx(event(), INFINITE, TRUE) == WAIT_IO_COMPLETION);
    });
    run_cancelled([] {
        OVERLAPPED_ENTRY entry;
        ULONG count;
        queue();
        CHECK(!GetQueuedCompletionStatusEx(limited, &entry, 1, &count, INFINITE, TRUE) && GetLastError() == WAIT_IO_COMPLETION);
    });
}

// ---------------------------------------------------------------------------------------------------------------------
// Threads that end

// Requests belong to the process: the end of the thread that began them does not end them, whichever way it ends.
static void thread_exit()
{
    static End active, passive, asked;
    connect_ends(active, passive);
    static sockaddr_in at;
    static IND2Listener* listener = asked.listen(at);
    static OVERLAPPED notify, request, ended;
    const std::function<void()> ways[] = {[] {}, [] { ExitThread(0); }, [] { pthread_exit(nullptr); }};
    char byte = 0;
    for (const auto& leave : ways) {
        for (OVERLAPPED* ov : {&notify, &request, &ended})
            memset(ov, 0, sizeof(*ov));
        static const std::function<void()>* way;
        way = &leave;
        const HANDLE thread = CreateThread(nullptr, 0,
                                           [](void*) -> DWORD {
                                               EXPECT(ND_PENDING, passive.queue->Notify(ND_CQ_NOTIFY_ANY, &notify));
                                               EXPECT(ND_PENDING, listener->GetConnectionRequest(asked.connector, &request));
                                               EXPECT(ND_PENDING, active.connector->NotifyDisconnect(&ended));
                                               (*way)();
                                               return 0;
                                           },
                                           nullptr, 0, nullptr);
        CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 && CloseHandle(thread));
        pass_message(active, passive, ++byte);
        EXPECT(ND_SUCCESS, passive.queue->GetOverlappedResult(&notify, TRUE));
        EXPECT(ND_PENDING, listener->GetOverlappedResult(&request, FALSE));
        EXPECT(ND_SUCCESS, listener->CancelOverlappedRequests());
        EXPECT(ND_CANCELED, listener->GetOverlappedResult(&request, TRUE));
        EXPECT(ND_PENDING, active.connector->GetOverlappedResult(&ended, FALSE));
        EXPECT(ND_SUCCESS, active.connector->CancelOverlappedRequests());
        EXPECT(ND_CANCELED, active.connector->GetOverlappedResult(&ended, TRUE));
    }
    listener->Release();
}

// Never set.
static HANDLE never;

// Destructors of a thread's own variables run when the library's may be gone already.
struct LastWords {
    HANDLE set = nullptr;
    ~LastWords()
    {
        if (set == nullptr)
            return;
        CHECK(WaitForSingleObject(never, 1) == WAIT_TIMEOUT);
        Sleep(1);
        const HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0);
        DWORD bytes;
        ULONG_PTR key;
        OVERLAPPED* ov;
        CHECK(PostQueuedCompletionStatus(port, 1, 2, nullptr) && GetQueuedCompletionStatus(port, &bytes, &key, &ov, INFINITE) && key == 2);
        CHECK(CloseHandle(port));
        live();
        SetEvent(set);
    }
};

static void thread_locals()
{
    static HANDLE said = event();
    never = event();
    const auto body = [] {
        static thread_local LastWords first;
        first.set = said;
        // The library's own are made after this one, and so end before it.
        live();
    };
    Thread thread(body);
    thread.join();
    CHECK(WaitForSingleObject(said, 0) == WAIT_OBJECT_0);
}

// The thread that ends, what it has, and what is called at its end.
static HANDLE ending, mutex;
static DWORD slot, callback_slot;
static std::string called;

// Called at the end of the thread, which is as it was.
static void find_all(const char* by)
{
    called += by;
    CHECK(TlsGetValue(slot) == &slot && WaitForSingleObject(ending, 0) == WAIT_TIMEOUT);
    CHECK(ReleaseMutex(mutex) && WaitForSingleObject(mutex, INFINITE) == WAIT_OBJECT_0);
}

static void what_a_thread_has()
{
    pthread_key_t keys[2];
    const auto destroy = [](void*) { find_all("key "); };
    // One from before the library's own, and one from after it.
    CHECK(pthread_key_create(&keys[0], destroy) == 0);
    mutex = CreateMutex(nullptr, FALSE, nullptr);
    slot = TlsAlloc(), callback_slot = FlsAlloc([](void*) { find_all("callback "); });
    CHECK(mutex != nullptr && TlsSetValue(slot, &slot) && pthread_key_create(&keys[1], destroy) == 0);
    CHECK(WaitForSingleObject(mutex, INFINITE) == WAIT_OBJECT_0 && ReleaseMutex(mutex));
    static const auto prepare = [&] {
        struct Destroyed {
            bool armed = false;
            ~Destroyed()
            {
                if (armed)
                    find_all("destructor ");
            }
        };
        static thread_local Destroyed destroyed;
        destroyed.armed = true;
        ending = OpenThread(SYNCHRONIZE, FALSE, GetCurrentThreadId());
        CHECK(ending != nullptr && FlsSetValue(callback_slot, &callback_slot) && TlsSetValue(slot, &slot));
        CHECK(WaitForSingleObject(mutex, INFINITE) == WAIT_OBJECT_0);
        for (pthread_key_t key : keys)
            CHECK(pthread_setspecific(key, &called) == 0);
    };
    const auto returns = [](void*) -> DWORD { prepare(); return 0; };
    const auto exits = [](void*) -> DWORD { prepare(); ExitThread(0); };
    const auto ended = [](const char* expected) {
        CHECK(WaitForSingleObject(ending, INFINITE) == WAIT_OBJECT_0 && CloseHandle(ending));
        CHECK(WaitForSingleObject(mutex, 0) == WAIT_ABANDONED && ReleaseMutex(mutex) && called == expected);
        called.clear();
    };
    HANDLE thread = CreateThread(nullptr, 0, returns, nullptr, 0, nullptr);
    CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 && CloseHandle(thread));
    ended("callback destructor key key ");
    thread = CreateThread(nullptr, 0, exits, nullptr, 0, nullptr);
    CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 && CloseHandle(thread));
    ended("destructor key key callback ");
    Thread(prepare).join();
    ended("destructor key key callback ");
}

// It is none of the library's, and may end before the process.
static void the_first_thread()
{
    static const HANDLE first = OpenThread(SYNCHRONIZE, FALSE, GetCurrentThreadId());
    mutex = CreateMutex(nullptr, TRUE, nullptr);
    CHECK(first != nullptr && mutex != nullptr);
    static const Thread other([] {
        CHECK(WaitForSingleObject(first, INFINITE) == WAIT_OBJECT_0 && WaitForSingleObject(mutex, 0) == WAIT_ABANDONED);
        _exit(0);
    });
    pthread_exit(nullptr);
}

// A thread that was cancelled, and has returned before that had an effect.
static void cancel_at_the_end()
{
    callback_slot = FlsAlloc([](void*) {
        pthread_testcancel();
        called += "callback ";
    });
    static const auto be_cancelled = [] { CHECK(FlsSetValue(callback_slot, &called) && pthread_cancel(pthread_self()) == 0); };
    const auto body = [](void*) -> DWORD { be_cancelled(); return 7; };
    const HANDLE thread = CreateThread(nullptr, 0, body, nullptr, 0, nullptr);
    DWORD code;
    CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 && GetExitCodeThread(thread, &code) && code == 7);
    CHECK(CloseHandle(thread) && called == "callback ");
    CHECK(Thread(be_cancelled).join() == nullptr && called == "callback callback ");
}

int main(int argc, char** argv)
{
    static const Case cases[] = {
        {"cancel_objects", cancel_objects}, {"cancel_requests", cancel_requests}, {"cancel_before", cancel_before},
        {"cancel_frequent_calls", cancel_frequent_calls}, {"cancel_streams", cancel_streams},
        {"thread_exit", thread_exit}, {"thread_locals", thread_locals}, {"what_a_thread_has", what_a_thread_has},
        {"the_first_thread", the_first_thread}, {"cancel_at_the_end", cancel_at_the_end},
    };
    return run_case(cases, argc, argv);
}
