/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <basetyps.h>, stood in for by ndcompat. */
#include "ndwin/com.h"
