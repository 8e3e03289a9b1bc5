/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <heapapi.h>. */
#include "ndwin/memory.h"
