/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <stdlib.h>: numbers as text, the environment, byte order, paths. */
#ifndef NDWIN_CRT_STDLIB_H
#define NDWIN_CRT_STDLIB_H

#include <errno.h>
#include <stdint.h>
#include "base.h"
#include "errno.h"
#include "wide_path.h"

#define _MAX_PATH  260
#define _MAX_DRIVE 3
#define _MAX_DIR   256
#define _MAX_FNAME 256
#define _MAX_EXT   256
#define _MAX_ENV   32767

#ifdef __cplusplus
extern "C++" {
namespace ndwin {
template <typename T_, size_t N_> char (&countof_helper(T_ (&)[N_]))[N_];
}
}
#define _countof(array) (sizeof(ndwin::countof_helper(array)))
#else
#define _countof(array) (sizeof(array) / sizeof((array)[0]))
#endif
#define __min(a, b) ((a) < (b) ? (a) : (b))
#define __max(a, b) ((a) > (b) ? (a) : (b))

NDW_API(int, _wtoi, (const wchar_t *text));
NDW_API(int, _wtol, (const wchar_t *text));
NDW_API(long long, _wtoi64, (const wchar_t *text));
NDW_API(wchar_t *, _itow, (int value, wchar_t *buffer, int radix));
NDW_API(errno_t, _itow_s, (int value, wchar_t *buffer, size_t size, int radix));
NDW_API(errno_t, _itoa_s, (int value, char *buffer, size_t size, int radix));
NDW_API(errno_t, _ultow_s, (unsigned value, wchar_t *buffer, size_t size, int radix));
NDW_API(errno_t, _ultoa_s, (unsigned value, char *buffer, size_t size, int radix));
NDW_API(errno_t, _i64tow_s, (long long value, wchar_t *buffer, size_t size, int radix));
NDW_API(errno_t, _i64toa_s, (long long value, char *buffer, size_t size, int radix));
NDW_API(errno_t, _ui64tow_s, (unsigned long long value, wchar_t *buffer, size_t size, int radix));
NDW_API(errno_t, _ui64toa_s, (unsigned long long value, char *buffer, size_t size, int radix));
#define _ltow_s _itow_s
#define _ltoa_s _itoa_s
#ifdef __cplusplus
extern "C++" {
#define NDW_DIGITS_OF_ARRAY(name, type, character)                                          \
    template <size_t N_> inline errno_t name(type value, character (&buffer)[N_], int radix)   \
    {                                                                                        \
        return name(value, buffer, N_, radix);                                                \
    }
NDW_DIGITS_OF_ARRAY(_itow_s, int, wchar_t)
NDW_DIGITS_OF_ARRAY(_itoa_s, int, char)
NDW_DIGITS_OF_ARRAY(_ultow_s, unsigned, wchar_t)
NDW_DIGITS_OF_ARRAY(_ultoa_s, unsigned, char)
NDW_DIGITS_OF_ARRAY(_i64tow_s, long long, wchar_t)
NDW_DIGITS_OF_ARRAY(_i64toa_s, long long, char)
NDW_DIGITS_OF_ARRAY(_ui64tow_s, unsigned long long, wchar_t)
NDW_DIGITS_OF_ARRAY(_ui64toa_s, unsigned long long, char)
#undef NDW_DIGITS_OF_ARRAY
}
#endif
/* The buffer has room for all digits, the sign and a NUL. */
#define NDW_DIGITS(name, bounded, type, character, room)                    \
    NDW_INLINE character *name(type value, character *buffer, int radix)    \
    {                                                                       \
        bounded(value, buffer, room, radix);                                \
        return buffer;                                                      \
    }
