/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What programs spell out before they open a system to everybody, or take large pages. A descriptor is a structure that can be filled in;
 * what takes SECURITY_ATTRIBUTES does not look at it. There is nothing that makes a list of who may do what, and there are no tokens:
 * the types are here so that only the calls must go (absent.h names them).
 */
#ifndef NDWIN_SECURITY_H
#define NDWIN_SECURITY_H

#include "error.h"
#include "rights.h"
#include "types.h"

typedef PVOID PSID;
typedef PVOID PSECURITY_DESCRIPTOR;
typedef WORD SECURITY_DESCRIPTOR_CONTROL, *PSECURITY_DESCRIPTOR_CONTROL;
typedef struct _ACL {
    BYTE AclRevision;
    BYTE Sbz1;
    WORD AclSize;
    WORD AceCount;
    WORD Sbz2;
} ACL, *PACL;
typedef struct _SECURITY_DESCRIPTOR {
    BYTE Revision;
    BYTE Sbz1;
    SECURITY_DESCRIPTOR_CONTROL Control;
    PSID Owner;
    PSID Group;
    PACL Sacl;
    PACL Dacl;
} SECURITY_DESCRIPTOR, *PISECURITY_DESCRIPTOR;
#define SECURITY_DESCRIPTOR_REVISION   1
#define SECURITY_DESCRIPTOR_REVISION1  1
#define SECURITY_DESCRIPTOR_MIN_LENGTH (sizeof(SECURITY_DESCRIPTOR))
#define SE_DACL_PRESENT   0x0004
#define SE_DACL_DEFAULTED 0x0008
#define SE_SELF_RELATIVE  0x8000

NDW_INLINE BOOL InitializeSecurityDescriptor(PSECURITY_DESCRIPTOR descriptor, DWORD revision)
{
    SECURITY_DESCRIPTOR *const own = (SECURITY_DESCRIPTOR *)descriptor;
    if (revision != SECURITY_DESCRIPTOR_REVISION) {
        SetLastError(ERROR_UNKNOWN_REVISION);
        return FALSE;
    }
    __builtin_memset(own, 0, sizeof *own);
    own->Revision = SECURITY_DESCRIPTOR_REVISION;
    return TRUE;
}
NDW_INLINE BOOL SetSecurityDescriptorDacl(PSECURITY_DESCRIPTOR descriptor, BOOL present, PACL dacl, BOOL defaulted)
{
    SECURITY_DESCRIPTOR *const own = (SECURITY_DESCRIPTOR *)descriptor;
    if (own->Revision != SECURITY_DESCRIPTOR_REVISION) {
        SetLastError(ERROR_UNKNOWN_REVISION);
        return FALSE;
    }
    if (own->Control & SE_SELF_RELATIVE) {
        SetLastError(ERROR_INVALID_SECURITY_DESCR);
        return FALSE;
    }
    own->Control = (SECURITY_DESCRIPTOR_CONTROL)(own->Control & ~(SE_DACL_PRESENT | SE_DACL_DEFAULTED));
    if (present) {
        own->Control |= SE_DACL_PRESENT;
        if (defaulted)
            own->Control |= SE_DACL_DEFAULTED;
        own->Dacl = dacl;
    }
    return TRUE;
}

typedef struct _LUID_AND_ATTRIBUTES {
    LUID Luid;
    DWORD Attributes;
} LUID_AND_ATTRIBUTES, *PLUID_AND_ATTRIBUTES;
typedef struct _TOKEN_PRIVILEGES {
    DWORD PrivilegeCount;
    LUID_AND_ATTRIBUTES Privileges[ANYSIZE_ARRAY];
} TOKEN_PRIVILEGES, *PTOKEN_PRIVILEGES;
#define TOKEN_ASSIGN_PRIMARY    0x0001
#define TOKEN_DUPLICATE         0x0002
#define TOKEN_IMPERSONATE       0x0004
#define TOKEN_QUERY             0x0008
#define TOKEN_ADJUST_PRIVILEGES 0x0020
#define SE_PRIVILEGE_ENABLED_BY_DEFAULT 0x00000001
#define SE_PRIVILEGE_ENABLED            0x00000002
#define SE_LOCK_MEMORY_NAME            TEXT("SeLockMemoryPrivilege")
#define SE_INC_WORKING_SET_NAME        TEXT("SeIncreaseWorkingSetPrivilege")
#define SE_INC_BASE_PRIORITY_NAME      TEXT("SeIncreaseBasePriorityPrivilege")
#define SE_MANAGE_VOLUME_NAME          TEXT("SeManageVolumePrivilege")
#define SE_DEBUG_NAME                  TEXT("SeDebugPrivilege")
#define SE_CREATE_GLOBAL_NAME          TEXT("SeCreateGlobalPrivilege")

#endif /* NDWIN_SECURITY_H */
