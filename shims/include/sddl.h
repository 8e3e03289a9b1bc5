/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <sddl.h>, stood in for by ndcompat. No security descriptor functions: for code that includes it by habit. */
#include "windows.h"
