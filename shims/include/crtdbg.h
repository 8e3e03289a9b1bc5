/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ndcompat's <crtdbg.h>: assertions. There is no debug heap to ask. */
#ifndef NDWIN_CRTDBG_H
#define NDWIN_CRTDBG_H

#include <stdio.h>
#include <stdlib.h>
#include "ndwin/crt.h"

#define _CRT_WARN   0
#define _CRT_ERROR  1
#define _CRT_ASSERT 2
#define _CRTDBG_MODE_FILE   0x1
#define _CRTDBG_MODE_DEBUG  0x2
#define _CRTDBG_MODE_WNDW   0x4
#define _CRTDBG_REPORT_MODE (-1)
#define _CRTDBG_ALLOC_MEM_DF      0x01
#define _CRTDBG_CHECK_ALWAYS_DF   0x04
#define _CRTDBG_LEAK_CHECK_DF     0x20
#define _CRTDBG_REPORT_FLAG       (-1)
#define _CRTDBG_FILE_STDOUT ((void *)-4)
#define _CRTDBG_FILE_STDERR ((void *)-5)
#define _CrtSetDbgFlag(flag)           ((int)0)
#define _CrtSetReportMode(type, mode)  ((int)0)
#define _CrtSetReportFile(type, file)  ((void *)0)
#define _CrtDumpMemoryLeaks()          ((int)0)
#define _CrtCheckMemory()              ((int)1)
#define _CrtDbgBreak()                 __debugbreak()

/* As in Visual Studio: checked if _DEBUG is defined, not evaluated otherwise. */
#ifdef _DEBUG
NDW_INLINE void ndw_assertion_failed(const char *file, int line, const char *expression)
{
    fprintf(stderr, "%s(%d) : Assertion failed: %s\n", file, line, expression);
    abort();
}
#define _ASSERT_EXPR(expression, message) \
    ((void)(!!(expression) || (ndw_assertion_failed(__FILE__, __LINE__, #expression), 0)))
#define _RPT0(type, text)           ((void)fputs((text), stderr))
#define _RPTN(type, ...)            ((void)fprintf(stderr, __VA_ARGS__))
#else
#define _ASSERT_EXPR(expression, message) ((void)0)
#define _RPT0(type, text)           ((void)0)
#define _RPTN(type, ...)            ((void)0)
#endif
#define _RPTF0(type, text)                 _RPT0(type, text)
#define _RPTF1(type, format, a)            _RPTN(type, format, a)
#define _RPTF2(type, format, a, b)         _RPTN(type, format, a, b)
#define _RPTF3(type, format, a, b, c)      _RPTN(type, format, a, b, c)
/* There is no debug heap: nothing is found, and nothing differs. */
typedef struct _CrtMemState {
    size_t lSizes[5];
} _CrtMemState;
#define _CrtMemCheckpoint(state)           ((void)(state))
#define _CrtMemDifference(difference, a, b) ((void)(difference), (void)(a), (void)(b), 0)
#define _CrtMemDumpStatistics(state)       ((void)(state))
#define _CrtMemDumpAllObjectsSince(state)  ((void)(state))
#define _CrtSetBreakAlloc(number)          ((void)(number), 0)
#define _CrtDbgReport(...)                 ((int)0)
#define _malloc_dbg(size, type, file, line) malloc(size)
#define _free_dbg(block, type)             free(block)
#define _NORMAL_BLOCK 1
#define _CLIENT_BLOCK 4
#define _ASSERT(expression)  _ASSERT_EXPR((expression), NULL)
#define _ASSERTE(expression) _ASSERT_EXPR((expression), NULL)
#define _RPT1(type, format, a)             _RPTN(type, format, a)
#define _RPT2(type, format, a, b)          _RPTN(type, format, a, b)
#define _RPT3(type, format, a, b, c)       _RPTN(type, format, a, b, c)
#define _RPT4(type, format, a, b, c, d)    _RPTN(type, format, a, b, c, d)

#endif /* NDWIN_CRTDBG_H */
