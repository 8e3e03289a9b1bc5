/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <wspiapi.h>: getaddrinfo and its kin, for Windows that had none. */
#include "ws2tcpip.h"
