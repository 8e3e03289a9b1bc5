/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <parallel/set_operations.h>, which uses words of <sal.h> as identifiers. Made by ci/header-names. */
#pragma GCC system_header
#include <ndwin/words_off.h>
#include_next <parallel/set_operations.h>
#include <ndwin/words_on.h>
