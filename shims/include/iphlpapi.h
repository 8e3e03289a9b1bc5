/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <iphlpapi.h>, stood in for by ndcompat. Address types only: interfaces are enumerated with getifaddrs() on Linux. */
#include "winsock2.h"
