// SPDX-License-Identifier: MIT OR Apache-2.0
// Signals with handlers, of every kind, while threads wait in every way: no wait ends because of one, none misses what it waits
// for, and time-outs are as long as they are.
#include "processes.h"

#include <sys/time.h>

static std::atomic<unsigned> taken;

static void handle(int)
{
    taken++;
}

static const int Restarting = SIGUSR1, Interrupting = SIGUSR2;

static void install(int signal, int flags)
{
    struct sigaction action = {};
    action.sa_handler = handle;
    action.sa_flags = flags;
    CHECK(sigaction(signal, &action, nullptr) == 0);
}

// Every so many microseconds a signal for whichever thread the kernel chooses, while this object lives.
class Alarms {
public:
    explicit Alarms(long microseconds)
    {
        install(Restarting, SA_RESTART);
        install(Interrupting, 0);
        install(SIGRTMIN + 1, 0);
        install(SIGALRM, 0);
        install(SIGCHLD, SA_RESTART);
        set(microseconds);
    }
    ~Alarms() { set(0); }

private:
    static void set(long microseconds)
    {
        const struct itimerval every = {{0, microseconds}, {0, microseconds}};
        CHECK(setitimer(ITIMER_REAL, &every, nullptr) == 0);
    }
};

// A wait without end, and what ends it.
struct Wait {
    const char* name;
    std::function<void()> wait;
    std::function<void()> satisfy;
};

static void interrupt_all(const std::vector<Wait>& waits)
{
    const Alarms alarms(1000);
    std::vector<std::unique_ptr<Thread>> threads;
    for (const Wait& wait : waits)
        threads.push_back(std::make_unique<Thread>(wait.wait));
    for (const auto& thread : threads)
        thread->wait_until_asleep();
    for (int round = 0; round < 50; round++)
        for (size_t i = 0; i < waits.size(); i++)
            for (const int signal : {Restarting, Interrupting, SIGRTMIN + 1, SIGCHLD}) {
                const unsigned before = taken;
                CHECK(pthread_kill(threads[i]->pthread(), signal) == 0);
                while (taken == before)
                    sched_yield();
                if (threads[i]->is_over()) {
                    fprintf(stderr, "%s ended by itself, round %d\n", waits[i].name, round);
                    abort();
                }
            }
    for (size_t i = 0; i < waits.size(); i++) {
        waits[i].satisfy();
        threads[i]->join();
    }
}

static HANDLE self()
{
    HANDLE handle;
    CHECK(DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &handle, 0, FALSE, DUPLICATE_SAME_ACCESS));
    return handle;
}

