// SPDX-License-Identifier: MIT OR Apache-2.0
// How processes end while the library is at work: exit() from anywhere, exec, fork. A process that a case starts ends with the
// status that the case expects.
#include "processes.h"

#include <dirent.h>
#include <set>
#include <sys/wait.h>

// An event that is never set, for threads that wait until the process ends.
static HANDLE never;
static const int Code = 42;

// ---------------------------------------------------------------------------------------------------------------------
// Processes that end

// Lets no signal be ignored or blocked, as whoever has started the tests may have done: exec keeps that.
static void forget_signals()
{
    sigset_t none;
    sigemptyset(&none);
    CHECK(pthread_sigmask(SIG_SETMASK, &none, nullptr) == 0);
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    for (int number = 1; number < SIGRTMAX; number++)
        sigaction(number, &usual, nullptr); // fails for those that cannot be changed
}

// Runs `body` in a process of its own, made anew by exec, so that nothing is inherited; its status must be `Code`.
static void in_a_process(const char* name)
{
    fprintf(stderr, "%s\n", name);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        forget_signals();
        execl("/proc/self/exe", "process_ends", name, nullptr);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != Code) {
        fprintf(stderr, "%s: status 0x%x\n", name, status);
        abort();
    }
}

// Threads in every kind of wait, a connection with requests pending, timers and callbacks. None of it is ever released.
static void be_busy()
{
    // Never destroyed: threads use them to the end.
    static End &active = *new End, &passive = *new End, &asked = *new End;
    static sockaddr_in at;
    static OVERLAPPED notify = {}, request = {}, ended = {};
    never = event();
    connect_ends(active, passive);
    pass_message(active, passive, 1);
    IND2Listener* listener = asked.listen(at);
    for (int i = 0; i < 4; i++)
        passive.receive();
    EXPECT(ND_PENDING, passive.queue->Notify(ND_CQ_NOTIFY_ANY, &notify));
    EXPECT(ND_PENDING, listener->GetConnectionRequest(asked.connector, &request));
    EXPECT(ND_PENDING, active.connector->NotifyDisconnect(&ended));
    static HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0);
    static auto& threads = *new std::vector<std::unique_ptr<Thread>>;
    const auto wait = [&](std::function<void()> body) { threads.push_back(std::make_unique<Thread>(std::move(body))); };
    wait([] { WaitForSingleObject(never, INFINITE); });
    wait([] { passive.queue->GetOverlappedResult(&notify, TRUE); });
    wait([] { active.connector->GetOverlappedResult(&ended, TRUE); });
    wait([] {
        DWORD bytes;
        ULONG_PTR key;
        OVERLAPPED* ov;
        GetQueuedCompletionStatus(port, &bytes, &key, &ov, INFINITE);
    });
    wait([] { SleepEx(INFINITE, TRUE); });
    for (const auto& thread : threads)
        thread->wait_until_asleep();
    // These are in the midst of something all the time.
    wait([] {
        for (;;) {
            ND2_RESULT result;
            active.queue->GetResults(&result, 1);
        }
    });
    wait([] {
        for (;;)
            live();
    });
    HANDLE timer;
    CHECK(CreateTimerQueueTimer(&timer, nullptr, [](PVOID, BOOLEAN) { SetEvent(event()); }, nullptr, 1, 1, 0));
}

static void exit_while_busy()
{
    be_busy();
    exit(Code);
}

static void return_while_busy()
{
    be_busy();
}

static void exit_from_a_thread()
{
    be_busy();
    Thread thread([] { exit(Code); });
    WaitForSingleObject(never, INFINITE);
}

static void exit_in_a_timer()
{
    be_busy();
    HANDLE timer;
    CHECK(CreateTimerQueueTimer(&timer, nullptr, [](PVOID, BOOLEAN) { exit(Code); }, nullptr, 1, 0, 0));
    WaitForSingleObject(never, INFINITE);
}

