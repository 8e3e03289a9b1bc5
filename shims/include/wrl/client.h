/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <wrl/client.h>: Microsoft::WRL::ComPtr, a smart pointer for COM objects. */
#ifndef NDWIN_WRL_CLIENT_H
#define NDWIN_WRL_CLIENT_H

#include <cstddef>
#include "../ndwin/com.h"

namespace Microsoft {
namespace WRL {

template <typename T_> class ComPtr;

namespace Details {

/* The result of `&pointer`: converts to an out-parameter (void ** or T **), which releases the object, or to ComPtr *. */
template <typename T_> class ComPtrRef {
public:
    explicit ComPtrRef(ComPtr<T_> *pointer) : pointer_(pointer) {}
    operator T_ **() { return pointer_->ReleaseAndGetAddressOf(); }
    operator void **() { return reinterpret_cast<void **>(pointer_->ReleaseAndGetAddressOf()); }
    operator ComPtr<T_> *() { return pointer_; }
    T_ *operator*() { return pointer_->Get(); }

private:
    ComPtr<T_> *pointer_;
};

} /* namespace Details */

template <typename T_> class ComPtr {
public:
    typedef T_ InterfaceType;

    ComPtr() : object_(nullptr) {}
    ComPtr(std::nullptr_t) : object_(nullptr) {}
    ComPtr(T_ *object) : object_(object) { Retain(); }
    ComPtr(const ComPtr &other) : object_(other.object_) { Retain(); }
    template <typename U_> ComPtr(const ComPtr<U_> &other) : object_(other.Get()) { Retain(); }
    ComPtr(ComPtr &&other) : object_(other.Detach()) {}
    template <typename U_> ComPtr(ComPtr<U_> &&other) : object_(other.Detach()) {}
    ~ComPtr() { Reset(); }

    ComPtr &operator=(std::nullptr_t)
    {
        Reset();
        return *this;
    }
    ComPtr &operator=(T_ *object)
    {
        ComPtr(object).Swap(*this);
        return *this;
    }
    ComPtr &operator=(const ComPtr &other)
    {
        ComPtr(other).Swap(*this);
        return *this;
    }
    ComPtr &operator=(ComPtr &&other)
    {
        ComPtr(static_cast<ComPtr &&>(other)).Swap(*this);
        return *this;
    }
    template <typename U_> ComPtr &operator=(const ComPtr<U_> &other)
    {
        ComPtr(other).Swap(*this);
        return *this;
    }

    T_ *Get() const { return object_; }
    T_ *operator->() const { return object_; }
    explicit operator bool() const { return object_ != nullptr; }

    T_ *const *GetAddressOf() const { return &object_; }
    T_ **GetAddressOf() { return &object_; }
    T_ **ReleaseAndGetAddressOf()
    {
        Reset();
        return &object_;
    }
    Details::ComPtrRef<T_> operator&() { return Details::ComPtrRef<T_>(this); }

    /* Takes over the caller's reference. */
    void Attach(T_ *object)
    {
        T_ *old = object_;
        object_ = object;
        if (old)
            old->Release();
    }
    /* Returns the pointer with its reference, and is empty afterwards. */
    T_ *Detach()
    {
        T_ *object = object_;
        object_ = nullptr;
        return object;
    }
    /* Releases the object and returns its remaining reference count. */
    unsigned long Reset()
    {
        T_ *object = Detach();
        return object ? object->Release() : 0;
    }
    void Swap(ComPtr &other)
    {
        T_ *object = object_;
        object_ = other.object_;
        other.object_ = object;
    }

    HRESULT CopyTo(T_ **target) const
    {
        Retain();
        *target = object_;
        return S_OK;
    }
    HRESULT CopyTo(REFIID iid, void **target) const { return object_->QueryInterface(iid, target); }
    template <typename U_> HRESULT CopyTo(U_ **target) const
    {
        return object_->QueryInterface(__uuidof(U_), reinterpret_cast<void **>(target));
    }
    template <typename U_> HRESULT As(ComPtr<U_> *target) const
    {
        return object_->QueryInterface(__uuidof(U_), reinterpret_cast<void **>(target->ReleaseAndGetAddressOf()));
    }
    template <typename U_> HRESULT As(Details::ComPtrRef<U_> target) const
    {
        return object_->QueryInterface(__uuidof(U_), static_cast<void **>(target));
    }

private:
    void Retain() const
    {
        if (object_)
            object_->AddRef();
    }

    T_ *object_;
};

template <typename T_, typename U_> inline bool operator==(const ComPtr<T_> &a, const ComPtr<U_> &b)
{
    return a.Get() == b.Get();
}
template <typename T_, typename U_> inline bool operator!=(const ComPtr<T_> &a, const ComPtr<U_> &b)
{
    return a.Get() != b.Get();
}
template <typename T_> inline bool operator==(const ComPtr<T_> &a, std::nullptr_t)
{
    return a.Get() == nullptr;
}
template <typename T_> inline bool operator!=(const ComPtr<T_> &a, std::nullptr_t)
{
    return a.Get() != nullptr;
}
template <typename T_, typename U_> inline bool operator<(const ComPtr<T_> &a, const ComPtr<U_> &b)
{
    return a.Get() < b.Get();
}

} /* namespace WRL */
} /* namespace Microsoft */

/* For IID_PPV_ARGS(&pointer). */
template <typename T_> inline void **IID_PPV_ARGS_Helper(Microsoft::WRL::Details::ComPtrRef<T_> pointer)
{
    return pointer;
}

#endif /* NDWIN_WRL_CLIENT_H */
