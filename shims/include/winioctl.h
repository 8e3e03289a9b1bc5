/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <winioctl.h>. */
#include "ndwin/device_codes.h"
