/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <tchar.h>. */
#include "ndwin/tchar.h"
