/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <consoleapi.h>. */
#include "ndwin/console.h"
#include "ndwin/file.h"