NDW_DIGITS(_itoa, _itoa_s, int, char, 34)
NDW_DIGITS(_ltoa, _itoa_s, int, char, 34)
NDW_DIGITS(_ultoa, _ultoa_s, unsigned, char, 34)
NDW_DIGITS(_i64toa, _i64toa_s, long long, char, 66)
NDW_DIGITS(_ui64toa, _ui64toa_s, unsigned long long, char, 66)
NDW_DIGITS(_ltow, _itow_s, int, wchar_t, 34)
NDW_DIGITS(_ultow, _ultow_s, unsigned, wchar_t, 34)
NDW_DIGITS(_i64tow, _i64tow_s, long long, wchar_t, 66)
NDW_DIGITS(_ui64tow, _ui64tow_s, unsigned long long, wchar_t, 66)
#undef NDW_DIGITS
/* The older names. */
NDW_LIBC(char *, itoa, (int value, char *buffer, int radix), "ndw__itoa");
NDW_LIBC(char *, ltoa, (int value, char *buffer, int radix), "ndw__itoa");
NDW_LIBC(char *, ultoa, (unsigned value, char *buffer, int radix), "ndw__ultoa");
NDW_INLINE long long _abs64(long long value) { return value < 0 ? -value : value; }

/* The context comes first here, last in the C library's. */
struct ndw_comparison {
    int (*compare)(void *context, const void *a, const void *b);
    void *context;
};
NDW_INLINE int ndw_compare(const void *a, const void *b, void *comparison)
{
    const struct ndw_comparison *const by = (const struct ndw_comparison *)comparison;
    return by->compare(by->context, a, b);
}
NDW_LIBC(void, ndw_qsort,
    (void *first, size_t count, size_t size, int (*compare)(const void *a, const void *b, void *context), void *context), "qsort_r");
NDW_INLINE void qsort_s(
    void *first, size_t count, size_t size, int (*compare)(void *context, const void *a, const void *b), void *context)
{
    struct ndw_comparison by;
    if ((first == NULL && count > 0) || size == 0 || compare == NULL) {
        errno = EINVAL;
        return;
    }
    by.compare = compare;
    by.context = context;
    ndw_qsort(first, count, size, ndw_compare, &by);
}
#if !defined(__cplusplus) && !defined(NOMINMAX)
#ifndef min
#define min(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef max
#define max(a, b) ((a) > (b) ? (a) : (b))
#endif
#endif
EXTERN_C void _exit(int status) __attribute__((__noreturn__));
EXTERN_C char **ndw_environ __asm__("environ");
#define _environ ndw_environ
NDW_LIBC(double, ndw_wcstod, (const wchar_t *text, wchar_t **end), "wcstod");
NDW_INLINE double _wtof(const wchar_t *text) { return ndw_wcstod(text, (wchar_t **)0); }
NDW_LIBC(void, ndw_swab, (const void *from, void *to, long long count), "swab");
NDW_INLINE void _swab(char *from, char *to, int count) { ndw_swab(from, to, count); }
NDW_LIBC(long long, _atoi64, (const char *text), "atoll");
NDW_LIBC(long long, _strtoi64, (const char *text, char **end, int radix), "strtoll");
NDW_LIBC(unsigned long long, _strtoui64, (const char *text, char **end, int radix), "strtoull");
NDW_LIBC(long long, _wcstoi64, (const wchar_t *text, wchar_t **end, int radix), "wcstoll");
NDW_LIBC(unsigned long long, _wcstoui64, (const wchar_t *text, wchar_t **end, int radix), "wcstoull");

NDW_API(errno_t, _dupenv_s, (char **buffer, size_t *size, const char *name));
NDW_API(errno_t, getenv_s, (size_t *needed, char *buffer, size_t size, const char *name));
NDW_API(errno_t, _putenv_s, (const char *name, const char *value));
NDW_API(errno_t, _wdupenv_s, (wchar_t **buffer, size_t *size, const wchar_t *name));
NDW_API(errno_t, _wgetenv_s, (size_t *needed, wchar_t *buffer, size_t size, const wchar_t *name));
/* The value stays where it is for the life of the process. */
NDW_API(wchar_t *, _wgetenv, (const wchar_t *name));
NDW_API(errno_t, _wputenv_s, (const wchar_t *name, const wchar_t *value));
#ifdef __cplusplus
extern "C++" {
template <size_t N_> inline errno_t getenv_s(size_t *needed, char (&buffer)[N_], const char *name)
{
    return getenv_s(needed, buffer, N_, name);
}
template <size_t N_> inline errno_t _wgetenv_s(size_t *needed, wchar_t (&buffer)[N_], const wchar_t *name)
{
    return _wgetenv_s(needed, buffer, N_, name);
}
}
#endif

