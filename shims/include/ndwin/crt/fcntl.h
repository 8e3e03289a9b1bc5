/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <fcntl.h>. */
#ifndef NDWIN_CRT_FCNTL_H
#define NDWIN_CRT_FCNTL_H

#define _O_RDONLY O_RDONLY
#define _O_WRONLY O_WRONLY
#define _O_RDWR   O_RDWR
#define _O_APPEND O_APPEND
#define _O_CREAT  O_CREAT
#define _O_TRUNC  O_TRUNC
#define _O_EXCL   O_EXCL
#define _O_NOINHERIT 0x80000 /* O_CLOEXEC, which strict C does not declare */
#define O_NOINHERIT  _O_NOINHERIT
/* Text mode and binary mode are the same. */
#define _O_TEXT      0
#define _O_BINARY    0
#define _O_WTEXT     0
#define _O_U8TEXT    0
#define _O_U16TEXT   0
#define _O_SEQUENTIAL 0
#define _O_RANDOM    0
#ifndef O_BINARY
#define O_BINARY 0
#endif
#ifndef O_TEXT
#define O_TEXT 0
#endif

#endif /* NDWIN_CRT_FCNTL_H */
