/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <cguid.h>, stood in for by ndcompat. */
#include "ndwin/guid.h"
