/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <errhandlingapi.h>. */
#include "ndwin/error.h"
