/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <minwinbase.h>, stood in for by ndcompat. */
#include "ndwin/io.h"
