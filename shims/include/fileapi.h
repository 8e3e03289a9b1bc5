/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <fileapi.h>, stood in for by ndcompat. */
#include "ndwin/file.h"
