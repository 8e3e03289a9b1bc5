/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The console: control events, modes, colours, text, code pages. */
#ifndef NDWIN_CONSOLE_H
#define NDWIN_CONSOLE_H

#include "types.h"

#define CTRL_C_EVENT        0
#define CTRL_BREAK_EVENT    1
#define CTRL_CLOSE_EVENT    2
#define CTRL_LOGOFF_EVENT   5
#define CTRL_SHUTDOWN_EVENT 6

typedef BOOL (WINAPI *PHANDLER_ROUTINE)(DWORD event);

NDW_API(BOOL, SetConsoleCtrlHandler, (PHANDLER_ROUTINE handler, BOOL add));
NDW_API(BOOL, GenerateConsoleCtrlEvent, (DWORD event, DWORD group));

#define ENABLE_PROCESSED_INPUT             0x0001
#define ENABLE_LINE_INPUT                  0x0002
#define ENABLE_ECHO_INPUT                  0x0004
#define ENABLE_WINDOW_INPUT                0x0008
#define ENABLE_MOUSE_INPUT                 0x0010
#define ENABLE_INSERT_MODE                 0x0020
#define ENABLE_QUICK_EDIT_MODE             0x0040
#define ENABLE_EXTENDED_FLAGS              0x0080
#define ENABLE_VIRTUAL_TERMINAL_INPUT      0x0200
#define ENABLE_PROCESSED_OUTPUT            0x0001
#define ENABLE_WRAP_AT_EOL_OUTPUT          0x0002
#define ENABLE_VIRTUAL_TERMINAL_PROCESSING 0x0004
#define DISABLE_NEWLINE_AUTO_RETURN        0x0008

#define FOREGROUND_BLUE      0x0001
#define FOREGROUND_GREEN     0x0002
#define FOREGROUND_RED       0x0004
#define FOREGROUND_INTENSITY 0x0008
#define BACKGROUND_BLUE      0x0010
#define BACKGROUND_GREEN     0x0020
#define BACKGROUND_RED       0x0040
#define BACKGROUND_INTENSITY 0x0080

typedef struct _COORD {
    SHORT X;
    SHORT Y;
} COORD, *PCOORD;

typedef struct _SMALL_RECT {
    SHORT Left;
    SHORT Top;
    SHORT Right;
    SHORT Bottom;
} SMALL_RECT, *PSMALL_RECT;

typedef struct _CONSOLE_SCREEN_BUFFER_INFO {
    COORD dwSize;
    COORD dwCursorPosition;
    WORD wAttributes;
    SMALL_RECT srWindow;
    COORD dwMaximumWindowSize;
} CONSOLE_SCREEN_BUFFER_INFO, *PCONSOLE_SCREEN_BUFFER_INFO;

NDW_API(BOOL, GetConsoleMode, (HANDLE console, LPDWORD mode));
NDW_API(BOOL, SetConsoleMode, (HANDLE console, DWORD mode));
NDW_API(BOOL, FlushConsoleInputBuffer, (HANDLE console));
NDW_API(BOOL, GetConsoleScreenBufferInfo, (HANDLE console, PCONSOLE_SCREEN_BUFFER_INFO info));
NDW_API(BOOL, SetConsoleTextAttribute, (HANDLE console, WORD attributes));
NDW_API(BOOL, SetConsoleCursorPosition, (HANDLE console, COORD position));
NDW_API(BOOL, SetConsoleTitleA, (LPCSTR title));
NDW_API(BOOL, SetConsoleTitleW, (LPCWSTR title));
NDW_API(BOOL, WriteConsoleA, (HANDLE console, const void *text, DWORD length, LPDWORD written, LPVOID reserved));
NDW_API(BOOL, WriteConsoleW, (HANDLE console, const void *text, DWORD length, LPDWORD written, LPVOID reserved));
#ifdef UNICODE
#define SetConsoleTitle SetConsoleTitleW
#define WriteConsole    WriteConsoleW
#else
#define SetConsoleTitle SetConsoleTitleA
#define WriteConsole    WriteConsoleA
#endif

/* The window belongs to the terminal program, so this one has none. */
NDW_INLINE HWND GetConsoleWindow(void) { return NULL; }

/* Narrow text is UTF-8; there is no other code page. */
NDW_INLINE UINT GetConsoleCP(void) { return 65001; }
NDW_INLINE UINT GetConsoleOutputCP(void) { return 65001; }
NDW_INLINE BOOL SetConsoleCP(UINT page) { return page == 65001; }
NDW_INLINE BOOL SetConsoleOutputCP(UINT page) { return page == 65001; }

#endif /* NDWIN_CONSOLE_H */
