/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <processtopologyapi.h>. */
#include "ndwin/processor.h"
