/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ws2def.h>. */
#include "ndwin/winsock.h"