// Waits that need no device.
static void objects()
{
    static HANDLE one = event(), two = event(), semaphore = CreateSemaphore(nullptr, 0, 1, nullptr), signal_first = event(),
                  signalled = event(), finished = event(), running = event();
    static HANDLE alertable, port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0),
                             port_ex = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0);
    static std::atomic<bool> known{false};
    static SRWLOCK lock = SRWLOCK_INIT, condition_lock = SRWLOCK_INIT;
    static CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
    static bool condition_holds = false;
    static CRITICAL_SECTION section;
    static LONG word = 0, same = 0;
    static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
    BOOL pending;
    InitializeCriticalSection(&section);
    AcquireSRWLockExclusive(&lock);
    EnterCriticalSection(&section);
    CHECK(InitOnceBeginInitialize(&once, 0, &pending, nullptr) && pending);
    // A callback that lasts, for those who wait for callbacks.
    const PTP_WORK work = CreateThreadpoolWork([](PTP_CALLBACK_INSTANCE, PVOID, PTP_WORK) { WaitForSingleObject(finished, INFINITE); }, nullptr, nullptr);
    SubmitThreadpoolWork(work);
    HANDLE watch, queue, timer;
    CHECK(RegisterWaitForSingleObject(&watch, signalled, [](PVOID, BOOLEAN) { WaitForSingleObject(finished, INFINITE); }, nullptr, INFINITE, WT_EXECUTEONLYONCE));
    queue = CreateTimerQueue();
    CHECK(CreateTimerQueueTimer(&timer, queue, [](PVOID, BOOLEAN) { SetEvent(running); WaitForSingleObject(finished, INFINITE); }, nullptr, 0, 0, 0));
    CHECK(WaitForSingleObject(running, INFINITE) == WAIT_OBJECT_0 && ResetEvent(running));
    interrupt_all({
        {"WaitForSingleObject", [] { CHECK(WaitForSingleObject(one, INFINITE) == WAIT_OBJECT_0); }, [] { SetEvent(one); }},
        {"WaitForSingleObjectEx", [] { CHECK(WaitForSingleObjectEx(one, INFINITE, TRUE) == WAIT_OBJECT_0); }, [] {}},
        {"WaitForMultipleObjects, all",
         [] {
             const HANDLE handles[] = {one, semaphore};
             CHECK(WaitForMultipleObjects(2, handles, TRUE, INFINITE) == WAIT_OBJECT_0);
         },
         [] { ReleaseSemaphore(semaphore, 1, nullptr); }},
        {"WaitForMultipleObjects, any",
         [] {
             const HANDLE handles[] = {two, running};
             CHECK(WaitForMultipleObjects(2, handles, FALSE, INFINITE) == WAIT_OBJECT_0);
         },
         [] { SetEvent(two); }},
        {"SignalObjectAndWait", [] { CHECK(SignalObjectAndWait(signal_first, two, INFINITE, FALSE) == WAIT_OBJECT_0); }, [] {}},
        {"SleepEx",
         [] {
             alertable = self();
             known = true;
             CHECK(SleepEx(INFINITE, TRUE) == WAIT_IO_COMPLETION);
         },
         [] {
             while (!known)
                 sched_yield();
             CHECK(QueueUserAPC([](ULONG_PTR) {}, alertable, 0));
         }},
        {"GetQueuedCompletionStatus",
         [] {
             DWORD bytes;
             ULONG_PTR key;
             OVERLAPPED* ov;
             CHECK(GetQueuedCompletionStatus(port, &bytes, &key, &ov, INFINITE) && key == 7);
         },
         [] { PostQueuedCompletionStatus(port, 0, 7, nullptr); }},
        {"GetQueuedCompletionStatusEx",
         [] {
             OVERLAPPED_ENTRY entry;
             ULONG count;
             CHECK(GetQueuedCompletionStatusEx(port_ex, &entry, 1, &count, INFINITE, TRUE) && count == 1);
         },
         [] { PostQueuedCompletionStatus(port_ex, 0, 7, nullptr); }},
        {"AcquireSRWLockShared", [] { AcquireSRWLockShared(&lock), ReleaseSRWLockShared(&lock); }, [] { ReleaseSRWLockExclusive(&lock); }},
        {"EnterCriticalSection", [] { EnterCriticalSection(&section), LeaveCriticalSection(&section); }, [] { LeaveCriticalSection(&section); }},
        {"SleepConditionVariableSRW",
         [] {
             AcquireSRWLockExclusive(&condition_lock);
             while (!condition_holds)
                 CHECK(SleepConditionVariableSRW(&condition, &condition_lock, INFINITE, 0));
             ReleaseSRWLockExclusive(&condition_lock);
         },
         [] {
             AcquireSRWLockExclusive(&condition_lock);
             condition_holds = true;
             ReleaseSRWLockExclusive(&condition_lock);
             WakeAllConditionVariable(&condition);
         }},
        {"WaitOnAddress",
         [] {
             while (*static_cast<volatile LONG*>(&word) == 0)
                 CHECK(WaitOnAddress(&word, &same, sizeof(word), INFINITE));
         },
         [] { InterlockedExchange(&word, 1), WakeByAddressAll(&word); }},
        {"InitOnceBeginInitialize",
         [] {
             BOOL again;
             CHECK(InitOnceBeginInitialize(&once, 0, &again, nullptr) && !again);
         },
         [] { InitOnceComplete(&once, 0, nullptr); }},
        {"WaitForThreadpoolWorkCallbacks", [work] { WaitForThreadpoolWorkCallbacks(work, FALSE); }, [] { SetEvent(finished); }},
        {"DeleteTimerQueueEx", [queue] { CHECK(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE)); }, [] {}},
    });
    CHECK(UnregisterWaitEx(watch, INVALID_HANDLE_VALUE));
    CloseThreadpoolWork(work);
}

