/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Microsoft's additions to <stdio.h>, and its printf family. Functions that the C library has as well are named ndw_...
 * here; ../stdio.h redirects their names.
 */
#ifndef NDWIN_CRT_STDIO_H
#define NDWIN_CRT_STDIO_H

#include <errno.h>
#include <stdarg.h>
#include <wchar.h>
#include "base.h"
#include "wide_path.h"

/* The library exports only the forms that take a va_list. */
EXTERN_C_START
int ndw_vprintf(const char *format, va_list arguments);
int ndw_vfprintf(FILE *stream, const char *format, va_list arguments);
int ndw_vsprintf(char *buffer, const char *format, va_list arguments);
int ndw_vsnprintf(char *buffer, size_t size, const char *format, va_list arguments);
int ndw_vwprintf(const wchar_t *format, va_list arguments);
int ndw_vfwprintf(FILE *stream, const wchar_t *format, va_list arguments);
int ndw_vswprintf(wchar_t *buffer, size_t size, const wchar_t *format, va_list arguments);
int ndw__vsnprintf(char *buffer, size_t size, const char *format, va_list arguments);
int ndw__vsnwprintf(wchar_t *buffer, size_t size, const wchar_t *format, va_list arguments);
int ndw__vscprintf(const char *format, va_list arguments);
int ndw__vscwprintf(const wchar_t *format, va_list arguments);
int ndw_vsprintf_s(char *buffer, size_t size, const char *format, va_list arguments);
int ndw_vswprintf_s(wchar_t *buffer, size_t size, const wchar_t *format, va_list arguments);
int ndw__vsnprintf_s(char *buffer, size_t size, size_t count, const char *format, va_list arguments);
int ndw__vsnwprintf_s(wchar_t *buffer, size_t size, size_t count, const wchar_t *format, va_list arguments);
int ndw_fputws(const wchar_t *text, FILE *stream);
wint_t ndw_fgetwc(FILE *stream);
wint_t ndw_ungetwc(wint_t character, FILE *stream);
wchar_t *ndw_fgetws(wchar_t *buffer, int size, FILE *stream);
FILE *ndw_open_stream(const char *file, const char *mode);
int ndw_vsscanf(const char *text, const char *format, va_list arguments);
int ndw_vswscanf(const wchar_t *text, const wchar_t *format, va_list arguments);
int ndw_vfscanf(FILE *stream, const char *format, va_list arguments);
int ndw_vfwscanf(FILE *stream, const wchar_t *format, va_list arguments);
int ndw_vsscanf_s(const char *text, const char *format, va_list arguments);
int ndw_vswscanf_s(const wchar_t *text, const wchar_t *format, va_list arguments);
int ndw_vfscanf_s(FILE *stream, const char *format, va_list arguments);
int ndw_vfwscanf_s(FILE *stream, const wchar_t *format, va_list arguments);
EXTERN_C_END

