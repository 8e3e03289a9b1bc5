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

int main()
{
    return run({
        protocols_and_numbers,
        names,
        an_address_is_listed_once,
        interfaces_are_listed,
        the_names_of_errors_of_berkeley_are_those_of_winsock,
        the_own_name_stands_for_the_addresses_of_the_interfaces,
    });
}