static sockaddr_in loopback()
{
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

// Two connected sockets.
static void socket_pair(SOCKET (&pair)[2])
{
    sockaddr_in at = loopback();
    socklen_t length = sizeof(at);
    const SOCKET listener = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    CHECK(bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length) == 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    CHECK(connect(pair[0], reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0);
    pair[1] = accept(listener, nullptr, nullptr);
    CHECK(pair[1] != INVALID_SOCKET && closesocket(listener) == 0);
}

static void sockets()
{
    WSADATA data;
    CHECK(WSAStartup(MAKEWORD(2, 2), &data) == 0);
    static SOCKET silent[8][2], listener = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP), asks = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    static sockaddr_in at = loopback();
    static WSAEVENT readable = WSACreateEvent();
    socklen_t length = sizeof(at);
    CHECK(bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length) == 0);
    for (auto& pair : silent)
        socket_pair(pair);
    CHECK(WSAEventSelect(silent[5][0], readable, FD_READ) == 0);
    // Half of what is received there.
    CHECK(send(silent[7][1], "x", 1, 0) == 1);
    // More than the system keeps.
    static const int Much = 64 << 20;
    const auto speak = [](int number) { return [number] { CHECK(send(silent[number][1], "x", 1, 0) == 1); }; };
    interrupt_all({
        {"recv", [] { char byte; CHECK(recv(silent[0][0], &byte, 1, 0) == 1); }, speak(0)},
        {"recv of all", [] { char bytes[2]; CHECK(recv(silent[7][0], bytes, 2, MSG_WAITALL) == 2); }, speak(7)},
        {"WSARecv",
         [] {
             char byte;
             WSABUF buffer = {1, &byte};
             DWORD bytes, flags = 0;
             CHECK(WSARecv(silent[1][0], &buffer, 1, &bytes, &flags, nullptr, nullptr) == 0 && bytes == 1);
         },
         speak(1)},
        {"select",
         [] {
             fd_set set;
             FD_ZERO(&set);
             FD_SET(silent[2][0], &set);
             CHECK(select(0, &set, nullptr, nullptr, nullptr) == 1);
         },
         speak(2)},
        {"WSAPoll",
         [] {
             WSAPOLLFD entry = {};
             entry.fd = silent[3][0];
             entry.events = POLLRDNORM;
             CHECK(WSAPoll(&entry, 1, -1) == 1);
         },
         speak(3)},
        {"overlapped WSARecv",
         [] {
             char byte;
             WSABUF buffer = {1, &byte};
             DWORD bytes, flags = 0;
             WSAOVERLAPPED ov = {};
             ov.hEvent = WSACreateEvent();
             CHECK(WSARecv(silent[4][0], &buffer, 1, nullptr, &flags, &ov, nullptr) == SOCKET_ERROR && WSAGetLastError() == WSA_IO_PENDING);
             CHECK(WSAGetOverlappedResult(silent[4][0], &ov, &bytes, TRUE, &flags) && bytes == 1);
         },
         speak(4)},
        {"WSAWaitForMultipleEvents",
         [] { CHECK(WSAWaitForMultipleEvents(1, &readable, FALSE, WSA_INFINITE, FALSE) == WSA_WAIT_EVENT_0); },
         speak(5)},
        {"send",
         [] {
             const std::vector<char> much(Much, 'x');
             CHECK(send(silent[6][0], much.data(), Much, 0) == Much);
         },
         [] {
             std::vector<char> some(65536);
             for (int left = Much, count; left > 0; left -= count)
                 CHECK((count = recv(silent[6][1], some.data(), some.size(), 0)) > 0);
         }},
        {"accept", [] { CHECK(accept(listener, nullptr, nullptr) != INVALID_SOCKET); },
         [] { CHECK(connect(asks, reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0); }},
    });
    CHECK(WSACleanup() == 0);
}

// Time-outs end when they should, though signals come more often than they last.
static void time_outs()
{
    const Alarms alarms(2000);
    WSADATA data;
    CHECK(WSAStartup(MAKEWORD(2, 2), &data) == 0);
    static const DWORD Milliseconds = 30;
    static HANDLE never = event(), port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0);
    static SRWLOCK lock = SRWLOCK_INIT;
    static CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
    static CRITICAL_SECTION section;
    static LONG word = 0, same = 0;
    static SOCKET silent[2];
    InitializeCriticalSection(&section);
    socket_pair(silent);
    const DWORD timeout = Milliseconds;
    CHECK(setsockopt(silent[0], SOL_SOCKET, SO_RCVTIMEO, reinterpret_cast<const char*>(&timeout), sizeof(timeout)) == 0);
    const std::pair<const char*, std::function<void()>> waits[] = {
        {"Sleep", [] { Sleep(Milliseconds); }},
        {"SleepEx", [] { CHECK(SleepEx(Milliseconds, TRUE) == 0); }},
        {"WaitForSingleObject", [] { CHECK(WaitForSingleObject(never, Milliseconds) == WAIT_TIMEOUT); }},
        {"WaitForMultipleObjects",
         [] {
             const HANDLE handles[] = {never, port};
             CHECK(WaitForMultipleObjects(1, handles, FALSE, Milliseconds) == WAIT_TIMEOUT);
         }},
        {"GetQueuedCompletionStatus",
         [] {
             DWORD bytes;
             ULONG_PTR key;
             OVERLAPPED* ov;
             CHECK(!GetQueuedCompletionStatus(port, &bytes, &key, &ov, Milliseconds) && GetLastError() == WAIT_TIMEOUT);
         }},
        {"SleepConditionVariableSRW",
         [] {
             AcquireSRWLockExclusive(&lock);
             CHECK(!SleepConditionVariableSRW(&condition, &lock, Milliseconds, 0) && GetLastError() == ERROR_TIMEOUT);
             ReleaseSRWLockExclusive(&lock);
         }},
        {"SleepConditionVariableCS",
         [] {
             EnterCriticalSection(&section);
             CHECK(!SleepConditionVariableCS(&condition, &section, Milliseconds) && GetLastError() == ERROR_TIMEOUT);
             LeaveCriticalSection(&section);
         }},
        {"WaitOnAddress", [] { CHECK(!WaitOnAddress(&word, &same, sizeof(word), Milliseconds) && GetLastError() == ERROR_TIMEOUT); }},
        {"WSAPoll",
         [] {
             WSAPOLLFD entry = {};
             entry.fd = silent[0];
             entry.events = POLLRDNORM;
             CHECK(WSAPoll(&entry, 1, Milliseconds) == 0);
         }},
        {"select",
         [] {
             fd_set set;
             FD_ZERO(&set);
             FD_SET(silent[0], &set);
             const timeval time = {0, 1000 * static_cast<long>(Milliseconds)};
             CHECK(select(0, &set, nullptr, nullptr, &time) == 0);
         }},
        {"recv", [] { char byte; CHECK(recv(silent[0], &byte, 1, 0) == SOCKET_ERROR && WSAGetLastError() == WSAETIMEDOUT); }},
    };
    for (const auto& wait : waits) {
        fprintf(stderr, "%s\n", wait.first);
        const ULONGLONG begin = GetTickCount64();
        wait.second();
        // One tick earlier is what the clock's own steps allow.
        CHECK(GetTickCount64() - begin >= Milliseconds - 1);
    }
}

