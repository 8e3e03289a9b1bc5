/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ws2ipdef.h>. */
#include "ndwin/winsock.h"
