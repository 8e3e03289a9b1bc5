/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <ctype.h>. */
#ifndef NDWIN_CRT_CTYPE_H
#define NDWIN_CRT_CTYPE_H

#include "base.h"

/* No character of UTF-8 is one of two bytes. */
NDW_INLINE int isleadbyte(int c) { return (void)c, 0; }
NDW_INLINE int __iscsymf(int c) { return isalpha(c) || c == '_'; }
NDW_INLINE int __iscsym(int c) { return isalnum(c) || c == '_'; }
#ifndef iswascii
#define iswascii(c) ((unsigned)(c) < 0x80)
#endif

#endif /* NDWIN_CRT_CTYPE_H */
