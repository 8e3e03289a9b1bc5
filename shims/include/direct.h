/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <direct.h>: folders. */
#ifndef NDWIN_DIRECT_H
#define NDWIN_DIRECT_H

#include <sys/stat.h>
#include <unistd.h>
#include "ndwin/crt/base.h"

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

#endif /* NDWIN_DIRECT_H */
