// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls of the system that fail when they are to (failing_calls.cpp).
#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

#include <atomic>

// The call that is to fail, counted from 0, or -1; the calls so far; and the function that has failed.
extern std::atomic<int> due, calls;
extern std::atomic<const char*> failed;

#endif
