// SPDX-License-Identifier: MIT OR Apache-2.0
// What the headers make of functions of the library: formats with variable arguments, either width, structured exceptions.
#define _CRT_RAND_S
#include <winsock2.h>
#include <windows.h>
#include <mstcpip.h>
#include <objbase.h>
#include <rpc.h>
#include <io.h>
#include <share.h>
#include <iphlpapi.h>
#include <netioapi.h>
#include <psapi.h>
#include <shellapi.h>
#include <wincrypt.h>
#include <winioctl.h>
#include <strsafe.h>
#include <tchar.h>
#include <vcruntime.h>
#include <versionhelpers.h>
#include <windowsx.h>
#include <no_sal2.h>
#include <crtdbg.h>
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST_ERROR GetLastError()
#include "../check.h"
#include "waits.h"

// Rights that stand for several, as programs ask for them.
static void files_are_opened_by_generic_rights()
{
    char path[MAX_PATH] = "/tmp/ndcompat-rights-XXXXXX";
    close(mkstemp(path));
    const struct {
        DWORD access;
        bool reads, writes;
    } asked[] = {{FILE_GENERIC_READ, true, false},
                 {FILE_GENERIC_WRITE, false, true},
                 {FILE_GENERIC_READ | FILE_GENERIC_WRITE | DELETE, true, true},
                 {FILE_ALL_ACCESS, true, true},
                 {FILE_GENERIC_EXECUTE | SYNCHRONIZE, false, false},
                 {READ_CONTROL | WRITE_DAC | WRITE_OWNER, false, false},
                 {STANDARD_RIGHTS_ALL, false, false}};
    for (const auto& what : asked) {
        const HANDLE file = CreateFileA(path, what.access, FILE_SHARE_READ, nullptr, OPEN_EXISTING, 0, nullptr);
        CHECK(file != INVALID_HANDLE_VALUE);
        char data[2] = "x";
        DWORD count;
        CHECK(WriteFile(file, data, 1, &count, nullptr) == what.writes && (what.writes || GetLastError() == ERROR_ACCESS_DENIED));
        CHECK(ReadFile(file, data, 1, &count, nullptr) == what.reads && (what.reads || GetLastError() == ERROR_ACCESS_DENIED));
        const HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_READWRITE, 0, 64, nullptr);
        CHECK((mapping != nullptr) == (what.reads && what.writes));
        CHECK((mapping == nullptr || CloseHandle(mapping)) && CloseHandle(file));
    }
    CHECK(DeleteFileA(path));
    // What is allocated as movable is where its handle points to.
    const HGLOBAL block = GlobalAlloc(GHND, 100);
    CHECK(block != nullptr && static_cast<char*>(GlobalLock(block))[99] == 0 && GlobalFree(block) == nullptr);
    // Codes of devices are made and taken apart.
    const DWORD code = CTL_CODE(FILE_DEVICE_NETWORK, 0x800, METHOD_OUT_DIRECT, FILE_READ_ACCESS | FILE_WRITE_ACCESS);
    CHECK(code == 0x0012E002 && DEVICE_TYPE_FROM_CTL_CODE(code) == FILE_DEVICE_NETWORK && METHOD_FROM_CTL_CODE(code) == METHOD_OUT_DIRECT);
}

static std::atomic<int> told{-1};

// Its first callback comes at once.
static void interfaces_are_watched()
{
    HANDLE handle;
    const auto callback = [](PVOID context, PMIB_IPINTERFACE_ROW row, MIB_NOTIFICATION_TYPE type) {
        if (context == &told && row == nullptr)
            told = type;
    };
    CHECK(NotifyIpInterfaceChange(AF_UNSPEC, callback, &told, TRUE, &handle) == NO_ERROR && handle != nullptr);
    CHECK(comes_true([] { return told >= 0; }));
    CHECK(told == MibInitialNotification && CancelMibChangeNotify2(handle) == NO_ERROR);
}