#ifdef __cplusplus
extern "C++" {
#endif

/* NDW_PRINTF(name, form with a va_list, (parameters), arguments) defines name(parameters, ...). */
#define NDW_PRINTF(name, form, parameters, ...)            \
    NDW_INLINE int name(NDW_EXPAND parameters, ...)        \
    {                                                      \
        va_list arguments;                                 \
        va_start(arguments, format);                       \
        const int result = form(__VA_ARGS__, arguments);   \
        va_end(arguments);                                 \
        return result;                                     \
    }
#define NDW_EXPAND(...) __VA_ARGS__

NDW_PRINTF(ndw_printf, ndw_vprintf, (const char *format), format)
NDW_PRINTF(ndw_fprintf, ndw_vfprintf, (FILE *stream, const char *format), stream, format)
NDW_PRINTF(ndw_sprintf, ndw_vsprintf, (char *buffer, const char *format), buffer, format)
NDW_PRINTF(ndw_snprintf, ndw_vsnprintf, (char *buffer, size_t size, const char *format), buffer, size, format)
NDW_PRINTF(ndw_wprintf, ndw_vwprintf, (const wchar_t *format), format)
NDW_PRINTF(ndw_fwprintf, ndw_vfwprintf, (FILE *stream, const wchar_t *format), stream, format)
NDW_PRINTF(ndw_swprintf, ndw_vswprintf, (wchar_t *buffer, size_t size, const wchar_t *format), buffer, size, format)
/* Without a size: the buffer has room for the text, whose length is found first. */
NDW_INLINE int _vswprintf(wchar_t *buffer, const wchar_t *format, va_list arguments)
{
    va_list again;
    int length;
    va_copy(again, arguments);
    length = ndw__vscwprintf(format, again);
    va_end(again);
    return length < 0 ? -1 : ndw_vswprintf(buffer, (size_t)length + 1, format, arguments);
}
NDW_PRINTF(_swprintf, _vswprintf, (wchar_t *buffer, const wchar_t *format), buffer, format)
#ifdef __cplusplus
/* In C++ swprintf and vswprintf have this form, too. */
NDW_PRINTF(ndw_swprintf, _vswprintf, (wchar_t *buffer, const wchar_t *format), buffer, format)
NDW_INLINE int ndw_vswprintf(wchar_t *buffer, const wchar_t *format, va_list arguments)
{
    return _vswprintf(buffer, format, arguments);
}
#endif
NDW_PRINTF(_snprintf, ndw__vsnprintf, (char *buffer, size_t size, const char *format), buffer, size, format)
NDW_PRINTF(_snwprintf, ndw__vsnwprintf, (wchar_t *buffer, size_t size, const wchar_t *format), buffer, size, format)
NDW_PRINTF(_scprintf, ndw__vscprintf, (const char *format), format)
NDW_PRINTF(_scwprintf, ndw__vscwprintf, (const wchar_t *format), format)
NDW_PRINTF(sprintf_s, ndw_vsprintf_s, (char *buffer, size_t size, const char *format), buffer, size, format)
NDW_PRINTF(swprintf_s, ndw_vswprintf_s, (wchar_t *buffer, size_t size, const wchar_t *format), buffer, size, format)
NDW_PRINTF(_snprintf_s, ndw__vsnprintf_s,
           (char *buffer, size_t size, size_t count, const char *format), buffer, size, count, format)
NDW_PRINTF(_snwprintf_s, ndw__vsnwprintf_s,
           (wchar_t *buffer, size_t size, size_t count, const wchar_t *format), buffer, size, count, format)

NDW_PRINTF(ndw_sscanf, ndw_vsscanf, (const char *text, const char *format), text, format)
NDW_PRINTF(ndw_swscanf, ndw_vswscanf, (const wchar_t *text, const wchar_t *format), text, format)
NDW_PRINTF(ndw_fscanf, ndw_vfscanf, (FILE *stream, const char *format), stream, format)
NDW_PRINTF(ndw_fwscanf, ndw_vfwscanf, (FILE *stream, const wchar_t *format), stream, format)
NDW_PRINTF(ndw_scanf, ndw_vfscanf, (const char *format), stdin, format)
NDW_PRINTF(ndw_wscanf, ndw_vfwscanf, (const wchar_t *format), stdin, format)

/* The argument after each text buffer is its size, an `unsigned`. */
NDW_PRINTF(sscanf_s, ndw_vsscanf_s, (const char *text, const char *format), text, format)
NDW_PRINTF(swscanf_s, ndw_vswscanf_s, (const wchar_t *text, const wchar_t *format), text, format)
NDW_PRINTF(fscanf_s, ndw_vfscanf_s, (FILE *stream, const char *format), stream, format)
NDW_PRINTF(fwscanf_s, ndw_vfwscanf_s, (FILE *stream, const wchar_t *format), stream, format)
NDW_PRINTF(scanf_s, ndw_vfscanf_s, (const char *format), stdin, format)
NDW_PRINTF(wscanf_s, ndw_vfwscanf_s, (const wchar_t *format), stdin, format)

#undef NDW_PRINTF
#undef NDW_EXPAND

#define _vsnprintf    ndw__vsnprintf
#define _vsnwprintf   ndw__vsnwprintf
#define _vscprintf    ndw__vscprintf
#define _vscwprintf   ndw__vscwprintf
#define vsprintf_s    ndw_vsprintf_s
#define vswprintf_s   ndw_vswprintf_s
#define _vsnprintf_s  ndw__vsnprintf_s
#define _vsnwprintf_s ndw__vsnwprintf_s
#define vsscanf_s     ndw_vsscanf_s
#define vswscanf_s    ndw_vswscanf_s
#define vfscanf_s     ndw_vfscanf_s
#define vfwscanf_s    ndw_vfwscanf_s
#define vscanf_s(format, arguments)  ndw_vfscanf_s(stdin, format, arguments)
#define vwscanf_s(format, arguments) ndw_vfwscanf_s(stdin, format, arguments)
#define printf_s      ndw_printf
#define fprintf_s     ndw_fprintf
#define wprintf_s     ndw_wprintf
#define fwprintf_s    ndw_fwprintf

#ifdef __cplusplus
/* Overloads that take the size from an array. */
template <size_t N_, typename... Arguments>
inline int sprintf_s(char (&buffer)[N_], const char *format, Arguments... arguments)
{
    return (sprintf_s)(static_cast<char *>(buffer), N_, format, arguments...);
}
template <size_t N_, typename... Arguments>
inline int swprintf_s(wchar_t (&buffer)[N_], const wchar_t *format, Arguments... arguments)
{
    return (swprintf_s)(static_cast<wchar_t *>(buffer), N_, format, arguments...);
}
template <size_t N_, typename... Arguments>
inline int _snprintf_s(char (&buffer)[N_], size_t count, const char *format, Arguments... arguments)
{
    return (_snprintf_s)(static_cast<char *>(buffer), N_, count, format, arguments...);
}
template <size_t N_, typename... Arguments>
inline int _snwprintf_s(wchar_t (&buffer)[N_], size_t count, const wchar_t *format, Arguments... arguments)
{
    return (_snwprintf_s)(static_cast<wchar_t *>(buffer), N_, count, format, arguments...);
}
template <size_t N_> inline int ndw_vsprintf_s(char (&buffer)[N_], const char *format, va_list arguments)
{
    return ndw_vsprintf_s(buffer, N_, format, arguments);
}
template <size_t N_> inline int ndw_vswprintf_s(wchar_t (&buffer)[N_], const wchar_t *format, va_list arguments)
{
    return ndw_vswprintf_s(buffer, N_, format, arguments);
}
template <size_t N_> inline int ndw__vsnprintf_s(char (&buffer)[N_], size_t count, const char *format, va_list arguments)
{
    return ndw__vsnprintf_s(buffer, N_, count, format, arguments);
}
template <size_t N_>
inline int ndw__vsnwprintf_s(wchar_t (&buffer)[N_], size_t count, const wchar_t *format, va_list arguments)
{
    return ndw__vsnwprintf_s(buffer, N_, count, format, arguments);
}
}
#endif

