/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <ws2spi.h>, stood in for by ndcompat. */
#include "winsock2.h"
