/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ntsecapi.h>: its random numbers. */
#include "windows.h"
#include "ndwin/random.h"
