/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <winsock.h>. */
#include "windows.h"
#include "ndwin/winsock.h"
#include "ndwin/socket_extensions.h"