static void text()
{
    TCHAR buffer[8];
    TCHAR* end;
    size_t left;
    CHECK(StringCchPrintf(buffer, ARRAYSIZE(buffer), _T("%s-%I64d"), _T("a"), 5ll) == S_OK && !_tcscmp(buffer, _T("a-5")));
    CHECK(StringCchPrintf(buffer, ARRAYSIZE(buffer), _T("%d"), 123456789) == STRSAFE_E_INSUFFICIENT_BUFFER);
    CHECK(!_tcscmp(buffer, _T("1234567")));
    CHECK(StringCbPrintfEx(buffer, sizeof buffer, &end, &left, STRSAFE_FILL_BEHIND_NULL, _T("%d"), 12) == S_OK);
    CHECK(end == buffer + 2 && left == 6 * sizeof(TCHAR) && buffer[7] == 0);
    CHECK(StringCchCopy(buffer, 8, _T("abc")) == S_OK && StringCchCat(buffer, 8, _T("def")) == S_OK);
    CHECK(StringCchLength(buffer, 8, &left) == S_OK && left == 6);
    char narrow[16];
    CHECK(wsprintfA(narrow, "%u %lx", 7u, 255u) == 4 && !strcmp(narrow, "7 ff"));
    WCHAR wide[16];
    CHECK(wsprintfW(wide, L"%s %hs", L"w", "n") == 3 && !wcscmp(wide, L"w n"));
    CHECK(_tstoi(_T("17")) == 17 && _tstoi64(_T("1099511627776")) == 1ll << 40);
}

static void identifiers()
{
    UUID uuid;
    RPC_STATUS status;
    CHECK(UuidCreate(&uuid) == RPC_S_OK && UuidCompare(&uuid, &uuid, &status) == 0 && status == RPC_S_OK);
    WCHAR text[39];
    CHECK(StringFromGUID2(uuid, text, 39) == 39);
    CLSID again;
    CHECK(CLSIDFromString(text, &again) == S_OK && IsEqualGUID(uuid, again));
    LPOLESTR word = text;
    CHECK(word[0] == OLESTR('{') && MAXUINT8 == 255 && NT_SUCCESS(STATUS_PENDING) && RTL_BITS_OF(ULONG) == 32);
    CHECK(HandleToUlong(UlongToHandle(0x80000000)) == 0x80000000);
}

static void addresses()
{
    IN_ADDR address;
    PCWSTR end;
    CHECK(RtlIpv4StringToAddressW(L"10.1.2.3/8", TRUE, &end, &address) == 0 && *end == L'/');
    CHECK(address.s_net == 10 && address.s_host == 1 && address.s_lh == 2 && address.s_impno == 3);
    IN6_ADDR loopback = IN6ADDR_LOOPBACK_INIT;
    CHECK(loopback.s6_words[7] == htons(1) && loopback.s6_bytes[15] == 1);
}

static void versions()
{
    OSVERSIONINFOEX wanted = {};
    wanted.dwMajorVersion = 6;
    ULONGLONG mask = 0;
    VER_SET_CONDITION(mask, VER_MAJORVERSION, VER_GREATER_EQUAL);
    CHECK(VerifyVersionInfo(&wanted, VER_MAJORVERSION, mask) && IsWindows8OrGreater());
}

static void interfaces()
{
    MIB_IF_ROW2 row = {};
    row.InterfaceIndex = if_nametoindex("lo");
    CHECK(GetIfEntry2(&row) == NO_ERROR && wcscmp(row.Alias, L"lo") == 0 && row.Type == IF_TYPE_SOFTWARE_LOOPBACK);
    CHECK(row.OperStatus == IfOperStatusUp && row.OutQLen == 0 && !row.InterfaceAndOperStatusFlags.HardwareInterface);
    PMIB_UNICASTIPADDRESS_TABLE table;
    CHECK(GetUnicastIpAddressTable(AF_INET, &table) == NO_ERROR && table->NumEntries > 0);
    CHECK(table->Table[table->NumEntries - 1].Address.si_family == AF_INET);
    FreeMibTable(table);
}

// A notice of a change of addresses: in a network of the child's own, where it may have one.
static int change_of_addresses()
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        fputs("skipped: a change of addresses, which needs the right to a network of one's own\n", stderr);
        return 0;
    }
    HANDLE handle, event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    OVERLAPPED request = {}, other = {};
    request.hEvent = event;
    CHECK(NotifyAddrChange(&handle, &request) == ERROR_IO_PENDING && NotifyAddrChange(&handle, &other) == ERROR_IO_PENDING);
    CHECK(WaitForSingleObject(event, 0) == WAIT_TIMEOUT && CancelIPChangeNotify(&other));
    DWORD bytes;
    CHECK(!GetOverlappedResult(handle, &other, &bytes, TRUE) && GetLastError() == ERROR_OPERATION_ABORTED);
    ifreq loopback = {};
    strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP;
    const int any = static_cast<int>(syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0));
    CHECK(ioctl(any, SIOCSIFFLAGS, &loopback) == 0 && close(any) == 0 && WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0);
    CHECK(GetOverlappedResult(handle, &request, &bytes, FALSE) && !CancelIPChangeNotify(&request));
    ULONG size = 0;
    CHECK(GetAdaptersInfo(nullptr, &size) == ERROR_NO_DATA);
    return 0;
}

