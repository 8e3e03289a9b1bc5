/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <processenv.h>, stood in for by ndcompat. */
#include "ndwin/system.h"
