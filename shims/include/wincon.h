/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <wincon.h>. */
#include "ndwin/console.h"
#include "ndwin/file.h"
