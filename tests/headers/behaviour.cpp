// SPDX-License-Identifier: MIT OR Apache-2.0
// What the headers do by themselves, without the library. Linux only.
#include <infiniband/verbs.h>
#include <ndsupport.h>
#include <crtdbg.h>
#include <intrin.h>
#include <intsafe.h>
#include <new.h>
#include <rdma/rdma_cma.h>
#include <tchar.h>
#include <ws2tcpip.h>
#include <wrl/client.h>
#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "../check.h"

// With MSVC these are one type, so pointers to them mix.
static int one_type(UINT64*) { return 1; }

static void types()
{
    ULONG64 ulong64 = 0;
    DWORD64 dword64 = 0;
    SIZE_T size = 0;
    LONG64 long64 = 5;
    INT64* int64 = &long64;
    CHECK(one_type(&ulong64) + one_type(&dword64) + one_type(&size) == 3 && ReadNoFence64(int64) == 5);
    _Frees_ptr_ PVOID freed = nullptr;
    _Frees_ptr_opt_ PVOID none = nullptr;
    CHECK(freed == none && E_NOT_SUFFICIENT_BUFFER == HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER) &&
        E_NOT_VALID_STATE == HRESULT_FROM_WIN32(ERROR_INVALID_STATE) && MEMORY_ALLOCATION_ALIGNMENT == 16);
}

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
    volatile unsigned least = 1;
    CHECK(InterlockedExchangeSubtract(&least, 2) == 1 && least == 0xFFFFFFFF);
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
    volatile LONG words[2] = {0, 0};
    CHECK(!InterlockedBitTestAndSet(words, 33) && InterlockedBitTestAndSet(words, 33) && words[1] == 2);
    CHECK(!InterlockedBitTestAndComplement(words, 31) && words[0] == static_cast<LONG>(0x80000000));
    CHECK(InterlockedBitTestAndReset(words, 31) && !InterlockedBitTestAndReset(words, 31) && words[0] == 0);
    LONG64 word = 0;
    CHECK(!InterlockedBitTestAndSet64(&word, 63) && word == LLONG_MIN && InterlockedBitTestAndReset64(&word, 63));
    WriteRelease(&words[0], -7);
    WriteRelease64(&word, 1LL << 40);
    PVOID pointer = nullptr;
    WritePointerNoFence(&pointer, &word);
    CHECK(ReadAcquire(&words[0]) == -7 && ReadNoFence64(&word) == 1LL << 40 && ReadPointerAcquire(&pointer) == &word);
    ULONG number = 0;
    ULONG_PTR address = 0;
    UCHAR octet = 0;
    WriteULongRelease(&number, 0xFFFFFFFF), WriteULongPtrNoFence(&address, ULONG_PTR{1} << 63), WriteUCharRaw(&octet, 255);
    CHECK(ReadULongAcquire(&number) == 0xFFFFFFFF && ReadULongPtrRaw(&address) == ULONG_PTR{1} << 63 && ReadUCharNoFence(&octet) == 255);
    // The program's own `long`, which has 32 bits on Windows, and `long long`.
    volatile long own[2] = {0, 0};
    CHECK(!InterlockedBitTestAndSet(own, 33) && _interlockedbittestandset(own, 33) && own[0] == 0 && own[1] == 2);
    CHECK(!InterlockedBitTestAndComplement(own, 0) && own[0] == 1 && _interlockedbittestandreset(own, 33) && own[1] == 0);
    WriteRelease(&own[0], 7);
    volatile unsigned long own_unsigned = 0;
    WriteULongNoFence(&own_unsigned, 8);
    CHECK(ReadAcquire(&own[0]) == 7 && ReadNoFence(&own[0]) == 7 && ReadULongRaw(&own_unsigned) == 8);
    volatile long long own_wide = 0;
    CHECK(!InterlockedBitTestAndSet64(&own_wide, 40) && ReadAcquire64(&own_wide) == 1LL << 40 && _interlockedbittestandreset64(&own_wide, 40));
    WriteRelease64(&own_wide, -1);
    CHECK(ReadRaw64(&own_wide) == -1);
    CHECK(RotateLeft32(0x80000001, 1) == 3 && RotateRight32(3, 1) == 0x80000001 && RotateLeft64(1ull << 63, 1) == 1 && RotateRight64(1, 1) == 1ull << 63);
    LONG64 upper;
    ULONG64 unsigned_upper;
    CHECK(Multiply128(-1, 5, &upper) == -5 && upper == -1 && MultiplyHigh(LONG64{1} << 62, -8) == -2 && MultiplyHigh(-1, -1) == 0);
    CHECK(UnsignedMultiply128(~ULONG64{0}, 2, &unsigned_upper) == ~ULONG64{1} && unsigned_upper == 1 && UnsignedMultiplyHigh(ULONG64{1} << 63, 6) == 3);
    CHECK(ShiftLeft128(ULONG64{1} << 63, 1, 1) == 3 && ShiftLeft128(~ULONG64{0}, 7, 64) == 7 && ShiftRight128(2, 1, 1) == (ULONG64{1} << 63 | 1) && ShiftRight128(9, 1, 64) == 9);
