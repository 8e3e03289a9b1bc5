/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <ntstatus.h>, stood in for by ndcompat. Usable before any other header. */
#include "ndwin/status.h"
