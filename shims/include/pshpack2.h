/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <pshpack2.h>: structures are packed to 2 bytes from here to <poppack.h>. No include guard. */
#pragma pack(push, 2)
