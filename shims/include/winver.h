/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <winver.h>. It has no functions: for code that includes it without need. */
#include "windows.h"