// Waits for what a device does.
static void requests()
{
    static End active, passive, asked, event_end;
    connect_ends(active, passive);
    static sockaddr_in at;
    static IND2Listener* listener = asked.listen(at);
    static OVERLAPPED notify = {}, request = {}, ended = {}, by_event = {}, by_file = {};
    by_event.hEvent = event();
    EXPECT(ND_PENDING, passive.queue->Notify(ND_CQ_NOTIFY_ANY, &notify));
    EXPECT(ND_PENDING, passive.queue->Notify(ND_CQ_NOTIFY_ANY, &by_event));
    EXPECT(ND_PENDING, passive.queue->Notify(ND_CQ_NOTIFY_ANY, &by_file));
    EXPECT(ND_PENDING, listener->GetConnectionRequest(asked.connector, &request));
    EXPECT(ND_PENDING, active.connector->NotifyDisconnect(&ended));
    interrupt_all({
        {"Notify", [] { EXPECT(ND_SUCCESS, passive.queue->GetOverlappedResult(&notify, TRUE)); },
         [] {
             passive.receive();
             active.send(5);
         }},
        {"an event", [] { CHECK(WaitForSingleObject(by_event.hEvent, INFINITE) == WAIT_OBJECT_0); }, [] {}},
        {"GetOverlappedResult",
         [] {
             DWORD bytes;
             CHECK(GetOverlappedResult(passive.file, &by_file, &bytes, TRUE));
         },
         [] {}},
        {"GetConnectionRequest", [] { EXPECT(ND_SUCCESS, listener->GetOverlappedResult(&request, TRUE)); },
         [] {
             static OVERLAPPED connect = {};
             EXPECT(ND_PENDING, event_end.ask(at, connect));
         }},
        {"NotifyDisconnect", [] { EXPECT(ND_SUCCESS, active.connector->GetOverlappedResult(&ended, TRUE)); },
         [] { disconnect(passive); }},
    });
    listener->Release();
}

// Whole lives while signals come.
static void lives()
{
    const Alarms alarms(500);
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 0; i < 2; i++)
        threads.push_back(std::make_unique<Thread>([] {
            for (int round = 0; round < 5; round++)
                live();
        }));
    unsigned sent = 0;
    while (!threads[0]->is_over() || !threads[1]->is_over()) {
        for (const auto& thread : threads)
            if (!thread->is_over())
                pthread_kill(thread->pthread(), ++sent % 2 == 0 ? Restarting : Interrupting);
        usleep(500);
    }
    for (const auto& thread : threads)
        thread->join();
}

int main(int argc, char** argv)
{
    static const Case cases[] = {
        {"objects", objects}, {"sockets", sockets}, {"time_outs", time_outs}, {"requests", requests}, {"lives", lives},
    };
    return run_case(cases, argc, argv);
}
