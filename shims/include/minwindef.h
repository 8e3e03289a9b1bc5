/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <minwindef.h>, stood in for by ndcompat. */
#include "ndwin/macros.h"
