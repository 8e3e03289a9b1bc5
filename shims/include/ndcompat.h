/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Extensions of ndcompat for Linux programs. */
#ifndef NDCOMPAT_H
#define NDCOMPAT_H

#include "ndwin/types.h"

/*
 * A file descriptor for the program's own epoll or io_uring loop, readable while the event is set. The event owns it: do not
 * close it, and dup() it if it must outlive the event. Returns -1 on failure; GetLastError() has the reason.
 */
EXTERN_C int ndcompat_event_fd(HANDLE event);

/*
 * A file descriptor that is readable if the port may have packets or work to do. The port owns it, as above. It is a hint:
 * call GetQueuedCompletionStatus with a time-out of 0 until it fails with WAIT_TIMEOUT.
 */
EXTERN_C int ndcompat_port_fd(HANDLE port);

/*
 * Which files of the provider catalogue were rejected and why, a line for each: "path:line: reason". Truncates the text to
 * `size` bytes with its NUL, and returns the length of the whole text, as snprintf does. 0: none was rejected.
 */
EXTERN_C size_t ndcompat_catalogue_faults(char *buffer, size_t size);

#endif /* NDCOMPAT_H */
