/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * <windows.h>, stood in for by ndcompat: what NetworkDirect programs use of it. docs/win32.md lists what is there.
 */
#ifndef NDWIN_WINDOWS_H
#define NDWIN_WINDOWS_H

#include "ndwin/config.h"
#include "ndwin/sal.h"
#include "ndwin/types.h"
#include "ndwin/macros.h"
#include "ndwin/interlocked.h"
#include "ndwin/error.h"
#include "ndwin/io.h"
#include "ndwin/file.h"
#include "ndwin/sync.h"
#include "ndwin/thread.h"
#include "ndwin/memory.h"
#include "ndwin/system.h"
#include "ndwin/crt.h"
#ifndef WIN32_NO_STATUS
#include "ndwin/status_subset.h"
#endif

#endif /* NDWIN_WINDOWS_H */

#include "ndwin/guid.h"
#ifndef WIN32_LEAN_AND_MEAN
#include "ndwin/com.h"
#endif
