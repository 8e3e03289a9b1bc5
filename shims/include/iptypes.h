/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <iptypes.h>, stood in for by ndcompat. */
#include "winsock2.h"
