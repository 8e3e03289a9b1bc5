/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <threadpoollegacyapiset.h>. */
#include "ndwin/threadpool.h"
