/* The same from C, with a plain main. */
#include <windows.h>
#include <ndsupport.h>
#include <stdio.h>

int main(void)
{
    HRESULT status = NdStartup();
    printf("NdStartup 0x%08lx\n", status);
    return status == ND_SUCCESS && NdCleanup() == ND_SUCCESS ? 0 : 1;
}
