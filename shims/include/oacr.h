/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <oacr.h>. */
#include "ndwin/sal.h"
