/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <io.h>: files by their descriptors. */
#ifndef NDWIN_IO_CRT_H
#define NDWIN_IO_CRT_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/locking.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ndwin/crt/base.h"
#include "ndwin/crt/fcntl.h"
#include "ndwin/crt/stat.h"

NDW_LIBC(int, _access, (const char *path, int mode), "access");
/* What Windows' mode says is whether the file may be written to: it can always be read. */
NDW_INLINE int _chmod(const char *path, int mode)
{
    return chmod(path, (mode_t)(mode | S_IRUSR));
}
/* The handle that _get_osfhandle gave goes with the descriptor. */
NDW_API(int, _close, (int file));
NDW_LIBC(int, _commit, (int file), "fsync");
NDW_LIBC(int, _dup, (int file), "dup");
/* 0, not the descriptor. */
NDW_INLINE int _dup2(int file, int other)
{
    return dup2(file, other) < 0 ? -1 : 0;
}
NDW_LIBC(int, _isatty, (int file), "isatty");
NDW_LIBC(long long, _lseeki64, (int file, long long offset, int origin), "lseek");
NDW_INLINE int _lseek(int file, int offset, int origin)
{
    return (int)lseek(file, offset, origin);
}
NDW_INLINE int _read(int file, void *buffer, unsigned count)
{
    return (int)read(file, buffer, count);
}
/* To a pipe that nobody reads any more: EPIPE, no SIGPIPE. */
NDW_API(int, _write, (int file, const void *buffer, unsigned count));
NDW_INLINE long long _filelengthi64(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 ? status.st_size : -1;
}
NDW_INLINE int _filelength(int file)
{
    return (int)_filelengthi64(file);
}
NDW_INLINE int filelength(int file) { return _filelength(file); }
/* A folder cannot be opened, and what is created can be read. */
NDW_LIBC(int, ndw_open, (const char *path, int flags, int mode), "ndw__open");
NDW_LIBC(int, ndw_wopen, (const wchar_t *path, int flags, int mode), "ndw__wopen");
/* Unlike that of the C library, which only writes. */
NDW_INLINE int _creat(const char *path, int mode)
{
    return ndw_open(path, O_RDWR | O_CREAT | O_TRUNC, mode);
}
NDW_INLINE int _wchmod(const wchar_t *path, int mode)
{
    char narrow[4097];
    return ndw_narrow_path(path, narrow) ? _chmod(narrow, mode) : -1;
}
/* A file that may be created is given its mode. */
NDW_INLINE int _open(const char *path, int flags, ...)
{
    int mode = 0;
    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, int);
        va_end(arguments);
    }
    return ndw_open(path, flags, mode);
}
NDW_INLINE int _wopen(const wchar_t *path, int flags, ...)
{
    int mode = 0;
    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, int);
        va_end(arguments);
    }
    return ndw_wopen(path, flags, mode);
}
/* A pipe has the size that Linux gives it, and no mode but for _O_NOINHERIT. */
NDW_LIBC(int, ndw_pipe, (int *ends, int flags), "pipe2");
NDW_INLINE int _pipe(int *ends, unsigned size, int mode)
{
    (void)size;
    return ndw_pipe(ends, mode & _O_NOINHERIT);
}
NDW_INLINE errno_t _access_s(const char *path, int mode)
{
    return path == NULL ? EINVAL : access(path, mode) == 0 ? 0 : errno;
}
NDW_INLINE int _waccess(const wchar_t *path, int mode)
{
    char narrow[4097];
    return ndw_narrow_path(path, narrow) ? access(narrow, mode) : -1;
}
NDW_API(int, _wunlink, (const wchar_t *path));
NDW_LIBC(int, ndw_truncate, (int file, long long size), "ftruncate");
NDW_INLINE errno_t _chsize_s(int file, long long size)
{
    return ndw_truncate(file, size) == 0 ? 0 : errno;
}
NDW_INLINE int _chsize(int file, int size)
{
    return ndw_truncate(file, size);
}
NDW_INLINE long long _telli64(int file)
{
    return lseek(file, 0, SEEK_CUR);
}
NDW_INLINE int _tell(int file)
{
    return (int)_telli64(file);
}
NDW_INLINE int _eof(int file)
{
    const long long position = _telli64(file);
    return position < 0 ? -1 : position >= _filelengthi64(file);
}
NDW_INLINE int _umask(int mode)
{
    return (int)umask((mode_t)mode);
}
NDW_INLINE errno_t _umask_s(int mode, int *former)
{
    if (former == NULL)
        return EINVAL;
    *former = _umask(mode);
    return 0;
}
/* The share mode is ignored: other programs may open the file. */
#define NDW_SHARED_OPEN(name, name_s, character, open)                                                \
    NDW_INLINE errno_t name_s(int *file, const character *path, int flags, int share, int mode)       \
    {                                                                                                 \
        (void)share;                                                                                  \
        if (file == NULL)                                                                             \
            return EINVAL;                                                                            \
        *file = path == NULL ? -1 : open(path, flags, mode);                                          \
        return *file >= 0 ? 0 : path == NULL ? EINVAL : errno;                                        \
    }                                                                                                 \
    NDW_INLINE int name(const character *path, int flags, int share, ...)                             \
    {                                                                                                 \
        int mode = 0;                                                                                 \
        if (flags & O_CREAT) {                                                                        \
            va_list arguments;                                                                        \
            va_start(arguments, share);                                                               \
            mode = va_arg(arguments, int);                                                            \
            va_end(arguments);                                                                        \
        }                                                                                             \
        return open(path, flags, mode);                                                               \
    }
