// What the C++ samples share: checked calls, names of status values, addresses, a description of an adapter.
//
// Nothing in the samples knows on which system it is compiled: the same text builds with the Windows SDK or mingw-w64,
// and on Linux with ndcompat's headers in front.
#pragma once

#define NOMINMAX
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <tchar.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndspi.h>
#include <ndstatus.h>
#include <ndsupport.h>

// ---------------------------------------------------------------------------------------------------------------------
// Checked calls: a failure names the place, the call and the status, and ends the program with exit code 1, unless the program
// says otherwise.

#ifndef SAMPLE_FAILED
#define SAMPLE_FAILED() exit(1)
#endif

inline const TCHAR* StatusName(HRESULT hr)
{
#define STATUS_NAME(status) \
    case status:            \
        return _T(#status)

    switch (hr)
    {
        STATUS_NAME(ND_SUCCESS);
        STATUS_NAME(ND_TIMEOUT);
        STATUS_NAME(ND_PENDING);
        STATUS_NAME(ND_BUFFER_OVERFLOW);
        STATUS_NAME(ND_DEVICE_BUSY);
        STATUS_NAME(ND_NO_MORE_ENTRIES);
        STATUS_NAME(ND_UNSUCCESSFUL);
        STATUS_NAME(ND_ACCESS_VIOLATION);
        STATUS_NAME(ND_INVALID_HANDLE);
        STATUS_NAME(ND_INVALID_DEVICE_REQUEST);
        STATUS_NAME(ND_INVALID_PARAMETER);
        STATUS_NAME(ND_NO_MEMORY);
        STATUS_NAME(ND_INVALID_PARAMETER_MIX);
        STATUS_NAME(ND_DATA_OVERRUN);
        STATUS_NAME(ND_SHARING_VIOLATION);
        STATUS_NAME(ND_INSUFFICIENT_RESOURCES);
        STATUS_NAME(ND_DEVICE_NOT_READY);
        STATUS_NAME(ND_IO_TIMEOUT);
        STATUS_NAME(ND_NOT_SUPPORTED);
        STATUS_NAME(ND_INTERNAL_ERROR);
        STATUS_NAME(ND_INVALID_PARAMETER_1);
        STATUS_NAME(ND_INVALID_PARAMETER_2);
        STATUS_NAME(ND_INVALID_PARAMETER_3);
        STATUS_NAME(ND_INVALID_PARAMETER_4);
        STATUS_NAME(ND_INVALID_PARAMETER_5);
        STATUS_NAME(ND_INVALID_PARAMETER_6);
        STATUS_NAME(ND_INVALID_PARAMETER_7);
        STATUS_NAME(ND_INVALID_PARAMETER_8);
        STATUS_NAME(ND_INVALID_PARAMETER_9);
        STATUS_NAME(ND_INVALID_PARAMETER_10);
        STATUS_NAME(ND_CANCELED);
        STATUS_NAME(ND_REMOTE_ERROR);
        STATUS_NAME(ND_INVALID_ADDRESS);
        STATUS_NAME(ND_INVALID_DEVICE_STATE);
        STATUS_NAME(ND_INVALID_BUFFER_SIZE);
        STATUS_NAME(ND_TOO_MANY_ADDRESSES);
        STATUS_NAME(ND_ADDRESS_ALREADY_EXISTS);
        STATUS_NAME(ND_CONNECTION_REFUSED);
        STATUS_NAME(ND_CONNECTION_INVALID);
        STATUS_NAME(ND_CONNECTION_ACTIVE);
        STATUS_NAME(ND_NETWORK_UNREACHABLE);
        STATUS_NAME(ND_HOST_UNREACHABLE);
        STATUS_NAME(ND_CONNECTION_ABORTED);
        STATUS_NAME(ND_DEVICE_REMOVED);
    default:
        return _T("(not a NetworkDirect status)");
    }
#undef STATUS_NAME
}

inline void CheckStatus(HRESULT hr, HRESULT expected, const TCHAR* call, const TCHAR* file, int line)
{
    if (hr != expected)
    {
        fflush(stdout);
        _ftprintf(stderr, _T("%s(%d): %s: 0x%08lX %s, expected %s\n"), file, line, call, hr, StatusName(hr),
                  StatusName(expected));
        SAMPLE_FAILED();
    }
}

inline void CheckTrue(bool ok, const TCHAR* condition, const TCHAR* file, int line)
{
    if (!ok)
    {
        fflush(stdout);
        _ftprintf(stderr, _T("%s(%d): %s: does not hold\n"), file, line, condition);
        SAMPLE_FAILED();
    }
}

inline void CheckWin32(bool ok, const TCHAR* call, const TCHAR* file, int line)
{
    if (!ok)
    {
        const DWORD error = GetLastError();
        fflush(stdout);
        _ftprintf(stderr, _T("%s(%d): %s: failed with error %lu\n"), file, line, call, error);
        SAMPLE_FAILED();
    }
}

// CHECK: must be ND_SUCCESS. EXPECT: must be this status. REQUIRE: must hold. CHECK_WIN32: must be true, or GetLastError tells.
#define CHECK(call) CheckStatus((call), ND_SUCCESS, _T(#call), _T(__FILE__), __LINE__)
#define EXPECT(status, call) CheckStatus((call), (status), _T(#call), _T(__FILE__), __LINE__)
#define REQUIRE(condition) CheckTrue((condition), _T(#condition), _T(__FILE__), __LINE__)
#define CHECK_WIN32(call) CheckWin32(!!(call), _T(#call), _T(__FILE__), __LINE__)

// Gives back an interface of which this program holds the only reference.
template <typename Interface>
inline ULONG ReleaseLast(Interface*& object)
{
    const ULONG left = object->Release();
    object = nullptr;
    return left;
}

// ---------------------------------------------------------------------------------------------------------------------
// Addresses

inline ULONG AddressLength(const SOCKADDR_INET& address)
{
    return address.si_family == AF_INET ? sizeof(address.Ipv4) : sizeof(address.Ipv6);
}

inline const sockaddr* AsSockaddr(const SOCKADDR_INET& address)
{
    return reinterpret_cast<const sockaddr*>(&address);
}

// Reads "1.2.3.4", "1.2.3.4:5", "fd00::1" or "[fd00::1]:5"; without a port the default one is taken.
inline bool ParseAddress(TCHAR* text, USHORT defaultPort, SOCKADDR_INET* address)
{
    ZeroMemory(address, sizeof(*address));
    INT length = sizeof(address->Ipv4);
    address->si_family = AF_INET;
    if (WSAStringToAddress(text, AF_INET, nullptr, reinterpret_cast<sockaddr*>(address), &length) != 0)
    {
        length = sizeof(address->Ipv6);
        address->si_family = AF_INET6;
        if (WSAStringToAddress(text, AF_INET6, nullptr, reinterpret_cast<sockaddr*>(address), &length) != 0)
        {
            return false;
        }
    }
    if (address->Ipv4.sin_port == 0) // the port is at the same place in both forms
    {
        address->Ipv4.sin_port = htons(defaultPort);
    }
    return true;
}

// An address as text, for one printf argument.
class AddressText
{
public:
    AddressText(const sockaddr* address, ULONG length)
    {
        DWORD size = _countof(m_text);
        CHECK_WIN32(WSAAddressToString(const_cast<sockaddr*>(address), length, nullptr, m_text, &size) == 0);
    }

    explicit AddressText(const SOCKADDR_INET& address) : AddressText(AsSockaddr(address), AddressLength(address))
    {
    }

    operator const TCHAR*() const
    {
        return m_text;
    }

    const TCHAR* c_str() const
    {
        return m_text;
    }

private:
    TCHAR m_text[128];
};

// ---------------------------------------------------------------------------------------------------------------------
// Command lines

// Which of the names this is, as a value of an enumeration that begins with 0.
template <typename Choice>
inline bool Choose(const TCHAR* text, const TCHAR* const (&names)[3], Choice* choice)
{
    for (int i = 0; i < 3; i++)
    {
        if (_tcscmp(text, names[i]) == 0)
        {
            *choice = static_cast<Choice>(i);
            return true;
        }
    }
    return false;
}

// A number from 1 to 2^30.
inline bool ParseNumber(const TCHAR* text, UINT32* number)
{
    TCHAR* end = nullptr;
    const unsigned long value = _tcstoul(text, &end, 10);
    *number = static_cast<UINT32>(value);
    return value != 0 && value <= 1u << 30 && *end == 0;
}

// ---------------------------------------------------------------------------------------------------------------------
// Adapters

inline ND2_ADAPTER_INFO QueryAdapter(IND2Adapter* adapter)
{
    ND2_ADAPTER_INFO info;
    ULONG size = sizeof(info);
    ZeroMemory(&info, sizeof(info));
    info.InfoVersion = ND_VERSION_2;
    CHECK(adapter->Query(&info, &size));
    return info;
}

inline void PrintAdapterFlags(ULONG flags)
{
    static const struct
    {
        ULONG Flag;
        const TCHAR* Words;
    } known[] = {
        {ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED, _T("in-order DMA")},
        {ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED, _T("interrupt moderation")},
        {ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED, _T("multiple engines")},
        {ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED, _T("completion queue resize")},
        {ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED, _T("loopback connections")},
    };

    const TCHAR* separator = _T("");
    for (size_t i = 0; i < _countof(known); i++)
    {
        if (flags & known[i].Flag)
        {
            _tprintf(_T("%s%s"), separator, known[i].Words);
            separator = _T(", ");
        }
    }
    _tprintf(*separator == 0 ? _T("none\n") : _T("\n"));
}

inline void PrintAdapter(const ND2_ADAPTER_INFO& info, const TCHAR* address)
{
    _tprintf(_T("adapter       vendor 0x%04x, device 0x%04x, id 0x%I64x, at %s\n"), info.VendorId, info.DeviceId,
             info.AdapterId, address);
    _tprintf(_T("  messages    up to %lu bytes; inline up to %lu, of use below %lu; large from %lu\n"),
             info.MaxTransferLength, info.MaxInlineDataSize, info.InlineRequestThreshold, info.LargeRequestThreshold);
    _tprintf(_T("  memory      region up to %I64u bytes, window up to %I64u\n"), (UINT64)info.MaxRegistrationSize,
             (UINT64)info.MaxWindowSize);
    _tprintf(_T("  queues      receive %lu, initiator %lu, shared receive %lu, completion %lu\n"),
             info.MaxReceiveQueueDepth, info.MaxInitiatorQueueDepth, info.MaxSharedReceiveQueueDepth,
             info.MaxCompletionQueueDepth);
    _tprintf(_T("  SGEs        initiator %lu, receive %lu, read %lu\n"), info.MaxInitiatorSge, info.MaxReceiveSge,
             info.MaxReadSge);
    _tprintf(_T("  reads       inbound %lu, outbound %lu\n"), info.MaxInboundReadLimit, info.MaxOutboundReadLimit);
    _tprintf(_T("  private     caller %lu bytes, callee %lu bytes\n"), info.MaxCallerData, info.MaxCalleeData);
    _tprintf(_T("  flags       "));
    PrintAdapterFlags(info.AdapterFlags);
}
