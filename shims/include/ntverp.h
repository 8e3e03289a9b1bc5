/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <ntverp.h>: the version that resource scripts name. */
#ifndef NDWIN_NTVERP_H
#define NDWIN_NTVERP_H
#define VER_PRODUCTBUILD     19041
#define VER_PRODUCTBUILD_QFE 1
#define VER_PRODUCTMAJORVERSION 10
#define VER_PRODUCTMINORVERSION 0
#endif
