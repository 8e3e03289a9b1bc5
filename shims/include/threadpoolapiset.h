/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <threadpoolapiset.h>. */
#include "ndwin/threadpool.h"
