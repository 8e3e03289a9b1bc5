/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <basetsd.h>. */
#include "ndwin/types.h"
