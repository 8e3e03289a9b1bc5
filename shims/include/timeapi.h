/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <timeapi.h>. */
#include "ndwin/multimedia.h"
