/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <windef.h>. */
#include "ndwin/macros.h"
