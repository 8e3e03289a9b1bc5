/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <ws2ipdef.h>, stood in for by ndcompat. */
#include "ndwin/winsock.h"
