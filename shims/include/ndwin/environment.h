/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The environment, and the names of the machine. */
#ifndef NDWIN_ENVIRONMENT_H
#define NDWIN_ENVIRONMENT_H

#include "types.h"

NDW_API(DWORD, GetEnvironmentVariableA, (LPCSTR name, LPSTR buffer, DWORD size));
NDW_API(DWORD, GetEnvironmentVariableW, (LPCWSTR name, LPWSTR buffer, DWORD size));
NDW_API(BOOL, SetEnvironmentVariableA, (LPCSTR name, LPCSTR value));
NDW_API(BOOL, SetEnvironmentVariableW, (LPCWSTR name, LPCWSTR value));
NDW_API(LPCH, GetEnvironmentStringsA, (void));
NDW_API(LPWCH, GetEnvironmentStringsW, (void));
NDW_API(BOOL, FreeEnvironmentStringsA, (LPCH block));
NDW_API(BOOL, FreeEnvironmentStringsW, (LPWCH block));
NDW_API(DWORD, ExpandEnvironmentStringsA, (LPCSTR source, LPSTR buffer, DWORD size));
NDW_API(DWORD, ExpandEnvironmentStringsW, (LPCWSTR source, LPWSTR buffer, DWORD size));

#define MAX_COMPUTERNAME_LENGTH 15

typedef enum _COMPUTER_NAME_FORMAT {
    ComputerNameNetBIOS,
    ComputerNameDnsHostname,
    ComputerNameDnsDomain,
    ComputerNameDnsFullyQualified,
    ComputerNamePhysicalNetBIOS,
    ComputerNamePhysicalDnsHostname,
    ComputerNamePhysicalDnsDomain,
    ComputerNamePhysicalDnsFullyQualified,
    ComputerNameMax
} COMPUTER_NAME_FORMAT;

NDW_API(BOOL, GetComputerNameA, (LPSTR buffer, LPDWORD size));
NDW_API(BOOL, GetComputerNameW, (LPWSTR buffer, LPDWORD size));
NDW_API(BOOL, GetComputerNameExA, (COMPUTER_NAME_FORMAT format, LPSTR buffer, LPDWORD size));
NDW_API(BOOL, GetComputerNameExW, (COMPUTER_NAME_FORMAT format, LPWSTR buffer, LPDWORD size));
NDW_API(BOOL, GetUserNameA, (LPSTR buffer, LPDWORD size));
NDW_API(BOOL, GetUserNameW, (LPWSTR buffer, LPDWORD size));
#ifndef UNLEN
#define UNLEN 256
#endif

#ifdef UNICODE
#define GetEnvironmentVariable   GetEnvironmentVariableW
#define SetEnvironmentVariable   SetEnvironmentVariableW
#define GetEnvironmentStrings    GetEnvironmentStringsW
#define FreeEnvironmentStrings   FreeEnvironmentStringsW
#define ExpandEnvironmentStrings ExpandEnvironmentStringsW
#define GetComputerName          GetComputerNameW
#define GetComputerNameEx        GetComputerNameExW
#define GetUserName              GetUserNameW
#else
#define GetEnvironmentVariable   GetEnvironmentVariableA
#define SetEnvironmentVariable   SetEnvironmentVariableA
#define GetEnvironmentStrings    GetEnvironmentStringsA
#define FreeEnvironmentStrings   FreeEnvironmentStringsA
#define ExpandEnvironmentStrings ExpandEnvironmentStringsA
#define GetComputerName          GetComputerNameA
#define GetComputerNameEx        GetComputerNameExA
#define GetUserName              GetUserNameA
#endif

#endif /* NDWIN_ENVIRONMENT_H */
