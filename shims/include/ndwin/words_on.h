/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Restores the macros that words_off.h has undefined. */
#pragma pop_macro("__override")
#pragma pop_macro("__callback")
#pragma pop_macro("__out")
#pragma pop_macro("__in")
