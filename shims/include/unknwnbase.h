/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <unknwnbase.h>. */
#include "ndwin/com.h"
