/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <in6addr.h>. */
#include "ndwin/winsock.h"