/* The exit code of a command of Linux's shell. That of system() is a wait status. */
NDW_API(int, _wsystem, (const wchar_t *command));

/* "name=value"; without a value the variable is removed. */
NDW_INLINE int _putenv(const char *assignment)
{
    char name[256];
    size_t length = 0;
    if (assignment)
        for (; assignment[length] && assignment[length] != '='; length++) {}
    if (length == 0 || length >= sizeof name || assignment[length] != '=') {
        errno = EINVAL;
        return -1;
    }
    __builtin_memcpy(name, assignment, length);
    name[length] = 0;
    return _putenv_s(name, assignment + length + 1) ? -1 : 0;
}
NDW_INLINE int _wputenv(const wchar_t *assignment)
{
    wchar_t name[256];
    size_t length = 0;
    for (; assignment && length < 256 && assignment[length] && assignment[length] != L'='; length++)
        name[length] = assignment[length];
    if (length == 0 || length == 256 || assignment[length] != L'=') {
        errno = EINVAL;
        return -1;
    }
    name[length] = 0;
    return _wputenv_s(name, assignment + length + 1) ? -1 : 0;
}
NDW_LIBC(long long, _wtoll, (const wchar_t *text), "ndw__wtoi64");

/* Of elements in order; the context comes first. */
NDW_INLINE void *bsearch_s(const void *key, const void *first, size_t count, size_t size,
    int (*compare)(void *context, const void *key, const void *element), void *context)
{
    const char *low = (const char *)first;
    if ((first == NULL && count > 0) || key == NULL || size == 0 || compare == NULL) {
        errno = EINVAL;
        return NULL;
    }
    while (count > 0) {
        const char *const middle = low + count / 2 * size;
        const int order = compare(context, key, middle);
        if (order == 0)
            return (void *)(size_t)middle;
        if (order > 0) {
            low = middle + size;
            count--;
        }
        count /= 2;
    }
    return NULL;
}

/* At the end of the program. */
typedef int (*_onexit_t)(void);
NDW_LIBC(int, ndw_on_exit, (void (*function)(int status, void *context), void *context), "on_exit");
NDW_INLINE void ndw_run_at_exit(int status, void *function)
{
    (void)status;
    ((_onexit_t)(size_t)function)();
}
NDW_INLINE _onexit_t _onexit(_onexit_t function)
{
    return function && ndw_on_exit(ndw_run_at_exit, (void *)(size_t)function) == 0 ? function : (_onexit_t)0;
}

/* The arguments of main, from libndcompat_main.a. */
EXTERN_C int __argc __asm__("ndw___argc");
EXTERN_C char **__argv __asm__("ndw___argv");

