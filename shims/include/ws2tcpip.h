/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ws2tcpip.h>. */
#include "winsock2.h"
