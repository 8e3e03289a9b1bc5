/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ioapiset.h>. */
#include "ndwin/io.h"
