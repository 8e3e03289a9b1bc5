/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <poppack.h>: ends what <pshpack1.h> or one of its kind has begun. No include guard. */
#pragma pack(pop)
