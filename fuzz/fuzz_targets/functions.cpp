// Calls the functions of the headers with arguments that the fuzzer has made up. Pointers are NULL or lead to memory with more
// behind it than any length that is passed; handles are of every kind, closed, or none; what is called must not crash, hang or write
// elsewhere.
#define WIN32_NO_STATUS
#include <winsock2.h>
#include <windows.h>
#include <ws2tcpip.h>
#include <ws2spi.h>
#include <mswsock.h>
#include <mstcpip.h>
#include <bcrypt.h>
#include <ip2string.h>
#include <iphlpapi.h>
#include <ntsecapi.h>
#include <objbase.h>
#include <process.h>
#include <psapi.h>
#include <rpc.h>
#include <shellapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strsafe.h>
#include <time.h>
#include <timeapi.h>
#include <type_traits>
#include <wchar.h>
#include <winternl.h>

namespace {

constexpr size_t ARENA = 1 << 20; // pointers lead into its first eighth
constexpr size_t STEP = 512;
constexpr size_t MOST = 4096;     // the largest length, in units of at most 32 bytes
constexpr size_t HANDLES = 32;

alignas(64) unsigned char arena[ARENA];
HANDLE handles[HANDLES];
size_t next_handle;
SOCKET sockets[3];

class Source {
public:
    Source(const unsigned char *data, size_t size) : data_(data), left_(size) {}
    bool over() const { return left_ == 0; }
    unsigned char byte() { return left_ ? (left_--, *data_++) : 0; }
    size_t number() { return byte() << 8 | byte(); }
    unsigned long long any() {
        unsigned long long value = 0;
        for (int i = 0; i < 8; i++)
            value = value << 8 | byte();
        return value;
    }

private:
    const unsigned char *data_;
    size_t left_;
};

template <class R, class... A> R callback(A...) {
    return R();
}

// What text and numbers may be put into: not what has pointers inside.
template <class T> constexpr bool plain = std::is_arithmetic<T>::value || std::is_same<T, FILETIME>::value ||
                                          std::is_same<T, SYSTEMTIME>::value || std::is_same<T, GUID>::value ||
                                          std::is_same<T, in_addr>::value || std::is_same<T, in6_addr>::value ||
                                          std::is_same<T, sockaddr>::value || std::is_same<T, LARGE_INTEGER>::value ||
                                          std::is_same<T, struct tm>::value || std::is_same<T, GROUP_AFFINITY>::value ||
                                          std::is_same<T, PROCESSOR_NUMBER>::value;

template <class T, class = void> struct Pointer {
    static T draw(Source &) { return nullptr; }
};

template <class R, class... A> struct Pointer<R (*)(A...)> {
    static R (*draw(Source &source))(A...) { return source.byte() & 7 ? callback<R, A...> : nullptr; }
};

template <class T> struct Pointer<T *, std::enable_if_t<!std::is_function<T>::value>> {
    static T *draw(Source &source) {
        size_t at = source.byte();
        if (at % 8 == 0)
            return nullptr;
        unsigned char *place = arena + at * STEP;
        using Bare = std::remove_cv_t<T>;
        if constexpr (plain<Bare>) {
            size_t units = sizeof(Bare) > 4 ? sizeof(Bare) : source.byte() % 32;
            if constexpr (sizeof(Bare) == 4 && std::is_integral<Bare>::value && !std::is_same<Bare, wchar_t>::value) {
                Bare value = static_cast<Bare>(source.number() % MOST);
                memcpy(place, &value, sizeof value);
            } else if constexpr (std::is_same<Bare, wchar_t>::value) {
                for (size_t i = 0; i < units; i++)
                    reinterpret_cast<wchar_t *>(place)[i] = source.byte();
                reinterpret_cast<wchar_t *>(place)[units] = 0;
            } else {
                for (size_t i = 0; i < units; i++)
                    place[i] = source.byte();
                if (sizeof(Bare) == 1)
                    place[units] = 0;
            }
        } else {
            memset(place, 0, STEP);
        }
        return reinterpret_cast<T *>(place);
    }
};

template <class T> T draw(Source &source, char kind, bool any_number) {
    if (kind == '0')
        return T();
    if constexpr (std::is_pointer<T>::value)
        if (kind == 'h')
            return (T)handles[source.byte() % HANDLES];
    if constexpr (std::is_same<T, SOCKET>::value)
        if (kind == 's')
            return sockets[source.byte() % 3];
    if constexpr (std::is_pointer<T>::value) {
        return Pointer<T>::draw(source);
    } else if constexpr (std::is_class<T>::value || std::is_union<T>::value) {
        T value;
        for (size_t i = 0; i < sizeof value; i++)
            reinterpret_cast<unsigned char *>(&value)[i] = source.byte();
        return value;
    } else {
        unsigned char how = source.byte();
        if (any_number && how % 4 == 0)
            return (T)source.any();
        if (std::is_signed<T>::value && how == 1)
            return (T)-1;
        return (T)(how % 4 == 2 ? source.number() % MOST : how % 64);
    }
}

template <class... A> constexpr bool no_pointers = (true && ... && !std::is_pointer<A>::value);

void keep(HANDLE handle) {
    HANDLE &place = handles[next_handle++ % HANDLES];
    if (place != NULL && place != INVALID_HANDLE_VALUE)
        CloseHandle(place);
    place = handle;
}

// What calls a function, made with braces: the arguments are drawn in the order of the parameters.
template <class R, class... A> struct Call {
    R result;
    Call(R (*function)(A...), A... arguments) : result(function(arguments...)) {}
};

template <class... A> struct Call<void, A...> {
    Call(void (*function)(A...), A... arguments) { function(arguments...); }
};

template <class R, class... A> void call(R (*function)(A...), const char *kinds, Source &source) {
    size_t at = 0;
    auto next = [&](auto type) { return draw<decltype(type)>(source, kinds[++at], no_pointers<A...>); };
    (void)next;
    Call<R, A...> done{function, next(std::remove_cv_t<std::remove_reference_t<A>>())...};
    if constexpr (std::is_pointer<R>::value) {
        if (kinds[0] == 'h')
            keep((HANDLE)done.result);
    }
}

typedef void (*Caller)(Source &);
const Caller callers[] = {
#define FUNCTION(name, kinds) [](Source &source) { call(name, kinds, source); },
#include "functions.inc"
#undef FUNCTION
};
constexpr size_t COUNT = sizeof callers / sizeof *callers;

void prepare() {
    static bool prepared;
    if (!prepared) {
        WSADATA data;
        WSAStartup(MAKEWORD(2, 2), &data);
        sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
        sockets[1] = WSASocketW(AF_INET6, SOCK_STREAM, 0, NULL, 0, WSA_FLAG_OVERLAPPED);
        sockets[2] = INVALID_SOCKET;
        fprintf(stderr, "%zu functions\n", COUNT);
        prepared = true;
    }
    keep(INVALID_HANDLE_VALUE);
    keep(CreateEventW(NULL, TRUE, FALSE, NULL));
    keep(CreateMutexW(NULL, FALSE, NULL));
    keep(CreateSemaphoreW(NULL, 1, 5, NULL));
    keep(CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0));
    keep(CreateWaitableTimerW(NULL, FALSE, NULL));
    HANDLE closed = CreateEventW(NULL, FALSE, TRUE, NULL);
    keep(closed);
    CloseHandle(closed);
}

} // namespace

extern "C" void fuzz_functions(const unsigned char *data, size_t size) {
    Source source(data, size);
    prepare();
    for (int calls = 0; calls < 32 && !source.over(); calls++)
        callers[source.number() % COUNT](source);
}
