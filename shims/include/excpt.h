/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <excpt.h>. */
#include "ndwin/exception.h"
