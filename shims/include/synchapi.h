/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <synchapi.h>. */
#include "ndwin/sync.h"
