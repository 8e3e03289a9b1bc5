// ndinfo: lists every address that NetworkDirect can use, and the adapter behind each.
#include "ndsample.h"

static SOCKET_ADDRESS_LIST* QueryAddresses()
{
    SIZE_T size = 0;
    const HRESULT hr = NdQueryAddressList(0, nullptr, &size);
    if (hr == ND_SUCCESS && size == 0)
    {
        return nullptr;
    }
    EXPECT(ND_BUFFER_OVERFLOW, hr);

    SOCKET_ADDRESS_LIST* list = static_cast<SOCKET_ADDRESS_LIST*>(HeapAlloc(GetProcessHeap(), 0, size));
    REQUIRE(list != nullptr);
    CHECK(NdQueryAddressList(0, list, &size));
    return list;
}

int _tmain(int argc, TCHAR* argv[])
{
    if (argc != 1)
    {
        _ftprintf(stderr, _T("usage: %s\nlists the addresses and adapters of NetworkDirect\n"), argv[0]);
        return 2;
    }

    WSADATA wsaData;
    REQUIRE(WSAStartup(MAKEWORD(2, 2), &wsaData) == 0);
    CHECK(NdStartup());

    SOCKET_ADDRESS_LIST* list = QueryAddresses();
    const int count = list == nullptr ? 0 : list->iAddressCount;
    for (int i = 0; i < count; i++)
    {
        const SOCKET_ADDRESS& address = list->Address[i];
        const AddressText text(address.lpSockaddr, address.iSockaddrLength);
        CHECK(NdCheckAddress(address.lpSockaddr, address.iSockaddrLength));

        IND2Adapter* adapter = nullptr;
        CHECK(NdOpenAdapter(IID_IND2Adapter, address.lpSockaddr, address.iSockaddrLength,
                            reinterpret_cast<void**>(&adapter)));
        PrintAdapter(QueryAdapter(adapter), text);
        REQUIRE(ReleaseLast(adapter) == 0);
    }
    _tprintf(_T("%d address%s\n"), count, count == 1 ? _T("") : _T("es"));

    if (list != nullptr)
    {
        CHECK_WIN32(HeapFree(GetProcessHeap(), 0, list));
    }
    CHECK(NdCleanup());
    REQUIRE(WSACleanup() == 0);
    return count == 0 ? 1 : 0;
}
