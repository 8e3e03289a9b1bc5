/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <rpcdce.h>: identifiers only. */
#include "windows.h"
#include "ndwin/uuid.h"
