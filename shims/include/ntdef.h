/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <ntdef.h>, stood in for by ndcompat. */
#include "ndwin/types.h"
