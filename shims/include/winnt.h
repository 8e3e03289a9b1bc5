/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <winnt.h>, stood in for by ndcompat. */
#include "ndwin/interlocked.h"
#include "ndwin/macros.h"
#include "ndwin/memory.h"
#ifndef WIN32_NO_STATUS
#include "ndwin/status_subset.h"
#endif
