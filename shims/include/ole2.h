/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ole2.h>. */
#include "windows.h"
#include "ndwin/com.h"
