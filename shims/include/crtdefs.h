/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <crtdefs.h>. */
#include <stdarg.h>
#include "ndwin/crt/base.h"
