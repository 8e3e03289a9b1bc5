/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Undefines the words of <sal.h> that system headers use as identifiers. words_on.h restores them. No include guard, since
 * such headers include each other.
 */
#pragma push_macro("__in")
#pragma push_macro("__out")
#pragma push_macro("__callback")
#pragma push_macro("__override")
#undef __in
#undef __out
#undef __callback
#undef __override
