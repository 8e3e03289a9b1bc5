/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <oacr.h>, stood in for by ndcompat. */
#include "ndwin/sal.h"
