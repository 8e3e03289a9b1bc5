/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <inaddr.h>. */
#include "ndwin/winsock.h"
