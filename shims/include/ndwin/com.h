/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What interfaces need of COM: declarations for C and C++, IUnknown, IClassFactory, the task allocator.
 *
 * `interface` is defined only with NDCOMPAT_INTERFACE_KEYWORD, because Linux headers use it as an identifier.
 */
#ifndef NDWIN_COM_H
#define NDWIN_COM_H

#include "error.h"
#include "guid.h"
#include "uuid.h"

#ifdef NDCOMPAT_INTERFACE_KEYWORD
#define interface struct
#endif
#define __STRUCT__ struct
#define MIDL_INTERFACE(text) struct

typedef WCHAR OLECHAR;
typedef OLECHAR *LPOLESTR, *BSTR;
typedef const OLECHAR *LPCOLESTR;
#define OLESTR(text) L##text
typedef short VARIANT_BOOL;
#define VARIANT_TRUE  ((VARIANT_BOOL)-1)
#define VARIANT_FALSE ((VARIANT_BOOL)0)

#define STDMETHODCALLTYPE  __stdcall
#define STDMETHODVCALLTYPE __cdecl
#define STDAPICALLTYPE     __stdcall
#define STDAPI             EXTERN_C HRESULT STDAPICALLTYPE
#define STDAPI_(type)      EXTERN_C type STDAPICALLTYPE
#define STDMETHODIMP       HRESULT STDMETHODCALLTYPE
#define STDMETHODIMP_(type) type STDMETHODCALLTYPE
#define IFACEMETHODIMP     STDMETHODIMP
#define IFACEMETHODIMP_(type) STDMETHODIMP_(type)

#if defined(__cplusplus) && !defined(CINTERFACE)
#define STDMETHOD(method)        virtual HRESULT STDMETHODCALLTYPE method
#define STDMETHOD_(type, method) virtual type STDMETHODCALLTYPE method
#define PURE                     = 0
#define THIS_
#define THIS                     void
#define DECLARE_INTERFACE(iface) struct iface
#define DECLARE_INTERFACE_(iface, base) struct iface : public base
#else
#define STDMETHOD(method)        HRESULT (STDMETHODCALLTYPE *method)
#define STDMETHOD_(type, method) type (STDMETHODCALLTYPE *method)
#define PURE
#define THIS_                    INTERFACE *This,
#define THIS                     INTERFACE *This
#ifdef CONST_VTABLE
#define NDW_VTABLE const struct
#else
#define NDW_VTABLE struct
#endif
#define DECLARE_INTERFACE(iface)               \
    typedef struct iface {                     \
        NDW_VTABLE iface##Vtbl *lpVtbl;        \
    } iface;                                   \
    typedef NDW_VTABLE iface##Vtbl iface##Vtbl; \
    struct iface##Vtbl
#define DECLARE_INTERFACE_(iface, base) DECLARE_INTERFACE(iface)
#endif
#define DECLARE_INTERFACE_IID(iface, iid)        DECLARE_INTERFACE(iface)
#define DECLARE_INTERFACE_IID_(iface, base, iid) DECLARE_INTERFACE_(iface, base)
#define IFACEMETHOD(method)                      STDMETHOD(method)
#define IFACEMETHOD_(type, method)               STDMETHOD_(type, method)
#define BEGIN_INTERFACE
#define END_INTERFACE

EXTERN_C const IID IID_IUnknown;
EXTERN_C const IID IID_IClassFactory;

#ifdef __cplusplus
struct IUnknown;
struct IClassFactory;
__CRT_UUID_DECL(IUnknown, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46)
__CRT_UUID_DECL(IClassFactory, 1, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#endif

#undef INTERFACE
#define INTERFACE IUnknown
DECLARE_INTERFACE(IUnknown)
{
    STDMETHOD(QueryInterface)(THIS_ REFIID riid, void **ppvObject) PURE;
    STDMETHOD_(ULONG, AddRef)(THIS) PURE;
    STDMETHOD_(ULONG, Release)(THIS) PURE;
#if defined(__cplusplus) && !defined(CINTERFACE)
    template <typename Q_> HRESULT QueryInterface(Q_ **object)
    {
        return QueryInterface(__uuidof(Q_), reinterpret_cast<void **>(object));
    }
#endif
};
typedef IUnknown *LPUNKNOWN;

#undef INTERFACE
#define INTERFACE IClassFactory
DECLARE_INTERFACE_(IClassFactory, IUnknown)
{
#if !defined(__cplusplus) || defined(CINTERFACE)
    STDMETHOD(QueryInterface)(THIS_ REFIID riid, void **ppvObject) PURE;
    STDMETHOD_(ULONG, AddRef)(THIS) PURE;
    STDMETHOD_(ULONG, Release)(THIS) PURE;
#endif
    STDMETHOD(CreateInstance)(THIS_ IUnknown *pUnkOuter, REFIID riid, void **ppvObject) PURE;
    STDMETHOD(LockServer)(THIS_ BOOL fLock) PURE;
};
typedef IClassFactory *LPCLASSFACTORY;
#undef INTERFACE

#ifdef __cplusplus
#pragma GCC diagnostic pop
extern "C++" template <typename T_> inline void **IID_PPV_ARGS_Helper(T_ **object)
{
    return reinterpret_cast<void **>(object);
}
#define IID_PPV_ARGS(object) __uuidof(**(object)), IID_PPV_ARGS_Helper(object)
#endif

#if !defined(__cplusplus) || defined(CINTERFACE)
#define IUnknown_QueryInterface(p, ...)      ((p)->lpVtbl->QueryInterface(p, __VA_ARGS__))
#define IUnknown_AddRef(p)                   ((p)->lpVtbl->AddRef(p))
#define IUnknown_Release(p)                  ((p)->lpVtbl->Release(p))
#define IClassFactory_QueryInterface(p, ...) ((p)->lpVtbl->QueryInterface(p, __VA_ARGS__))
#define IClassFactory_AddRef(p)              ((p)->lpVtbl->AddRef(p))
#define IClassFactory_Release(p)             ((p)->lpVtbl->Release(p))
#define IClassFactory_CreateInstance(p, ...) ((p)->lpVtbl->CreateInstance(p, __VA_ARGS__))
#define IClassFactory_LockServer(p, ...)     ((p)->lpVtbl->LockServer(p, __VA_ARGS__))
#endif

/* The functions that a COM server exports. */
typedef HRESULT (STDAPICALLTYPE *LPFNGETCLASSOBJECT)(REFCLSID, REFIID, LPVOID *);
typedef HRESULT (STDAPICALLTYPE *LPFNCANUNLOADNOW)(void);

typedef enum tagCOINIT {
    COINIT_MULTITHREADED = 0x0,
    COINIT_APARTMENTTHREADED = 0x2,
    COINIT_DISABLE_OLE1DDE = 0x4,
    COINIT_SPEED_OVER_MEMORY = 0x8
} COINIT;

/* There are no apartments: any thread may call any object. The task allocator is malloc. */
NDW_API(HRESULT, CoInitializeEx, (LPVOID reserved, DWORD model));
NDW_API(HRESULT, CoInitialize, (LPVOID reserved));
NDW_API(void, CoUninitialize, (void));
NDW_API(LPVOID, CoTaskMemAlloc, (SIZE_T size));
NDW_API(LPVOID, CoTaskMemRealloc, (LPVOID block, SIZE_T size));
NDW_API(void, CoTaskMemFree, (LPVOID block));

#endif /* NDWIN_COM_H */
