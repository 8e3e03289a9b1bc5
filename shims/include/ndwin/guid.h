/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * GUID, and DEFINE_GUID in its two forms: a declaration or, with INITGUID, a definition. Definitions are weak, so that
 * several objects of a program may contain them, besides the library.
 */
#ifndef NDWIN_GUID_H
#define NDWIN_GUID_H

#include "types.h"

typedef struct _GUID {
    ULONG Data1;
    USHORT Data2;
    USHORT Data3;
    UCHAR Data4[8];
} GUID;
typedef GUID *LPGUID, IID, *LPIID, CLSID, *LPCLSID, FMTID, UUID;
typedef const GUID *LPCGUID;
#define GUID_DEFINED

#ifdef __cplusplus
#define REFGUID const GUID &
#define REFIID const IID &
#define REFCLSID const IID &
#define REFFMTID const IID &
#else
#define REFGUID const GUID *
#define REFIID const IID *
#define REFCLSID const IID *
#define REFFMTID const IID *
#endif

#ifdef __cplusplus
extern "C++" {
inline int IsEqualGUID(REFGUID a, REFGUID b)
{
    return !memcmp(&a, &b, sizeof(GUID));
}
inline int InlineIsEqualGUID(REFGUID a, REFGUID b)
{
    return !memcmp(&a, &b, sizeof(GUID));
}
inline bool operator==(REFGUID a, REFGUID b)
{
    return !memcmp(&a, &b, sizeof(GUID));
}
inline bool operator!=(REFGUID a, REFGUID b)
{
    return !(a == b);
}

/* __uuidof: __CRT_UUID_DECL, as mingw-w64 calls it, specialises this template for each interface. */
namespace ndwin {
template <typename T_> struct uuid;
template <typename T_> struct uuid<T_ *> : uuid<T_> {};
template <typename T_> struct uuid<T_ &> : uuid<T_> {};
template <typename T_> struct uuid<const T_> : uuid<T_> {};
}
}
#define __uuidof(type) (ndwin::uuid<__typeof__(type)>::get())
#define __CRT_UUID_DECL(type, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)                        \
    extern "C++" {                                                                              \
    namespace ndwin {                                                                           \
    template <> struct uuid<type> {                                                             \
        static const GUID &get()                                                                \
        {                                                                                       \
            static const GUID value = {l, w1, w2, {b1, b2, b3, b4, b5, b6, b7, b8}};            \
            return value;                                                                       \
        }                                                                                       \
    };                                                                                          \
    }                                                                                           \
    }
#else
#define IsEqualGUID(a, b)       (!memcmp((a), (b), sizeof(GUID)))
#define InlineIsEqualGUID(a, b) IsEqualGUID(a, b)
#define __CRT_UUID_DECL(type, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)
#endif
#define IsEqualIID(a, b)   IsEqualGUID(a, b)
#define IsEqualCLSID(a, b) IsEqualGUID(a, b)

EXTERN_C const GUID GUID_NULL;
#define IID_NULL   GUID_NULL
#define CLSID_NULL GUID_NULL

#endif /* NDWIN_GUID_H */

/* Not within the include guard: INITGUID may be defined at a later inclusion. */
#undef DEFINE_GUID
#ifdef INITGUID
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) \
    EXTERN_C const GUID DECLSPEC_SELECTANY name;                     \
    const GUID name = {l, w1, w2, {b1, b2, b3, b4, b5, b6, b7, b8}}
#else
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) EXTERN_C const GUID name
#endif
#undef DEFINE_OLEGUID
#define DEFINE_OLEGUID(name, l, w1, w2) DEFINE_GUID(name, l, w1, w2, 0xC0, 0, 0, 0, 0, 0, 0, 0x46)
