/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <consoleapi2.h>. */
#include "ndwin/console.h"
