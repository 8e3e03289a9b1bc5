/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <fibersapi.h>. */
#include "ndwin/thread.h"
