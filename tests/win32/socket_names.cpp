// SPDX-License-Identifier: MIT OR Apache-2.0
// Names and numbers of hosts, services and protocols.
#include "winsock.h"
#include <vector>

// A listed protocol makes a socket, and numbers can be ordered for it.
static void protocols_and_numbers()
{
    DWORD size = 0;
    int tcp[] = {IPPROTO_TCP, 0};
    FAILS(WSAEnumProtocols(tcp, nullptr, &size), WSAENOBUFS);
    std::vector<WSAPROTOCOL_INFO> found(size / sizeof(WSAPROTOCOL_INFO));
    CHECK(found.size() == 2 && WSAEnumProtocols(tcp, found.data(), &size) == 2);
    const SOCKET s = WSASocket(FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, found.data(), 0, 0);
    CHECK(s != INVALID_SOCKET);
    ULONG narrow = 0;
    u_long wide = ~0ul;
    u_short small = 0;
    CHECK(WSAHtonl(s, 0x01020304, &narrow) == 0 && narrow == 0x04030201 && WSANtohl(s, narrow, &wide) == 0 && wide == 0x01020304);
    CHECK(WSAHtons(s, 0x0102, &small) == 0 && small == 0x0201 && WSANtohs(s, small, &small) == 0 && small == 0x0102);
    FAILS(WSAHtonl(s, 1, static_cast<u_long*>(nullptr)), WSAEFAULT);
    CHECK(closesocket(s) == 0);
    FAILS(WSANtohl(s, 1, &narrow), WSAENOTSOCK);
}

static void names()
{
    char host[256], tiny[1];
    CHECK(gethostname(host, static_cast<int>(sizeof host)) == 0 && host[0] != '\0');
    FAILS(gethostname(tiny, static_cast<int>(sizeof tiny)), WSAEFAULT);
    addrinfo hints = {}, *list = nullptr;
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_socktype = SOCK_STREAM;
    CHECK(getaddrinfo("127.0.0.1", "80", &hints, &list) == 0 && list->ai_family == AF_INET);
    CHECK(reinterpret_cast<sockaddr_in*>(list->ai_addr)->sin_port == htons(80));
    freeaddrinfo(list);
    hints.ai_flags |= AI_FQDN | AI_DISABLE_IDN_ENCODING;
    CHECK(getaddrinfo("127.0.0.1", "80", &hints, &list) == 0 && strcmp(list->ai_canonname, "127.0.0.1") == 0);
    freeaddrinfo(list);
    // A protocol that is none of the type's is not looked at.
    for (const int protocol : {static_cast<int>(IPPROTO_UDP), static_cast<int>(IPPROTO_IPV6), 999}) {
        hints.ai_protocol = protocol;
        CHECK(getaddrinfo("127.0.0.1", "80", &hints, &list) == 0);
        CHECK(list->ai_socktype == SOCK_STREAM && list->ai_protocol == protocol && list->ai_next == nullptr);
        freeaddrinfo(list);
    }
    hints.ai_protocol = 0;
    list = nullptr;
    CHECK(getaddrinfo("no number", "80", &hints, &list) == WSAHOST_NOT_FOUND && list == nullptr);
    CHECK(WSAGetLastError() == WSAHOST_NOT_FOUND && EAI_NONAME == WSAHOST_NOT_FOUND);
    CHECK(gai_strerror(WSAHOST_NOT_FOUND)[0] != '\0');
    ADDRINFOW wide_hints = {}, *wide = nullptr;
    wide_hints.ai_family = AF_INET;
    wide_hints.ai_flags = AI_NUMERICHOST | AI_CANONNAME;
    CHECK(GetAddrInfoW(L"127.0.0.1", L"81", &wide_hints, &wide) == 0);
    CHECK(wide->ai_addrlen == sizeof(sockaddr_in) && wcscmp(wide->ai_canonname, L"127.0.0.1") == 0);
    WCHAR name[64], service[16];
    CHECK(GetNameInfoW(wide->ai_addr, sizeof(sockaddr_in), name, 64, service, 16, NI_NUMERICHOST | NI_NUMERICSERV) == 0);
    CHECK(wcscmp(name, L"127.0.0.1") == 0 && wcscmp(service, L"81") == 0);
    CHECK(GetNameInfoW(wide->ai_addr, sizeof(sockaddr_in), name, 3, nullptr, 0, NI_NUMERICHOST) != 0);
    FreeAddrInfoW(wide);
    FreeAddrInfoW(nullptr);
    const hostent* const own = gethostbyname("127.0.0.1");
    CHECK(own != nullptr && own->h_addrtype == AF_INET && own->h_length == 4);
    CHECK(getservbyname("no such service", "tcp") == nullptr && WSAGetLastError() == WSANO_DATA);
}

