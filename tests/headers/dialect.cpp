// SPDX-License-Identifier: MIT OR Apache-2.0
// The dialect of Windows sources: it compiles here as it does there.
#include <stdio.h>
#include <tchar.h>
#include <process.h>
#include <sal.h>
#include <windows.h>
#include <winsock2.h>
#include <ndsupport.h>
#include <string>
#include <cstdio>

struct __declspec(novtable) Abstract {
    virtual void Method(_In_ int a, _Out_writes_bytes_(a) void* b) = 0;

protected:
    ~Abstract() {}
};
extern "C" __declspec(dllexport) HRESULT __stdcall Exported(VOID)
{
    return S_OK;
}
extern __declspec(noreturn) void Fatal();
static __forceinline int Twice(int a) { return 2 * a; }

static DWORD WINAPI Start(LPVOID parameter)
{
    switch (*static_cast<int*>(parameter)) {
    case 1:
        printf("%I64d %Id %lu\n", static_cast<LONGLONG>(1), static_cast<SIZE_T>(2), static_cast<unsigned long>(3));
        __fallthrough;
    default:
        wprintf(L"%s %d\n", L"wide", 4);
    }
    std::printf("%d\n", 5);
    return 0;
}
static unsigned __stdcall StartEx(void*) { return 0; }

// printf as another name than that of a call.
struct Log {
    int printf(const char*, ...) { return 0; }
};
static int Format(const char*, ...) __attribute__((format(printf, 1, 2)));
static int Format(const char*, ...) { return 0; }

int __cdecl _tmain(int argc, TCHAR* argv[])
{
    WSADATA data;
    if (::WSAStartup(MAKEWORD(2, 2), &data) != 0)
        exit(__LINE__);
    int what = argc > 1 ? _ttol(argv[1]) : 1;
    HANDLE thread = CreateThread(nullptr, 0, Start, &what, 0, nullptr);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    unsigned id;
    thread = reinterpret_cast<HANDLE>(_beginthreadex(nullptr, 0, StartEx, nullptr, 0, &id));
    HANDLE event = CreateEvent(nullptr, FALSE, FALSE, nullptr);
    OVERLAPPED ov = {};
    ov.hEvent = reinterpret_cast<HANDLE>(reinterpret_cast<ULONG_PTR>(event) | 1);
    ULONG_PTR key;
    DWORD bytes;
    OVERLAPPED* done = nullptr;
    HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0);
    if (!GetQueuedCompletionStatus(port, &bytes, &key, &done, 0) && done != &ov && GetLastError() != WAIT_TIMEOUT)
        return Twice(1);
    TCHAR text[8];
    _tcscpy_s(text, _T("abc"));
    if (_tcsicmp(text, _T("ABC")) != 0 || FAILED(Exported()))
        return 1;
    sockaddr_in address = {};
    INT length = sizeof address;
    WSAStringToAddress(argv[0], AF_INET, nullptr, reinterpret_cast<sockaddr*>(&address), &length);
    char line[16];
    sprintf_s(line, "%d", 1);
    sprintf_s(line, sizeof line, "%d", 1);
    Log().printf("%d", 1);
    IND2Adapter* adapter = nullptr;
    HRESULT hr = NdOpenAdapter(IID_IND2Adapter, reinterpret_cast<const sockaddr*>(&address), sizeof address,
                               reinterpret_cast<void**>(&adapter));
    std::string name = std::to_string(Format("%d", hr));
    return SUCCEEDED(hr) ? 0 : static_cast<int>(name.size());
}
