/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <guiddef.h>. */
#include "ndwin/guid.h"
