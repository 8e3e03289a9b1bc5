// A provider of its own, as another vendor would write it against the headers: one adapter that answers for the loopback
// address of IPv4 and for one of the IPv6 addresses reserved for examples, and can do nothing but say so.
#include <initguid.h>
#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndspi.h>
#include <string.h>

static const UINT64 AdapterId = 0x5EC0;
static volatile LONG objects;

// What all objects here do alike.
template <typename Interface>
class Object : public Interface
{
public:
    Object()
    {
        InterlockedIncrement(&objects);
    }

    virtual ~Object()
    {
        InterlockedDecrement(&objects);
    }

    STDMETHODIMP QueryInterface(REFIID iid, VOID** out) override
    {
        *out = nullptr;
        if (!IsEqualIID(iid, __uuidof(IUnknown)) && !IsEqualIID(iid, __uuidof(Interface)))
        {
            return E_NOINTERFACE;
        }
        AddRef();
        *out = static_cast<Interface*>(this);
        return S_OK;
    }

    STDMETHODIMP_(ULONG) AddRef() override
    {
        return static_cast<ULONG>(InterlockedIncrement(&m_references));
    }

    STDMETHODIMP_(ULONG) Release() override
    {
        const LONG left = InterlockedDecrement(&m_references);
        if (left == 0)
        {
            delete this;
        }
        return static_cast<ULONG>(left);
    }

private:
    volatile LONG m_references = 1;
};

// Gives a new object to who asks for an interface of it.
template <typename New>
static HRESULT HandOut(New* object, REFIID iid, VOID** out)
{
    const HRESULT hr = object->QueryInterface(iid, out);
    object->Release();
    return hr;
}

struct Addresses
{
    SOCKADDR_IN V4;
    SOCKADDR_IN6 V6;

    Addresses()
    {
        memset(this, 0, sizeof(*this));
        V4.sin_family = AF_INET;
        V4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        V6.sin6_family = AF_INET6;
        const UCHAR bytes[16] = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
        memcpy(&V6.sin6_addr, bytes, sizeof(bytes));
    }
};

static HRESULT GiveAddresses(SOCKET_ADDRESS_LIST* list, ULONG* size)
{
    const Addresses own;
    const ULONG needed = FIELD_OFFSET(SOCKET_ADDRESS_LIST, Address) + 2 * sizeof(SOCKET_ADDRESS) + sizeof(own);
    const ULONG room = *size;
    *size = needed;
    if (list == nullptr || room < needed)
    {
        return ND_BUFFER_OVERFLOW;
    }
    Addresses* copy = reinterpret_cast<Addresses*>(&list->Address[2]);
    memcpy(copy, &own, sizeof(own));
    list->iAddressCount = 2;
    list->Address[0].lpSockaddr = reinterpret_cast<sockaddr*>(&copy->V4);
    list->Address[0].iSockaddrLength = sizeof(copy->V4);
    list->Address[1].lpSockaddr = reinterpret_cast<sockaddr*>(&copy->V6);
    list->Address[1].iSockaddrLength = sizeof(copy->V6);
    return ND_SUCCESS;
}

class Adapter : public Object<IND2Adapter>
{
public:
    STDMETHODIMP CreateOverlappedFile(HANDLE*) override { return ND_NOT_SUPPORTED; }

    STDMETHODIMP Query(ND2_ADAPTER_INFO* info, ULONG* size) override
    {
        const ULONG room = *size;
        *size = sizeof(*info);
        if (info == nullptr || room < sizeof(*info))
        {
            return ND_BUFFER_OVERFLOW;
        }
        memset(info, 0, sizeof(*info));
        info->InfoVersion = ND_VERSION_2;
        info->VendorId = 0x5EC1;
        info->AdapterId = AdapterId;
        return ND_SUCCESS;
    }

    STDMETHODIMP QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* size) override { return GiveAddresses(list, size); }
    STDMETHODIMP CreateCompletionQueue(REFIID, HANDLE, ULONG, USHORT, KAFFINITY, VOID**) override { return ND_NOT_SUPPORTED; }
    STDMETHODIMP CreateMemoryRegion(REFIID, HANDLE, VOID**) override { return ND_NOT_SUPPORTED; }
    STDMETHODIMP CreateMemoryWindow(REFIID, VOID**) override { return ND_NOT_SUPPORTED; }
    STDMETHODIMP CreateSharedReceiveQueue(REFIID, HANDLE, ULONG, ULONG, ULONG, USHORT, KAFFINITY, VOID**) override
    {
        return ND_NOT_SUPPORTED;
    }
    STDMETHODIMP CreateQueuePair(REFIID, IUnknown*, IUnknown*, VOID*, ULONG, ULONG, ULONG, ULONG, ULONG, VOID**) override
    {
        return ND_NOT_SUPPORTED;
    }
    STDMETHODIMP CreateQueuePairWithSrq(REFIID, IUnknown*, IUnknown*, IUnknown*, VOID*, ULONG, ULONG, ULONG, VOID**) override
    {
        return ND_NOT_SUPPORTED;
    }
    STDMETHODIMP CreateConnector(REFIID, HANDLE, VOID**) override { return ND_NOT_SUPPORTED; }
    STDMETHODIMP CreateListener(REFIID, HANDLE, VOID**) override { return ND_NOT_SUPPORTED; }
};

class Provider : public Object<IND2Provider>
{
public:
    STDMETHODIMP QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* size) override { return GiveAddresses(list, size); }

    STDMETHODIMP ResolveAddress(const struct sockaddr* address, ULONG length, UINT64* id) override
    {
        const Addresses own;
        const bool known =
            address->sa_family == AF_INET
                ? length >= sizeof(own.V4) && reinterpret_cast<const SOCKADDR_IN*>(address)->sin_addr.s_addr == own.V4.sin_addr.s_addr
                : length >= sizeof(own.V6) &&
                      memcmp(&reinterpret_cast<const SOCKADDR_IN6*>(address)->sin6_addr, &own.V6.sin6_addr, 16) == 0;
        if (!known)
        {
            return ND_INVALID_ADDRESS;
        }
        *id = AdapterId;
        return ND_SUCCESS;
    }

    STDMETHODIMP OpenAdapter(REFIID iid, UINT64 id, VOID** out) override
    {
        *out = nullptr;
        return id == AdapterId ? HandOut(new Adapter, iid, out) : ND_INVALID_PARAMETER;
    }
};

class Factory : public Object<IClassFactory>
{
public:
    STDMETHODIMP CreateInstance(IUnknown* outer, REFIID iid, VOID** out) override
    {
        *out = nullptr;
        return outer != nullptr ? CLASS_E_NOAGGREGATION : HandOut(new Provider, iid, out);
    }

    STDMETHODIMP LockServer(BOOL lock) override
    {
        lock ? InterlockedIncrement(&objects) : InterlockedDecrement(&objects);
        return S_OK;
    }
};

STDAPI DllGetClassObject(REFCLSID, REFIID iid, LPVOID* out)
{
    *out = nullptr;
    return IsEqualIID(iid, __uuidof(IClassFactory)) ? HandOut(new Factory, iid, out) : HandOut(new Provider, iid, out);
}

STDAPI DllCanUnloadNow(void)
{
    return objects == 0 ? S_OK : S_FALSE;
}
