/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <winbase.h>. */
#include "windows.h"
