/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The keywords of structured exceptions. A fault (SIGSEGV, ...) never becomes an exception: it ends the program.
 *
 * In C++ `__try {...} __except (filter) {...}` is try and catch (...). The filter is not evaluated; it counts as
 * EXCEPTION_EXECUTE_HANDLER. In C the handler never runs. There is no __finally and no __leave.
 */
#ifndef NDWIN_EXCEPTION_H
#define NDWIN_EXCEPTION_H

#include "types.h"

#define EXCEPTION_MAXIMUM_PARAMETERS 15
typedef struct _EXCEPTION_RECORD {
    DWORD ExceptionCode;
    DWORD ExceptionFlags;
    struct _EXCEPTION_RECORD *ExceptionRecord;
    PVOID ExceptionAddress;
    DWORD NumberParameters;
    ULONG_PTR ExceptionInformation[EXCEPTION_MAXIMUM_PARAMETERS];
} EXCEPTION_RECORD, *PEXCEPTION_RECORD;

/* The registers of a thread. No function here fills one. */
typedef struct _CONTEXT CONTEXT, *PCONTEXT, *LPCONTEXT;

typedef struct _EXCEPTION_POINTERS {
    PEXCEPTION_RECORD ExceptionRecord;
    PCONTEXT ContextRecord;
} EXCEPTION_POINTERS, *PEXCEPTION_POINTERS, *LPEXCEPTION_POINTERS;
typedef LONG (WINAPI *PTOP_LEVEL_EXCEPTION_FILTER)(PEXCEPTION_POINTERS exception);
typedef PTOP_LEVEL_EXCEPTION_FILTER LPTOP_LEVEL_EXCEPTION_FILTER;

/* The filter is kept, and never called. */
NDW_API(LPTOP_LEVEL_EXCEPTION_FILTER, SetUnhandledExceptionFilter, (LPTOP_LEVEL_EXCEPTION_FILTER filter));

#define EXCEPTION_EXECUTE_HANDLER    1
#define EXCEPTION_CONTINUE_SEARCH    0
#define EXCEPTION_CONTINUE_EXECUTION (-1)
#define EXCEPTION_NONCONTINUABLE     0x1
#define EXCEPTION_ACCESS_VIOLATION      ((DWORD)0xC0000005)
#define EXCEPTION_DATATYPE_MISALIGNMENT ((DWORD)0x80000002)
#define EXCEPTION_BREAKPOINT            ((DWORD)0x80000003)
#define EXCEPTION_SINGLE_STEP           ((DWORD)0x80000004)
#define EXCEPTION_IN_PAGE_ERROR         ((DWORD)0xC0000006)
#define EXCEPTION_INVALID_HANDLE        ((DWORD)0xC0000008)
#define EXCEPTION_ILLEGAL_INSTRUCTION   ((DWORD)0xC000001D)
#define EXCEPTION_INT_DIVIDE_BY_ZERO    ((DWORD)0xC0000094)
#define EXCEPTION_INT_OVERFLOW          ((DWORD)0xC0000095)
#define EXCEPTION_STACK_OVERFLOW        ((DWORD)0xC00000FD)

#if !defined(__cplusplus)
#define __try            if (1)
#define __except(filter) else
#elif defined(__cpp_exceptions)
#ifndef __try /* the C++ library of GCC has it, with this meaning */
#define __try try
#endif
#define __except(filter) catch (...)
#else
#ifndef __try
#define __try if (true)
#endif
#define __except(filter) else
#endif
/* The code that MSVC uses for a C++ exception. */
#define GetExceptionCode()        ((DWORD)0xE06D7363)
#define _exception_code()         GetExceptionCode()
#define GetExceptionInformation() ((PEXCEPTION_POINTERS)NULL)
#define _exception_info()         GetExceptionInformation()

#endif /* NDWIN_EXCEPTION_H */
