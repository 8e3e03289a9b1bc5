/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <winnt.h>. */
#include "ndwin/intrin.h"
#include "ndwin/macros.h"
#include "ndwin/memory.h"
#include "ndwin/rights.h"
#ifndef WIN32_NO_STATUS
#include "ndwin/status_subset.h"
#endif
