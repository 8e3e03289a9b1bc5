/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <stringapiset.h>. */
#include "ndwin/system.h"
#include "ndwin/strings.h"
