/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* As absent.cpp, in C. */
#include <windows.h>

#ifdef OWN
HANDLE OpenProcess(DWORD access, BOOL inherit, DWORD id);
HANDLE OpenProcess(DWORD access, BOOL inherit, DWORD id)
{
    return access == 1 && !inherit && id == 2 ? (HANDLE)8 : NULL;
}
#endif

int main(void)
{
    return OpenProcess(1, FALSE, 2) != NULL ? 0 : 1;
}
