/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <winerror.h>, stood in for by ndcompat. */
#include "ndwin/error.h"