NDW_API(errno_t, fopen_s, (FILE **stream, const char *file, const char *mode));
NDW_API(errno_t, freopen_s, (FILE **stream, const char *file, const char *mode, FILE *old));
NDW_API(errno_t, _wfopen_s, (FILE **stream, const wchar_t *file, const wchar_t *mode));
NDW_API(FILE *, _wfopen, (const wchar_t *file, const wchar_t *mode));
NDW_API(FILE *, _wfreopen, (const wchar_t *file, const wchar_t *mode, FILE *stream));
NDW_API(int, _fcloseall, (void));
NDW_INLINE errno_t _wfreopen_s(FILE **stream, const wchar_t *file, const wchar_t *mode, FILE *old)
{
    if (!stream)
        return EINVAL;
    *stream = NULL;
    if (!file || !mode || !old)
        return EINVAL;
    *stream = _wfreopen(file, mode, old);
    return *stream ? 0 : errno;
}
#define L_tmpnam_s 260
#define TMP_MAX_S  2147483647
NDW_API(errno_t, tmpnam_s, (char *name, size_t size));
NDW_INLINE errno_t _wtmpnam_s(wchar_t *name, size_t size)
{
    char narrow[L_tmpnam_s];
    errno_t result;
    size_t i = 0;
    if (!name || size == 0)
        return EINVAL;
    *name = 0;
    result = tmpnam_s(narrow, sizeof narrow);
    if (result == 0 && __builtin_strlen(narrow) >= size)
        result = ERANGE;
    if (result == 0)
        do
            name[i] = (wchar_t)narrow[i];
        while (narrow[i++]);
    return result;
}
#ifdef __cplusplus
extern "C++" {
template <size_t N_> inline errno_t _wtmpnam_s(wchar_t (&name)[N_])
{
    return _wtmpnam_s(name, N_);
}
template <size_t N_> inline errno_t tmpnam_s(char (&name)[N_])
{
    return tmpnam_s(name, N_);
}
}
#endif
#define vprintf_s     ndw_vprintf
#define vfprintf_s    ndw_vfprintf
#define vwprintf_s    ndw_vwprintf
#define vfwprintf_s   ndw_vfwprintf
NDW_LIBC(FILE *, _fdopen, (int file, const char *mode), "fdopen");
/* They delete no folders, and nothing that is read-only, and replace nothing: those of the C library do. */
NDW_API(int, _unlink, (const char *path));
NDW_LIBC(int, _wremove, (const wchar_t *path), "ndw__wunlink");
NDW_API(int, _wrename, (const wchar_t *from, const wchar_t *to));
/* Files are not locked by their share modes. */
NDW_INLINE FILE *_fsopen(const char *file, const char *mode, int share)
{
    return (void)share, ndw_open_stream(file, mode);
}
NDW_INLINE FILE *_wfsopen(const wchar_t *file, const wchar_t *mode, int share)
{
    return (void)share, _wfopen(file, mode);
}
NDW_INLINE FILE *_wfdopen(int file, const wchar_t *mode)
{
    char narrow[4097];
    return ndw_narrow_path(mode, narrow) ? _fdopen(file, narrow) : NULL;
}
NDW_INLINE void _wperror(const wchar_t *prefix)
{
    char narrow[4097];
    const int error = errno;
    const int told = prefix && ndw_narrow_path(prefix, narrow);
    errno = error;
    perror(told ? narrow : NULL);
}
/* The most files that may be open at a time. Windows allows up to 8192. */
NDW_LIBC(int, ndw_get_limit, (int what, unsigned long *limits), "getrlimit");
NDW_LIBC(int, ndw_set_limit, (int what, const unsigned long *limits), "setrlimit");
NDW_INLINE int _getmaxstdio(void)
{
    unsigned long limits[2];
    return ndw_get_limit(7 /* RLIMIT_NOFILE */, limits) == 0 && limits[0] < 0x7FFFFFFF ? (int)limits[0] : 0x7FFFFFFF;
}
NDW_INLINE int _setmaxstdio(int most)
{
    unsigned long limits[2];
    if (most < 20 || most > 8192) {
        errno = EINVAL;
        return -1;
    }
    if (ndw_get_limit(7, limits) != 0)
        return -1;
    if (limits[0] < (unsigned long)most) {
        limits[0] = (unsigned long)most;
        if (ndw_set_limit(7, limits) != 0)
            return -1;
    }
    return most;
}
NDW_LIBC(int, _fclose_nolock, (FILE *stream), "fclose");
NDW_LIBC(int, _fflush_nolock, (FILE *stream), "fflush_unlocked");
NDW_LIBC(int, _fgetc_nolock, (FILE *stream), "fgetc_unlocked");
NDW_LIBC(int, _getc_nolock, (FILE *stream), "fgetc_unlocked");
NDW_LIBC(int, _fputc_nolock, (int character, FILE *stream), "fputc_unlocked");
NDW_LIBC(int, _putc_nolock, (int character, FILE *stream), "fputc_unlocked");
NDW_LIBC(int, _getchar_nolock, (void), "getchar_unlocked");
NDW_LIBC(int, _putchar_nolock, (int character), "putchar_unlocked");
NDW_LIBC(size_t, _fread_nolock, (void *buffer, size_t size, size_t count, FILE *stream), "fread_unlocked");
NDW_LIBC(size_t, _fwrite_nolock, (const void *buffer, size_t size, size_t count, FILE *stream), "fwrite_unlocked");
NDW_LIBC(void, _lock_file, (FILE *stream), "flockfile");
NDW_LIBC(void, _unlock_file, (FILE *stream), "funlockfile");
NDW_LIBC(int, _fgetchar, (void), "getchar");
NDW_LIBC(int, _fputchar, (int character), "putchar");
NDW_LIBC(int, _getw, (FILE *stream), "getw");
NDW_LIBC(int, _putw, (int word, FILE *stream), "putw");
/* More than the buffer holds is not read. */
NDW_INLINE size_t fread_s(void *buffer, size_t room, size_t size, size_t count, FILE *stream)
{
    if (size == 0 || count == 0)
        return 0;
    if (buffer == NULL || stream == NULL)
        return errno = EINVAL, 0;
    if (count > room / size)
        return errno = ERANGE, 0;
    return fread(buffer, size, count, stream);
}
NDW_INLINE errno_t clearerr_s(FILE *stream)
{
    return stream == NULL ? EINVAL : (clearerr(stream), 0);
}
NDW_INLINE int _flushall(void) { return fflush(NULL); }
NDW_INLINE errno_t tmpfile_s(FILE **file)
{
    if (!file)
        return EINVAL;
    *file = tmpfile();
    return *file ? 0 : errno;
}
NDW_INLINE char *gets_s(char *buffer, size_t size)
{
    size_t length = 0;
    int c;
    if (!buffer || size == 0) {
        errno = EINVAL;
        return NULL;
    }
    while ((c = getchar()) != EOF && c != '\n') {
        if (length + 1 >= size) {
            errno = ERANGE;
            buffer[0] = 0;
            return NULL;
        }
        buffer[length++] = (char)c;
    }
    buffer[length] = 0;
    return c == EOF && length == 0 ? NULL : buffer;
}
NDW_INLINE wchar_t *_getws_s(wchar_t *buffer, size_t size)
{
    size_t length = 0;
    wint_t c;
    if (!buffer || size == 0) {
        errno = EINVAL;
        return NULL;
    }
    while ((c = ndw_fgetwc(stdin)) != WEOF && c != L'\n') {
        if (length + 1 >= size) {
            errno = ERANGE;
            buffer[0] = 0;
            return NULL;
        }
        buffer[length++] = (wchar_t)c;
    }
    buffer[length] = 0;
    return c == WEOF && length == 0 ? NULL : buffer;
}
#ifdef __cplusplus
extern "C++" {
template <size_t N_> inline char *gets_s(char (&buffer)[N_])
{
    return gets_s(buffer, N_);
}
template <size_t N_> inline wchar_t *_getws_s(wchar_t (&buffer)[N_])
{
    return _getws_s(buffer, N_);
}
}
#endif
/* Wide characters on a stream that stays narrow, in UTF-8. */
NDW_INLINE wint_t ndw_fputwc(wchar_t character, FILE *stream)
{
    const wchar_t text[2] = {character, 0};
    if (character == 0)
        return putc(0, stream) == EOF ? WEOF : 0;
    return ndw_fputws(text, stream) < 0 ? WEOF : (wint_t)character;
}
NDW_LIBC(int, _fileno, (FILE *stream), "fileno");
NDW_LIBC(int, _fseeki64, (FILE *stream, long long offset, int origin), "fseek");
NDW_LIBC(long long, _ftelli64, (FILE *stream), "ftell");
/* The shell is Linux's. */
NDW_API(FILE *, _popen, (const char *command, const char *mode));
NDW_API(FILE *, _wpopen, (const wchar_t *command, const wchar_t *mode));
NDW_API(int, _pclose, (FILE *stream));

#endif /* NDWIN_CRT_STDIO_H */
