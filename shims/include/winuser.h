/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <winuser.h>: wsprintf. */
#include "windows.h"
