/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the headers do in C by themselves, without the library. Linux only. */
#include <rdma/rdma_cma.h>
#include <ndsupport.h>
#include <assert.h>
#include <stdlib.h>

static UINT32 STDMETHODCALLTYPE token(IND2MemoryWindow* self)
{
    (void)self;
    return 77;
}

int main(void)
{
    LONG l = 5;
    if (InterlockedIncrement(&l) != 6 || InterlockedCompareExchange(&l, 1, 6) != 6 || l != 1)
        return 1;
    LONGLONG big = 1;
    if (InterlockedExchangeAdd64(&big, 2) != 1 || InterlockedAdd64(&big, 1) != 4)
        return 2;
    PVOID p = NULL;
    if (InterlockedCompareExchangePointer(&p, (PVOID)&l, NULL) != NULL || p != &l)
        return 3;

    struct IND2MemoryWindowVtbl table = {.GetRemoteToken = token};
    IND2MemoryWindow window = {&table};
    if (IND2MemoryWindow_GetRemoteToken(&window) != 77 || window.lpVtbl->GetRemoteToken(&window) != 77)
        return 4;
    enum ND2_REQUEST_TYPE type = Nd2RequestTypeRead;
    enum _ND2_REQUEST_TYPE same = type;
    struct _ND2_SGE sge = {&l, sizeof l, 1};
    struct ibv_sge *verbs = (struct ibv_sge *)&sge;
    if (same != Nd2RequestTypeRead || verbs->length != sizeof l || verbs->lkey != 1)
        return 5;

    SOCKADDR_INET address = {.Ipv4 = {.sin_family = AF_INET, .sin_addr = {.s_addr = 1}}};
    if (address.si_family != AF_INET || address.Ipv4.sin_addr.S_un.S_addr != 1)
        return 6;
    for (SIZE_T n = 1; n < 4; n++) {
        if (FIELD_OFFSET(SOCKET_ADDRESS_LIST, Address[n]) != (LONG)(8 + 16 * n))
            return 7;
    }
    GUID a = {1, 2, 3, {4}}, b = a;
    if (!IsEqualGUID(&a, &b) || max(1, 2) != 2)
        return 8;
    return 0;
}
