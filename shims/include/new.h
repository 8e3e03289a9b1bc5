/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <new.h>. */
#ifndef NDWIN_NEW_H
#define NDWIN_NEW_H
#ifdef __cplusplus
#include <new>
#endif
#endif
