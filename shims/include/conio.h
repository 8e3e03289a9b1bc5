/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <conio.h>: keys and characters, one at a time. */
#ifndef NDWIN_CONIO_H
#define NDWIN_CONIO_H

#include <stdio.h>
#include "ndwin/crt/base.h"
#include "ndwin/stdio.h"

NDW_API(int, _kbhit, (void));
NDW_API(int, _getch, (void));
NDW_LIBC(int, kbhit, (void), "ndw__kbhit");
NDW_LIBC(int, getch, (void), "ndw__getch");
NDW_INLINE int _putch(int character)
{
    int put = putchar(character);
    fflush(stdout);
    return put;
}
NDW_INLINE int _getche(void)
{
    int key = _getch();
    if (key != EOF) {
        _putch(key);
    }
    return key;
}
NDW_INLINE int _cputs(const char *text)
{
    return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? -1 : 0;
}
/* As wide characters. */
NDW_INLINE int _cputws(const wchar_t *text)
{
    return ndw_fputws(text, stdout) < 0 || fflush(stdout) != 0 ? -1 : 0;
}
NDW_INLINE wint_t _putwch(wchar_t character)
{
    const wint_t put = ndw_fputwc(character, stdout);
    fflush(stdout);
    return put;
}
NDW_INLINE wint_t _getwch(void)
{
    const int first = _getch();
    int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
    unsigned character = (unsigned)first & (more ? 0x3Fu >> more : 0xFFu);
    if (first == EOF)
        return WEOF;
    for (; more; more--)
        character = character << 6 | ((unsigned)_getch() & 0x3F);
    return character;
}
NDW_INLINE wint_t _getwche(void)
{
    const wint_t key = _getwch();
    if (key != WEOF)
        _putwch((wchar_t)key);
    return key;
}
NDW_INLINE int _cprintf(const char *format, ...)
{
    va_list arguments;
    int written;
    va_start(arguments, format);
    written = ndw_vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
    return written;
}
/* The older names. */
NDW_INLINE int putch(int character) { return _putch(character); }
NDW_INLINE int getche(void) { return _getche(); }
NDW_INLINE int cputs(const char *text) { return _cputs(text); }

#endif /* NDWIN_CONIO_H */
