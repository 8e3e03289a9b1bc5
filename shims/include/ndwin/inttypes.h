/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The macros of <inttypes.h> for the printf and scanf of stdio.h, where `l` means 32 bits; the C library's say `l` for 64 bits.
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

#undef SCNd64
#undef SCNi64
#undef SCNo64
#undef SCNu64
#undef SCNx64
#define SCNd64 "lld"
#define SCNi64 "lli"
#define SCNo64 "llo"
#define SCNu64 "llu"
#define SCNx64 "llx"

#undef SCNdLEAST64
#undef SCNiLEAST64
#undef SCNoLEAST64
#undef SCNuLEAST64
#undef SCNxLEAST64
#define SCNdLEAST64 "lld"
#define SCNiLEAST64 "lli"
#define SCNoLEAST64 "llo"
#define SCNuLEAST64 "llu"
#define SCNxLEAST64 "llx"

#undef SCNdFAST64
#undef SCNiFAST64
#undef SCNoFAST64
#undef SCNuFAST64
#undef SCNxFAST64
#define SCNdFAST64 "lld"
#define SCNiFAST64 "lli"
#define SCNoFAST64 "llo"
#define SCNuFAST64 "llu"
#define SCNxFAST64 "llx"

#undef SCNdFAST16
#undef SCNiFAST16
#undef SCNoFAST16
#undef SCNuFAST16
#undef SCNxFAST16
#define SCNdFAST16 "lld"
#define SCNiFAST16 "lli"
#define SCNoFAST16 "llo"
#define SCNuFAST16 "llu"
#define SCNxFAST16 "llx"

#undef SCNdFAST32
#undef SCNiFAST32
#undef SCNoFAST32
#undef SCNuFAST32
#undef SCNxFAST32
#define SCNdFAST32 "lld"
#define SCNiFAST32 "lli"
#define SCNoFAST32 "llo"
#define SCNuFAST32 "llu"
#define SCNxFAST32 "llx"

#undef SCNdMAX
#undef SCNiMAX
#undef SCNoMAX
#undef SCNuMAX
#undef SCNxMAX
#define SCNdMAX "lld"
#define SCNiMAX "lli"
#define SCNoMAX "llo"
#define SCNuMAX "llu"
#define SCNxMAX "llx"

#undef SCNdPTR
#undef SCNiPTR
#undef SCNoPTR
#undef SCNuPTR
#undef SCNxPTR
#define SCNdPTR "lld"
#define SCNiPTR "lli"
#define SCNoPTR "llo"
#define SCNuPTR "llu"
#define SCNxPTR "llx"

#endif /* NDWIN_INTTYPES_H */
