/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <heapapi.h>, stood in for by ndcompat. */
#include "ndwin/memory.h"
