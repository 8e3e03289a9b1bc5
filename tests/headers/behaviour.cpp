// SPDX-License-Identifier: MIT OR Apache-2.0
// What the headers do by themselves, without the library. Linux only.
#include <infiniband/verbs.h>
#include <ndsupport.h>
#include <rdma/rdma_cma.h>
#include <tchar.h>
#include <ws2tcpip.h>
#include <wrl/client.h>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>
#include <string>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fputs(__FILE__ ": " #condition "\n", stderr);                      \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

static void interlocked()
{
    LONG l = 5;
    CHECK(InterlockedIncrement(&l) == 6 && InterlockedDecrement(&l) == 5);
    CHECK(InterlockedExchangeAdd(&l, 3) == 5 && InterlockedAdd(&l, 2) == 10 && l == 10);
    CHECK(InterlockedCompareExchange(&l, 1, 9) == 10 && l == 10);
    CHECK(InterlockedCompareExchange(&l, 1, 10) == 10 && l == 1);
    CHECK(InterlockedExchange(&l, 6) == 1 && InterlockedAnd(&l, 3) == 6 && InterlockedOr(&l, 9) == 2);
    CHECK(InterlockedXor(&l, 1) == 11 && l == 10);
    volatile long wide = 1;
    volatile unsigned u = 0;
    volatile unsigned long ul = 2;
    volatile long long ll = 1LL << 40;
    SHORT s = 1;
    CHECK(InterlockedIncrement(&wide) == 2);
    CHECK(InterlockedDecrement(&u) == 0xFFFFFFFF);
    CHECK(InterlockedIncrement(&ul) == 3);
    CHECK(InterlockedExchangeAdd64(&ll, 1) == 1LL << 40 && InterlockedCompareExchange64(&ll, 0, 7) == (1LL << 40) + 1);
    CHECK(InterlockedIncrement16(&s) == 2);
    // Every width wraps and keeps to its own bytes; results are those before the operation but for three functions.
    volatile SHORT shorts[3] = {1, SHRT_MAX, 2};
    CHECK(InterlockedIncrement16(&shorts[1]) == SHRT_MIN && InterlockedDecrement16(&shorts[1]) == SHRT_MAX);
    CHECK(InterlockedExchange16(&shorts[1], 5) == SHRT_MAX && InterlockedCompareExchange16(&shorts[1], 6, 5) == 5);
    CHECK(InterlockedOr16(&shorts[1], 8) == 6 && InterlockedAnd16(&shorts[1], 12) == 14 && InterlockedXor16(&shorts[1], 4) == 12);
    CHECK(shorts[0] == 1 && shorts[1] == 8 && shorts[2] == 2);
    char bytes[3] = {1, -1, 2};
    CHECK(InterlockedExchange8(&bytes[1], 7) == -1 && InterlockedExchangeAdd8(&bytes[1], 1) == 7);
    CHECK(InterlockedOr8(&bytes[1], 1) == 8 && InterlockedAnd8(&bytes[1], 3) == 9 && InterlockedXor8(&bytes[1], 3) == 1);
    CHECK(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 2);
    LONGLONG big = LLONG_MAX;
    CHECK(InterlockedIncrement64(&big) == LLONG_MIN && InterlockedDecrement64(&big) == LLONG_MAX);
    CHECK(InterlockedAdd64(&big, -1) == LLONG_MAX - 1 && InterlockedExchange64(&big, 6) == LLONG_MAX - 1);
    CHECK(InterlockedOr64(&big, 1LL << 40) == 6 && InterlockedAnd64(&big, 1LL << 40) == (1LL << 40 | 6) && InterlockedXor64(&big, 1) == 1LL << 40);
    volatile LONG most = 0x7FFFFFFF;
    CHECK(InterlockedIncrement(&most) == static_cast<LONG>(0x80000000) && InterlockedAdd(&most, -1) == 0x7FFFFFFF);
    int a, b;
    int* volatile p = &a;
    CHECK(InterlockedExchangePointer(&p, &b) == &a && InterlockedCompareExchangePointer(&p, nullptr, &a) == &b);
    PVOID v = nullptr;
    CHECK(InterlockedCompareExchangePointer(&v, &a, NULL) == nullptr && v == &a);
#ifdef __x86_64__
    alignas(16) LONGLONG pair[2] = {1, 2};
    LONGLONG seen[2] = {1, 3};
    CHECK(!InterlockedCompareExchange128(pair, 5, 4, seen) && seen[0] == 1 && seen[1] == 2 && pair[0] == 1);
    CHECK(InterlockedCompareExchange128(pair, 5, 4, seen) && seen[1] == 2 && pair[0] == 4 && pair[1] == 5);
#endif
}

static void offsets()
{
    struct Item {
        int key;
        LIST_ENTRY link;
    } item;
    enum { Constant = FIELD_OFFSET(Item, link) };
    CHECK(Constant == 8 && CONTAINING_RECORD(&item.link, Item, link) == &item);
    CHECK(ARRAYSIZE("abc") == 4 && _countof("abc") == 4);
}

static void smaller_and_larger()
{
    using namespace std;
    DWORD d = 3;
    SIZE_T z = 7;
    CHECK(min(d, 5u) == 3 && max(d, 5u) == 5);
    CHECK(min(d, z) == 3 && max(d, z) == 7);
    CHECK(std::min<int>(1, 2) == 1);
    const volatile ULONG q = 9;
    CHECK(::min(q, d) == 3);
}

