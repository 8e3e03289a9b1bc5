/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <process.h>. */
#ifndef NDWIN_PROCESS_H
#define NDWIN_PROCESS_H

#include <stdio.h>
#include <stdlib.h>
#include "ndwin/crt/base.h"
#include "ndwin/thread.h"

NDW_LIBC(int, _getpid, (void), "getpid");
/* What exit does without ending the program: buffers are written. Handlers of atexit run when the program ends. */
NDW_INLINE void _cexit(void) { fflush(NULL); }
NDW_INLINE void _c_exit(void) {}

#endif /* NDWIN_PROCESS_H */
