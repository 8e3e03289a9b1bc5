/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <interlockedapi.h>, stood in for by ndcompat. */
#include "ndwin/interlocked.h"
