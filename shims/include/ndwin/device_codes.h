/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <winioctl.h>: how the codes of devices are made. There is no DeviceIoControl. */
#ifndef NDWIN_DEVICE_CODES_H
#define NDWIN_DEVICE_CODES_H

#include "macros.h"
#include "types.h"

typedef DWORD DEVICE_TYPE;
#define DEVICE_TYPE_FROM_CTL_CODE(code) (((DWORD)((code) & 0xffff0000)) >> 16)
#define METHOD_FROM_CTL_CODE(code)      ((DWORD)((code) & 3))

#define METHOD_IN_DIRECT  1
#define METHOD_OUT_DIRECT 2
#define METHOD_NEITHER    3

#define FILE_SPECIAL_ACCESS FILE_ANY_ACCESS
#define FILE_READ_ACCESS    0x0001
#define FILE_WRITE_ACCESS   0x0002

#define FILE_DEVICE_BEEP                0x00000001
#define FILE_DEVICE_CD_ROM              0x00000002
#define FILE_DEVICE_CONTROLLER          0x00000004
#define FILE_DEVICE_DATALINK            0x00000005
#define FILE_DEVICE_DISK                0x00000007
#define FILE_DEVICE_FILE_SYSTEM         0x00000009
#define FILE_DEVICE_KEYBOARD            0x0000000b
#define FILE_DEVICE_MAILSLOT            0x0000000c
#define FILE_DEVICE_NAMED_PIPE          0x00000011
#define FILE_DEVICE_NETWORK_BROWSER     0x00000013
#define FILE_DEVICE_NETWORK_FILE_SYSTEM 0x00000014
#define FILE_DEVICE_NULL                0x00000015
#define FILE_DEVICE_PHYSICAL_NETCARD    0x00000017
#define FILE_DEVICE_SERIAL_PORT         0x0000001b
#define FILE_DEVICE_STREAMS             0x0000001e
#define FILE_DEVICE_TRANSPORT           0x00000021
#define FILE_DEVICE_UNKNOWN             0x00000022
#define FILE_DEVICE_VIRTUAL_DISK        0x00000024
#define FILE_DEVICE_NETWORK_REDIRECTOR  0x00000028
#define FILE_DEVICE_MASS_STORAGE        0x0000002d

#endif /* NDWIN_DEVICE_CODES_H */
