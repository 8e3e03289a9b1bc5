// lister: asks for all addresses, which loads every provider of the catalogue, and tells how many entries the catalogue has
// and what is left out of it.
#include <winsock2.h>
#include <ws2spi.h>
#include <windows.h>
#include <ndsupport.h>
#include <ndcompat.h>
#include <stdio.h>

int main()
{
    DWORD size = 0;
    INT error = 0;
    if (WSCEnumProtocols(nullptr, nullptr, &size, &error) != SOCKET_ERROR || error != WSAENOBUFS)
    {
        return 1;
    }
    SIZE_T addresses = 0;
    if (NdStartup() != ND_SUCCESS)
    {
        return 1;
    }
    NdQueryAddressList(0, nullptr, &addresses);
    static char faults[4096];
    ndcompat_catalogue_faults(faults, sizeof(faults));
    printf("%u\n%s", (unsigned)(size / sizeof(WSAPROTOCOL_INFOW)), faults);
    return NdCleanup() == ND_SUCCESS ? 0 : 1;
}
