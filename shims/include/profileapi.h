/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <profileapi.h>. */
#include "ndwin/system.h"
