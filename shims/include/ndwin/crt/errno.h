/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Microsoft's additions to <errno.h>. */
#ifndef NDWIN_CRT_ERRNO_H
#define NDWIN_CRT_ERRNO_H

#include "base.h"

NDW_INLINE errno_t _get_errno(int *value)
{
    *value = errno;
    return 0;
}
NDW_INLINE errno_t _set_errno(int value)
{
    return errno = value, 0;
}

#endif /* NDWIN_CRT_ERRNO_H */
