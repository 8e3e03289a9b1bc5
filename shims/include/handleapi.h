/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <handleapi.h>, stood in for by ndcompat. */
#include "ndwin/io.h"
