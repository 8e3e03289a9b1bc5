/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <process.h>. */
#ifndef NDWIN_PROCESS_H
#define NDWIN_PROCESS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "ndwin/crt/base.h"
#include "ndwin/thread.h"

NDW_LIBC(int, _getpid, (void), "getpid");
/* What exit does without ending the program: buffers are written. Handlers of atexit run when the program ends. */
NDW_INLINE void _cexit(void) { fflush(NULL); }
NDW_INLINE void _c_exit(void) {}
/* Another program in this process. Those that begin a process beside it are not there. */
NDW_LIBC(int, ndw_execv, (const char *path, const char *const *arguments), "execv");
NDW_LIBC(int, ndw_execvp, (const char *file, const char *const *arguments), "execvp");
NDW_LIBC(int, ndw_execve, (const char *path, const char *const *arguments, const char *const *environment), "execve");
NDW_INLINE intptr_t _execv(const char *path, const char *const *arguments) { return ndw_execv(path, arguments); }
NDW_INLINE intptr_t _execvp(const char *file, const char *const *arguments) { return ndw_execvp(file, arguments); }
NDW_INLINE intptr_t _execve(const char *path, const char *const *arguments, const char *const *environment)
{
    return ndw_execve(path, arguments, environment);
}
NDW_LIBC(int, _execl, (const char *path, const char *argument, ...), "execl");
NDW_LIBC(int, _execlp, (const char *file, const char *argument, ...), "execlp");
NDW_LIBC(int, _execle, (const char *path, const char *argument, ...), "execle");
#define _P_WAIT    0
#define _P_NOWAIT  1
#define _P_OVERLAY 2
#define _P_NOWAITO 3
#define _P_DETACH  4

#endif /* NDWIN_PROCESS_H */
