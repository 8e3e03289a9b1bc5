/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <winnls.h>. */
#include "ndwin/system.h"
#include "ndwin/strings.h"
