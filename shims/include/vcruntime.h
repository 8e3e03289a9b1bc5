/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <vcruntime.h>. */
#include <stdarg.h>
#include <stddef.h>
#include "ndwin/crt/base.h"
