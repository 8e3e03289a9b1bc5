/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <windows.h>. docs/win32.md lists its functions. */
#ifndef NDWIN_WINDOWS_H
#define NDWIN_WINDOWS_H

#include "ndwin/config.h"
#include "sdkddkver.h"
#include "ndwin/sal.h"
#include "ndwin/types.h"
#include "ndwin/macros.h"
#include "ndwin/interlocked.h"
#include "ndwin/intrin.h"
#include "ndwin/error.h"
#include "ndwin/io.h"
#include "ndwin/file.h"
#include "ndwin/sync.h"
#include "ndwin/thread.h"
#include "ndwin/threadpool.h"
#include "ndwin/memory.h"
#include "ndwin/security.h"
#include "ndwin/system.h"
#include "ndwin/console.h"
#include "ndwin/environment.h"
#include "ndwin/processor.h"
#include "ndwin/calendar.h"
#include "ndwin/strings.h"
#include "ndwin/command_line.h"
#include "ndwin/exception.h"
#include "ndwin/version.h"
#include "ndwin/wsprintf.h"
#include "ndwin/serial.h"
#include "ndwin/small.h"
#ifndef WIN32_LEAN_AND_MEAN
#include "ndwin/multimedia.h"
#include "ndwin/cryptography.h"
#endif
#include "ndwin/crt.h"
#include "ndwin/absent.h"
#ifndef WIN32_NO_STATUS
#include "ndwin/status_subset.h"
#endif

#endif /* NDWIN_WINDOWS_H */

#include "ndwin/guid.h"
#ifndef WIN32_LEAN_AND_MEAN
#include "ndwin/com.h"
#endif
