/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <coguid.h>. */
#include "ndwin/guid.h"
