/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <pshpack1.h>: structures are packed to 1 byte from here to <poppack.h>. No include guard. */
#pragma pack(push, 1)
