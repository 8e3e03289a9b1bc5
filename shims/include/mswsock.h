/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <mswsock.h>, stood in for by ndcompat. */
#include "winsock2.h"
