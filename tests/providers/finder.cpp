// finder: installs providers next to the built-in one, finds, opens and uses them through Winsock's catalogue and through
// the helper functions, and sees them unloaded.
#include "../samples/ndsample.h"
#include <ndcompat.h>
#include <dlfcn.h>
#include <ws2spi.h>
#include <string>

static GUID Second = {0x5EC05EC0, 0x0001, 0x0002, {1, 2, 3, 4, 5, 6, 7, 8}};
static GUID Old = {0x01D01D01, 0x0001, 0x0002, {1, 2, 3, 4, 5, 6, 7, 8}};

// The registration that the SPI demands, filled in as its pages say.
static WSAPROTOCOL_INFOW Registration(int version, DWORD providerFlags, const WCHAR* name)
{
    WSAPROTOCOL_INFOW info;
    ZeroMemory(&info, sizeof(info));
    info.dwServiceFlags1 = XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA;
    info.dwProviderFlags = providerFlags;
    info.ProtocolChain.ChainLen = 1;
    info.iVersion = version;
    info.iAddressFamily = AF_INET6;
    info.iMaxSockAddr = sizeof(SOCKADDR_IN6);
    info.iMinSockAddr = sizeof(SOCKADDR_IN);
    info.iSocketType = -1;
    wcscpy_s(info.szProtocol, name);
    return info;
}

static bool IsNd2(const WSAPROTOCOL_INFOW& info)
{
    const DWORD service = XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA;
    const DWORD flags = PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER;
    return (info.dwServiceFlags1 & service) == service && (info.dwProviderFlags & flags) == flags &&
           info.iVersion == ND_VERSION_2 && (info.iAddressFamily == AF_INET || info.iAddressFamily == AF_INET6) &&
           info.iSocketType == -1 && info.iProtocol == 0 && info.iProtocolMaxOffset == 0;
}

// The catalogue, asked as programs do.
struct Catalogue
{
    WSAPROTOCOL_INFOW Entries[8];
    int Count;

    Catalogue()
    {
        DWORD size = 0;
        INT error = 0;
        REQUIRE(WSCEnumProtocols(nullptr, nullptr, &size, &error) == SOCKET_ERROR && error == WSAENOBUFS);
        REQUIRE(size % sizeof(Entries[0]) == 0 && size <= sizeof(Entries));
        Count = WSCEnumProtocols(nullptr, Entries, &size, &error);
        REQUIRE(Count == static_cast<int>(size / sizeof(Entries[0])));
    }

    const WSAPROTOCOL_INFOW* Find(const GUID& id) const
    {
        for (int i = 0; i < Count; i++)
        {
            if (IsEqualGUID(Entries[i].ProviderId, id))
            {
                return &Entries[i];
            }
        }
        return nullptr;
    }
};

static int ProviderError(int result, INT error)
{
    return result == 0 ? 0 : error;
}

static int Install(GUID* id, const WCHAR* path, WSAPROTOCOL_INFOW info)
{
    INT error = 0;
    const int result = WSCInstallProvider(id, path, &info, 1, &error);
    return ProviderError(result, error);
}

static int Deinstall(GUID* id)
{
    INT error = 0;
    const int result = WSCDeinstallProvider(id, &error);
    return ProviderError(result, error);
}

static bool IsLoaded(const char* path)
{
    void* handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (handle != nullptr)
    {
        dlclose(handle);
    }
    return handle != nullptr;
}

typedef HRESULT (STDAPICALLTYPE *GetClassObject)(REFCLSID, REFIID, LPVOID*);
typedef HRESULT (STDAPICALLTYPE *CanUnloadNow)(void);

// Loads a provider the way the SPI describes, and lets go of it again; its IND2Provider must know `address`, if given.
static void LoadByHand(const GUID& id, const SOCKADDR_INET* address)
{
    WCHAR registered[MAX_PATH], path[MAX_PATH];
    INT length = MAX_PATH, error = 0;
    REQUIRE(WSCGetProviderPath(const_cast<GUID*>(&id), registered, &length, &error) == 0);
    REQUIRE(static_cast<size_t>(length) == wcslen(registered) + 1);
    REQUIRE(ExpandEnvironmentStringsW(registered, path, MAX_PATH) != 0);
    const HMODULE module = LoadLibraryW(path);
    CHECK_WIN32(module != nullptr);
    const GetClassObject getClassObject = (GetClassObject)(void*)(GetProcAddress(module, "DllGetClassObject"));
    const CanUnloadNow canUnloadNow = (CanUnloadNow)(void*)(GetProcAddress(module, "DllCanUnloadNow"));
    REQUIRE(getClassObject != nullptr && canUnloadNow != nullptr);
    REQUIRE(canUnloadNow() == S_OK);

    IND2Provider* provider = nullptr;
    CHECK(getClassObject(id, IID_IND2Provider, reinterpret_cast<void**>(&provider)));
    REQUIRE(canUnloadNow() == S_FALSE);
    UINT64 adapterId = 0;
    if (address != nullptr)
    {
        CHECK(provider->ResolveAddress(AsSockaddr(*address), AddressLength(*address), &adapterId));
    }
    REQUIRE(ReleaseLast(provider) == 0);

    IClassFactory* factory = nullptr;
    CHECK(getClassObject(id, IID_IClassFactory, reinterpret_cast<void**>(&factory)));
    CHECK(factory->CreateInstance(nullptr, IID_IND2Provider, reinterpret_cast<void**>(&provider)));
    REQUIRE(ReleaseLast(factory) == 0);
    REQUIRE(canUnloadNow() == S_FALSE);
    REQUIRE(ReleaseLast(provider) == 0);
    REQUIRE(canUnloadNow() == S_OK);
    CHECK_WIN32(FreeLibrary(module));
}

