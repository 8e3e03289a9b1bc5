/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <float.h>. Faults of floating-point arithmetic stay masked, whatever is asked for. */
#ifndef NDWIN_CRT_FLOAT_H
#define NDWIN_CRT_FLOAT_H

#include "base.h"

#define _MCW_EM  0x0008001F
#define _MCW_RC  0x00000300
#define _MCW_PC  0x00030000
#define _MCW_DN  0x03000000
#define _EM_INVALID    0x00000010
#define _EM_ZERODIVIDE 0x00000008
#define _EM_OVERFLOW   0x00000004
#define _EM_UNDERFLOW  0x00000002
#define _EM_INEXACT    0x00000001
#define _EM_DENORMAL   0x00080000
#define _RC_NEAR 0x00000000
#define _RC_DOWN 0x00000100
#define _RC_UP   0x00000200
#define _RC_CHOP 0x00000300
#define _CW_DEFAULT 0x0009001F

NDW_INLINE int _isnan(double value) { return __builtin_isnan(value) != 0; }
NDW_INLINE int _finite(double value) { return __builtin_isfinite(value) != 0; }
NDW_INLINE double _copysign(double value, double sign) { return __builtin_copysign(value, sign); }
NDW_INLINE double _chgsign(double value) { return -value; }
/* The state that Windows starts programs with, and no faults that have happened. */
NDW_INLINE unsigned _controlfp(unsigned value, unsigned mask) { return (void)value, (void)mask, _CW_DEFAULT; }
NDW_INLINE errno_t _controlfp_s(unsigned *present, unsigned value, unsigned mask)
{
    if (present)
        *present = _controlfp(value, mask);
    return 0;
}
NDW_INLINE unsigned _clearfp(void) { return 0; }
NDW_INLINE unsigned _statusfp(void) { return 0; }

#endif /* NDWIN_CRT_FLOAT_H */
