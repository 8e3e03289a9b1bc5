/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <memoryapi.h>, stood in for by ndcompat. */
#include "ndwin/memory.h"
