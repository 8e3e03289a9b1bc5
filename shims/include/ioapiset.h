/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <ioapiset.h>, stood in for by ndcompat. */
#include "ndwin/io.h"