// Each address is there once, with the type and protocol of the hints, whatever those leave open.
static void an_address_is_listed_once()
{
    const struct {
        int type, protocol;
    } asked[] = {{0, 0}, {SOCK_STREAM, 0}, {SOCK_DGRAM, 0}, {0, IPPROTO_TCP}, {0, IPPROTO_UDP}, {SOCK_STREAM, IPPROTO_TCP}};
    for (const auto& what : asked) {
        addrinfo hints = {}, *list = nullptr;
        hints.ai_socktype = what.type;
        hints.ai_protocol = what.protocol;
        CHECK(getaddrinfo("127.0.0.1", "80", &hints, &list) == 0 && list->ai_next == nullptr);
        CHECK(list->ai_socktype == what.type && list->ai_protocol == what.protocol && list->ai_family == AF_INET);
        const SOCKET s = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
        CHECK(s != INVALID_SOCKET && closesocket(s) == 0);
        freeaddrinfo(list);
        ADDRINFOW wide_hints = {}, *wide = nullptr;
        wide_hints.ai_socktype = what.type;
        wide_hints.ai_protocol = what.protocol;
        CHECK(GetAddrInfoW(L"::1", nullptr, &wide_hints, &wide) == 0 && wide->ai_next == nullptr);
        CHECK(wide->ai_socktype == what.type && wide->ai_protocol == what.protocol && wide->ai_family == AF_INET6);
        FreeAddrInfoW(wide);
    }
    addrinfo* list = nullptr;
    CHECK(getaddrinfo("127.0.0.1", nullptr, nullptr, &list) == 0 && list->ai_next == nullptr && list->ai_socktype == 0);
    freeaddrinfo(list);
    // Of two families, both are there.
    CHECK(getaddrinfo(nullptr, "80", nullptr, &list) == 0);
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next)
        for (const addrinfo* other = entry->ai_next; other != nullptr; other = other->ai_next)
            CHECK(entry->ai_addrlen != other->ai_addrlen || memcmp(entry->ai_addr, other->ai_addr, entry->ai_addrlen) != 0);
    freeaddrinfo(list);
    ADDRINFOEXW* extended = nullptr;
    CHECK(GetAddrInfoExW(L"127.0.0.1", L"80", NS_ALL, nullptr, nullptr, &extended, nullptr, nullptr, nullptr, nullptr) == 0);
    CHECK(extended->ai_next == nullptr && extended->ai_socktype == 0);
    FreeAddrInfoExW(extended);
}

// As programs of an earlier time look for interfaces.
static void interfaces_are_listed()
{
    const SOCKET s = WSASocket(AF_INET, SOCK_DGRAM, 0, nullptr, 0, 0);
    std::vector<INTERFACE_INFO> found(1);
    DWORD bytes = 77;
    const auto list = [&](size_t room) {
        return WSAIoctl(s, SIO_GET_INTERFACE_LIST, nullptr, 0, found.data(), static_cast<DWORD>(room), &bytes, nullptr, nullptr);
    };
    FAILS(list(1), WSAEFAULT);
    CHECK(bytes == 0);
    // How much it takes is not told.
    while (list(found.size() * sizeof found[0]) != 0) {
        CHECK(WSAGetLastError() == WSAEFAULT && bytes == 0);
        found.resize(2 * found.size());
    }
    CHECK(bytes > 0 && bytes % sizeof found[0] == 0);
    found.resize(bytes / sizeof found[0]);
    int loopbacks = 0;
    for (const INTERFACE_INFO& info : found) {
        const sockaddr_in& address = info.iiAddress.AddressIn;
        CHECK(info.iiAddress.Address.sa_family == AF_INET && info.iiNetmask.AddressIn.sin_addr.s_addr != 0);
        CHECK((info.iiFlags & IFF_BROADCAST) != 0 || info.iiBroadcastAddress.AddressIn.sin_addr.s_addr == 0);
        const bool loopback = address.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
        CHECK(!loopback || (info.iiFlags & (IFF_UP | IFF_LOOPBACK | IFF_POINTTOPOINT | IFF_BROADCAST)) == (IFF_UP | IFF_LOOPBACK));
        loopbacks += loopback;
    }
    CHECK(loopbacks == 1);
    CHECK(closesocket(s) == 0);
}

