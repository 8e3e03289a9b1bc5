/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <conio.h>: keys and characters, one at a time. */
#ifndef NDWIN_CONIO_H
#define NDWIN_CONIO_H

#include <stdio.h>
#include "ndwin/config.h"

NDW_API(int, _kbhit, (void));
NDW_API(int, _getch, (void));
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

#endif /* NDWIN_CONIO_H */
