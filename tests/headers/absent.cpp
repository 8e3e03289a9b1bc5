// SPDX-License-Identifier: MIT OR Apache-2.0
// What is not there says so when it is called, and not when the program brings it along.
#include <windows.h>

#ifdef OWN
extern "C" HANDLE OpenProcess(DWORD access, BOOL inherit, DWORD id)
{
    return access == 1 && !inherit && id == 2 ? &errno : nullptr;
}
#endif

int main()
{
    return OpenProcess(1, FALSE, 2) != nullptr ? 0 : 1;
}
