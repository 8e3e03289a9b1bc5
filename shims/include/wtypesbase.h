/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <wtypesbase.h>. */
#include "windows.h"
#include "ndwin/com.h"
