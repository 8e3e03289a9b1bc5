/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * <initguid.h>: from here on DEFINE_GUID defines.
 *
 * It also gives g++ the FIELD_OFFSET that takes a run-time index (macros.h says why there are two). Sources that define
 * GUIDs are where a provider framework computes the size of an address list that way.
 */
#ifndef INITGUID
#define INITGUID
#endif
#include "ndwin/guid.h"
#include "ndwin/macros.h"
#include "ndwin/field_offset.h"
