/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <winternl.h>. */
#include "windows.h"
