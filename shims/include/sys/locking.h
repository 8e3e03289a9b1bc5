/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <sys/locking.h>: the modes of _locking, which <io.h> has. */
#ifndef NDWIN_SYS_LOCKING_H
#define NDWIN_SYS_LOCKING_H

#define _LK_UNLCK  0
#define _LK_LOCK   1
#define _LK_NBLCK  2
#define _LK_RLCK   3
#define _LK_NBRLCK 4

#endif /* NDWIN_SYS_LOCKING_H */
