/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <fileapi.h>. */
#include "ndwin/file.h"