static void exit_in_a_callback()
{
    be_busy();
    CHECK(TrySubmitThreadpoolCallback([](PTP_CALLBACK_INSTANCE, PVOID) { exit(Code); }, nullptr, nullptr));
    WaitForSingleObject(never, INFINITE);
}

// A callback of a file's, on the thread that the library chooses for it.
static void exit_in_a_completion()
{
    be_busy();
    static End& end = *new End;
    static sockaddr_in at;
    static OVERLAPPED request = {};
    CHECK(BindIoCompletionCallback(end.file, [](DWORD, DWORD, OVERLAPPED*) { exit(Code); }, 0));
    IND2Listener* listener = end.listen(at);
    EXPECT(ND_PENDING, listener->GetConnectionRequest(end.connector, &request));
    EXPECT(ND_SUCCESS, listener->CancelOverlappedRequests());
    WaitForSingleObject(never, INFINITE);
}

static void exit_in_an_apc()
{
    be_busy();
    CHECK(QueueUserAPC([](ULONG_PTR) { exit(Code); }, GetCurrentThread(), 0));
    SleepEx(INFINITE, TRUE);
}

static void exit_process()
{
    be_busy();
    ExitProcess(Code);
}

static void quick_exit_while_busy()
{
    be_busy();
    quick_exit(Code);
}

// What runs at exit uses the library as ever: it waits, talks to the device, and releases what is left.
static End* left[2];

struct AtTheEnd {
    bool armed = false;
    ~AtTheEnd()
    {
        if (!armed)
            return;
        pass_message(*left[0], *left[1], 3);
        disconnect(*left[0]);
        disconnect(*left[1]);
        delete left[0];
        delete left[1];
        live();
        _exit(Code);
    }
};

static AtTheEnd at_the_end;

static void use_in_destructors()
{
    be_busy();
    left[0] = new End, left[1] = new End;
    connect_ends(*left[0], *left[1]);
    at_the_end.armed = true;
    exit(1);
}

static void use_in_atexit()
{
    // Registered before the library has done anything, so it runs last.
    CHECK(atexit([] {
              live();
              CHECK(WaitForSingleObject(event(), 1) == WAIT_TIMEOUT);
              _exit(Code);
          }) == 0);
    be_busy();
    exit(1);
}

// A destructor that joins a thread, by its end and by an event, as that of a pool of threads does.
struct Joins {
    bool armed = false;
    HANDLE stop = nullptr, stopped = nullptr, worker = nullptr;
    ~Joins()
    {
        if (!armed)
            return;
        CHECK(SetEvent(stop) && WaitForSingleObject(stopped, INFINITE) == WAIT_OBJECT_0);
        CHECK(WaitForSingleObject(worker, INFINITE) == WAIT_OBJECT_0);
        // One that is made here, too.
        const HANDLE another = CreateThread(nullptr, 0, [](PVOID) -> DWORD { Sleep(1); return 0; }, nullptr, 0, nullptr);
        CHECK(another != nullptr && WaitForSingleObject(another, INFINITE) == WAIT_OBJECT_0);
        _exit(Code);
    }
};

static Joins joins;

static void join_in_destructors()
{
    joins.stop = event();
    joins.stopped = event();
    const auto work = [](PVOID) -> DWORD {
        CHECK(WaitForSingleObject(joins.stop, INFINITE) == WAIT_OBJECT_0);
        Sleep(1); // until the other thread waits
        CHECK(SetEvent(joins.stopped));
        Sleep(1);
        return 0;
    };
    joins.worker = CreateThread(nullptr, 0, work, nullptr, 0, nullptr);
    CHECK(joins.worker != nullptr && WaitForSingleObject(event(), 1) == WAIT_TIMEOUT);
    joins.armed = true;
    exit(1);
}

