/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <mmsystem.h>. */
#include "ndwin/multimedia.h"
