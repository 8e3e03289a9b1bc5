/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <unknwn.h>, stood in for by ndcompat. */
#include "windows.h"
#include "ndwin/com.h"
