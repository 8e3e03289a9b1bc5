/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The random numbers of <bcrypt.h> and <ntsecapi.h>. There is nothing else of bcrypt. */
#ifndef NDWIN_RANDOM_H
#define NDWIN_RANDOM_H

#include "error.h"

typedef PVOID BCRYPT_HANDLE;
typedef PVOID BCRYPT_ALG_HANDLE;

#define BCRYPT_RNG_ALGORITHM            L"RNG"
#define BCRYPT_RNG_ALG_HANDLE           ((BCRYPT_ALG_HANDLE)0x00000081)
#define BCRYPT_RNG_USE_ENTROPY_IN_BUFFER 0x00000001
#define BCRYPT_USE_SYSTEM_PREFERRED_RNG 0x00000002
#ifndef BCRYPT_SUCCESS
#define BCRYPT_SUCCESS(status) (((NTSTATUS)(status)) >= 0)
#endif

NDW_API(NTSTATUS, BCryptOpenAlgorithmProvider,
    (BCRYPT_ALG_HANDLE *algorithm, LPCWSTR name, LPCWSTR implementation, ULONG flags));
NDW_API(NTSTATUS, BCryptCloseAlgorithmProvider, (BCRYPT_ALG_HANDLE algorithm, ULONG flags));
NDW_API(NTSTATUS, BCryptGenRandom, (BCRYPT_ALG_HANDLE algorithm, PUCHAR buffer, ULONG length, ULONG flags));

NDW_API(BOOLEAN, SystemFunction036, (PVOID buffer, ULONG length));
#define RtlGenRandom SystemFunction036

#endif /* NDWIN_RANDOM_H */
