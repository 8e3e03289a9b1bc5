/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program of two files, each of which is this one: where _tcstok goes on is known to the thread, whichever file calls. */
#include <tchar.h>
#include <wchar.h>

wchar_t *next_word(void);

#ifdef OTHER
wchar_t *next_word(void)
{
    return _tcstok(NULL, _T(","));
}
#else
int main(void)
{
    wchar_t text[] = L"a,b,c";
    const wchar_t *const first = _tcstok(text, _T(",")), *const second = next_word(), *const third = _tcstok(NULL, _T(","));
    return !(first && !wcscmp(first, L"a") && second && !wcscmp(second, L"b") && third && !wcscmp(third, L"c") && !next_word());
}
#endif
