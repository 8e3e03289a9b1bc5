/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <wincrypt.h>: its random numbers. */
#include "windows.h"
#include "ndwin/cryptography.h"