// A peer must be able to use what a name stands for: of the loopback interface only if there is no other one.
static void the_own_name_stands_for_the_addresses_of_the_interfaces()
{
    char host[256];
    CHECK(gethostname(host, static_cast<int>(sizeof host)) == 0);
    const hostent* const own = gethostbyname(host);
    CHECK(own != nullptr && strcmp(own->h_name, host) == 0 && own->h_aliases[0] == nullptr);
    CHECK(own->h_addrtype == AF_INET && own->h_length == 4 && own->h_addr_list[0] != nullptr);
    addrinfo hints = {};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_CANONNAME;
    for (const char* const name : {static_cast<const char*>(host), "", "..localmachine"}) {
        addrinfo* list = nullptr;
        CHECK(getaddrinfo(name, "80", &hints, &list) == 0 && strcmp(list->ai_canonname, host) == 0);
        int at = 0;
        for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next, at++) {
            const sockaddr_in* const address = reinterpret_cast<const sockaddr_in*>(entry->ai_addr);
            CHECK(entry->ai_family == AF_INET && address->sin_port == htons(80) && own->h_addr_list[at] != nullptr);
            CHECK(memcmp(&address->sin_addr, own->h_addr_list[at], 4) == 0);
            CHECK((address->sin_addr.s_addr & htonl(0xff000000)) != htonl(0x7f000000) || own->h_addr_list[1] == nullptr);
            // It is an address of this machine.
            const SOCKET socket_of_it = socket(AF_INET, SOCK_STREAM, 0);
            sockaddr_in bound = *address;
            bound.sin_port = 0;
            CHECK(bind(socket_of_it, reinterpret_cast<sockaddr*>(&bound), sizeof bound) == 0);
            closesocket(socket_of_it);
        }
        CHECK(own->h_addr_list[at] == nullptr);
        freeaddrinfo(list);
    }
    hints.ai_flags = AI_NUMERICHOST;
    addrinfo* list = nullptr;
    CHECK(getaddrinfo(host, nullptr, &hints, &list) == WSAHOST_NOT_FOUND && list == nullptr);
    const hostent* const anonymous = gethostbyname(nullptr);
    CHECK(anonymous != nullptr && strcmp(anonymous->h_name, host) == 0);
}

// Berkeley's names of what is wrong with a name. mingw-w64's headers have none of these.
static void the_names_of_errors_of_berkeley_are_those_of_winsock()
{
    static_assert(HOST_NOT_FOUND == 11001 && TRY_AGAIN == 11002 && NO_RECOVERY == 11003, "codes");
    static_assert(NO_DATA == 11004 && WSANO_ADDRESS == 11004 && NO_ADDRESS == 11004, "codes");
    WSASetLastError(0);
    CHECK(gethostbyname("..") == nullptr && h_errno != 0 && h_errno == WSAGetLastError());
    WSASetLastError(TRY_AGAIN);
    CHECK(h_errno == WSATRY_AGAIN);
}

// As Windows reads addresses; the error is that of NULL only.
static void numbers_of_addresses_as_berkeley_writes_them()
{
    const struct {
        const char* text;
        UINT expected;
    } rows[] = {
        {"1.2.3.4", 0x04030201}, {"", INADDR_NONE}, {" ", INADDR_ANY}, {"  ", INADDR_NONE}, {"\t", INADDR_NONE}, {" 0", INADDR_NONE},
        {" 3.4.5.6", INADDR_NONE}, {"3.4.5.6 ", 0x06050403}, {"3.4.5.6 7", 0x06050403}, {"1.2.3 .4", 0x03000201},
        {"3 .4.5.6", 0x03000000}, {"1.2.3.256", INADDR_NONE}, {"0x2134", 0x34210000}, {"1.2.3.010", 0x08030201},
        {"1.2.3.0xaA", 0xaa030201}, {"1.1.1.0x", INADDR_NONE}, {"1234BEEF", INADDR_NONE}, {"::1", INADDR_NONE},
        {"3.4.5.6.7", INADDR_NONE}, {".", INADDR_NONE}, {"0.0.0.0", INADDR_ANY},
    };
    for (const auto& row : rows) {
        WSASetLastError(7);
        CHECK(inet_addr(row.text) == row.expected);
        CHECK(WSAGetLastError() == 7);
    }
    const char* volatile none = nullptr;
    CHECK(inet_addr(none) == INADDR_NONE && WSAGetLastError() == WSAEFAULT);
}

