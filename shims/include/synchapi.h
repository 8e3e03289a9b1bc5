/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <synchapi.h>, stood in for by ndcompat. */
#include "ndwin/sync.h"
