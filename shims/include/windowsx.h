/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <windowsx.h>: what needs no window. */
#ifndef NDWIN_WINDOWSX_H
#define NDWIN_WINDOWSX_H

#include "windows.h"

#define GET_X_LPARAM(lp) ((int)(short)LOWORD(lp))
#define GET_Y_LPARAM(lp) ((int)(short)HIWORD(lp))

#define GlobalPtrHandle(block)               ((HGLOBAL)GlobalHandle(block))
#define GlobalLockPtr(block)                 ((BOOL)(GlobalLock(GlobalPtrHandle(block)) != NULL))
#define GlobalUnlockPtr(block)               GlobalUnlock(GlobalPtrHandle(block))
#define GlobalAllocPtr(flags, size)          (GlobalLock(GlobalAlloc((flags), (size))))
#define GlobalReAllocPtr(block, size, flags) (GlobalLock(GlobalReAlloc(GlobalPtrHandle(block), (size), (flags))))
#define GlobalFreePtr(block)                 ((BOOL)(GlobalFree(GlobalPtrHandle(block)) == NULL))

#endif /* NDWIN_WINDOWSX_H */
