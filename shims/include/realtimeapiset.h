/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <realtimeapiset.h>. */
#include "ndwin/processor.h"
