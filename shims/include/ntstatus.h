/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ntstatus.h>. May be included before any other header. */
#include "ndwin/status.h"
