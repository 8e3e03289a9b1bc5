/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <processenv.h>. */
#include "ndwin/environment.h"
#include "ndwin/system.h"
