/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Addresses as text: the functions of <ip2string.h>, which <mstcpip.h> includes. They are ntdll's and return NTSTATUS codes. */
#ifndef NDWIN_IP_TEXT_H
#define NDWIN_IP_TEXT_H

#include "types.h"

struct in_addr;
struct in6_addr;

NDW_API(NTSTATUS, RtlIpv4StringToAddressA, (PCSTR text, BOOLEAN strict, PCSTR *end, struct in_addr *address));
NDW_API(NTSTATUS, RtlIpv4StringToAddressW, (PCWSTR text, BOOLEAN strict, PCWSTR *end, struct in_addr *address));
NDW_API(NTSTATUS, RtlIpv4StringToAddressExA, (PCSTR text, BOOLEAN strict, struct in_addr *address, PUSHORT port));
NDW_API(NTSTATUS, RtlIpv4StringToAddressExW, (PCWSTR text, BOOLEAN strict, struct in_addr *address, PUSHORT port));
NDW_API(PSTR, RtlIpv4AddressToStringA, (const struct in_addr *address, PSTR text));
NDW_API(PWSTR, RtlIpv4AddressToStringW, (const struct in_addr *address, PWSTR text));
NDW_API(NTSTATUS, RtlIpv4AddressToStringExA, (const struct in_addr *address, USHORT port, PSTR text, PULONG size));
NDW_API(NTSTATUS, RtlIpv4AddressToStringExW, (const struct in_addr *address, USHORT port, PWSTR text, PULONG size));
NDW_API(NTSTATUS, RtlIpv6StringToAddressA, (PCSTR text, PCSTR *end, struct in6_addr *address));
NDW_API(NTSTATUS, RtlIpv6StringToAddressW, (PCWSTR text, PCWSTR *end, struct in6_addr *address));
NDW_API(NTSTATUS, RtlIpv6StringToAddressExA, (PCSTR text, struct in6_addr *address, PULONG scope, PUSHORT port));
NDW_API(NTSTATUS, RtlIpv6StringToAddressExW, (PCWSTR text, struct in6_addr *address, PULONG scope, PUSHORT port));
NDW_API(PSTR, RtlIpv6AddressToStringA, (const struct in6_addr *address, PSTR text));
NDW_API(PWSTR, RtlIpv6AddressToStringW, (const struct in6_addr *address, PWSTR text));
NDW_API(NTSTATUS, RtlIpv6AddressToStringExA,
    (const struct in6_addr *address, ULONG scope, USHORT port, PSTR text, PULONG size));
NDW_API(NTSTATUS, RtlIpv6AddressToStringExW,
    (const struct in6_addr *address, ULONG scope, USHORT port, PWSTR text, PULONG size));

#ifdef UNICODE
#define RtlIpv4StringToAddress   RtlIpv4StringToAddressW
#define RtlIpv4StringToAddressEx RtlIpv4StringToAddressExW
#define RtlIpv4AddressToString   RtlIpv4AddressToStringW
#define RtlIpv4AddressToStringEx RtlIpv4AddressToStringExW
#define RtlIpv6StringToAddress   RtlIpv6StringToAddressW
#define RtlIpv6StringToAddressEx RtlIpv6StringToAddressExW
#define RtlIpv6AddressToString   RtlIpv6AddressToStringW
#define RtlIpv6AddressToStringEx RtlIpv6AddressToStringExW
#else
#define RtlIpv4StringToAddress   RtlIpv4StringToAddressA
#define RtlIpv4StringToAddressEx RtlIpv4StringToAddressExA
#define RtlIpv4AddressToString   RtlIpv4AddressToStringA
#define RtlIpv4AddressToStringEx RtlIpv4AddressToStringExA
#define RtlIpv6StringToAddress   RtlIpv6StringToAddressA
#define RtlIpv6StringToAddressEx RtlIpv6StringToAddressExA
#define RtlIpv6AddressToString   RtlIpv6AddressToStringA
#define RtlIpv6AddressToStringEx RtlIpv6AddressToStringExA
#endif

#endif /* NDWIN_IP_TEXT_H */
