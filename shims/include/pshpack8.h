/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <pshpack8.h>: structures are packed to 8 bytes from here to <poppack.h>. No include guard. */
#pragma pack(push, 8)
