/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <debugapi.h>. */
#include "ndwin/system.h"
