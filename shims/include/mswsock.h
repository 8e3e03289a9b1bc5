/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <mswsock.h>. */
#include "winsock2.h"
#include "ndwin/socket_extensions.h"
