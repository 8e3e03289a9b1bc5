/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <basetsd.h>, stood in for by ndcompat. */
#include "ndwin/types.h"
