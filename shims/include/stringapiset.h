/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <stringapiset.h>, stood in for by ndcompat. */
#include "ndwin/system.h"
