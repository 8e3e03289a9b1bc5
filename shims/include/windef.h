/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <windef.h>, stood in for by ndcompat. */
#include "ndwin/macros.h"
