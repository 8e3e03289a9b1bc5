// The Nd* helper functions on Windows, made of what the SPI says of providers: for programs that mingw-w64 builds, which cannot
// link Microsoft's ndutil.lib.
//
// Providers are those of the Winsock catalogue. The environment variable ND_PROVIDER_DLL names a DLL to use in their place,
// which need not be registered.
//
//   x86_64-w64-mingw32-g++ -std=gnu++17 -municode -DUNICODE -D_UNICODE -I include -static pingpong.cpp ndutil.cpp -o ndpp.exe -lws2_32
//
// On Linux these functions are in libndcompat. This file builds there as well, and then finds libndcompat as a provider.
#if defined(_WIN32)
#include <initguid.h> // the interfaces' identifiers are defined here
#endif

#include <winsock2.h>
#include <ws2tcpip.h>
#include <ws2spi.h>
#include <windows.h>

#include <ndspi.h>
#include <ndstatus.h>
#include <ndsupport.h>

#include <vector>

#ifndef PFL_NETWORKDIRECT_PROVIDER
#define PFL_NETWORKDIRECT_PROVIDER 0x00000010
#endif

namespace
{
typedef HRESULT (STDAPICALLTYPE* GetClassObject)(REFCLSID, REFIID, LPVOID*);

struct Provider
{
    HMODULE Module;
    IND2Provider* Object;
};

std::vector<Provider> g_providers;
ULONG g_starts = 0;

// What the pages of the SPI demand of an entry. Programs compare iVersion with 0x20000, the pages say 2.
bool IsNetworkDirect(const WSAPROTOCOL_INFOW& info)
{
    const DWORD service = XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA;
    const DWORD provider = PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER;
    return (info.dwServiceFlags1 & service) == service && (info.dwProviderFlags & provider) == provider &&
           (info.iVersion == 2 || info.iVersion == 0x20000) &&
           (info.iAddressFamily == AF_INET || info.iAddressFamily == AF_INET6) && info.iSocketType == -1 &&
           info.iProtocol == 0 && info.iProtocolMaxOffset == 0;
}

// A library that cannot be loaded, or is no provider, has no addresses.
void Load(const WCHAR* path, const GUID& id)
{
    const HMODULE module = LoadLibraryW(path);
    if (module == nullptr)
    {
        return;
    }
    const GetClassObject get =
        reinterpret_cast<GetClassObject>(reinterpret_cast<void*>(GetProcAddress(module, "DllGetClassObject")));
    void* object = nullptr;
    if (get != nullptr && SUCCEEDED(get(id, IID_IND2Provider, &object)))
    {
        g_providers.push_back({module, static_cast<IND2Provider*>(object)});
        return;
    }
    // Some have a class factory only.
    if (get != nullptr && SUCCEEDED(get(id, IID_IClassFactory, &object)))
    {
        IClassFactory* factory = static_cast<IClassFactory*>(object);
        const HRESULT hr = factory->CreateInstance(nullptr, IID_IND2Provider, &object);
        factory->Release();
        if (SUCCEEDED(hr))
        {
            g_providers.push_back({module, static_cast<IND2Provider*>(object)});
            return;
        }
    }
    FreeLibrary(module);
}

HRESULT LoadCatalogue()
{
    DWORD size = 0;
    INT error = 0;
    if (WSCEnumProtocols(nullptr, nullptr, &size, &error) == SOCKET_ERROR && error != WSAENOBUFS)
    {
        return ND_UNSUCCESSFUL;
    }
    std::vector<WSAPROTOCOL_INFOW> entries(size / sizeof(WSAPROTOCOL_INFOW) + 1);
    size = static_cast<DWORD>(entries.size() * sizeof(entries[0]));
    const INT count = WSCEnumProtocols(nullptr, entries.data(), &size, &error);
    if (count == SOCKET_ERROR)
    {
        return ND_UNSUCCESSFUL;
    }
    for (INT i = 0; i < count; i++)
    {
        WCHAR registered[MAX_PATH];
        WCHAR path[MAX_PATH];
        INT length = MAX_PATH;
        if (IsNetworkDirect(entries[i]) &&
            WSCGetProviderPath(&entries[i].ProviderId, registered, &length, &error) == 0 &&
            ExpandEnvironmentStringsW(registered, path, MAX_PATH) != 0)
        {
            Load(path, entries[i].ProviderId);
        }
    }
    return ND_SUCCESS;
}

// The provider that has an adapter with this address, and the adapter's id.
IND2Provider* Find(const sockaddr* address, SIZE_T length, UINT64* id)
{
    for (const Provider& provider : g_providers)
    {
        if (SUCCEEDED(provider.Object->ResolveAddress(address, static_cast<ULONG>(length), id)))
        {
            return provider.Object;
        }
    }
    return nullptr;
}

ULONG FamilyLength(const sockaddr* address)
{
    return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

// The address that packets to `remote` leave by.
HRESULT Route(const sockaddr* remote, SIZE_T length, sockaddr_storage* local)
{
    const SOCKET socket = WSASocketW(remote->sa_family, SOCK_DGRAM, IPPROTO_UDP, nullptr, 0, 0);
    if (socket == INVALID_SOCKET)
    {
        return ND_INVALID_ADDRESS;
    }
    DWORD bytes = 0;
    const int failed = WSAIoctl(socket, SIO_ROUTING_INTERFACE_QUERY, const_cast<sockaddr*>(remote),
                                static_cast<DWORD>(length), local, sizeof(*local), &bytes, nullptr, nullptr);
    closesocket(socket);
    return failed ? ND_NETWORK_UNREACHABLE : ND_SUCCESS;
}
} // namespace

HRESULT ND_HELPER_API NdStartup(VOID)
{
    if (g_starts++ != 0)
    {
        return ND_SUCCESS;
    }
    WCHAR path[MAX_PATH];
    const DWORD length = GetEnvironmentVariableW(L"ND_PROVIDER_DLL", path, MAX_PATH);
    if (length == 0 || length >= MAX_PATH)
    {
        return LoadCatalogue();
    }
    // A provider of a single class does not look at its identifier.
    Load(path, IID_IND2Provider);
    return g_providers.empty() ? ND_DEVICE_NOT_READY : ND_SUCCESS;
}

HRESULT ND_HELPER_API NdCleanup(VOID)
{
    if (g_starts == 0)
    {
        return ND_DEVICE_NOT_READY;
    }
    if (--g_starts == 0)
    {
        for (const Provider& provider : g_providers)
        {
            provider.Object->Release();
            FreeLibrary(provider.Module);
        }
        g_providers.clear();
    }
    return ND_SUCCESS;
}

VOID ND_HELPER_API NdFlushProviders(VOID)
{
}

HRESULT ND_HELPER_API NdCheckAddress(const struct sockaddr* pAddress, SIZE_T cbAddress)
{
    UINT64 id = 0;
    return Find(pAddress, cbAddress, &id) != nullptr ? ND_SUCCESS : ND_INVALID_ADDRESS;
}

HRESULT ND_HELPER_API NdOpenAdapter(REFIID iid, const struct sockaddr* pAddress, SIZE_T cbAddress, VOID** ppIAdapter)
{
    UINT64 id = 0;
    *ppIAdapter = nullptr;
    IND2Provider* const provider = Find(pAddress, cbAddress, &id);
    return provider != nullptr ? provider->OpenAdapter(iid, id, ppIAdapter) : ND_INVALID_ADDRESS;
}

HRESULT ND_HELPER_API NdOpenV1Adapter(const struct sockaddr*, SIZE_T, INDAdapter** ppIAdapter)
{
    *ppIAdapter = nullptr;
    return ND_INVALID_ADDRESS;
}

HRESULT ND_HELPER_API NdResolveAddress(const struct sockaddr* pRemoteAddress, SIZE_T cbRemoteAddress,
                                       struct sockaddr* pLocalAddress, SIZE_T* pcbLocalAddress)
{
    sockaddr_storage local;
    ZeroMemory(&local, sizeof(local));
    if (SUCCEEDED(NdCheckAddress(pRemoteAddress, cbRemoteAddress)))
    {
        // An adapter's own address is reached from itself.
        CopyMemory(&local, pRemoteAddress, FamilyLength(pRemoteAddress));
    }
    else
    {
        const HRESULT hr = Route(pRemoteAddress, cbRemoteAddress, &local);
        if (FAILED(hr))
        {
            return hr;
        }
    }
    reinterpret_cast<sockaddr_in*>(&local)->sin_port = 0; // at the same place in both families
    const sockaddr* const found = reinterpret_cast<const sockaddr*>(&local);
    const SIZE_T room = *pcbLocalAddress;
    *pcbLocalAddress = FamilyLength(found);
    if (pLocalAddress == nullptr || room < *pcbLocalAddress)
    {
        return ND_BUFFER_OVERFLOW;
    }
    CopyMemory(pLocalAddress, &local, *pcbLocalAddress);
    return NdCheckAddress(pLocalAddress, *pcbLocalAddress);
}

HRESULT ND_HELPER_API NdQueryAddressList(DWORD, SOCKET_ADDRESS_LIST* pAddressList, SIZE_T* pcbAddressList)
{
    std::vector<sockaddr_storage> all;
    for (const Provider& provider : g_providers)
    {
        ULONG size = 0;
        if (provider.Object->QueryAddressList(nullptr, &size) != ND_BUFFER_OVERFLOW)
        {
            continue;
        }
        std::vector<UINT64> room(size / sizeof(UINT64) + 1);
        SOCKET_ADDRESS_LIST* const list = reinterpret_cast<SOCKET_ADDRESS_LIST*>(room.data());
        if (FAILED(provider.Object->QueryAddressList(list, &size)))
        {
            continue;
        }
        for (INT i = 0; i < list->iAddressCount; i++)
        {
            all.emplace_back();
            CopyMemory(&all.back(), list->Address[i].lpSockaddr, list->Address[i].iSockaddrLength);
        }
    }
    const SIZE_T room = *pcbAddressList;
    const SIZE_T head = sizeof(SOCKET_ADDRESS_LIST) + all.size() * sizeof(SOCKET_ADDRESS);
    *pcbAddressList = all.empty() ? 0 : head + all.size() * sizeof(sockaddr_storage);
    if (all.empty())
    {
        return ND_SUCCESS;
    }
    if (pAddressList == nullptr || room < *pcbAddressList)
    {
        return ND_BUFFER_OVERFLOW;
    }
    BYTE* const addresses = reinterpret_cast<BYTE*>(pAddressList) + head;
    CopyMemory(addresses, all.data(), all.size() * sizeof(all[0]));
    pAddressList->iAddressCount = static_cast<INT>(all.size());
    for (SIZE_T i = 0; i < all.size(); i++)
    {
        sockaddr* const address = reinterpret_cast<sockaddr*>(addresses + i * sizeof(all[0]));
        pAddressList->Address[i].lpSockaddr = address;
        pAddressList->Address[i].iSockaddrLength = static_cast<INT>(FamilyLength(address));
    }
    return ND_SUCCESS;
}
