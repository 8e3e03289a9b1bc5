/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <libloaderapi.h>. */
#include "ndwin/system.h"