// inet_ntop and inet_pton are InetNtopA and InetPtonA.
static void addresses_as_text_by_their_small_names()
{
    IN6_ADDR embedded = {};
    const UCHAR end[] = {0x5e, 0xfe, 1, 2, 3, 4};
    memcpy(&embedded.s6_addr[10], end, sizeof end);
    char text[INET6_ADDRSTRLEN], narrow[INET6_ADDRSTRLEN];
    IN_ADDR four = {};
    four.s_addr = 0x04030201;
    CHECK(inet_ntop(AF_INET, &four, text, sizeof text) == text && strcmp(text, "1.2.3.4") == 0);
    CHECK(inet_ntop(AF_INET6, &embedded, text, sizeof text) == text && strcmp(text, "::5efe:1.2.3.4") == 0);
    CHECK(InetNtopA(AF_INET6, &embedded, narrow, sizeof narrow) == narrow && strcmp(text, narrow) == 0);
    const auto refused = [&](int family, const void* address, char* room, socklen_t size, int code, int linux_code) {
        WSASetLastError(0);
        errno = 0;
        CHECK(inet_ntop(family, address, room, size) == nullptr);
        CHECK(WSAGetLastError() == code && errno == linux_code);
    };
    refused(99, &four, text, sizeof text, WSAEAFNOSUPPORT, EAFNOSUPPORT);
    refused(AF_INET, &four, text, 7, ERROR_INVALID_PARAMETER, ENOSPC);
    refused(AF_INET, &four, text, 0, ERROR_INVALID_PARAMETER, ENOSPC);
    refused(AF_INET, &four, nullptr, 16, ERROR_INVALID_PARAMETER, ENOSPC);
    CHECK(inet_pton(AF_INET, "4.3.2.1", &four) == 1 && four.s_addr == 0x01020304);
    WSASetLastError(7);
    CHECK(inet_pton(AF_INET, "4.3.2", &four) == 0 && WSAGetLastError() == 7);
    FAILS(inet_pton(99, "4.3.2.1", &four), WSAEAFNOSUPPORT);
    CHECK(errno == EAFNOSUPPORT);
    const char* volatile none = nullptr;
    FAILS(inet_pton(AF_INET, none, &four), WSAEFAULT);
}

// By the declarations of the headers; the rest is in the library's own tests.
static void connections_by_name_and_by_list()
{
    const SOCKET from = listener();
    sockaddr_in target = name_of(from), local = {}, remote = {};
    WCHAR port[8];
    char narrow[8];
    swprintf_s(port, L"%u", ntohs(target.sin_port));
    sprintf_s(narrow, "%u", ntohs(target.sin_port));
    WCHAR host[] = L"127.0.0.1";
    SOCKET_ADDRESS_LIST list = {1, {{reinterpret_cast<sockaddr*>(&target), sizeof target}}};
    const timeval time = {60, 0};
    for (const int way : {0, 1, 2}) {
        DWORD local_length = sizeof local, remote_length = sizeof remote;
        sockaddr* const own = reinterpret_cast<sockaddr*>(&local);
        sockaddr* const peer = reinterpret_cast<sockaddr*>(&remote);
        const SOCKET s = stream();
        const BOOL done = way == 0   ? WSAConnectByNameW(s, host, port, &local_length, own, &remote_length, peer, &time, nullptr)
                          : way == 1 ? WSAConnectByNameA(s, "127.0.0.1", narrow, &local_length, own, &remote_length, peer, nullptr, nullptr)
                                     : WSAConnectByList(s, &list, &local_length, own, &remote_length, peer, &time, nullptr);
        CHECK(done && local_length == sizeof local && remote_length == sizeof remote);
        CHECK(remote.sin_port == target.sin_port && local.sin_port == name_of(s).sin_port);
        CHECK(setsockopt(s, SOL_SOCKET, SO_UPDATE_CONNECT_CONTEXT, nullptr, 0) == 0);
        const SOCKET accepted = accept(from, nullptr, nullptr);
        CHECK(send(accepted, "x", 1, 0) == 1 && recv(s, narrow + 7, 1, 0) == 1 && narrow[7] == 'x');
        CHECK(closesocket(accepted) == 0 && closesocket(s) == 0);
    }
    CHECK(closesocket(from) == 0);
}

int main()
{
    return run({
        connections_by_name_and_by_list,
        numbers_of_addresses_as_berkeley_writes_them,
        addresses_as_text_by_their_small_names,
        protocols_and_numbers,
        names,
        an_address_is_listed_once,
        interfaces_are_listed,
        the_names_of_errors_of_berkeley_are_those_of_winsock,
        the_own_name_stands_for_the_addresses_of_the_interfaces,
    });
}
