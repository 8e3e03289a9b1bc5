/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <guiddef.h>, stood in for by ndcompat. */
#include "ndwin/guid.h"
