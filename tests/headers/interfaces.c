/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is named of interfaces, also by the letter of a standard, beside the headers of Linux that have it, too. Linux only. */
#ifdef BEFORE
#include BEFORE
#endif
#include <winsock2.h>
#include <netioapi.h>
#ifdef AFTER
#include AFTER
#endif

_Static_assert(IFF_UP == 0x1 && IFF_BROADCAST == 0x2 && IFF_LOOPBACK == 0x8, "the flags have Linux's values");
_Static_assert(IFF_POINTTOPOINT == 0x10 && IFF_MULTICAST == 0x1000, "the flags have Linux's values");

/* As programs declare their own, and their callbacks. */
IPHLPAPI_DLL_LINKAGE NETIO_STATUS NETIOAPI_API_ one(PVOID context);
NETIOAPI_API two(PVOID context);
_Static_assert(sizeof one(NULL) == 4 && sizeof two(NULL) == 4 && NETIO_SUCCESS(NO_ERROR), "a DWORD");
static VOID NETIOAPI_API_ callback(PVOID context, PMIB_IPINTERFACE_ROW row, MIB_NOTIFICATION_TYPE type)
{
    *(MIB_NOTIFICATION_TYPE *)context = row == NULL ? type : MibParameterNotification;
}
PIPINTERFACE_CHANGE_CALLBACK kept;
PIPINTERFACE_CHANGE_CALLBACK kept = callback;

/* Words of <winioctl.h> are for those who include it. */
enum { DEVICE_TYPE, FILE_DEVICE_DISK, FILE_READ_ACCESS, METHOD_NEITHER };
_Static_assert(CTL_CODE(FILE_DEVICE_NETWORK, 1, METHOD_BUFFERED, FILE_ANY_ACCESS) == 0x120004, "a code of its own");
