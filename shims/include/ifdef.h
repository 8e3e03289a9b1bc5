/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ifdef.h>. */
#include "ndwin/winsock.h"
