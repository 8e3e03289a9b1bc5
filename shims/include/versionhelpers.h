/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <versionhelpers.h>: the version is 10. */
#ifndef NDWIN_VERSIONHELPERS_H
#define NDWIN_VERSIONHELPERS_H

#include "windows.h"

#define IsWindowsXPOrGreater()           TRUE
#define IsWindowsXPSP3OrGreater()        TRUE
#define IsWindowsVistaOrGreater()        TRUE
#define IsWindowsVistaSP2OrGreater()     TRUE
#define IsWindows7OrGreater()            TRUE
#define IsWindows7SP1OrGreater()         TRUE
#define IsWindows8OrGreater()            TRUE
#define IsWindows8Point1OrGreater()      TRUE
#define IsWindowsThresholdOrGreater()    TRUE
#define IsWindows10OrGreater()           TRUE
/* Windows 10, as GetVersionEx tells. */
#define IsWindowsVersionOrGreater(major, minor, servicePack) \
    ((BOOL)((major) < 10 || ((major) == 10 && (minor) == 0 && (servicePack) == 0)))
#define IsWindowsServer()                FALSE

#endif /* NDWIN_VERSIONHELPERS_H */
