/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <minwinbase.h>. */
#include "ndwin/io.h"
