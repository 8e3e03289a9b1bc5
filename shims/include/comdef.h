/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <comdef.h>: _com_error. There are no BSTRs, VARIANTs and smart pointers for interfaces (<wrl/client.h> has one). */
#ifndef NDWIN_COMDEF_H
#define NDWIN_COMDEF_H

#include "objbase.h"

#ifdef __cplusplus
#pragma GCC system_header
#include "tchar.h"

extern "C++" {
/* Two classes: their texts differ in size. */
#ifdef UNICODE
inline namespace ndw_wide {
#else
inline namespace ndw_narrow {
#endif

/* An HRESULT as an exception, and its text. */
class _com_error {
public:
    explicit _com_error(HRESULT error) noexcept : error_(error) {}
    _com_error(const _com_error &other) noexcept : error_(other.error_) {}
    _com_error &operator=(const _com_error &other) noexcept
    {
        error_ = other.error_;
        return *this;
    }
    virtual ~_com_error() noexcept {}

    HRESULT Error() const noexcept { return error_; }

    /* The code behind an HRESULT of a dispatch interface, or 0. */
    WORD WCode() const noexcept { return HRESULTToWCode(error_); }
    static WORD HRESULTToWCode(HRESULT error) noexcept
    {
        return error >= ndw_first_ && error <= ndw_last_ ? static_cast<WORD>(error - ndw_first_) : 0;
    }
    static HRESULT WCodeToHRESULT(WORD code) noexcept
    {
        return code >= ndw_last_ - ndw_first_ ? static_cast<HRESULT>(ndw_last_) : ndw_first_ + code;
    }

    /* The text of the system, without an end of line. Lives as long as this object, until it is asked for again. */
    const TCHAR *ErrorMessage() const noexcept
    {
        const int room = sizeof text_ / sizeof text_[0];
        DWORD length = FormatMessage(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr,
            static_cast<DWORD>(error_), 0, text_, room, nullptr);
        while (length > 0 && (text_[length - 1] == '\n' || text_[length - 1] == '\r'))
            text_[--length] = 0;
        if (length == 0 && WCode() != 0)
            _stprintf_s(text_, room, _T("IDispatch error #%d"), WCode());
        else if (length == 0)
            _stprintf_s(text_, room, _T("Unknown error 0x%0lX"), static_cast<unsigned>(error_));
        return text_;
    }

private:
    static const HRESULT ndw_first_ = static_cast<HRESULT>(0x80040200), ndw_last_ = static_cast<HRESULT>(0x8004FFFF);
    HRESULT error_;
    mutable TCHAR text_[512];
};

#ifdef __cpp_exceptions
[[noreturn]] inline void _com_raise_error(HRESULT error) { throw _com_error(error); }
[[noreturn]] inline void _com_issue_error(HRESULT error) { _com_raise_error(error); }
#endif

}
}
#endif
#endif