// A thread that calls exit() has not ended, and has all that it had; then come its callbacks.
struct Keeps {
    HANDLE worker = nullptr, mutex = nullptr;
    DWORD slot = 0, callback_slot = 0;
    bool armed = false, over = false;
    ~Keeps();
};

static Keeps keeps;

Keeps::~Keeps()
{
    if (!armed)
        return;
    CHECK(TlsGetValue(slot) == &keeps && FlsGetValue(callback_slot) == &keeps);
    CHECK(WaitForSingleObject(worker, 0) == WAIT_TIMEOUT);
    const auto wait = [](PVOID mutex) -> DWORD { return WaitForSingleObject(mutex, 1); };
    const HANDLE other = CreateThread(nullptr, 0, wait, mutex, 0, nullptr);
    DWORD code;
    CHECK(WaitForSingleObject(other, INFINITE) == WAIT_OBJECT_0 && GetExitCodeThread(other, &code) && code == WAIT_TIMEOUT);
    CHECK(ReleaseMutex(mutex));
    over = true;
}

static void exit_from_a_thread_that_is_waited_for()
{
    const auto work = [](PVOID) -> DWORD {
        keeps.worker = OpenThread(SYNCHRONIZE, FALSE, GetCurrentThreadId());
        keeps.mutex = CreateMutex(nullptr, TRUE, nullptr);
        keeps.slot = TlsAlloc();
        keeps.callback_slot = FlsAlloc([](PVOID) {
            CHECK(keeps.over && TlsGetValue(keeps.slot) == &keeps);
            _exit(Code);
        });
        CHECK(keeps.worker != nullptr && keeps.mutex != nullptr);
        CHECK(TlsSetValue(keeps.slot, &keeps) && FlsSetValue(keeps.callback_slot, &keeps));
        keeps.armed = true;
        exit(1);
    };
    const HANDLE worker = CreateThread(nullptr, 0, work, nullptr, 0, nullptr);
    CHECK(worker != nullptr);
    WaitForSingleObject(worker, INFINITE);
    _exit(2);
}

static void exits()
{
    for (const char* name : {"exit_while_busy", "return_while_busy", "exit_from_a_thread", "exit_in_a_timer", "exit_in_a_callback",
                             "exit_in_a_completion", "exit_in_an_apc", "exit_process", "quick_exit_while_busy", "use_in_destructors",
                             "use_in_atexit", "join_in_destructors",
                             "exit_from_a_thread_that_is_waited_for"})
        in_a_process(name);
}

// ---------------------------------------------------------------------------------------------------------------------
// exec

static std::set<int> descriptors()
{
    std::set<int> found;
    DIR* folder = opendir("/proc/self/fd");
    CHECK(folder != nullptr);
    while (const dirent* entry = readdir(folder))
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder))
            found.insert(atoi(entry->d_name));
    closedir(folder);
    return found;
}

// What the program after exec finds: no descriptor of ours, no signal blocked or ignored, and a library that works.
static void after_exec()
{
    sigset_t blocked;
    CHECK(pthread_sigmask(SIG_SETMASK, nullptr, &blocked) == 0);
    for (int signal = 1; signal < SIGRTMAX; signal++) {
        struct sigaction action;
        CHECK(sigismember(&blocked, signal) != 1);
        CHECK(sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_DFL);
    }
    const char* inherited = getenv("NDCOMPAT_TEST_DESCRIPTORS");
    CHECK(inherited != nullptr && static_cast<int>(descriptors().size()) == atoi(inherited));
    live();
    exit(Code);
}

static void exec_while_busy()
{
    char text[16];
    snprintf(text, sizeof(text), "%zu", descriptors().size());
    setenv("NDCOMPAT_TEST_DESCRIPTORS", text, 1);
    be_busy();
    execl("/proc/self/exe", "process_ends", "after_exec", nullptr);
}

static void execs()
{
    in_a_process("exec_while_busy");
}

// ---------------------------------------------------------------------------------------------------------------------
// fork

