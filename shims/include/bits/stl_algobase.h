/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <bits/stl_algobase.h>, which uses words of <sal.h> as identifiers. Made by ci/header-names. */
#pragma GCC system_header
#include <ndwin/words_off.h>
#include_next <bits/stl_algobase.h>
#include <ndwin/words_on.h>
