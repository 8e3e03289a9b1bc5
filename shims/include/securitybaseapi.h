/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <securitybaseapi.h>. */
#include "ndwin/security.h"
