/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <mstcpip.h>: addresses as text. */
#include "winsock2.h"
#include "ndwin/ip_text.h"