NDW_SHARED_OPEN(_sopen, _sopen_s, char, ndw_open)
NDW_SHARED_OPEN(_wsopen, _wsopen_s, wchar_t, ndw_wopen)
#undef NDW_SHARED_OPEN
/* A name that no file has, in place of the six X at the end. */
NDW_LIBC(int, ndw_temporary, (char *name), "mkstemp");
NDW_INLINE char *_mktemp(char *name)
{
    int file = -1;
    if (name)
        file = ndw_temporary(name);
    else
        errno = EINVAL;
    if (file < 0)
        return NULL;
    close(file);
    unlink(name);
    return name;
}
NDW_INLINE errno_t _mktemp_s(char *name, size_t size)
{
    size_t length = 0;
    while (name && length < size && name[length])
        length++;
    if (length == 0 || length == size)
        return errno = EINVAL;
    return _mktemp(name) ? 0 : errno;
}
#ifdef __cplusplus
extern "C++" {
template <size_t N_> inline errno_t _mktemp_s(char (&name)[N_]) { return _mktemp_s(name, N_); }
}
#endif
/* A handle of a descriptor's file, and back: a descriptor to which the handle's file belongs from then on. */
NDW_API(intptr_t, _get_osfhandle, (int file));
NDW_API(int, _open_osfhandle, (intptr_t handle, int flags));

/* Under wide names. */
NDW_INLINE errno_t _waccess_s(const wchar_t *path, int mode)
{
    return _waccess(path, mode) == 0 ? 0 : errno;
}
NDW_INLINE int _wcreat(const wchar_t *path, int mode) { return _wopen(path, O_RDWR | O_CREAT | O_TRUNC, mode); }

/*
 * Locks of the bytes behind the position, as those of LockFile: a program that does not lock is not kept away. _LK_LOCK and
 * _LK_RLCK try ten times, a second apart.
 */
NDW_LIBC(int, ndw_lock_bytes, (intptr_t handle, unsigned low, unsigned high, unsigned count, unsigned countHigh), "ndw_LockFile");
NDW_LIBC(int, ndw_unlock_bytes, (intptr_t handle, unsigned low, unsigned high, unsigned count, unsigned countHigh), "ndw_UnlockFile");
NDW_INLINE int _locking(int file, int mode, long count)
{
    const long long position = lseek(file, 0, SEEK_CUR);
    const intptr_t handle = position < 0 ? -1 : _get_osfhandle(file);
    const unsigned low = (unsigned)position, high = (unsigned)(position >> 32);
    int tries = mode == _LK_LOCK || mode == _LK_RLCK ? 10 : 1;
    if (handle == -1)
        return -1;
    if (mode < _LK_UNLCK || mode > _LK_NBRLCK || count < 0 || count > 0x7FFFFFFF) {
        errno = EINVAL;
        return -1;
    }
    if (mode == _LK_UNLCK) {
        if (ndw_unlock_bytes(handle, low, high, (unsigned)count, 0))
            return 0;
        errno = EACCES;
        return -1;
    }
    while (!ndw_lock_bytes(handle, low, high, (unsigned)count, 0)) {
        if (--tries == 0) {
            errno = mode == _LK_LOCK || mode == _LK_RLCK ? EDEADLK : EACCES;
            return -1;
        }
        sleep(1);
    }
    return 0;
}

