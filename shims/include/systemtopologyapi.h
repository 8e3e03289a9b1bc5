/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <systemtopologyapi.h>. */
#include "ndwin/processor.h"
