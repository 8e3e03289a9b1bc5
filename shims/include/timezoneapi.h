/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <timezoneapi.h>. */
#include "ndwin/calendar.h"