static void changes_of_the_network()
{
    const pid_t child = fork();
    if (child == 0)
        _exit(change_of_addresses());
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// The same structures, whatever asks for them.
static void parameters_of_the_network()
{
    static_assert(sizeof(IP_ADAPTER_INFO) == 704 && offsetof(IP_ADAPTER_INFO, IpAddressList) == 440 && sizeof(FIXED_INFO) == 600, "as on Windows");
    ULONG size = 0;
    CHECK(GetNetworkParams(nullptr, &size) == ERROR_BUFFER_OVERFLOW && size >= sizeof(FIXED_INFO));
    FIXED_INFO* const info = static_cast<FIXED_INFO*>(malloc(size));
    char name[300];
    DWORD length = ARRAYSIZE(name);
    CHECK(GetNetworkParams(info, &size) == NO_ERROR && GetComputerNameExA(ComputerNameDnsHostname, name, &length));
    CHECK(!strcmp(info->HostName, name) && info->NodeType == BROADCAST_NODETYPE);
    free(info);
    length = ARRAYSIZE(name);
    CHECK(GetUserNameA(name, &length) && length == strlen(name) + 1);
}

// A structure that is filled in, and does not change what the object is.
static void a_descriptor_for_everybody()
{
    SECURITY_DESCRIPTOR descriptor;
    CHECK(!InitializeSecurityDescriptor(&descriptor, 2) && GetLastError() == ERROR_UNKNOWN_REVISION);
    CHECK(InitializeSecurityDescriptor(&descriptor, SECURITY_DESCRIPTOR_REVISION) && descriptor.Control == 0);
    CHECK(SetSecurityDescriptorDacl(&descriptor, TRUE, nullptr, FALSE));
    CHECK(descriptor.Control == SE_DACL_PRESENT && descriptor.Dacl == nullptr);
    SECURITY_ATTRIBUTES attributes = {sizeof attributes, &descriptor, FALSE};
    const HANDLE event = CreateEvent(&attributes, FALSE, TRUE, nullptr);
    CHECK(WaitForSingleObject(event, 0) == WAIT_OBJECT_0 && CloseHandle(event));
    CHECK(SetSecurityDescriptorDacl(&descriptor, FALSE, nullptr, FALSE) && descriptor.Control == 0);
    descriptor.Revision = 3;
    CHECK(!SetSecurityDescriptorDacl(&descriptor, TRUE, nullptr, FALSE) && GetLastError() == ERROR_UNKNOWN_REVISION);
    const HGLOBAL block = GlobalAlloc(GHND, 10);
    CHECK(GlobalHandle(GlobalLock(block)) == block && GlobalFree(block) == nullptr);
    CHECK(GlobalHandle(nullptr) == nullptr && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(!_tcscmp(SE_LOCK_MEMORY_NAME, _T("SeLockMemoryPrivilege")) && SE_PRIVILEGE_ENABLED == 2);
}

// Wide characters on a stream on which narrow text may go, too.
static void characters_on_a_stream()
{
    TCHAR path[MAX_PATH], line[8];
    CHECK(GetTempFileName(_T("/tmp"), _T("nd"), 0, path) != 0 && _taccess(path, 0) == 0);
    FILE* file = nullptr;
    CHECK(_tfopen_s(&file, path, _T("w")) == 0 && _fputtc(_T('a'), file) == _T('a') && _puttc(_T('b'), file) == _T('b'));
    CHECK(fputs("c", file) >= 0 && fputwc(L'\x20AC', file) == 0x20AC && _fputtc(0, file) == 0 && fclose(file) == 0);
    char narrow[16];
    CHECK(_tfopen_s(&file, path, _T("r")) == 0 && fread(narrow, 1, 16, file) == 7 && !memcmp(narrow, "abc\xE2\x82\xAC", 7) && fclose(file) == 0);
    CHECK(_tfopen_s(&file, path, _T("r")) == 0 && _fgettc(file) == _T('a') && _fgetts(line, 3, file) == line && !_tcscmp(line, _T("bc")) && fclose(file) == 0);
    CHECK(_tremove(path) == 0 && _taccess(path, 0) == -1 && _tgetenv(_T("NO_SUCH_VARIABLE")) == nullptr && _tsystem(_T("true")) == 0);
    CHECK(_puttchar(_T('\n')) == _T('\n') && _putts(_T("text")) >= 0);
}

static void process()
{
    PROCESS_MEMORY_COUNTERS_EX memory;
    CHECK(GetProcessMemoryInfo(GetCurrentProcess(), reinterpret_cast<PPROCESS_MEMORY_COUNTERS>(&memory), sizeof memory));
    CHECK(memory.PrivateUsage > 0 && memory.WorkingSetSize >= memory.PrivateUsage / 2);
    CHECK(SUCCEEDED(SetThreadDescription(GetCurrentThread(), L"the first")));
    PWSTR description;
    CHECK(SUCCEEDED(GetThreadDescription(GetCurrentThread(), &description)) && wcscmp(description, L"the first") == 0);
    LocalFree(description);
    CHECK(timeBeginPeriod(1) == TIMERR_NOERROR && timeGetTime() != 0 && timeEndPeriod(1) == TIMERR_NOERROR);
    TCHAR drive[_MAX_DRIVE], folder[_MAX_DIR], name[_MAX_FNAME], extension[_MAX_EXT], path[_MAX_PATH];
    CHECK(_tsplitpath_s(_T("/tmp/a.b"), drive, folder, name, extension) == 0 && _tcscmp(extension, _T(".b")) == 0);
    CHECK(_tmakepath_s(path, drive, folder, name, extension) == 0 && _tcscmp(path, _T("/tmp/a.b")) == 0);
    unsigned number;
    CHECK(rand_s(&number) == 0);
    // What psapi.dll has, this library has under kernel32.dll's name.
    const HMODULE psapi = LoadLibraryA("psapi.dll");
    CHECK(psapi != nullptr && psapi == GetModuleHandleA("KERNEL32") && GetProcAddress(psapi, "GetProcessMemoryInfo") != nullptr && FreeLibrary(psapi));
}

// What the headers make of others can be asked for by its name as well, and does the same.
static void inline_functions_are_found_by_their_names()
{
    const HMODULE kernel = GetModuleHandleA("kernel32.dll");
    for (const char* name : {"PrefetchVirtualMemory", "VirtualAllocExNuma", "CreateFileMappingNumaW", "MapViewOfFileExNuma", "RtlCaptureStackBackTrace",
                             "CaptureStackBackTrace", "QueryFullProcessImageNameW", "GetFullPathNameW", "GetStartupInfoW", "MsgWaitForMultipleObjectsEx",
                             "CoTaskMemAlloc", "CoInitializeEx", "UuidCreateSequential", "FlushInstructionCache", "GetCPInfo", "EncodePointer", "RtlCompareMemory"})
        CHECK(GetProcAddress(kernel, name) != nullptr);
    const auto code_page = reinterpret_cast<decltype(&GetCPInfo)>(reinterpret_cast<void*>(GetProcAddress(kernel, "GetCPInfo")));
    CPINFO found, expected;
    CHECK(code_page(CP_UTF8, &found) && GetCPInfo(CP_UTF8, &expected) && memcmp(&found, &expected, sizeof found) == 0 && !code_page(1252, &found));
    const auto startup = reinterpret_cast<decltype(&GetStartupInfoW)>(reinterpret_cast<void*>(GetProcAddress(kernel, "GetStartupInfoW")));
    STARTUPINFOW told, known;
    startup(&told), GetStartupInfoW(&known);
    CHECK(memcmp(&told, &known, sizeof told) == 0);
    const auto full = reinterpret_cast<decltype(&GetFullPathNameW)>(reinterpret_cast<void*>(GetProcAddress(kernel, "GetFullPathNameW")));
    WCHAR path[MAX_PATH], *part;
    CHECK(full(L"/tmp/./x", MAX_PATH, path, &part) == 6 && wcscmp(path, L"/tmp/x") == 0 && part == path + 5);
    CHECK(CoInitializeEx(nullptr, COINIT_MULTITHREADED) == S_OK && CoInitializeEx(nullptr, COINIT_MULTITHREADED) == S_FALSE);
    CoUninitialize(), CoUninitialize();
}

static LONG WINAPI passes(PEXCEPTION_POINTERS)
{
    return EXCEPTION_CONTINUE_SEARCH;
}

static void what_a_process_knows_of_itself()
{
    STARTUPINFO startup;
    GetStartupInfo(&startup);
    CHECK(startup.cb == sizeof startup && startup.dwFlags == 0);
    TCHAR image[_MAX_PATH], module[_MAX_PATH];
    DWORD size = _MAX_PATH;
    CHECK(QueryFullProcessImageName(GetCurrentProcess(), 0, image, &size) && size == _tcslen(image));
    CHECK(GetModuleFileName(nullptr, module, _MAX_PATH) == size && _tcscmp(image, module) == 0);
    CHECK(!QueryFullProcessImageName(GetCurrentProcess(), 0, image, &size) && GetLastError() == ERROR_INSUFFICIENT_BUFFER);
    CHECK(SetUnhandledExceptionFilter(passes) == nullptr && SetUnhandledExceptionFilter(nullptr) == passes);
    CHECK(FlushInstructionCache(GetCurrentProcess(), image, sizeof image));
    HANDLE reader, writer;
    char text[4];
    DWORD count;
    CHECK(CreatePipe(&reader, &writer, nullptr, 0) && WriteFile(writer, "abc", 3, &count, nullptr) && CloseHandle(writer));
    CHECK(ReadFile(reader, text, sizeof text, &count, nullptr) && count == 3 && memcmp(text, "abc", 3) == 0);
    CHECK(!ReadFile(reader, text, sizeof text, &count, nullptr) && GetLastError() == ERROR_BROKEN_PIPE && CloseHandle(reader));
    TCHAR folder[MAX_PATH], file[MAX_PATH];
    CHECK(GetTempPath(MAX_PATH, folder) && GetTempFileName(folder, _T("lnk"), 0, file));
    const std::basic_string<TCHAR> name(file), hard = name + _T(".hard"), soft = name + _T(".soft");
    CHECK(CreateHardLink(hard.c_str(), file, nullptr) && CreateSymbolicLink(soft.c_str(), file, SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE));
    CHECK(DeleteFile(soft.c_str()) && DeleteFile(hard.c_str()) && DeleteFile(file));
    void* block = _aligned_malloc(100, 64);
    CHECK(block != nullptr && _aligned_msize(block, 64, 0) >= 100);
    _aligned_free(block);
    FILE* null = _wfsopen(L"NUL", L"w", _SH_DENYNO);
    CHECK(null != nullptr && fclose(null) == 0);
}

static int thrown(bool throws)
{
    __try {
        if (throws)
            throw std::runtime_error("thrown");
        return 1;
    } __except (GetExceptionCode() == 0xE06D7363 ? EXCEPTION_EXECUTE_HANDLER : EXCEPTION_CONTINUE_SEARCH) {
        return 2;
    }
}

static HRESULT chosen(HRESULT status)
{
    switch (status) {
    case 0x8000FFFF: return S_FALSE;
    default: return S_OK;
    }
}

#define FAILS_AS(call, result, code) (SetLastError(0), (call) == (result) && GetLastError() == (code))

static void paths_and_characters()
{
    TCHAR buffer[64], *part;
    CHECK(GetFullPathName(_T("/a/./b/../c.txt"), 64, buffer, &part) == 8 && !_tcscmp(buffer, _T("/a/c.txt")));
    CHECK(!_tcscmp(part, _T("c.txt")));
    CHECK(GetFullPathName(_T("/a/c.txt"), 8, buffer, &part) == 9 && GetFullPathName(_T("/a/c.txt"), 0, nullptr, nullptr) == 9);
    CHECK(GetFullPathName(_T("/a/"), 64, buffer, &part) != 0 && (part == nullptr || *part != _T('/')));
    CHECK(FAILS_AS(GetFullPathName(nullptr, 64, buffer, nullptr), 0u, ERROR_INVALID_PARAMETER));
    CHECK(FAILS_AS(GetFullPathName(_T(""), 64, buffer, nullptr), 0u, ERROR_INVALID_PARAMETER));

    TCHAR text[] = _T("aB1");
    CHECK(CharUpper(text) == text && !_tcscmp(text, _T("AB1")) && CharLower(text) == text && !_tcscmp(text, _T("ab1")));
    CHECK(CharUpper(reinterpret_cast<LPTSTR>(ULONG_PTR{'q'})) == reinterpret_cast<LPTSTR>(ULONG_PTR{'Q'}));
    CHECK(CharNext(text) == text + 1 && CharNext(text + 3) == text + 3 && CharPrev(text, text + 1) == text && CharPrev(text, text) == text);
    const char utf8[] = "\xC3\xBCx";
    CHECK(CharNextA(utf8) == utf8 + 2 && CharPrevA(utf8, utf8 + 2) == utf8 && CharNextA(utf8 + 3) == utf8 + 3);
    WCHAR some[] = L"abc";
    CHECK(CharUpperBuffW(some, 2) == 2 && !wcscmp(some, L"ABc"));

    CPINFO info;
    CHECK(IsValidCodePage(CP_UTF8) && !IsValidCodePage(1252) && AreFileApisANSI());
    FILETIME time;
    WORD day, clock;
    // 2024-02-29 23:59:58, and the second after it.
    CHECK(DosDateTimeToFileTime(44 << 9 | 2 << 5 | 29, 23 << 11 | 59 << 5 | 29, &time));
    time.dwLowDateTime += 10000000;
    CHECK(FileTimeToDosDateTime(&time, &day, &clock) && day == (44 << 9 | 2 << 5 | 29) && clock == (23 << 11 | 59 << 5 | 29));
    CHECK(FAILS_AS(DosDateTimeToFileTime(43 << 9 | 2 << 5 | 29, 0, &time), FALSE, ERROR_INVALID_PARAMETER) && FAILS_AS(FileTimeToDosDateTime(&time, nullptr, &clock), FALSE, ERROR_INVALID_PARAMETER));
    time = {};
    CHECK(FAILS_AS(FileTimeToDosDateTime(&time, &day, &clock), FALSE, ERROR_INVALID_PARAMETER));
    CHECK(GetACP() == CP_UTF8 && GetOEMCP() == CP_UTF8 && !IsDBCSLeadByte(0x81));
    CHECK(GetCPInfo(CP_ACP, &info) && info.MaxCharSize == 4 && info.DefaultChar[0] == '?' && info.LeadByte[0] == 0);
    CHECK(FAILS_AS(GetCPInfo(932, &info), FALSE, ERROR_INVALID_PARAMETER) && FAILS_AS(GetCPInfo(CP_UTF8, nullptr), FALSE, ERROR_INVALID_PARAMETER));
}

static void memory_that_can_be_used()
{
    char* const pages = static_cast<char*>(VirtualAlloc(nullptr, 3 * 4096, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
    DWORD former;
    CHECK(VirtualProtect(pages + 4096, 4096, PAGE_READONLY, &former) && VirtualProtect(pages + 8192, 4096, PAGE_NOACCESS, &former));
    CHECK(!IsBadReadPtr(pages, 8192) && IsBadReadPtr(pages, 8193) && IsBadReadPtr(nullptr, 1) && !IsBadReadPtr(nullptr, 0));
    CHECK(!IsBadWritePtr(pages, 4096) && IsBadWritePtr(pages, 4097) && IsBadReadPtr(pages, ~UINT_PTR{0}));
    WIN32_MEMORY_RANGE_ENTRY range = {pages, 4096};
    CHECK(PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0));
    CHECK(FAILS_AS(PrefetchVirtualMemory(GetCurrentProcess(), 0, &range, 0), FALSE, ERROR_INVALID_PARAMETER));
    CHECK(FAILS_AS(PrefetchVirtualMemory(GetCurrentProcess(), 1, nullptr, 0), FALSE, ERROR_INVALID_PARAMETER));
    CHECK(FAILS_AS(PrefetchVirtualMemory(nullptr, 1, &range, 0), FALSE, ERROR_INVALID_HANDLE));
    CHECK(VirtualFree(pages, 0, MEM_RELEASE));

    char* const of_node = static_cast<char*>(VirtualAllocExNuma(GetCurrentProcess(), nullptr, 4096, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE, 0));
    CHECK(of_node != nullptr);
    of_node[0] = 1;
    CHECK(FAILS_AS(VirtualFreeEx(nullptr, of_node, 0, MEM_RELEASE), FALSE, ERROR_INVALID_HANDLE));
    CHECK(VirtualFreeEx(GetCurrentProcess(), of_node, 0, MEM_RELEASE));
    CHECK(FAILS_AS(VirtualAllocExNuma(nullptr, nullptr, 4096, MEM_COMMIT, PAGE_READWRITE, 0), nullptr, ERROR_INVALID_HANDLE));
    CHECK(FAILS_AS(VirtualAllocExNuma(GetCurrentProcess(), nullptr, 4096, MEM_COMMIT, PAGE_READWRITE, 64), nullptr, ERROR_INVALID_PARAMETER));
    const HANDLE section = CreateFileMappingNuma(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, 4096, nullptr, 0);
    void* const view = MapViewOfFileExNuma(section, FILE_MAP_WRITE, 0, 0, 0, nullptr, 0);
    CHECK(view != nullptr && UnmapViewOfFile(view) && CloseHandle(section));

    PVOID frames[4] = {};
    ULONG hash = 0;
    CHECK(CaptureStackBackTrace(0, 4, frames, &hash) > 0 && frames[0] != nullptr && hash != 0);
    CHECK(CaptureStackBackTrace(0, 0, frames, nullptr) == 0 && CaptureStackBackTrace(1000, 4, frames, nullptr) == 0);
}

static void zones_clocks_and_blocks()
{
    DYNAMIC_TIME_ZONE_INFORMATION dynamic;
    TIME_ZONE_INFORMATION zone;
    memset(&dynamic, 7, sizeof dynamic);
    CHECK(GetDynamicTimeZoneInformation(&dynamic) == GetTimeZoneInformation(&zone) && dynamic.Bias == zone.Bias && dynamic.DaylightBias == zone.DaylightBias);
    CHECK(!wcscmp(dynamic.StandardName, zone.StandardName) && dynamic.TimeZoneKeyName[0] == 0 && !dynamic.DynamicDaylightTimeDisabled);
    ULONGLONG before = 0, now = 0, after = 0, unbiased = 0;
    QueryInterruptTime(&before), QueryInterruptTimePrecise(&now), QueryInterruptTime(&after), QueryUnbiasedInterruptTimePrecise(&unbiased);
    CHECK(before > 0 && before <= now && now <= after && unbiased > 0);
    const HLOCAL block = LocalAlloc(LMEM_FIXED, 8);
    CHECK(LocalFlags(block) == 0 && LocalFree(block) == nullptr && FAILS_AS(LocalFlags(nullptr), LMEM_INVALID_HANDLE, ERROR_INVALID_HANDLE));
    char* const bytes = static_cast<char*>(GlobalAllocPtr(GHND, 8));
    CHECK(bytes && bytes[7] == 0 && GlobalFlags(bytes) == 0 && GlobalFreePtr(bytes) && GET_X_LPARAM(0x0002FFFF) == -1 && GET_Y_LPARAM(0x0002FFFF) == 2);
    WIN32_FIND_DATAA found;
    const HANDLE search = FindFirstFileExA("/dev/null", FindExInfoBasic, &found, FindExSearchNameMatch, nullptr, FIND_FIRST_EX_LARGE_FETCH);
    CHECK(search != INVALID_HANDLE_VALUE && FindClose(search));
    const LPVOID page = VirtualAllocExNuma(GetCurrentProcess(), nullptr, 1, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE, NUMA_NO_PREFERRED_NODE);
    CHECK(page && VirtualFree(page, 0, MEM_RELEASE));
}

static DWORD CALLBACK stops_at_once(LARGE_INTEGER size, LARGE_INTEGER copied, LARGE_INTEGER streamSize, LARGE_INTEGER streamCopied,
    DWORD stream, DWORD reason, HANDLE source, HANDLE target, LPVOID data)
{
    LARGE_INTEGER length;
    CHECK(size.QuadPart == 3 && copied.QuadPart == 0 && streamSize.QuadPart == 3 && streamCopied.QuadPart == 0 && stream == 1);
    CHECK(GetFileSizeEx(source, &length) && length.QuadPart == 3 && GetFileSizeEx(target, &length) && length.QuadPart == 0);
    return *static_cast<DWORD*>(data) = reason == CALLBACK_STREAM_SWITCH ? PROGRESS_STOP : PROGRESS_CONTINUE;
}

// By the declarations of the headers: the order of the arguments, and both widths.
static void folders_copies_and_contexts()
{
    WCHAR folder[MAX_PATH], file[MAX_PATH], copy[MAX_PATH], *part = nullptr;
    const UINT length = GetSystemDirectory(folder, MAX_PATH);
    CHECK(length > 0 && length < MAX_PATH && wcslen(folder) == length && GetFileAttributes(folder) != INVALID_FILE_ATTRIBUTES);
    // It has the library, for which the names of Windows' DLLs stand.
    wcscat_s(folder, L"\\kernel32.dll");
    const HMODULE library = LoadLibrary(folder);
    CHECK(library != nullptr && GetProcAddress(library, "GetSystemDirectoryW") != nullptr && FreeLibrary(library));
    char narrow[2];
    CHECK(GetWindowsDirectoryA(narrow, 2) == 1 && !strcmp(narrow, "/") && GetSystemWindowsDirectoryA(narrow, 1) == 2);
    CHECK(SearchPath(nullptr, L"sh", nullptr, MAX_PATH, file, &part) == wcslen(file) && !wcscmp(part, L"sh"));
    CHECK(FAILS_AS(SearchPath(L"/", L"none such", L".exe", MAX_PATH, file, nullptr), 0u, ERROR_FILE_NOT_FOUND));

    CHECK(GetTempPath(MAX_PATH, folder) != 0 && GetTempFileName(folder, L"cpy", 0, file) != 0 && GetTempFileName(folder, L"cpy", 0, copy) != 0);
    const HANDLE source = CreateFile(file, GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS, 0, nullptr);
    DWORD count = 0, heard = 9;
    CHECK(WriteFile(source, "abc", 3, &count, nullptr) && GetProcessHandleCount(GetCurrentProcess(), &count) && count > 0);
    CHECK(CloseHandle(source) && FAILS_AS(GetProcessHandleCount(nullptr, &count), FALSE, ERROR_INVALID_HANDLE));
    BOOL cancel = FALSE;
    CHECK(FAILS_AS(CopyFileEx(file, copy, stops_at_once, &heard, &cancel, 0), FALSE, ERROR_REQUEST_ABORTED) && heard == PROGRESS_STOP);
    CHECK(CopyFileEx(file, copy, nullptr, nullptr, &cancel, COPY_FILE_NO_BUFFERING) && DeleteFile(file) && DeleteFile(copy));

    HCRYPTPROV context = 0;
    BYTE bytes[16] = {};
    CHECK(CryptAcquireContext(&context, nullptr, MS_DEF_PROV, PROV_RSA_FULL, CRYPT_VERIFYCONTEXT) && context != 0);
    CHECK(CryptGenRandom(context, sizeof bytes, bytes) && std::count(bytes, bytes + 16, 0) < 16 && CryptReleaseContext(context, 0));
    const DWORD none = static_cast<DWORD>(NTE_BAD_KEYSET);
    CHECK(FAILS_AS(CryptAcquireContextA(&context, nullptr, nullptr, PROV_RSA_AES, 0), FALSE, none) && context == 0);
}

static DWORD WINAPI leaves_a_library(PVOID module)
{
    FreeLibraryAndExitThread(static_cast<HMODULE>(module), 17);
}

static void waits_and_identifiers()
{
    const HANDLE event = CreateEventW(nullptr, TRUE, TRUE, nullptr);
    CHECK(MsgWaitForMultipleObjects(1, &event, FALSE, 0, QS_ALLINPUT) == WAIT_OBJECT_0);
    CHECK(ResetEvent(event) && MsgWaitForMultipleObjectsEx(1, &event, 0, QS_ALLINPUT, MWMO_WAITALL) == WAIT_TIMEOUT);
    CHECK(MsgWaitForMultipleObjects(0, nullptr, FALSE, 0, QS_ALLINPUT) == WAIT_TIMEOUT && CloseHandle(event));
    CHECK(FAILS_AS(MsgWaitForMultipleObjectsEx(0, nullptr, 0, QS_ALLINPUT, 8), WAIT_FAILED, ERROR_INVALID_PARAMETER));
    const HMODULE module = LoadLibraryA("libm.so.6");
    const HANDLE thread = CreateThread(nullptr, 0, leaves_a_library, module, 0, nullptr);
    DWORD code = 0;
    CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 && GetExitCodeThread(thread, &code) && code == 17 && CloseHandle(thread));

    UUID one, other;
    RPC_STATUS status = 1;
    CHECK(UuidCreateSequential(&one) == RPC_S_OK && UuidCreateSequential(&other) == RPC_S_OK);
    CHECK(UuidHash(&one, &status) == UuidHash(&one, nullptr) && status == RPC_S_OK && UuidHash(nullptr, &status) == 0);
    LPWSTR text = nullptr;
    CHECK(StringFromCLSID(GUID_NULL, &text) == S_OK && !wcscmp(text, L"{00000000-0000-0000-0000-000000000000}"));
    CoTaskMemFree(text);
    CHECK(StringFromIID(GUID_NULL, nullptr) == E_INVALIDARG);
    CHECK(IsWindowsVersionOrGreater(6, 1, 0) && IsWindowsVersionOrGreater(10, 0, 0) && !IsWindowsVersionOrGreater(10, 1, 0));
}

int _tmain(int argc, TCHAR* argv[])
{
    changes_of_the_network(); // first, as it forks
    paths_and_characters();
    memory_that_can_be_used();
    folders_copies_and_contexts();
    waits_and_identifiers();
    zones_clocks_and_blocks();
    text();
    identifiers();
    addresses();
    versions();
    interfaces();
    interfaces_are_watched();
    files_are_opened_by_generic_rights();
    parameters_of_the_network();
    a_descriptor_for_everybody();
    characters_on_a_stream();
    process();
    what_a_process_knows_of_itself();
    inline_functions_are_found_by_their_names();
    CHECK(thrown(true) == 2 && thrown(false) == 1 && chosen(E_UNEXPECTED) == S_FALSE);
    _ASSERTE(argc > 0);
    int count;
    LPWSTR* arguments = CommandLineToArgvW(GetCommandLineW(), &count);
    CHECK(count == argc && _tcslen(argv[0]) == wcslen(arguments[0]));
    LocalFree(arguments);
    return 0;
}
