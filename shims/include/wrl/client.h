/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <wrl/client.h>: Microsoft::WRL::ComPtr, a smart pointer for COM objects. */
#ifndef NDWIN_WRL_CLIENT_H
#define NDWIN_WRL_CLIENT_H

#include <cstddef>
#include "../ndwin/com.h"

namespace Microsoft {
namespace WRL {

template <typename T> class ComPtr;

namespace Details {

/* The result of `&pointer`: converts to an out-parameter (void ** or T **), which releases the object, or to ComPtr *. */
template <typename T> class ComPtrRef {
public:
    explicit ComPtrRef(ComPtr<T> *pointer) : pointer_(pointer) {}
    operator T **() { return pointer_->ReleaseAndGetAddressOf(); }
    operator void **() { return reinterpret_cast<void **>(pointer_->ReleaseAndGetAddressOf()); }
    operator ComPtr<T> *() { return pointer_; }
    T *operator*() { return pointer_->Get(); }

private:
    ComPtr<T> *pointer_;
};

} /* namespace Details */

template <typename T> class ComPtr {
public:
    typedef T InterfaceType;

    ComPtr() : object_(nullptr) {}
    ComPtr(std::nullptr_t) : object_(nullptr) {}
    ComPtr(T *object) : object_(object) { Retain(); }
    ComPtr(const ComPtr &other) : object_(other.object_) { Retain(); }
    template <typename U> ComPtr(const ComPtr<U> &other) : object_(other.Get()) { Retain(); }
    ComPtr(ComPtr &&other) : object_(other.Detach()) {}
    template <typename U> ComPtr(ComPtr<U> &&other) : object_(other.Detach()) {}
    ~ComPtr() { Reset(); }

    ComPtr &operator=(std::nullptr_t)
    {
        Reset();
        return *this;
    }
    ComPtr &operator=(T *object)
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
    template <typename U> ComPtr &operator=(const ComPtr<U> &other)
    {
        ComPtr(other).Swap(*this);
        return *this;
    }

    T *Get() const { return object_; }
    T *operator->() const { return object_; }
    explicit operator bool() const { return object_ != nullptr; }

    T *const *GetAddressOf() const { return &object_; }
    T **GetAddressOf() { return &object_; }
    T **ReleaseAndGetAddressOf()
    {
        Reset();
        return &object_;
    }
    Details::ComPtrRef<T> operator&() { return Details::ComPtrRef<T>(this); }

    /* Takes over the caller's reference. */
    void Attach(T *object)
    {
        T *old = object_;
        object_ = object;
        if (old)
            old->Release();
    }
    /* Returns the pointer with its reference, and is empty afterwards. */
    T *Detach()
    {
        T *object = object_;
        object_ = nullptr;
        return object;
    }
    /* Releases the object and returns its remaining reference count. */
    unsigned long Reset()
    {
        T *object = Detach();
        return object ? object->Release() : 0;
    }
    void Swap(ComPtr &other)
    {
        T *object = object_;
        object_ = other.object_;
        other.object_ = object;
    }

    HRESULT CopyTo(T **target) const
    {
        Retain();
        *target = object_;
        return S_OK;
    }
    HRESULT CopyTo(REFIID iid, void **target) const { return object_->QueryInterface(iid, target); }
    template <typename U> HRESULT CopyTo(U **target) const
    {
        return object_->QueryInterface(__uuidof(U), reinterpret_cast<void **>(target));
    }
    template <typename U> HRESULT As(ComPtr<U> *target) const
    {
        return object_->QueryInterface(__uuidof(U), reinterpret_cast<void **>(target->ReleaseAndGetAddressOf()));
    }
    template <typename U> HRESULT As(Details::ComPtrRef<U> target) const
    {
        return object_->QueryInterface(__uuidof(U), static_cast<void **>(target));
    }

private:
    void Retain() const
    {
        if (object_)
            object_->AddRef();
    }

    T *object_;
};

template <typename T, typename U> inline bool operator==(const ComPtr<T> &a, const ComPtr<U> &b)
{
    return a.Get() == b.Get();
}
template <typename T, typename U> inline bool operator!=(const ComPtr<T> &a, const ComPtr<U> &b)
{
    return a.Get() != b.Get();
}
template <typename T> inline bool operator==(const ComPtr<T> &a, std::nullptr_t)
{
    return a.Get() == nullptr;
}
template <typename T> inline bool operator!=(const ComPtr<T> &a, std::nullptr_t)
{
    return a.Get() != nullptr;
}
template <typename T, typename U> inline bool operator<(const ComPtr<T> &a, const ComPtr<U> &b)
{
    return a.Get() < b.Get();
}

} /* namespace WRL */
} /* namespace Microsoft */

/* For IID_PPV_ARGS(&pointer). */
template <typename T> inline void **IID_PPV_ARGS_Helper(Microsoft::WRL::Details::ComPtrRef<T> pointer)
{
    return pointer;
}

#endif /* NDWIN_WRL_CLIENT_H */
