/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <limits.h>. */
#ifndef NDWIN_CRT_LIMITS_H
#define NDWIN_CRT_LIMITS_H

#define _I8_MIN   (-127 - 1)
#define _I8_MAX   127
#define _UI8_MAX  0xFFu
#define _I16_MIN  (-32767 - 1)
#define _I16_MAX  32767
#define _UI16_MAX 0xFFFFu
#define _I32_MIN  (-2147483647 - 1)
#define _I32_MAX  2147483647
#define _UI32_MAX 0xFFFFFFFFu
#define _I64_MIN  (-9223372036854775807ll - 1)
#define _I64_MAX  9223372036854775807ll
#define _UI64_MAX 0xFFFFFFFFFFFFFFFFull

#endif /* NDWIN_CRT_LIMITS_H */
