/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <winerror.h>. */
#include "ndwin/error.h"