#ifdef __x86_64__
    _mm_pause();
    LoadFence(), StoreFence(), MemoryFence(), FastFence(), CacheLineFlush(&upper);
#endif
    const SCOPE_ID unspecified = SCOPEID_UNSPECIFIED_INIT;
    CHECK(unspecified.Value == 0);
    CHECK(RtlUshortByteSwap(0x0102) == 0x0201 && RtlUlongByteSwap(0x01020304) == 0x04030201 && RtlUlonglongByteSwap(1) == 1ull << 56);
    CHECK(Int32x32To64(-2, 0x40000000) == -0x80000000LL && UInt32x32To64(0xFFFFFFFF, 2) == 0x1FFFFFFFEULL);
    CHECK(htonll(1) == 1ULL << 56 && ntohll(htonll(77)) == 77 && ntohd(htond(1.5)) == 1.5 && htonf(1.0f) == 0x803F);
    CHECK(SetConsoleOutputCP(65001) && !SetConsoleOutputCP(437) && GetConsoleOutputCP() == 65001);
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

// Members without a definition, as macros take them.
struct Limits {
    static const DWORD most = 5;
    static const SIZE_T least = 1;
};

static void members_need_no_definition()
{
    DWORD d = 7;
    CHECK(min(d, Limits::most) == 5 && max(Limits::most, d) == 7);
    CHECK(min(Limits::most, Limits::least) == 1 && max(Limits::least, d) == 7);
    static_assert(min(Limits::most, 4u) == 4 && max(1, 2) == 2, "constants");
    struct { ULONG low : 3, high : 29; } bits = {2, 100};
    CHECK(max(bits.low, bits.high) == 100);
    const char* text = "ab";
    CHECK(min(text + 1, text) == text && max(std::string("a"), std::string("b")) == "b");
}