/* The path of the program. */
NDW_LIBC(unsigned, ndw_module_name, (void *module, char *buffer, unsigned size), "ndw_GetModuleFileNameA");
NDW_LIBC(unsigned, ndw_wide_module_name, (void *module, wchar_t *buffer, unsigned size), "ndw_GetModuleFileNameW");
#define NDW_PROGRAM(get, made, name, character)                                                                    \
    NDW_INLINE character *made(void)                                                                               \
    {                                                                                                              \
        static character *found;                                                                                   \
        character *path = __atomic_load_n(&found, __ATOMIC_ACQUIRE), *other = (character *)0;                      \
        if (path)                                                                                                  \
            return path;                                                                                           \
        path = (character *)__builtin_calloc(4097, sizeof *path);                                                  \
        if (path)                                                                                                  \
            name((void *)0, path, 4097);                                                                           \
        if (path && !__atomic_compare_exchange_n(&found, &other, path, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {    \
            __builtin_free(path);                                                                                  \
            path = other;                                                                                          \
        }                                                                                                          \
        return path;                                                                                               \
    }                                                                                                              \
    NDW_INLINE errno_t get(character **path)                                                                       \
    {                                                                                                              \
        if (!path)                                                                                                 \
            return EINVAL;                                                                                         \
        *path = made();                                                                                            \
        return *path ? 0 : ENOMEM;                                                                                 \
    }
NDW_PROGRAM(_get_pgmptr, ndw_program, ndw_module_name, char)
NDW_PROGRAM(_get_wpgmptr, ndw_wide_program, ndw_wide_module_name, wchar_t)
#undef NDW_PROGRAM
#define _pgmptr  ndw_program()
#define _wpgmptr ndw_wide_program()
/* The digits alone: where the point is, and the sign, are told. */
NDW_LIBC(char *, _ecvt, (double value, int digits, int *point, int *sign), "ecvt");
NDW_LIBC(char *, _fcvt, (double value, int decimals, int *point, int *sign), "fcvt");
/* A random number from 0 to UINT_MAX. */
NDW_API(errno_t, rand_s, (unsigned *number));

NDW_API(errno_t, mbstowcs_s, (size_t *converted, wchar_t *target, size_t size, const char *source, size_t count));
NDW_API(errno_t, wcstombs_s, (size_t *converted, char *target, size_t size, const wchar_t *source, size_t count));
NDW_API(errno_t, wctomb_s, (int *length, char *target, size_t size, wchar_t character));

NDW_API(errno_t, _splitpath_s,
    (const char *path, char *drive, size_t driveSize, char *folder, size_t folderSize, char *name, size_t nameSize,
     char *extension, size_t extensionSize));
NDW_API(errno_t, _wsplitpath_s,
    (const wchar_t *path, wchar_t *drive, size_t driveSize, wchar_t *folder, size_t folderSize, wchar_t *name,
     size_t nameSize, wchar_t *extension, size_t extensionSize));
NDW_API(errno_t, _makepath_s,
    (char *path, size_t size, const char *drive, const char *folder, const char *name, const char *extension));
NDW_API(errno_t, _wmakepath_s,
    (wchar_t *path, size_t size, const wchar_t *drive, const wchar_t *folder, const wchar_t *name,
     const wchar_t *extension));
NDW_API(char *, _fullpath, (char *buffer, const char *path, size_t size));
NDW_API(wchar_t *, _wfullpath, (wchar_t *buffer, const wchar_t *path, size_t size));

/* The forms without sizes of the buffers. */
NDW_INLINE void _splitpath(const char *path, char *drive, char *folder, char *name, char *extension)
{
    _splitpath_s(path, drive, drive ? _MAX_DRIVE : 0, folder, folder ? _MAX_DIR : 0, name, name ? _MAX_FNAME : 0,
                 extension, extension ? _MAX_EXT : 0);
}
NDW_INLINE void _wsplitpath(const wchar_t *path, wchar_t *drive, wchar_t *folder, wchar_t *name, wchar_t *extension)
{
    _wsplitpath_s(path, drive, drive ? _MAX_DRIVE : 0, folder, folder ? _MAX_DIR : 0, name, name ? _MAX_FNAME : 0,
                  extension, extension ? _MAX_EXT : 0);
}
NDW_INLINE void _makepath(char *path, const char *drive, const char *folder, const char *name, const char *extension)
{
    _makepath_s(path, _MAX_PATH, drive, folder, name, extension);
}
NDW_INLINE void _wmakepath(wchar_t *path, const wchar_t *drive, const wchar_t *folder, const wchar_t *name,
                           const wchar_t *extension)
{
    _wmakepath_s(path, _MAX_PATH, drive, folder, name, extension);
}
#ifdef __cplusplus
extern "C++" {
template <size_t D_, size_t F_, size_t N_, size_t E_>
inline errno_t _splitpath_s(const char *path, char (&drive)[D_], char (&folder)[F_], char (&name)[N_], char (&extension)[E_])
{
    return _splitpath_s(path, drive, D_, folder, F_, name, N_, extension, E_);
}
template <size_t D_, size_t F_, size_t N_, size_t E_>
inline errno_t _wsplitpath_s(const wchar_t *path, wchar_t (&drive)[D_], wchar_t (&folder)[F_], wchar_t (&name)[N_],
                             wchar_t (&extension)[E_])
{
    return _wsplitpath_s(path, drive, D_, folder, F_, name, N_, extension, E_);
}
template <size_t P_>
inline errno_t _makepath_s(char (&path)[P_], const char *drive, const char *folder, const char *name, const char *extension)
{
    return _makepath_s(path, P_, drive, folder, name, extension);
}
template <size_t P_>
inline errno_t _wmakepath_s(wchar_t (&path)[P_], const wchar_t *drive, const wchar_t *folder, const wchar_t *name,
                            const wchar_t *extension)
{
    return _wmakepath_s(path, P_, drive, folder, name, extension);
}
template <size_t N_>
inline errno_t mbstowcs_s(size_t *converted, wchar_t (&target)[N_], const char *source, size_t count)
{
    return mbstowcs_s(converted, target, N_, source, count);
}
template <size_t N_>
inline errno_t wcstombs_s(size_t *converted, char (&target)[N_], const wchar_t *source, size_t count)
{
    return wcstombs_s(converted, target, N_, source, count);
}
}
#endif

/* What Windows does on a wrong use of the C library and on abort(). Linux ends the program by a signal: these settings are remembered, and have no effect. */
typedef void (*_invalid_parameter_handler)(const wchar_t *, const wchar_t *, const wchar_t *, unsigned, uintptr_t);
#define _WRITE_ABORT_MSG  1
#define _CALL_REPORTFAULT 2
#define _OUT_TO_DEFAULT   0
#define _OUT_TO_STDERR    1
#define _OUT_TO_MSGBOX    2
#define _REPORT_ERRMODE   3
NDW_INLINE _invalid_parameter_handler _set_invalid_parameter_handler(_invalid_parameter_handler handler)
{
    static _invalid_parameter_handler current;
    const _invalid_parameter_handler former = current;
    current = handler;
    return former;
}
NDW_INLINE unsigned _set_abort_behavior(unsigned flags, unsigned mask)
{
    static unsigned current = _WRITE_ABORT_MSG | _CALL_REPORTFAULT;
    const unsigned former = current;
    current = (former & ~mask) | (flags & mask);
    return former;
}
NDW_INLINE int _set_error_mode(int mode)
{
    static int current = _OUT_TO_DEFAULT;
    const int former = current;
    if (mode != _REPORT_ERRMODE)
        current = mode;
    return former;
}

#define _byteswap_ushort(value)         __builtin_bswap16(value)
#define _byteswap_ulong(value)          __builtin_bswap32(value)
#define _byteswap_uint64(value)         __builtin_bswap64(value)

/* <x86intrin.h> has some of these as macros. */
NDW_INLINE unsigned ndw_rotl(unsigned value, int by)
{
    return value << (by & 31) | value >> (-by & 31);
}
NDW_INLINE unsigned ndw_rotr(unsigned value, int by)
{
    return value >> (by & 31) | value << (-by & 31);
}
#ifndef _rotl
#define _rotl(value, by) ndw_rotl((value), (by))
#endif
#ifndef _rotr
#define _rotr(value, by) ndw_rotr((value), (by))
#endif
/* On Windows `unsigned long` has 32 bits. */
#undef _lrotl
#undef _lrotr
#define _lrotl(value, by) ndw_rotl((unsigned)(value), (by))
#define _lrotr(value, by) ndw_rotr((unsigned)(value), (by))
/* With -fms-extensions these are builtins of clang, which cannot be redeclared. */
#if defined(__clang__)
#if __has_builtin(_rotl64)
#define NDW_BUILTIN_ROTATIONS 1
#endif
#endif
#ifndef NDW_BUILTIN_ROTATIONS
NDW_INLINE unsigned long long _rotl64(unsigned long long value, int by)
{
    return value << (by & 63) | value >> (-by & 63);
}
NDW_INLINE unsigned long long _rotr64(unsigned long long value, int by)
{
    return value >> (by & 63) | value << (-by & 63);
}
#endif

#endif /* NDWIN_CRT_STDLIB_H */