template <typename Body> static void in_a_child(Body body)
{
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(30);
        body();
        _exit(Code);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == Code);
}

// The threads of timers, callbacks and requests are there, and idle: a child has others.
static void forks()
{
    // On the heap: a child that calls exit() must not release what is the parent's.
    const auto active_end = std::make_unique<End>(), passive_end = std::make_unique<End>();
    End &active = *active_end, &passive = *passive_end;
    static HANDLE called = event();
    static unsigned secured = 0;
    connect_ends(active, passive);
    const bool watched = AddSecureMemoryCacheCallback([](PVOID, SIZE_T) -> BOOLEAN { return ++secured > 0; });
    const auto call = [](PVOID, BOOLEAN) { SetEvent(called); };
    HANDLE timer;
    CHECK(CreateTimerQueueTimer(&timer, nullptr, call, nullptr, 1, 0, 0));
    CHECK(WaitForSingleObject(called, INFINITE) == WAIT_OBJECT_0 && ResetEvent(called));
    // Far away: none is due while the process forks.
    HANDLE later;
    CHECK(CreateTimerQueueTimer(&later, nullptr, call, nullptr, 3600 * 1000, 0, 0));
    const auto child = [] {
        live();
        HANDLE again, own = event();
        CHECK(CreateTimerQueueTimer(&again, nullptr, [](PVOID event, BOOLEAN) { SetEvent(event); }, own, 1, 0, 0));
        CHECK(WaitForSingleObject(own, INFINITE) == WAIT_OBJECT_0);
        const HANDLE from_pool = event();
        CHECK(TrySubmitThreadpoolCallback([](PTP_CALLBACK_INSTANCE, PVOID event) { SetEvent(event); }, from_pool, nullptr));
        CHECK(WaitForSingleObject(from_pool, INFINITE) == WAIT_OBJECT_0);
        // The child has no callbacks of the parent's.
        void* memory = VirtualAlloc(nullptr, 1 << 16, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
        CHECK(memory != nullptr && VirtualFree(memory, 0, MEM_RELEASE));
    };
    for (int i = 0; i < 3; i++) {
        in_a_child(child);
        pass_message(active, passive, static_cast<char>(i));
    }
    // A child of a child; and one that uses nothing, whose own exit handlers run.
    in_a_child([&] { in_a_child(child); });
    in_a_child([] { exit(Code); });
    // Registered memory that the child gives back is its own: the parent's stays.
    in_a_child([] {
        void* block = malloc(64 << 20);
        free(block);
    });
    pass_message(passive, active, 9);
    CHECK(!watched || secured == 0);
    disconnect(active);
    disconnect(passive);
}

int main(int argc, char** argv)
{
    static const Case cases[] = {
        {"exits", exits}, {"execs", execs}, {"forks", forks},
    };
    // The processes that cases start.
    static const Case processes[] = {
        {"exit_while_busy", exit_while_busy}, {"return_while_busy", return_while_busy}, {"exit_from_a_thread", exit_from_a_thread},
        {"exit_in_a_timer", exit_in_a_timer}, {"exit_in_a_callback", exit_in_a_callback},
        {"exit_in_a_completion", exit_in_a_completion}, {"exit_in_an_apc", exit_in_an_apc}, {"exit_process", exit_process},
        {"quick_exit_while_busy", quick_exit_while_busy}, {"use_in_destructors", use_in_destructors},
        {"use_in_atexit", use_in_atexit}, {"join_in_destructors", join_in_destructors},
        {"exit_from_a_thread_that_is_waited_for", exit_from_a_thread_that_is_waited_for}, {"exec_while_busy", exec_while_busy}, {"after_exec", after_exec},
    };
    for (const Case& process : processes)
        if (argc == 2 && strcmp(argv[1], process.name) == 0) {
            process.run();
            return Code;
        }
    return run_case(cases, argc, argv);
}
