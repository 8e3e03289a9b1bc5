/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The command line as one string and as an array of arguments. */
#ifndef NDWIN_COMMAND_LINE_H
#define NDWIN_COMMAND_LINE_H

#include "types.h"

NDW_API(LPSTR, GetCommandLineA, (void));
NDW_API(LPWSTR, GetCommandLineW, (void));
/* Free the array with LocalFree. */
NDW_API(LPWSTR *, CommandLineToArgvW, (LPCWSTR line, int *count));
#ifdef UNICODE
#define GetCommandLine GetCommandLineW
#else
#define GetCommandLine GetCommandLineA
#endif

#endif /* NDWIN_COMMAND_LINE_H */
