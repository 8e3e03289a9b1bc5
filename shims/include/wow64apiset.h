/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <wow64apiset.h>. */
#include "ndwin/version.h"
