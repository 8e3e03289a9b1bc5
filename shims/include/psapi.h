/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <psapi.h>. */
#include "ndwin/process_memory.h"
