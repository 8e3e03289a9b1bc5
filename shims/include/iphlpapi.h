/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <iphlpapi.h>. */
#include "winsock2.h"
#include "ndwin/netioapi.h"
