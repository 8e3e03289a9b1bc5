// What a ported program needs of the installed package: Windows' headers, wmain, the helper functions and the runtime.
#include <windows.h>
#include <tchar.h>
#include <ndsupport.h>
#include <stdio.h>

int _tmain(int argc, TCHAR* argv[])
{
    (void)argv;
    HRESULT status = NdStartup();
    SIZE_T length = 0;
    HRESULT listed = NdQueryAddressList(0, NULL, &length);
    HANDLE event = CreateEvent(NULL, TRUE, TRUE, NULL);
    bool set = WaitForSingleObject(event, 0) == WAIT_OBJECT_0;
    CloseHandle(event);
    _tprintf(_T("NdStartup 0x%08lx, addresses %ls, event %ls, %d argument(s)\n"), status,
             listed == ND_SUCCESS || listed == ND_BUFFER_OVERFLOW ? L"listed" : L"not listed", set ? L"set" : L"not set", argc);
    return status == ND_SUCCESS && set && NdCleanup() == ND_SUCCESS ? 0 : 1;
}
