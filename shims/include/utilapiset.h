/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <utilapiset.h>. */
#include "ndwin/macros.h"
