/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions of Microsoft's C library that Linux has under other names, or not at all. */
#ifndef NDWIN_CRT_H
#define NDWIN_CRT_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "crt/malloc.h"
#include "crt/stdlib.h"
#include "crt/string.h"
#include "crt/time.h"
#ifndef NDCOMPAT_NATIVE_STDIO
#include "locale.h"
#endif
#include "stdio.h"

#endif /* NDWIN_CRT_H */
