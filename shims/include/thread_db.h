/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <thread_db.h>, which uses words of <sal.h> as identifiers. Made by ci/header-names. */
#pragma GCC system_header
#include <ndwin/words_off.h>
#include_next <thread_db.h>
#include <ndwin/words_on.h>
