/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ntdef.h>. */
#include "ndwin/types.h"
