/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <interlockedapi.h>. */
#include "ndwin/interlocked.h"
