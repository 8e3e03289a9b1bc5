/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The random numbers of <wincrypt.h>. There are no keys, and nothing else of a provider. */
#ifndef NDWIN_CRYPTOGRAPHY_H
#define NDWIN_CRYPTOGRAPHY_H

#include "error.h"

typedef ULONG_PTR HCRYPTPROV;

#define PROV_RSA_FULL 1
#define PROV_RSA_AES  24

#define MS_DEF_PROV_A         "Microsoft Base Cryptographic Provider v1.0"
#define MS_DEF_PROV_W         L"Microsoft Base Cryptographic Provider v1.0"
#define MS_ENHANCED_PROV_A    "Microsoft Enhanced Cryptographic Provider v1.0"
#define MS_ENHANCED_PROV_W    L"Microsoft Enhanced Cryptographic Provider v1.0"
#define MS_STRONG_PROV_A      "Microsoft Strong Cryptographic Provider"
#define MS_STRONG_PROV_W      L"Microsoft Strong Cryptographic Provider"
#define MS_ENH_RSA_AES_PROV_A "Microsoft Enhanced RSA and AES Cryptographic Provider"
#define MS_ENH_RSA_AES_PROV_W L"Microsoft Enhanced RSA and AES Cryptographic Provider"

/* The first is needed, and the last two change nothing. */
#define CRYPT_VERIFYCONTEXT  0xF0000000
#define CRYPT_NEWKEYSET      0x00000008
#define CRYPT_DELETEKEYSET   0x00000010
#define CRYPT_MACHINE_KEYSET 0x00000020
#define CRYPT_SILENT         0x00000040

NDW_API(BOOL, CryptAcquireContextA,
    (HCRYPTPROV *context, LPCSTR container, LPCSTR provider, DWORD type, DWORD flags));
NDW_API(BOOL, CryptAcquireContextW,
    (HCRYPTPROV *context, LPCWSTR container, LPCWSTR provider, DWORD type, DWORD flags));
NDW_API(BOOL, CryptReleaseContext, (HCRYPTPROV context, DWORD flags));
NDW_API(BOOL, CryptGenRandom, (HCRYPTPROV context, DWORD length, BYTE *buffer));

#ifdef UNICODE
#define CryptAcquireContext CryptAcquireContextW
#define MS_DEF_PROV         MS_DEF_PROV_W
#define MS_ENHANCED_PROV    MS_ENHANCED_PROV_W
#define MS_STRONG_PROV      MS_STRONG_PROV_W
#define MS_ENH_RSA_AES_PROV MS_ENH_RSA_AES_PROV_W
#else
#define CryptAcquireContext CryptAcquireContextA
#define MS_DEF_PROV         MS_DEF_PROV_A
#define MS_ENHANCED_PROV    MS_ENHANCED_PROV_A
#define MS_STRONG_PROV      MS_STRONG_PROV_A
#define MS_ENH_RSA_AES_PROV MS_ENH_RSA_AES_PROV_A
#endif

#endif /* NDWIN_CRYPTOGRAPHY_H */
