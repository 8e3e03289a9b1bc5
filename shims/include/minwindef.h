/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <minwindef.h>. */
#include "ndwin/macros.h"
