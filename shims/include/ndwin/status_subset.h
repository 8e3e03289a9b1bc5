/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The few NTSTATUS codes that <windows.h> itself has. A program defines WIN32_NO_STATUS and includes <ntstatus.h> for all. */
#ifndef NDWIN_STATUS_SUBSET_H
#define NDWIN_STATUS_SUBSET_H

#include "types.h"

#define STATUS_WAIT_0                     ((NTSTATUS)0x00000000)
#define STATUS_ABANDONED_WAIT_0           ((NTSTATUS)0x00000080)
#define STATUS_USER_APC                   ((NTSTATUS)0x000000C0)
#define STATUS_TIMEOUT                    ((NTSTATUS)0x00000102)
#define STATUS_PENDING                    ((NTSTATUS)0x00000103)
#define STATUS_GUARD_PAGE_VIOLATION       ((NTSTATUS)0x80000001)
#define STATUS_DATATYPE_MISALIGNMENT      ((NTSTATUS)0x80000002)
#define STATUS_BREAKPOINT                 ((NTSTATUS)0x80000003)
#define STATUS_SINGLE_STEP                ((NTSTATUS)0x80000004)
#define STATUS_ACCESS_VIOLATION           ((NTSTATUS)0xC0000005)
#define STATUS_IN_PAGE_ERROR              ((NTSTATUS)0xC0000006)
#define STATUS_INVALID_HANDLE             ((NTSTATUS)0xC0000008)
#define STATUS_INVALID_PARAMETER          ((NTSTATUS)0xC000000D)
#define STATUS_NO_MEMORY                  ((NTSTATUS)0xC0000017)
#define STATUS_ILLEGAL_INSTRUCTION        ((NTSTATUS)0xC000001D)
#define STATUS_INTEGER_OVERFLOW           ((NTSTATUS)0xC0000095)
#define STATUS_STACK_OVERFLOW             ((NTSTATUS)0xC00000FD)
#define STATUS_CONTROL_C_EXIT             ((NTSTATUS)0xC000013A)

#endif /* NDWIN_STATUS_SUBSET_H */
