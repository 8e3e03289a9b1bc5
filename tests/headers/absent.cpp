// SPDX-License-Identifier: MIT OR Apache-2.0
// What is not there says so when it is called, and not when the program brings it along.
#include <string>
#include <windows.h>

#ifdef OWN
extern "C" HANDLE OpenProcess(DWORD access, BOOL inherit, DWORD id)
{
    return access == 1 && !inherit && id == 2 ? &errno : nullptr;
}
// Without parameters.
extern "C" BOOL FreeConsole(void)
{
    return 5;
}
int _resetstkoflw()
{
    return 6;
}
#endif

int main()
{
    // clang 14 says nothing of a call that may throw where something would have to be destroyed.
    const std::string something(100, 'x');
    return OpenProcess(1, FALSE, 2) != nullptr && FreeConsole() == 5 && _resetstkoflw() == 6 && something.size() == 100 ? 0 : 1;
}
