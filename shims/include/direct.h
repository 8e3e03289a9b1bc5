/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <direct.h>: folders. */
#ifndef NDWIN_DIRECT_H
#define NDWIN_DIRECT_H

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ndwin/crt/base.h"
#include "ndwin/crt/wide_path.h"

NDW_LIBC(int, _chdir, (const char *path), "chdir");
NDW_LIBC(int, _rmdir, (const char *path), "rmdir");
NDW_INLINE int _mkdir(const char *path)
{
    return mkdir(path, 0777);
}
NDW_INLINE char *_getcwd(char *buffer, int size)
{
    return getcwd(buffer, size < 0 ? 0 : (size_t)size);
}
NDW_INLINE int _wchdir(const wchar_t *path)
{
    char narrow[4097];
    return ndw_narrow_path(path, narrow) ? chdir(narrow) : -1;
}
NDW_INLINE int _wmkdir(const wchar_t *path)
{
    char narrow[4097];
    return ndw_narrow_path(path, narrow) ? mkdir(narrow, 0777) : -1;
}
NDW_INLINE int _wrmdir(const wchar_t *path)
{
    char narrow[4097];
    return ndw_narrow_path(path, narrow) ? rmdir(narrow) : -1;
}
NDW_LIBC(unsigned, ndw_current_folder, (unsigned size, wchar_t *buffer), "ndw_GetCurrentDirectoryW");
/* Without a buffer into one of malloc, of at least `size` characters. */
NDW_INLINE wchar_t *_wgetcwd(wchar_t *buffer, int size)
{
    const unsigned needed = ndw_current_folder(0, (wchar_t *)0);
    wchar_t *const target =
        buffer ? buffer : (wchar_t *)__builtin_malloc(sizeof *buffer * (size > 0 && (unsigned)size > needed ? (unsigned)size : needed));
    if (needed == 0 || target == NULL || (buffer && (size <= 0 || (unsigned)size < needed)) || ndw_current_folder(needed, target) >= needed) {
        errno = needed == 0 ? ENOENT : target == NULL ? ENOMEM : ERANGE;
        if (!buffer)
            __builtin_free(target);
        return NULL;
    }
    return target;
}

/* There are no drives: the current one has no number, and there is no other. */
NDW_INLINE int _getdrive(void) { return 0; }
NDW_INLINE int _chdrive(int drive)
{
    (void)drive;
    errno = EACCES;
    return -1;
}
NDW_INLINE unsigned _getdrives(void) { return 0; }
NDW_INLINE char *_getdcwd(int drive, char *buffer, int size)
{
    if (drive == 0)
        return _getcwd(buffer, size);
    errno = EACCES;
    return NULL;
}
NDW_INLINE wchar_t *_wgetdcwd(int drive, wchar_t *buffer, int size)
{
    if (drive == 0)
        return _wgetcwd(buffer, size);
    errno = EACCES;
    return NULL;
}

#endif /* NDWIN_DIRECT_H */
