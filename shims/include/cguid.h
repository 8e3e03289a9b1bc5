/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <cguid.h>. */
#include "ndwin/guid.h"
