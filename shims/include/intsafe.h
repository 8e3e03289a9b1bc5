/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <intsafe.h>. */
#include "ndwin/intsafe.h"
