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
#define _CW_DEFAULT 0x0008001F /* as on every processor but x86 */

NDW_INLINE int _isnan(double value) { return __builtin_isnan(value) != 0; }
NDW_INLINE int _finite(double value) { return __builtin_isfinite(value) != 0; }
NDW_INLINE double _copysign(double value, double sign) { return __builtin_copysign(value, sign); }
NDW_INLINE int _isnanf(float value) { return __builtin_isnan(value) != 0; }
NDW_INLINE int _finitef(float value) { return __builtin_isfinite(value) != 0; }
NDW_INLINE double _logb(double value) { return __builtin_logb(value); }
NDW_INLINE double _nextafter(double value, double towards) { return __builtin_nextafter(value, towards); }
NDW_INLINE double _scalb(double value, int exponent) { return __builtin_scalbn(value, exponent); }
NDW_INLINE double _hypot(double x, double y) { return __builtin_hypot(x, y); }
NDW_INLINE float _hypotf(float x, float y) { return __builtin_hypotf(x, y); }
NDW_INLINE float _copysignf(float value, float sign) { return __builtin_copysignf(value, sign); }
NDW_INLINE float _chgsignf(float value) { return -value; }
#define _FPCLASS_SNAN 0x0001
#define _FPCLASS_QNAN 0x0002
#define _FPCLASS_NINF 0x0004
#define _FPCLASS_NN   0x0008
#define _FPCLASS_ND   0x0010
#define _FPCLASS_NZ   0x0020
#define _FPCLASS_PZ   0x0040
#define _FPCLASS_PD   0x0080
#define _FPCLASS_PN   0x0100
#define _FPCLASS_PINF 0x0200
/* The processor makes a quiet one of a signalling NaN on the way here. */
NDW_INLINE int _fpclass(double value)
{
    const int negative = __builtin_signbit(value) != 0;
    switch (__builtin_fpclassify(0, 1, 2, 3, 4, value)) {
    case 0:
        return _FPCLASS_QNAN;
    case 1:
        return negative ? _FPCLASS_NINF : _FPCLASS_PINF;
    case 2:
        return negative ? _FPCLASS_NN : _FPCLASS_PN;
    case 3:
        return negative ? _FPCLASS_ND : _FPCLASS_PD;
    default:
        return negative ? _FPCLASS_NZ : _FPCLASS_PZ;
    }
}
NDW_INLINE double _chgsign(double value) { return -value; }
/* The state that Windows starts programs with, and no faults that have happened. */
NDW_INLINE unsigned _controlfp(unsigned value, unsigned mask) { return (void)value, (void)mask, _CW_DEFAULT; }
NDW_INLINE errno_t _controlfp_s(unsigned *present, unsigned value, unsigned mask)
{
    if (present)
        *present = _controlfp(value, mask);
    return 0;
}
NDW_INLINE unsigned _control87(unsigned value, unsigned mask) { return _controlfp(value, mask); }
NDW_INLINE void _fpreset(void) {}
NDW_INLINE unsigned _clearfp(void) { return 0; }
NDW_INLINE unsigned _statusfp(void) { return 0; }

#endif /* NDWIN_CRT_FLOAT_H */
