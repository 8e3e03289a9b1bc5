/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <namedpipeapi.h>. */
#include "ndwin/file.h"