// The addresses that the helper functions know; every one passes NdCheckAddress.
static int CountAddresses(DWORD flags)
{
    alignas(8) static BYTE buffer[65536];
    SIZE_T size = 0;
    const HRESULT hr = NdQueryAddressList(flags, nullptr, &size);
    if (hr == ND_SUCCESS)
    {
        REQUIRE(size == 0);
        return 0;
    }
    EXPECT(ND_BUFFER_OVERFLOW, hr);
    REQUIRE(size <= sizeof(buffer));
    SOCKET_ADDRESS_LIST* list = reinterpret_cast<SOCKET_ADDRESS_LIST*>(buffer);
    CHECK(NdQueryAddressList(flags, list, &size));
    for (int i = 0; i < list->iAddressCount; i++)
    {
        CHECK(NdCheckAddress(list->Address[i].lpSockaddr, list->Address[i].iSockaddrLength));
    }
    return list->iAddressCount;
}

static SOCKADDR_INET Address(const TCHAR* text)
{
    TCHAR copy[64];
    _tcscpy_s(copy, text);
    SOCKADDR_INET address;
    REQUIRE(ParseAddress(copy, 7, &address));
    return address;
}

static HRESULT Open(const SOCKADDR_INET& address, IND2Adapter** adapter)
{
    return NdOpenAdapter(IID_IND2Adapter, AsSockaddr(address), AddressLength(address), reinterpret_cast<void**>(adapter));
}

static void CheckNoneWithout(const SOCKADDR_INET& address)
{
    IND2Adapter* adapter = nullptr;
    EXPECT(ND_INVALID_ADDRESS, NdCheckAddress(AsSockaddr(address), AddressLength(address)));
    EXPECT(ND_INVALID_ADDRESS, Open(address, &adapter));
    REQUIRE(adapter == nullptr);
}

