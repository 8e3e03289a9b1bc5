// SPDX-License-Identifier: MIT OR Apache-2.0
// CHECK(condition): a test program ends where a condition is false, and says where. A program that wants to see an error number, too,
// defines LAST_ERROR before it includes this.
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

// `fputs` is the system's own: some of the programs are linked without the library, which has `printf`.
#define CHECK_TEXT_OF(line) #line
#define CHECK_TEXT(line) CHECK_TEXT_OF(line)
#ifdef LAST_ERROR
#define CHECK_FAILED(text) fprintf(stderr, "%s, error %ld\n", text, static_cast<long>(LAST_ERROR))
#else
#define CHECK_FAILED(text) fputs(text "\n", stderr)
#endif

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            CHECK_FAILED(__FILE__ ":" CHECK_TEXT(__LINE__) ": " #condition);        \
            abort();                                                                \
        }                                                                           \
    } while (0)

#endif
