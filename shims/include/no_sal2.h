/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <no_sal2.h>: the annotations of <sal.h>, which say nothing here in any case. */
#include "ndwin/sal.h"
