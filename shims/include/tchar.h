/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <tchar.h>, stood in for by ndcompat. */
#include "ndwin/tchar.h"
