/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <sal.h>. */
#include "ndwin/sal.h"
