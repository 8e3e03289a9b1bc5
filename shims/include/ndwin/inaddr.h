/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The short names that <winsock2.h> gives parts of addresses. s_addr is the C library's. */
#ifndef NDWIN_INADDR_H
#define NDWIN_INADDR_H

#define s_host  S_un.S_un_b.s_b2
#define s_net   S_un.S_un_b.s_b1
#define s_imp   S_un.S_un_w.s_w2
#define s_impno S_un.S_un_b.s_b4
#define s_lh    S_un.S_un_b.s_b3
#define s6_bytes u.Byte
#define s6_words u.Word

#endif /* NDWIN_INADDR_H */
