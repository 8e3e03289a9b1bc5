/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files by name: what they are, not what is in them. */
#ifndef NDWIN_FILE_H
#define NDWIN_FILE_H

#include "types.h"

#define INVALID_FILE_ATTRIBUTES    ((DWORD)-1)
#define FILE_ATTRIBUTE_READONLY    0x00000001
#define FILE_ATTRIBUTE_DIRECTORY   0x00000010
#define FILE_ATTRIBUTE_NORMAL      0x00000080
#define FILE_FLAG_BACKUP_SEMANTICS 0x02000000
#define FILE_READ_ATTRIBUTES       0x0080
#define FILE_SHARE_READ            0x00000001
#define FILE_SHARE_WRITE           0x00000002
#define FILE_SHARE_DELETE          0x00000004
#define OPEN_EXISTING              3

typedef struct _BY_HANDLE_FILE_INFORMATION {
    DWORD dwFileAttributes;
    FILETIME ftCreationTime;
    FILETIME ftLastAccessTime;
    FILETIME ftLastWriteTime;
    DWORD dwVolumeSerialNumber;
    DWORD nFileSizeHigh;
    DWORD nFileSizeLow;
    DWORD nNumberOfLinks;
    DWORD nFileIndexHigh;
    DWORD nFileIndexLow;
} BY_HANDLE_FILE_INFORMATION, *PBY_HANDLE_FILE_INFORMATION, *LPBY_HANDLE_FILE_INFORMATION;

struct _SECURITY_ATTRIBUTES;

NDW_API(DWORD, GetFileAttributesA, (LPCSTR name));
NDW_API(DWORD, GetFileAttributesW, (LPCWSTR name));
/* For FILE_READ_ATTRIBUTES, or no access at all, and OPEN_EXISTING only. */
NDW_API(HANDLE, CreateFileA, (LPCSTR name, DWORD access, DWORD share, struct _SECURITY_ATTRIBUTES *security,
                              DWORD disposition, DWORD flags, HANDLE pattern));
NDW_API(HANDLE, CreateFileW, (LPCWSTR name, DWORD access, DWORD share, struct _SECURITY_ATTRIBUTES *security,
                              DWORD disposition, DWORD flags, HANDLE pattern));
NDW_API(BOOL, GetFileInformationByHandle, (HANDLE file, LPBY_HANDLE_FILE_INFORMATION information));

#ifdef UNICODE
#define CreateFile        CreateFileW
#define GetFileAttributes GetFileAttributesW
#else
#define CreateFile        CreateFileA
#define GetFileAttributes GetFileAttributesA
#endif

#endif /* NDWIN_FILE_H */