// finder LIBRARY TRAP [none]: with "none", this machine must have no RDMA device.
int main(int argc, char* argv[])
{
    REQUIRE(argc == 3 || argc == 4);
    WCHAR second[MAX_PATH], trap[MAX_PATH];
    REQUIRE(MultiByteToWideChar(CP_UTF8, 0, argv[1], -1, second, MAX_PATH) != 0);
    REQUIRE(MultiByteToWideChar(CP_UTF8, 0, argv[2], -1, trap, MAX_PATH) != 0);

    WSADATA wsaData;
    REQUIRE(WSAStartup(MAKEWORD(2, 2), &wsaData) == 0);
    SIZE_T size = 0;
    EXPECT(ND_DEVICE_NOT_READY, NdQueryAddressList(0, nullptr, &size));
    NdFlushProviders();
    CHECK(NdStartup());

    // The built-in provider needs no catalogue, and the functions no device.
    Catalogue alone;
    REQUIRE(alone.Count == 1 && IsNd2(alone.Entries[0]));
    LoadByHand(alone.Entries[0].ProviderId, nullptr);
    const int before = CountAddresses(0);
    REQUIRE(argc == 3 ? before != 0 : before == 0);
    const SOCKADDR_INET v4 = Address(_T("127.0.0.1")), v6 = Address(_T("2001:db8::7"));
    CheckNoneWithout(v4);
    CheckNoneWithout(v6);

    // Another, and one of ND v1, which nobody may load.
    const WSAPROTOCOL_INFOW info = Registration(ND_VERSION_2, PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER, L"The second");
    REQUIRE(Install(&Second, second, info) == 0);
    REQUIRE(Install(&Second, second, info) == WSAEINVAL);
    REQUIRE(Install(&Old, trap, Registration(ND_VERSION_1, PFL_HIDDEN, L"The old one")) == 0);
    Catalogue all;
    REQUIRE(all.Count == 3);
    const WSAPROTOCOL_INFOW* found = all.Find(Second);
    REQUIRE(found != nullptr && IsNd2(*found) && all.Find(Old) != nullptr && !IsNd2(*all.Find(Old)));
    WSAPROTOCOL_INFOW expected = info;
    expected.ProviderId = Second;
    expected.dwCatalogEntryId = found->dwCatalogEntryId;
    REQUIRE(memcmp(found, &expected, sizeof(expected)) == 0);

    REQUIRE(!IsLoaded(argv[1]));
    LoadByHand(Second, &v6);
    REQUIRE(!IsLoaded(argv[1]));

    // Through the helper functions: both providers' addresses, whatever their ports.
    REQUIRE(CountAddresses(0) == before + 2);
    REQUIRE(CountAddresses(1) == before + 2 && CountAddresses(2) == before + 2);
    REQUIRE(CountAddresses(4) == 0);
    SOCKADDR_INET local;
    size = sizeof(local);
    CHECK(NdResolveAddress(AsSockaddr(v4), AddressLength(v4), reinterpret_cast<sockaddr*>(&local), &size));
    REQUIRE(size == sizeof(local.Ipv4) && local.Ipv4.sin_port == 0);
    REQUIRE(local.Ipv4.sin_addr.s_addr == v4.Ipv4.sin_addr.s_addr);
    IND2Adapter* adapter = nullptr;
    CHECK(Open(v6, &adapter));
    const ND2_ADAPTER_INFO adapterInfo = QueryAdapter(adapter);
    REQUIRE(adapterInfo.VendorId == 0x5EC1 && adapterInfo.AdapterId == 0x5EC0);
    void* other = nullptr;
    EXPECT(E_NOINTERFACE, NdOpenAdapter(IID_IND2Listener, AsSockaddr(v4), AddressLength(v4), &other));
    REQUIRE(other == nullptr);
    INDAdapter* old = nullptr;
    EXPECT(ND_INVALID_ADDRESS, NdOpenV1Adapter(AsSockaddr(v4), AddressLength(v4), &old));
    CheckNoneWithout(Address(_T("192.0.2.1")));

    // A provider stays while it is in use, and no longer.
    NdFlushProviders();
    REQUIRE(IsLoaded(argv[1]));
    REQUIRE(QueryAdapter(adapter).VendorId == 0x5EC1);
    REQUIRE(ReleaseLast(adapter) == 0);
    REQUIRE(IsLoaded(argv[1]));
    NdFlushProviders();
    REQUIRE(!IsLoaded(argv[1]));
    REQUIRE(CountAddresses(0) == before + 2);

    // Files that make no sense, or lead nowhere, do no harm.
    char folder[MAX_PATH], text[256];
    REQUIRE(ndcompat_catalogue_faults(nullptr, 0) == 0);
    REQUIRE(GetEnvironmentVariableA("NDCOMPAT_PROVIDERS", folder, sizeof(folder)) != 0);
    const std::string nonsense = std::string(folder) + "/nonsense.provider", lost = std::string(folder) + "/lost.provider";
    FILE* file = fopen(nonsense.c_str(), "w");
    REQUIRE(file != nullptr && fputs("\n\x01nonsense\n", file) >= 0 && fclose(file) == 0);
    file = fopen(lost.c_str(), "w");
    REQUIRE(file != nullptr && fputs("id = 00000000-0000-0000-0000-000000000001\nlibrary = /nowhere/lib.so\n", file) >= 0 &&
            fclose(file) == 0);
    REQUIRE(CountAddresses(0) == before + 2);
    const size_t length = ndcompat_catalogue_faults(text, sizeof(text));
    REQUIRE(length != 0 && length < sizeof(text) && strstr(text, "nonsense.provider:2: ") != nullptr);
    REQUIRE(remove(nonsense.c_str()) == 0 && remove(lost.c_str()) == 0);

    REQUIRE(Deinstall(&Second) == 0 && Deinstall(&Second) == WSAEINVAL && Deinstall(&Old) == 0);
    REQUIRE(Catalogue().Count == 1);
    REQUIRE(CountAddresses(0) == before);
    CheckNoneWithout(v4);
    REQUIRE(IsLoaded(argv[1]));
    CHECK(NdCleanup());
    REQUIRE(!IsLoaded(argv[1]));
    EXPECT(ND_DEVICE_NOT_READY, NdCleanup());
    EXPECT(ND_DEVICE_NOT_READY, NdCheckAddress(AsSockaddr(v4), AddressLength(v4)));
    REQUIRE(WSACleanup() == 0);
    printf("ok: %d address(es) of the built-in provider, 2 of the second\n", before);
    return 0;
}
