/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What ndcompat has on Linux beyond the Windows interfaces.
 */
#ifndef NDCOMPAT_H
#define NDCOMPAT_H

#include "ndwin/types.h"

/*
 * A descriptor that is readable while the event is set, for a program's own epoll or io_uring loop. It belongs to the
 * event: do not close it, and dup() it to keep it longer. -1, with the reason in GetLastError(), when there is none.
 */
EXTERN_C int ndcompat_event_fd(HANDLE event);

/*
 * A descriptor that is readable when GetQueuedCompletionStatus on the port may have something to do. It belongs to the
 * port, as above. Readable is a hint: call GetQueuedCompletionStatus with a timeout of 0 until it reports WAIT_TIMEOUT.
 */
EXTERN_C int ndcompat_port_fd(HANDLE port);

/*
 * Which files of the provider catalogue are left out and why, a line each: "path:line: reason". Writes what fits into
 * `size` bytes, with a NUL, and returns the length of the whole without it, as snprintf does. 0: all are fine.
 */
EXTERN_C size_t ndcompat_catalogue_faults(char *buffer, size_t size);

#endif /* NDCOMPAT_H */
