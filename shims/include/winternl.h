/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <winternl.h>, stood in for by ndcompat. */
#include "windows.h"