#define _A_NORMAL 0x00
#define _A_RDONLY 0x01
#define _A_HIDDEN 0x02
#define _A_SYSTEM 0x04
#define _A_SUBDIR 0x10
#define _A_ARCH   0x20

/* Searches. Times are those of time_t. */
typedef unsigned _fsize_t;
#define NDW_FIND_DATA(tag, sizeType, character)  \
    struct tag {                                 \
        unsigned attrib;                         \
        long long time_create;                   \
        long long time_access;                   \
        long long time_write;                    \
        sizeType size;                           \
        character name[260];                     \
    }
NDW_FIND_DATA(_finddata64i32_t, _fsize_t, char);
NDW_FIND_DATA(_wfinddata64i32_t, _fsize_t, wchar_t);
NDW_FIND_DATA(__finddata64_t, long long, char);
NDW_FIND_DATA(_wfinddata64_t, long long, wchar_t);
#undef NDW_FIND_DATA
#define _finddata_t     _finddata64i32_t
#define _wfinddata_t    _wfinddata64i32_t
#define _finddatai64_t  __finddata64_t
#define _wfinddatai64_t _wfinddata64_t

NDW_API(intptr_t, _findfirst64, (const char *name, struct __finddata64_t *found));
NDW_API(int, _findnext64, (intptr_t search, struct __finddata64_t *found));
NDW_API(intptr_t, _wfindfirst64, (const wchar_t *name, struct _wfinddata64_t *found));
NDW_API(int, _wfindnext64, (intptr_t search, struct _wfinddata64_t *found));
NDW_API(int, _findclose, (intptr_t search));

/* The same with a size of 32 bits. */
#define NDW_FIND_32(first, next, first64, next64, data, data64, character)               \
    NDW_INLINE void ndw_##data(struct data *target, const struct data64 *found)          \
    {                                                                                     \
        target->attrib = found->attrib;                                                   \
        target->time_create = found->time_create;                                         \
        target->time_access = found->time_access;                                         \
        target->time_write = found->time_write;                                           \
        target->size = (_fsize_t)found->size;                                             \
        __builtin_memcpy(target->name, found->name, sizeof target->name);                 \
    }                                                                                     \
    NDW_INLINE intptr_t first(const character *name, struct data *target)                 \
    {                                                                                     \
        struct data64 found;                                                              \
        const intptr_t search = first64(name, target ? &found : (struct data64 *)0);      \
        if (search != -1)                                                                 \
            ndw_##data(target, &found);                                                   \
        return search;                                                                    \
    }                                                                                     \
    NDW_INLINE int next(intptr_t search, struct data *target)                             \
    {                                                                                     \
        struct data64 found;                                                              \
        const int result = next64(search, target ? &found : (struct data64 *)0);          \
        if (result == 0)                                                                  \
            ndw_##data(target, &found);                                                   \
        return result;                                                                    \
    }
NDW_FIND_32(_findfirst, _findnext, _findfirst64, _findnext64, _finddata64i32_t, __finddata64_t, char)
NDW_FIND_32(_wfindfirst, _wfindnext, _wfindfirst64, _wfindnext64, _wfinddata64i32_t, _wfinddata64_t, wchar_t)
#undef NDW_FIND_32
#define _findfirsti64  _findfirst64
#define _findnexti64   _findnext64
#define _wfindfirsti64 _wfindfirst64
#define _wfindnexti64  _wfindnext64
#define _findfirst64i32  _findfirst
#define _findnext64i32   _findnext
#define _wfindfirst64i32 _wfindfirst
#define _wfindnext64i32  _wfindnext

NDW_INLINE int _setmode(int file, int mode)
{
    (void)file, (void)mode;
    return _O_BINARY;
}
NDW_INLINE int setmode(int file, int mode) { return _setmode(file, mode); }

#endif /* NDWIN_IO_CRT_H */
