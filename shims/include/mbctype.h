/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <mbctype.h>. */
#include <ctype.h>
#include "mbstring.h"
