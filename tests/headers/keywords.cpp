// SPDX-License-Identifier: MIT OR Apache-2.0
// What MSVC has without any header: this file includes one only further down, and is compiled with keywords.h in front.
typedef unsigned __int64 Wide;
typedef _int8 Byte;
typedef unsigned _int32 Word;
static_assert(sizeof(Byte) == 1 && sizeof(Word) == 4 && sizeof(_int16) == 2, "of one underscore, too");
static_assert(sizeof(Wide) == 8 && sizeof(__int16) == 2, "");

__declspec(deprecated("use the other")) void Old();
__declspec(deprecated) void Older();
__declspec(noreturn, noinline) void Never();
static __declspec(thread) int thread_local_one = 1;
__declspec(thread) static int thread_local_two = 2;
struct __declspec(novtable) __declspec(align(32)) Aligned {
    int member;
};
struct __declspec(uuid("00000000-0000-0000-C000-000000000046"), novtable) Named {
    int member;
};
static_assert(alignof(Aligned) == 32 && alignof(Named) == 4, "");

// Its body is in another file.
__forceinline int Elsewhere(int value);
int CallElsewhere(int value) { return Elsewhere(value); }
extern "C" int __cdecl Exported(int value);
__declspec(dllexport) int __cdecl Exported(int value) { return value; }

#define LOG __noop

#include <initguid.h>
#include <windows.h>
#include <winsock2.h>
#include <intrin.h>
#include <cstdio>
#include <cstdlib>

// Declared again, as programs do.
extern "C" void _ReadBarrier(void);
extern "C" void _WriteBarrier(void);
extern "C" void _ReadWriteBarrier(void);

#include "../check.h"

// An offset as a constant, and with an index that only the run knows.
enum { Constant = FIELD_OFFSET(SOCKET_ADDRESS_LIST, Address) };
static_assert(FIELD_OFFSET(SOCKET_ADDRESS_LIST, iAddressCount) == 0, "");
template <typename T> struct Offsets {
    enum { Second = FIELD_OFFSET(T, Address[1]) };
    char before[FIELD_OFFSET(T, Address)];
    static LONG Of(int index) { return FIELD_OFFSET(T, Address[index].iSockaddrLength); }
};
static void offsets(int count)
{
    CHECK(Constant == 8 && int(Offsets<SOCKET_ADDRESS_LIST>::Second) == 24);
    CHECK(sizeof(Offsets<SOCKET_ADDRESS_LIST>) == 8);
    for (int index = 0; index < count; index++) {
        CHECK(FIELD_OFFSET(SOCKET_ADDRESS_LIST, Address[index]) == 8 + 16 * index);
        CHECK(UFIELD_OFFSET(SOCKET_ADDRESS_LIST, Address[index + 1]) == 24u + 16 * unsigned(index));
        CHECK(Offsets<SOCKET_ADDRESS_LIST>::Of(index) == 16 + 16 * index);
    }
    switch (count) {
    case FIELD_OFFSET(SOCKET_ADDRESS_LIST, Address): break;
    default: CHECK(count != 8);
    }
}

// __assume in an expression, as Windows' own macros have it, and as a statement.
static int assumed(int number)
{
    const int next = (__assume(number >= 0), number + 1);
    switch (next & 1) {
    case 0:
        return number > 0 ? __assume(next > 1), next : 0;
    case 1:
        __assume(next != 0);
        return next;
    default:
        __assume(0);
    }
}

static void bits()
{
    ULONG narrow = 99;
    unsigned long wide = 99;
    CHECK(_BitScanForward(&narrow, 0x50) && narrow == 4 && _BitScanReverse(&narrow, 0x50) && narrow == 6);
    CHECK(_BitScanForward(&wide, 0x50) && wide == 4 && _BitScanReverse(&wide, 0x80000001) && wide == 31);
    CHECK(_BitScanForward64(&narrow, 1ull << 40) && narrow == 40 && _BitScanReverse64(&wide, 3ull << 62) && wide == 63);
    // Nothing is set: nothing is written.
    CHECK(!BitScanForward(&narrow, 0) && narrow == 40 && !BitScanReverse64(&wide, 0) && wide == 63);
    CHECK(__popcnt(0xF0F0) == 8 && __popcnt16(0xFFFF) == 16 && __popcnt64(~0ull) == 64);
    CHECK(__lzcnt(1) == 31 && __lzcnt(0) == 32);
    unsigned long long high;
    CHECK(_umul128(1ull << 63, 4, &high) == 0 && high == 2);
    CHECK(__umulh(1ull << 63, 4) == 2 && __mulh(-1, 1) == -1);
#ifdef __x86_64__
    int registers[4], same[4];
    __cpuid(registers, 0);
    __cpuidex(same, 0, 0);
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
    CHECK(registers[0] == same[0] && registers[1] == int(b) && registers[2] == int(c) && registers[3] == int(d));
    const unsigned long long then = __rdtsc();
    _mm_pause();
    CHECK(ReadTimeStampCounter() > then);
#endif
}

// A breakpoint in a constant expression that does not come to it.
constexpr int positive(int number) { return number > 0 ? number : (__debugbreak(), 0); }
static_assert(positive(3) == 3, "");

int main()
{
    if (thread_local_one + thread_local_two != 3)
        return 1;
    LOG("not evaluated: %d", Old());
    __noop;
    _ReadBarrier();
    _WriteBarrier();
    _ReadWriteBarrier();
    offsets(4);
    bits();
    CHECK(assumed(1) == 2 && assumed(2) == 3);
    return Exported(0);
}
