/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <share.h>: share modes, which have no effect. */
#ifndef NDWIN_SHARE_H
#define NDWIN_SHARE_H

#define _SH_COMPAT 0x00
#define _SH_DENYRW 0x10
#define _SH_DENYWR 0x20
#define _SH_DENYRD 0x30
#define _SH_DENYNO 0x40
#define _SH_SECURE 0x80

#endif /* NDWIN_SHARE_H */
