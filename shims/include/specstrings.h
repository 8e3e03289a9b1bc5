/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <specstrings.h>. */
#include "ndwin/sal.h"
