/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <float.h>. */
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
#define _CW_DEFAULT 0x0008001F

NDW_INLINE int _isnan(double value) { return __builtin_isnan(value) != 0; }
NDW_INLINE int _finite(double value) { return __builtin_isfinite(value) != 0; }
NDW_INLINE double _copysign(double value, double sign) { return __builtin_copysign(value, sign); }
NDW_INLINE double _chgsign(double value) { return -value; }

#if defined(__x86_64__)
/*
 * The control word is that of both units, SSE and x87, of the calling thread. A new thread begins with that of the one that starts it. A
 * fault that is let through is SIGFPE. The precision is not for changing, as on 64-bit Windows.
 */
#define _SW_INEXACT    0x00000001
#define _SW_UNDERFLOW  0x00000002
#define _SW_OVERFLOW   0x00000004
#define _SW_ZERODIVIDE 0x00000008
#define _SW_INVALID    0x00000010
#define _SW_DENORMAL   0x00080000
#define _DN_SAVE  0x00000000
#define _DN_FLUSH 0x01000000
#define _DN_FLUSH_OPERANDS_SAVE_RESULTS 0x02000000
#define _DN_SAVE_OPERANDS_FLUSH_RESULTS 0x03000000

/* The processor's order: invalid, denormal, division by zero, overflow, underflow, inexact. */
NDW_INLINE unsigned ndw_of_faults(unsigned bits)
{
    return (bits & 1) << 4 | (bits & 2) << 18 | (bits & 4) << 1 | (bits & 8) >> 1 | (bits & 16) >> 3 | (bits & 32) >> 5;
}
NDW_INLINE unsigned ndw_to_faults(unsigned faults)
{
    return (faults >> 4 & 1) | (faults >> 18 & 2) | (faults >> 1 & 4) | (faults << 1 & 8) | (faults << 3 & 16) | (faults << 5 & 32);
}
NDW_INLINE unsigned ndw_control(unsigned value, unsigned mask)
{
    unsigned sse, present;
    unsigned short x87;
    __asm__ volatile("stmxcsr %0" : "=m"(sse));
    present = ndw_of_faults(sse >> 7) | (sse >> 13 & 3) << 8;
    if (sse & 0x8000) /* results are flushed */
        present |= sse & 0x40 ? _DN_FLUSH : _DN_SAVE_OPERANDS_FLUSH_RESULTS;
    else if (sse & 0x40)
        present |= _DN_FLUSH_OPERANDS_SAVE_RESULTS;
    mask &= _MCW_EM | _MCW_RC | _MCW_DN;
    if (mask == 0)
        return present;
    present = (present & ~mask) | (value & mask);
    sse &= 0xFFFFu & ~(0x3Fu << 7 | 3u << 13 | 0x8000u | 0x40u);
    sse |= ndw_to_faults(present) << 7 | (present >> 8 & 3) << 13;
    switch (present & _MCW_DN) {
    case _DN_FLUSH: sse |= 0x8040; break;
    case _DN_FLUSH_OPERANDS_SAVE_RESULTS: sse |= 0x40; break;
    case _DN_SAVE_OPERANDS_FLUSH_RESULTS: sse |= 0x8000; break;
    default: break;
    }
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    x87 = (unsigned short)((x87 & ~0xC3F) | ndw_to_faults(present) | (present >> 8 & 3) << 10);
    __asm__ volatile("fldcw %0" : : "m"(x87) : "memory");
    __asm__ volatile("ldmxcsr %0" : : "m"(sse) : "memory");
    return present;
}
NDW_INLINE unsigned _control87(unsigned value, unsigned mask) { return ndw_control(value, mask); }
/* Leaves the fault of denormals alone. */
NDW_INLINE unsigned _controlfp(unsigned value, unsigned mask) { return ndw_control(value, mask & ~(unsigned)_EM_DENORMAL); }
NDW_INLINE errno_t _controlfp_s(unsigned *present, unsigned value, unsigned mask)
{
    const unsigned now = _controlfp(value, mask);
    if (present)
        *present = now;
    return 0;
}
/* The faults that have happened since they were cleared. */
NDW_INLINE unsigned _statusfp(void)
{
    unsigned sse;
    unsigned short x87;
    __asm__ volatile("stmxcsr %0" : "=m"(sse) : : "memory");
    __asm__ volatile("fnstsw %0" : "=m"(x87) : : "memory");
    return ndw_of_faults((sse | x87) & 0x3F);
}
NDW_INLINE unsigned _clearfp(void)
{
    const unsigned faults = _statusfp();
    unsigned sse;
    __asm__ volatile("fnclex" : : : "memory");
    __asm__ volatile("stmxcsr %0" : "=m"(sse));
    sse &= ~0x3Fu;
    __asm__ volatile("ldmxcsr %0" : : "m"(sse) : "memory");
    return faults;
}
#endif

#endif /* NDWIN_CRT_FLOAT_H */