static void smaller_and_larger()
{
    using namespace std;
    DWORD d = 3;
    SIZE_T z = 7;
    CHECK(min(d, 5u) == 3 && max(d, 5u) == 5);
    CHECK(min(d, z) == 3 && max(d, z) == 7);
    CHECK(std::min<int>(1, 2) == 1 && min<int>(1, 2) == 1 && max<double>(1, 2.5) == 2.5);
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

enum class Rights : unsigned { none = 0, read = 1, write = 2 };
DEFINE_ENUM_FLAG_OPERATORS(Rights)

static void safe_integers()
{
    SIZE_T size = 0;
    DWORD small = 7;
    LONG sign = 0;
    USHORT word = 0;
    CHECK(SizeTMult(3, 4, &size) == S_OK && size == 12);
    CHECK(SizeTMult(SIZE_MAX, 2, &size) == INTSAFE_E_ARITHMETIC_OVERFLOW && size == SIZE_MAX);
    CHECK(FAILED(ULongAdd(0xFFFFFFFFu, 1, &small)) && small == 0xFFFFFFFF);
    CHECK(FAILED(ULongSub(1, 2, &small)) && DWordSub(3, 2, &small) == S_OK && small == 1);
    CHECK(SizeTToDWord(0xFFFFFFFFu, &small) == S_OK && FAILED(SizeTToDWord(1ull << 32, &small)));
    CHECK(FAILED(IntToUShort(-1, &word)) && word == 0xFFFF && LongLongToLong(-5, &sign) == S_OK && sign == -5);
    CHECK(RtlCompareMemory("abc", "abd", 3) == 2 && RtlCompareMemory("", "", 1) == 1);
    Rights rights = Rights::read;
    rights |= Rights::write;
    CHECK((rights & ~Rights::read) == Rights::write && (rights ^ Rights::write) == Rights::read);
}

static void control_data()
{
    alignas(WSACMSGHDR) char room[WSA_CMSG_SPACE(4) + WSA_CMSG_SPACE(1)] = {};
    WSAMSG message = {};
    message.Control.buf = room;
    CHECK(WSA_CMSG_FIRSTHDR(&message) == nullptr);
    message.Control.len = sizeof room;
    LPWSACMSGHDR header = WSA_CMSG_FIRSTHDR(&message);
    header->cmsg_len = WSA_CMSG_LEN(4);
    header = WSA_CMSG_NXTHDR(&message, header);
    CHECK(reinterpret_cast<char *>(header) == room + WSA_CMSG_SPACE(4));
    CHECK(WSA_CMSG_NXTHDR(&message, header) == nullptr);
    header->cmsg_len = WSA_CMSG_LEN(1);
    CHECK(WSA_CMSG_NXTHDR(&message, header) == nullptr);
}

static void numbers()
{
    CHECK(MAKEWORD(2, 2) == 0x0202 && LOWORD(0x12345678) == 0x5678 && HIWORD(0x12345678) == 0x1234);
    CHECK(Int64ShllMod32(1, 31) == 1ull << 31 && Int64ShraMod32(-8, 2) == -2 && Int64ShrlMod32(-1, 31) == ~0ull >> 31 && PopulationCount64(~0ull) == 64);
    const COLORREF colour = RGB(1, 0xF2, 0xF3);
    CHECK(colour == 0x00F3F201 && GetRValue(colour) == 1 && GetGValue(colour) == 0xF2 && GetBValue(colour) == 0xF3);
    CHECK(IS_INTRESOURCE(MAKEINTRESOURCE(5)) && !IS_INTRESOURCE("name") && MAKEINTRESOURCEW(7) == reinterpret_cast<LPWSTR>(7));
    CHECK(std::wstring(_CRT_WIDE("abc")) == L"abc" && std::string(_CRT_STRINGIZE(a b)) == "a b" && std::string(__FUNCSIG__).find("numbers") != std::string::npos);
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

static void addresses_by_helpers()
{
    SOCKADDR_STORAGE four = {}, six = {};
    const auto a = reinterpret_cast<SOCKADDR*>(&four), b = reinterpret_cast<SOCKADDR*>(&six);
    a->sa_family = AF_INET;
    b->sa_family = AF_INET6;
    for (SOCKADDR* each : {a, b}) {
        INETADDR_SETLOOPBACK(each);
        CHECK(INETADDR_ISLOOPBACK(each) && !INETADDR_ISANY(each) && INETADDR_PORT(each) == 0);
        INETADDR_SET_PORT(each, htons(80));
        CHECK(INETADDR_PORT(each) == htons(80) && SS_PORT(each) == htons(80) && INETADDR_SCOPE_ID(each).Value == 0);
        CHECK(INETADDR_ISEQUAL(each, each) && !INETADDR_ISV4MAPPED(each));
        INETADDR_SETANY(each);
        CHECK(INETADDR_ISANY(each) && INETADDR_ISUNSPECIFIED(each) && !INETADDR_ISLOOPBACK(each));
    }
    CHECK(!INETADDR_ISEQUAL(a, b));
    const UCHAR host[] = {192, 0, 2, 7};
    INETADDR_SET_ADDRESS(a, host);
    CHECK(memcmp(INETADDR_ADDRESS(a), host, 4) == 0 && INET_ADDR_EQUAL(AF_INET, INETADDR_ADDRESS(a), host));
    const IN_ADDR address = reinterpret_cast<SOCKADDR_IN*>(a)->sin_addr;
    IN6ADDR_SETV4MAPPED(reinterpret_cast<SOCKADDR_IN6*>(b), &address, SCOPE_ID(), 1);
    CHECK(INETADDR_ISV4MAPPED(b) && IN6_IS_ADDR_V4MAPPED(&reinterpret_cast<SOCKADDR_IN6*>(b)->sin6_addr));
    CHECK(memcmp(IN6_GET_ADDR_V4MAPPED(&reinterpret_cast<SOCKADDR_IN6*>(b)->sin6_addr), host, 4) == 0);
    IN_ADDR others[3];
    others[0].s_addr = htonl(0xE0000001);
    others[1].s_addr = htonl(0xA9FE0102);
    others[2].s_addr = INADDR_BROADCAST;
    CHECK(IN4_IS_ADDR_MULTICAST(&others[0]) && IN4_IS_ADDR_LINKLOCAL(&others[1]) && IN4_IS_ADDR_BROADCAST(&others[2]));
    CHECK(!IN4_IS_ADDR_MULTICAST(&others[1]) && !IN4_ADDR_EQUAL(&others[0], &others[1]));
}

#ifdef __x86_64__
// The handler stands for a debugger that goes on.
static volatile int breaks;

static void on_break(int)
{
    breaks = breaks + 1;
}

static void a_breakpoint_can_be_continued()
{
    signal(SIGTRAP, on_break);
    __debugbreak();
    DebugBreak();
    _CrtDbgBreak();
    breaks != 3 ? __debugbreak() : (void)0;
    signal(SIGTRAP, SIG_DFL);
    CHECK(breaks == 3);
}
#endif

static void intrinsics()
{
    LONG words[3] = {0, 0, 1};
    LONG64 wide[2] = {0, 1};
    CHECK(_bittest(words, 64) && !_bittest(words, 31) && !_bittestandset(words, 33) && _bittestandset(words, 33) && words[1] == 2);
    CHECK(_bittestandreset(words, 33) && words[1] == 0 && !_bittestandcomplement(words, 31) && words[0] == INT_MIN);
    CHECK(_bittest64(wide, 64) && !_bittestandset64(wide, 63) && wide[0] == LLONG_MIN && _bittestandreset64(wide, 64) && wide[1] == 0);
    CHECK(BitTest(words, 64) && !BitTestAndSet(words, 40) && BitTestAndReset(words, 40) && !BitTest64(wide, 64));
#ifndef NDW_BUILTIN_INTRINSICS
    long own[3] = {0, 0, 1};
    CHECK(_bittest(own, 64) && !_bittestandset(own, 33) && _bittestandset(own, 33) && own[0] == 0 && own[1] == 2);
    CHECK(BitTestAndReset(own, 33) && own[1] == 0 && !_bittestandcomplement(own, 31) && own[0] == 1l << 31);
#endif
    long long high;
    unsigned long long rest;
    CHECK(_mul128(-2, 1ll << 62, &high) == LLONG_MIN && high == -1);
    CHECK(__shiftleft128(1ull << 63, 1, 1) == 3 && __shiftright128(2, 1, 1) == (1ull << 63 | 1) && __shiftleft128(5, 7, 64) == 7);
    CHECK(_rotl8(0x81, 1) == 3 && _rotr8(1, 1) == 0x80 && _rotl16(0x8001, 1) == 3 && _rotr16(1, 17) == 0x8000);
    CHECK(_udiv128(1, 0, 16, &rest) == 1ull << 60 && rest == 0 && __emul(-3, 5) == -15 && __emulu(0xFFFFFFFF, 2) == 0x1FFFFFFFE);
    unsigned char bytes[5] = {1, 2, 3, 4, 5};
    __movsb(bytes + 1, bytes, 4); // forwards, so that the first byte spreads
    CHECK(bytes[4] == 1);
    __stosb(bytes, 9, 4);
    CHECK(bytes[3] == 9 && bytes[4] == 1);
    unsigned dwords[3] = {0, 0, 7};
    __stosd(dwords, 5, 2);
    CHECK(dwords[1] == 5 && dwords[2] == 7);
    unsigned long long quads[3] = {};
    __stosq(quads, 6, 2);
    __movsq(quads + 1, quads, 2);
    CHECK(quads[2] == 6);
    char byte = 1;
    SHORT word = 6;
    CHECK(_InterlockedExchange8(&byte, 2) == 1 && _InterlockedAnd8(&byte, 3) == 2 && _InterlockedOr16(&word, 1) == 6 && word == 7);
    PVOID pointer = nullptr;
    CHECK(InterlockedExchangePointerAcquire(&pointer, words) == nullptr && ReadPointerAcquire(&pointer) == words);
    WritePointerRelease(&pointer, nullptr);
    CHECK(pointer == nullptr && MAXLONG64 == LLONG_MAX && MAXDWORD64 == ~0ull && E_BOUNDS == static_cast<HRESULT>(0x8000000B));
}

static int handled;

static int no_memory(size_t)
{
    return ++handled < 3;
}

static void memory_runs_out()
{
    CHECK(_query_new_handler() == nullptr && _set_new_handler(no_memory) == nullptr);
    bool thrown = false;
    volatile size_t most = PTRDIFF_MAX;
    try {
        ::operator delete(::operator new(most));
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    CHECK(thrown && handled == 3 && _set_new_handler(0) == no_memory && std::get_new_handler() == nullptr);
}

int main()
{
    memory_runs_out();
    intrinsics();
#ifdef __x86_64__
    a_breakpoint_can_be_continued();
#endif
    types();
    addresses_by_helpers();
    interlocked();
    offsets();
    members_need_no_definition();
    smaller_and_larger();
    addresses();
    numbers();
    safe_integers();
    control_data();
    com();
}
