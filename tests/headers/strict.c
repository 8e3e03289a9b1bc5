/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* -std=c11 and -std=c17: the C library leaves names out, and Windows' headers have theirs all the same. Linux only. */
#include <windows.h>
#include <io.h>
#include <string.h>
#include <sys/stat.h>
#include <tchar.h>

int main(void)
{
    char key[16] = "secret";
    struct _stat64 found;
    BYTE *const cleared = (BYTE *)SecureZeroMemory(key, sizeof key);
    if (cleared != (BYTE *)key || key[0] || key[5] || RtlSecureZeroMemory(key, 1) != key)
        return 1;
    if (_stat64("/", &found) != 0 || (found.st_mode & _S_IFMT) != _S_IFDIR || !(found.st_mode & _S_IREAD))
        return 2;
    if (_stat64("/dev/null", &found) != 0 || (found.st_mode & _S_IFMT) != _S_IFCHR)
        return 3;
    if (strnlen("abc", 2) != 2 || wcsnlen(L"abc", 5) != 3 || _tcsnlen(_T("abc"), 2) != 2)
        return 4;
    return 0;
}
