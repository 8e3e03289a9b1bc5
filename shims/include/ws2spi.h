/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ws2spi.h>. */
#include "winsock2.h"
