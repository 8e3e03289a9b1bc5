/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <intrin.h>, stood in for by ndcompat. */
#include "ndwin/interlocked.h"
#include "ndwin/macros.h"
