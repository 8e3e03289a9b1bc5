/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <eh.h>: handlers of C++ exceptions are in <exception>. */
#ifndef NDWIN_EH_H
#define NDWIN_EH_H
#ifdef __cplusplus
#include <exception>
#endif
#endif
