/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <sysinfoapi.h>. */
#include "ndwin/system.h"
#include "ndwin/environment.h"
#include "ndwin/calendar.h"
#include "ndwin/processor.h"
#include "ndwin/version.h"
