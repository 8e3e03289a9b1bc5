/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <driverspecs.h>. */
#include "ndwin/sal.h"
