/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <bits/regex.tcc>, which uses words of <sal.h> as identifiers. Made by ci/header-names. */
#pragma GCC system_header
#include <ndwin/words_off.h>
#include_next <bits/regex.tcc>
#include <ndwin/words_on.h>
