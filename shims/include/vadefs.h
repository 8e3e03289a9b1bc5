/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <vadefs.h>. */
#include <stdarg.h>
#include "ndwin/crt/base.h"
