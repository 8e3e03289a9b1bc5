/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <memoryapi.h>. */
#include "ndwin/memory.h"
