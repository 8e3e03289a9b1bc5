/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <initguid.h>: after it DEFINE_GUID defines its GUID. */
#ifndef INITGUID
#define INITGUID
#endif
#include "ndwin/guid.h"
