/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <signal.h>. */
#ifndef NDWIN_CRT_SIGNAL_H
#define NDWIN_CRT_SIGNAL_H

/* Ctrl+Break, which is the key of SIGQUIT here. */
#define SIGBREAK SIGQUIT
#define SIGABRT_COMPAT SIGABRT

#endif /* NDWIN_CRT_SIGNAL_H */
