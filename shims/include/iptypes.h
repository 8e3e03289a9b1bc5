/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <iptypes.h>. */
#include "winsock2.h"
#include "ndwin/iphlpapi.h"
