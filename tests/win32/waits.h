// SPDX-License-Identifier: MIT OR Apache-2.0
// Waits for what other threads do, which end also if they never do it.
#ifndef WAITS_TEST_H
#define WAITS_TEST_H

#include <windows.h>

// Whether `condition` becomes true in half a minute.
template <class Condition> static inline bool comes_true(Condition condition)
{
    for (const ULONGLONG end = GetTickCount64() + 30000; !condition(); Sleep(1))
        if (GetTickCount64() > end)
            return false;
    return true;
}

#endif
