/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ip2string.h>: addresses as text. */
#include "winsock2.h"
#include "ndwin/ip_text.h"
