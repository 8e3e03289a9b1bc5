/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <winver.h>, stood in for by ndcompat. No version resources: for code that includes it by habit. */
#include "windows.h"
