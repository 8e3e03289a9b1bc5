/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <basetyps.h>. */
#include "ndwin/com.h"
