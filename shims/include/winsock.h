/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <winsock.h>, stood in for by ndcompat. */
#include "windows.h"
#include "ndwin/winsock.h"
