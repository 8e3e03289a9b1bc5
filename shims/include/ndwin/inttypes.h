/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The macros of <inttypes.h> for the printf of stdio.h, where `l` means 32 bits; the C library's say `l` for 64 bits. Those
 * for scanf are unchanged, as scanf is the C library's.
 */
#ifndef NDWIN_INTTYPES_H
#define NDWIN_INTTYPES_H

#include <inttypes.h>

#undef PRId64
#undef PRIi64
#undef PRIo64
#undef PRIu64
#undef PRIx64
#undef PRIX64
#define PRId64 "lld"
#define PRIi64 "lli"
#define PRIo64 "llo"
#define PRIu64 "llu"
#define PRIx64 "llx"
#define PRIX64 "llX"

#undef PRIdLEAST64
#undef PRIiLEAST64
#undef PRIoLEAST64
#undef PRIuLEAST64
#undef PRIxLEAST64
#undef PRIXLEAST64
#define PRIdLEAST64 "lld"
#define PRIiLEAST64 "lli"
#define PRIoLEAST64 "llo"
#define PRIuLEAST64 "llu"
#define PRIxLEAST64 "llx"
#define PRIXLEAST64 "llX"

#undef PRIdFAST64
#undef PRIiFAST64
#undef PRIoFAST64
#undef PRIuFAST64
#undef PRIxFAST64
#undef PRIXFAST64
#define PRIdFAST64 "lld"
#define PRIiFAST64 "lli"
#define PRIoFAST64 "llo"
#define PRIuFAST64 "llu"
#define PRIxFAST64 "llx"
#define PRIXFAST64 "llX"

#undef PRIdFAST16
#undef PRIiFAST16
#undef PRIoFAST16
#undef PRIuFAST16
#undef PRIxFAST16
#undef PRIXFAST16
#define PRIdFAST16 "lld"
#define PRIiFAST16 "lli"
#define PRIoFAST16 "llo"
#define PRIuFAST16 "llu"
#define PRIxFAST16 "llx"
#define PRIXFAST16 "llX"

#undef PRIdFAST32
#undef PRIiFAST32
#undef PRIoFAST32
#undef PRIuFAST32
#undef PRIxFAST32
#undef PRIXFAST32
#define PRIdFAST32 "lld"
#define PRIiFAST32 "lli"
#define PRIoFAST32 "llo"
#define PRIuFAST32 "llu"
#define PRIxFAST32 "llx"
#define PRIXFAST32 "llX"

#undef PRIdMAX
#undef PRIiMAX
#undef PRIoMAX
#undef PRIuMAX
#undef PRIxMAX
#undef PRIXMAX
#define PRIdMAX "lld"
#define PRIiMAX "lli"
#define PRIoMAX "llo"
#define PRIuMAX "llu"
#define PRIxMAX "llx"
#define PRIXMAX "llX"

#undef PRIdPTR
#undef PRIiPTR
#undef PRIoPTR
#undef PRIuPTR
#undef PRIxPTR
#undef PRIXPTR
#define PRIdPTR "lld"
#define PRIiPTR "lli"
#define PRIoPTR "llo"
#define PRIuPTR "llu"
#define PRIxPTR "llx"
#define PRIXPTR "llX"

#endif /* NDWIN_INTTYPES_H */
