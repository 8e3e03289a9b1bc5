/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <crtdbg.h>, stood in for by ndcompat. */
#include "ndwin/crt.h"
