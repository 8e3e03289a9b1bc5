// Formats, texts, numbers and addresses that nobody would write, through the functions that read and write them. Buffers are of
// exactly the size that is told, on the heap, where AddressSanitizer sees the first byte too many; and functions that are one
// another's must agree.
#include <winsock2.h>
#include <windows.h>
#include <ws2tcpip.h>
#include <ip2string.h>
#include <mstcpip.h>
#include <objbase.h>
#include <rpc.h>
#include <shellapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <strsafe.h>
#include <sys/mman.h>
#include <vector>
#include <wchar.h>

namespace {

void check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}
#define CHECK(condition) check(condition, #condition)

// As large a width as is worth printing: longer numbers lose digits.
template <class T> std::basic_string<T> tamed(const std::basic_string<T> &format) {
    std::basic_string<T> tame;
    size_t digits = 0, conversions = 0;
    for (T c : format) {
        digits = c >= '0' && c <= '9' ? digits + 1 : 0;
        conversions += c == '%' || c == '*';
        if (digits <= 3 && conversions <= 20)
            tame += c;
    }
    return tame;
}

// Something that %s, %S, %d and %p can all be given, and what %*d takes for a modest width.
const void *argument() {
    static void *place;
    if (!place) {
        place = mmap((void *)0x20000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        check(place != MAP_FAILED, "low memory");
        wcscpy((wchar_t *)place, L"abc");
    }
    return place;
}

// Doubles for the registers that hold those, whatever the format says.
#define MANY(p) 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p

int counted(const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = _vscprintf(format, list);
    va_end(list);
    return length;
}
int counted(const wchar_t *format, ...) {
    va_list list;
    va_start(list, format);
    int length = _vscwprintf(format, list);
    va_end(list);
    return length;
}
int cut(char *buffer, size_t size, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = _vsnprintf_s(buffer, size, _TRUNCATE, format, list);
    va_end(list);
    return length;
}
int cut(wchar_t *buffer, size_t size, const wchar_t *format, ...) {
    va_list list;
    va_start(list, format);
    int length = _vsnwprintf_s(buffer, size, _TRUNCATE, format, list);
    va_end(list);
    return length;
}
HRESULT safe(char *buffer, size_t size, const char *format, ...) {
    va_list list;
    va_start(list, format);
    HRESULT result = StringCchVPrintfA(buffer, size, format, list);
    va_end(list);
    return result;
}
HRESULT safe(wchar_t *buffer, size_t size, const wchar_t *format, ...) {
    va_list list;
    va_start(list, format);
    HRESULT result = StringCchVPrintfW(buffer, size, format, list);
    va_end(list);
    return result;
}
size_t measure(const char *text, size_t most) { return strnlen(text, most); }
size_t measure(const wchar_t *text, size_t most) { return wcsnlen(text, most); }

template <class T> void print(const std::basic_string<T> &text, size_t size) {
    std::basic_string<T> format = tamed(text);
    const void *p = argument();
    int length = counted(format.c_str(), MANY(p));
    if (length < 0 || length > 1 << 20)
        return;
    std::vector<T> whole(length + 1, T('?'));
    CHECK(cut(whole.data(), whole.size(), format.c_str(), MANY(p)) == length);
    CHECK(whole[length] == 0);
    if (size == 0)
        return;
    std::vector<T> part(size, T('?'));
    int fitted = cut(part.data(), size, format.c_str(), MANY(p));
    CHECK(fitted == ((size_t)length < size ? length : -1));
    CHECK(measure(part.data(), size) < size);
    HRESULT result = safe(part.data(), size, format.c_str(), MANY(p));
    CHECK((result == S_OK) == ((size_t)length < size));
    CHECK(measure(part.data(), size) < size);
}

void scan(const std::string &text, const std::string &format, size_t size) {
    // Every argument is a place for text, then its size, for all that the format may want: numbers find room there, too.
    if (size < 8)
        return;
    std::vector<std::vector<char>> rooms;
    size_t conversions = 0;
    std::string tame;
    for (char c : format) {
        conversions += c == '%';
        // Those that take a size too, or none, would shift what follows: one kind in a format, numbers alone.
        if (conversions <= 8 && !strchr("sScCn[*", c))
            tame += c;
    }
    for (int i = 0; i < 8; i++)
        rooms.emplace_back(16, 0);
    sscanf_s(text.c_str(), tame.c_str(), rooms[0].data(), rooms[1].data(), rooms[2].data(), rooms[3].data(), rooms[4].data(),
             rooms[5].data(), rooms[6].data(), rooms[7].data());
    std::vector<char> word(size);
    unsigned room = size;
    sscanf_s(text.c_str(), "%s", word.data(), room);
    CHECK(strnlen(word.data(), size) < size);
    sscanf_s(text.c_str(), "%[^,]", word.data(), room);
    CHECK(strnlen(word.data(), size) < size);
    std::vector<wchar_t> wide(size);
    sscanf_s(text.c_str(), "%S", wide.data(), room);
    CHECK(wcsnlen(wide.data(), size) < size);
}

void convert(const std::string &bytes, size_t size) {
    for (UINT page : {CP_UTF8, CP_ACP, 1252}) {
        for (DWORD flags : {0, MB_ERR_INVALID_CHARS}) {
            int count = (int)bytes.size();
            std::vector<char> exact(bytes.begin(), bytes.end());
            int needed = MultiByteToWideChar(page, flags, exact.data(), count, NULL, 0);
            std::vector<wchar_t> wide(needed);
            if (needed)
                CHECK(MultiByteToWideChar(page, flags, exact.data(), count, wide.data(), needed) == needed);
            std::vector<wchar_t> part(size);
            if (size)
                MultiByteToWideChar(page, flags, exact.data(), count, part.data(), (int)size);
            if (needed) {
                int back = WideCharToMultiByte(page, 0, wide.data(), needed, NULL, 0, NULL, NULL);
                std::vector<char> narrow(back);
                CHECK(WideCharToMultiByte(page, 0, wide.data(), needed, narrow.data(), back, NULL, NULL) == back);
            }
        }
    }
}

void read(const std::string &text, const std::wstring &wide, size_t size) {
    const char *end;
    const wchar_t *wide_end;
    struct in_addr four;
    struct in6_addr six;
    ULONG scope;
    USHORT port;
    for (BOOLEAN strict : {FALSE, TRUE}) {
        if (RtlIpv4StringToAddressA(text.c_str(), strict, &end, &four) == 0)
            CHECK(end > text.c_str() && end <= text.c_str() + text.size());
        if (RtlIpv4StringToAddressW(wide.c_str(), strict, &wide_end, &four) == 0)
            CHECK(wide_end > wide.c_str() && wide_end <= wide.c_str() + wide.size());
        RtlIpv4StringToAddressExA(text.c_str(), strict, &four, &port);
    }
    if (RtlIpv6StringToAddressA(text.c_str(), &end, &six) == 0)
        CHECK(end > text.c_str() && end <= text.c_str() + text.size());
    RtlIpv6StringToAddressExA(text.c_str(), &six, &scope, &port);
    for (int family : {AF_INET, AF_INET6}) {
        sockaddr_storage address;
        INT length = sizeof address;
        std::string copy = text;
        if (WSAStringToAddressA(&copy[0], family, NULL, (LPSOCKADDR)&address, &length) == 0) {
            CHECK(address.ss_family == family && length <= (INT)sizeof address);
            std::vector<char> spelled(size ? size : 1);
            DWORD room = spelled.size();
            if (WSAAddressToStringA((LPSOCKADDR)&address, length, NULL, spelled.data(), &room) == 0)
                CHECK(strnlen(spelled.data(), spelled.size()) + 1 == room);
        }
        InetPtonA(family, text.c_str(), &six);
        InetPtonW(family, wide.c_str(), &six);
    }
    GUID guid;
    UUID uuid;
    if (CLSIDFromString(wide.c_str(), &guid) == S_OK) {
        std::vector<wchar_t> spelled(size);
        int length = StringFromGUID2(guid, spelled.data(), (int)size);
        CHECK(length == (size >= 39 ? 39 : 0));
    }
    UuidFromStringA((RPC_CSTR)text.c_str(), &uuid);
    UuidFromStringW((RPC_WSTR)wide.c_str(), &uuid);
    int count = 0;
    if (LPWSTR *words = CommandLineToArgvW(wide.c_str(), &count)) {
        for (int i = 0; i < count; i++)
            CHECK(wcslen(words[i]) <= wide.size() + 4096);
        CHECK(words[count] == NULL);
        LocalFree(words);
    }
    std::vector<char> narrow(size);
    DWORD expanded = ExpandEnvironmentStringsA(text.c_str(), narrow.data(), (DWORD)size);
    if (expanded && expanded <= size)
        CHECK(strnlen(narrow.data(), size) + 1 == expanded);
    WIN32_FIND_DATAA found;
    HANDLE search = FindFirstFileA((std::string("/dev/shm/ndcompat-none/") + text).c_str(), &found);
    if (search != INVALID_HANDLE_VALUE)
        FindClose(search);
    _wtoi(wide.c_str());
    _wtoi64(wide.c_str());
    CompareStringA(0, NORM_IGNORECASE, text.data(), (int)text.size(), text.data(), (int)(size % (text.size() + 1)));
    VerSetConditionMask(size, text.size(), (BYTE)size);
}

void message(const std::string &text, size_t size) {
    const void *p = argument();
    DWORD_PTR arguments[100];
    for (DWORD_PTR &argument : arguments)
        argument = (DWORD_PTR)p;
    std::string tame = tamed(text);
    std::vector<char> buffer(size);
    DWORD flags = FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_ARGUMENT_ARRAY | (text.size() % 3 == 0 ? 0xFF : text.size() % 80);
    DWORD length = FormatMessageA(flags, tame.c_str(), 0, 0, buffer.data(), (DWORD)size, (va_list *)arguments);
    CHECK(length < size || length == 0);
    if (length)
        CHECK(strnlen(buffer.data(), size) == length);
}

} // namespace

extern "C" void fuzz_text(const unsigned char *data, size_t size) {
    if (size < 2)
        return;
    size_t room = data[1];
    std::string text((const char *)data + 2, size - 2);
    text = text.c_str(); // to the first NUL
    std::wstring wide(text.begin(), text.end());
    for (wchar_t &c : wide)
        c &= 0xFF;
    switch (data[0] % 6) {
    case 0: return print(text, room);
    case 1: return print(wide, room);
    case 2: return scan(text.substr(0, text.size() / 2), text.substr(text.size() / 2), room);
    case 3: return convert(std::string((const char *)data + 2, size - 2), room);
    case 4: return message(text, room);
    default: return read(text, wide, room);
    }
}
