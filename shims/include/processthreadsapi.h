/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <processthreadsapi.h>. */
#include "ndwin/thread.h"
#include "ndwin/processor.h"
