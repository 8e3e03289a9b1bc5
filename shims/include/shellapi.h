/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <shellapi.h>: CommandLineToArgvW. */
#include "windows.h"
