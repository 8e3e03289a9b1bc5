/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <in6addr.h>, stood in for by ndcompat. */
#include "ndwin/winsock.h"
