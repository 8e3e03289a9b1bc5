/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <tr2/bool_set.tcc>, which uses words of <sal.h> as identifiers. Made by ci/header-names. */
#pragma GCC system_header
#include <ndwin/words_off.h>
#include_next <tr2/bool_set.tcc>
#include <ndwin/words_on.h>