static void addresses()
{
    sockaddr_in in = {};
    in.sin_addr.s_addr = htonl(0x0A000001);
    CHECK(in.sin_addr.S_un.S_addr == htonl(0x0A000001) && in.sin_addr.S_un.S_un_b.s_b1 == 10);
    CHECK(in.sin_addr.S_un.S_un_b.s_b4 == 1 && !strcmp(inet_ntoa(in.sin_addr), "10.0.0.1"));
    in_addr any = {INADDR_ANY};
    CHECK(any.S_un.S_addr == 0);
    sockaddr_in6 in6 = {};
    in6.sin6_addr = in6addr_loopback;
    CHECK(in6.sin6_addr.u.Byte[15] == 1 && in6.sin6_addr.s6_addr[15] == 1 && in6.sin6_addr.u.Word[7] == htons(1));
    CHECK(IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr));
    in6_addr none = IN6ADDR_ANY_INIT;
    CHECK(IN6_IS_ADDR_UNSPECIFIED(&none));
    SOCKADDR_INET both = {};
    both.Ipv4.sin_family = AF_INET;
    CHECK(both.si_family == AF_INET);
    rdma_addr route = {};
    route.src_sin = in;
    CHECK(route.src_sin.sin_addr.S_un.S_addr == in.sin_addr.s_addr);
}

static void numbers()
{
    CHECK(MAKEWORD(2, 2) == 0x0202 && LOWORD(0x12345678) == 0x5678 && HIWORD(0x12345678) == 0x1234);
    CHECK(LOBYTE(0x1234) == 0x34 && HIBYTE(0x1234) == 0x12 && MAKELONG(1, 2) == 0x20001);
    CHECK(FAILED(ND_BUFFER_OVERFLOW) && FAILED(ND_CANCELED) && SUCCEEDED(ND_PENDING) && SUCCEEDED(ND_TIMEOUT));
    CHECK(HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER) == (HRESULT)0x8007007A && HRESULT_FROM_WIN32(0) == S_OK);
    CHECK(HRESULT_FROM_WIN32(0x8007007A) == (HRESULT)0x8007007A);
    switch (ND_CANCELED) {
    case ND_CANCELED: break;
    default: CHECK(false);
    }
    unsigned __int64 big = (unsigned __int64)1 << 40;
    CHECK(big == 1ULL << 40);
    LARGE_INTEGER large;
    large.QuadPart = 0x100000002;
    CHECK(large.LowPart == 2 && large.HighPart == 1 && large.u.HighPart == 1);
    OVERLAPPED ov = {};
    CHECK(HasOverlappedIoCompleted(&ov));
    ov.Internal = 0x103;
    CHECK(!HasOverlappedIoCompleted(&ov));
    CHECK(INVALID_HANDLE_VALUE == reinterpret_cast<HANDLE>(~ULONG_PTR(0)) && INVALID_SOCKET == ~UINT_PTR(0));
    CHECK(FIELD_OFFSET(SOCKET_ADDRESS_LIST, Address[1]) == 24);
}

struct Object : IND2MemoryWindow {
    ULONG references = 1;
    STDMETHODIMP QueryInterface(REFIID iid, LPVOID* out) override
    {
        if (iid != __uuidof(IND2MemoryWindow) && iid != __uuidof(IUnknown)) {
            *out = nullptr;
            return E_NOINTERFACE;
        }
        *out = this;
        AddRef();
        return S_OK;
    }
    STDMETHODIMP_(ULONG) AddRef() override { return ++references; }
    STDMETHODIMP_(ULONG) Release() override { return --references; }
    STDMETHODIMP_(UINT32) GetRemoteToken() override { return 77; }
};

static void com()
{
    using Microsoft::WRL::ComPtr;
    Object object;
    {
        ComPtr<IND2MemoryWindow> window(&object);
        CHECK(object.references == 2 && window->GetRemoteToken() == 77 && window);
        ComPtr<IUnknown> unknown;
        CHECK(window.As(&unknown) == S_OK && object.references == 3);
        ComPtr<IND2QueuePair> wrong;
        CHECK(unknown.As(&wrong) == E_NOINTERFACE && !wrong);
        ComPtr<IND2MemoryWindow> again;
        CHECK(unknown->QueryInterface(IID_PPV_ARGS(&again)) == S_OK && again == window);
        ComPtr<IND2MemoryWindow> moved(std::move(again));
        CHECK(again == nullptr && object.references == 4);
        moved = window;
        CHECK(object.references == 4);
        CHECK(moved.Reset() == 3 && moved.Get() == nullptr);
        CHECK(unknown->QueryInterface(__uuidof(IND2MemoryWindow), &moved) == S_OK && object.references == 4);
        moved.Detach()->Release();
        std::map<int, ComPtr<IUnknown>> kept;
        kept[1] = unknown;
        CHECK(object.references == 4);
    }
    CHECK(object.references == 1);
    CHECK(__uuidof(IND2Adapter) != __uuidof(IND2Provider));
}

int main()
{
    interlocked();
    offsets();
    smaller_and_larger();
    addresses();
    numbers();
    com();
}
