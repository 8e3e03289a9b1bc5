/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <concurrencysal.h>. */
#include "ndwin/sal.h"
