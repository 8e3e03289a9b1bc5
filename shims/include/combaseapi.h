/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <combaseapi.h>. */
#include "ndwin/com.h"
