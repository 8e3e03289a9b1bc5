/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Names of types that annotated declarations use, here and in Microsoft's own headers. The assignments fail to compile if one
 * has a level of pointers too few or too many.
 */
#include <windows.h>
#include <fibersapi.h>
#include <namedpipeapi.h>
#include <securitybaseapi.h>
#include <utilapiset.h>
#include <wow64apiset.h>

#if !WINAPI_FAMILY_PARTITION(WINAPI_PARTITION_DESKTOP)
#error <windows.h> says what kind of program this is
#endif

void narrow(void)
{
    LPCCH text = "";
    const PCCH same[] = {text};
    PCNZCH without_end = same[0];
    PCZZSTR several = without_end;
    CHAR buffer[2];
    PNZCH characters = buffer;
    PZZSTR texts = buffer;
    PSZ ended = buffer;
    PSTR list[] = {characters, texts, ended};
    PZPSTR lists = list;
    PCZPSTR unchanged = list;
    (void)several, (void)lists, (void)unchanged;
}

void wide(void)
{
    LPCWCHAR text = L"";
    const PCWCHAR same[] = {text};
    PCNZWCH without_end = same[0];
    PCZZWSTR several = without_end;
    LPCUWSTR anywhere = several;
    WCHAR buffer[2];
    PNZWCH characters = buffer;
    PZZWSTR texts = buffer;
    LPUWSTR unaligned = buffer;
    PWSTR list[] = {characters, texts};
    PZPWSTR lists = list;
    PCZPWSTR unchanged = list;
    PCWSTR constants[] = {text};
    PZPCWSTR constant = constants;
    (void)anywhere, (void)unaligned, (void)lists, (void)unchanged, (void)constant;
}

void either(void)
{
    LPCTCH text = TEXT("");
    PCTCH same = text;
    PCNZTCH without_end = same;
    PCZZTSTR several = without_end;
    LPCUTSTR anywhere = several;
    TCHAR buffer[2];
    PZZTSTR texts = buffer;
    PNZTCH characters = buffer;
    PTSTR list[] = {texts, characters};
    PZPTSTR lists = list;
    (void)anywhere, (void)lists;
}

int sizes[sizeof(HALF_PTR) == 4 && sizeof(UHALF_PTR) == 4 && sizeof(HANDLE_PTR) == 8 && sizeof(SHANDLE_PTR) == 8 && sizeof(HFILE) == 4
                  && sizeof(USN) == 8 && sizeof(FCHAR) == 1 && sizeof(FSHORT) == 2 && sizeof(FLONG) == 4
              ? 1
              : -1];

void handles(HKEY key, HANDLE handle)
{
    PHKEY keys = &key;
    SPHANDLE handles = &handle;
    GLOBALHANDLE global = handle;
    LOCALHANDLE local = global;
    LCID locale = 0;
    PLCID locales = &locale;
    (void)keys, (void)handles, (void)local, (void)locales;
}
