/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <handleapi.h>. */
#include "ndwin/io.h"
