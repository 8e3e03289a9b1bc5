/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <coguid.h>, stood in for by ndcompat. */
#include "ndwin/guid.h"
