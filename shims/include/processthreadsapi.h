/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <processthreadsapi.h>, stood in for by ndcompat. */
#include "ndwin/thread.h"
