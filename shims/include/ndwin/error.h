/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Last error, Win32 error numbers, HRESULT. */
#ifndef NDWIN_ERROR_H
#define NDWIN_ERROR_H

#include "types.h"

/* The mode is stored and returned. No dialogue is ever shown. */
#define SEM_FAILCRITICALERRORS     0x0001
#define SEM_NOGPFAULTERRORBOX      0x0002
#define SEM_NOALIGNMENTFAULTEXCEPT 0x0004
#define SEM_NOOPENFILEERRORBOX     0x8000
NDW_API(UINT, SetErrorMode, (UINT mode));
NDW_API(UINT, GetErrorMode, (void));
NDW_API(BOOL, SetThreadErrorMode, (DWORD mode, LPDWORD before));
NDW_API(DWORD, GetThreadErrorMode, (void));

NDW_API(DWORD, GetLastError, (void));
NDW_API(void, SetLastError, (DWORD code));
NDW_API(ULONG, RtlNtStatusToDosError, (NTSTATUS status));

#define SUCCEEDED(hr)        (((HRESULT)(hr)) >= 0)
#define FAILED(hr)           (((HRESULT)(hr)) < 0)
#define IS_ERROR(status)     (((ULONG)(status)) >> 31 == 1)
#define HRESULT_CODE(hr)     ((hr) & 0xFFFF)
#define HRESULT_FACILITY(hr) (((hr) >> 16) & 0x1FFF)
#define HRESULT_SEVERITY(hr) (((hr) >> 31) & 0x1)
#define SCODE_CODE(sc)       ((sc) & 0xFFFF)
#define MAKE_HRESULT(severity, facility, code) \
    ((HRESULT)(((ULONG)(severity) << 31) | ((ULONG)(facility) << 16) | ((ULONG)(code))))
#define SEVERITY_SUCCESS 0
#define SEVERITY_ERROR   1
#define FACILITY_NULL    0
#define FACILITY_RPC     1
#define FACILITY_ITF     4
#define FACILITY_WIN32   7
#define FACILITY_WINDOWS 8
#define FACILITY_NT_BIT  0x10000000
#define HRESULT_FROM_NT(status) ((HRESULT)((status) | FACILITY_NT_BIT))
#define __HRESULT_FROM_WIN32(code) \
    ((HRESULT)(code) <= 0 ? (HRESULT)(code) : (HRESULT)(((code) & 0x0000FFFF) | (FACILITY_WIN32 << 16) | 0x80000000))
#ifndef NOERROR /* <resolv.h> */
#define NOERROR 0
#endif
#define _HRESULT_TYPEDEF_(value) ((HRESULT)value)

#ifdef __cplusplus
extern "C++" constexpr HRESULT HRESULT_FROM_WIN32(unsigned long code)
{
    return __HRESULT_FROM_WIN32(code);
}
#else
static inline HRESULT HRESULT_FROM_WIN32(unsigned long code)
{
    return __HRESULT_FROM_WIN32(code);
}
#endif

#define S_OK                      ((HRESULT)0x00000000)
#define S_FALSE                   ((HRESULT)0x00000001)
#define E_UNEXPECTED              ((HRESULT)0x8000FFFF)
#define E_NOTIMPL                 ((HRESULT)0x80004001)
#define E_OUTOFMEMORY             ((HRESULT)0x8007000E)
#define E_INVALIDARG              ((HRESULT)0x80070057)
#define E_NOINTERFACE             ((HRESULT)0x80004002)
#define E_POINTER                 ((HRESULT)0x80004003)
#define E_HANDLE                  ((HRESULT)0x80070006)
#define E_ABORT                   ((HRESULT)0x80004004)
#define E_FAIL                    ((HRESULT)0x80004005)
#define E_ACCESSDENIED            ((HRESULT)0x80070005)
#define E_BOUNDS                  ((HRESULT)0x8000000B)
#define E_PENDING                 ((HRESULT)0x8000000A)
#define E_NOT_VALID_STATE         ((HRESULT)0x8007139F)
#define E_NOT_SUFFICIENT_BUFFER   ((HRESULT)0x8007007A)
#define CLASS_E_NOAGGREGATION     ((HRESULT)0x80040110)
#define CLASS_E_CLASSNOTAVAILABLE ((HRESULT)0x80040111)
#define REGDB_E_CLASSNOTREG       ((HRESULT)0x80040154)
#define CO_E_NOTINITIALIZED       ((HRESULT)0x800401F0)
#define NTE_BAD_FLAGS             ((HRESULT)0x80090009)
#define NTE_PERM                  ((HRESULT)0x80090010)
#define NTE_BAD_PROV_TYPE         ((HRESULT)0x80090014)
#define NTE_BAD_KEYSET            ((HRESULT)0x80090016)
#define NTE_PROV_TYPE_NOT_DEF     ((HRESULT)0x80090017)
#define NTE_KEYSET_NOT_DEF        ((HRESULT)0x80090019)
#define NTE_PROV_TYPE_NO_MATCH    ((HRESULT)0x8009001B)
#define RPC_E_CHANGED_MODE        ((HRESULT)0x80010106)
#define RPC_E_TIMEOUT             ((HRESULT)0x8001011F)
#define RPC_S_CALLPENDING         ((HRESULT)0x80010115)

#define ERROR_SUCCESS                           0
#define NO_ERROR                                0
#define ERROR_INVALID_FUNCTION                  1
#define ERROR_FILE_NOT_FOUND                    2
#define ERROR_PATH_NOT_FOUND                    3
#define ERROR_TOO_MANY_OPEN_FILES               4
#define ERROR_ACCESS_DENIED                     5
#define ERROR_INVALID_HANDLE                    6
#define ERROR_ARENA_TRASHED                     7
#define ERROR_NOT_ENOUGH_MEMORY                 8
#define ERROR_INVALID_BLOCK                     9
#define ERROR_BAD_ENVIRONMENT                   10
#define ERROR_BAD_FORMAT                        11
#define ERROR_INVALID_ACCESS                    12
#define ERROR_INVALID_DATA                      13
#define ERROR_OUTOFMEMORY                       14
#define ERROR_INVALID_DRIVE                     15
#define ERROR_CURRENT_DIRECTORY                 16
#define ERROR_NOT_SAME_DEVICE                   17
#define ERROR_NO_MORE_FILES                     18
#define ERROR_WRITE_PROTECT                     19
#define ERROR_BAD_UNIT                          20
#define ERROR_NOT_READY                         21
#define ERROR_BAD_COMMAND                       22
#define ERROR_CRC                               23
#define ERROR_BAD_LENGTH                        24
#define ERROR_SEEK                              25
#define ERROR_NOT_DOS_DISK                      26
#define ERROR_SECTOR_NOT_FOUND                  27
#define ERROR_OUT_OF_PAPER                      28
#define ERROR_WRITE_FAULT                       29
#define ERROR_READ_FAULT                        30
#define ERROR_GEN_FAILURE                       31
#define ERROR_SHARING_VIOLATION                 32
#define ERROR_LOCK_VIOLATION                    33
#define ERROR_WRONG_DISK                        34
#define ERROR_SHARING_BUFFER_EXCEEDED           36
#define ERROR_HANDLE_EOF                        38
#define ERROR_HANDLE_DISK_FULL                  39
#define ERROR_NOT_SUPPORTED                     50
#define ERROR_REM_NOT_LIST                      51
#define ERROR_DUP_NAME                          52
#define ERROR_BAD_NETPATH                       53
#define ERROR_NETWORK_BUSY                      54
#define ERROR_DEV_NOT_EXIST                     55
#define ERROR_TOO_MANY_CMDS                     56
#define ERROR_ADAP_HDW_ERR                      57
#define ERROR_BAD_NET_RESP                      58
#define ERROR_UNEXP_NET_ERR                     59
#define ERROR_BAD_REM_ADAP                      60
#define ERROR_PRINTQ_FULL                       61
#define ERROR_NO_SPOOL_SPACE                    62
#define ERROR_PRINT_CANCELLED                   63
#define ERROR_NETNAME_DELETED                   64
#define ERROR_NETWORK_ACCESS_DENIED             65
#define ERROR_BAD_DEV_TYPE                      66
#define ERROR_BAD_NET_NAME                      67
#define ERROR_TOO_MANY_NAMES                    68
#define ERROR_TOO_MANY_SESS                     69
#define ERROR_SHARING_PAUSED                    70
#define ERROR_REQ_NOT_ACCEP                     71
#define ERROR_REDIR_PAUSED                      72
#define ERROR_FILE_EXISTS                       80
#define ERROR_CANNOT_MAKE                       82
#define ERROR_FAIL_I24                          83
#define ERROR_OUT_OF_STRUCTURES                 84
#define ERROR_ALREADY_ASSIGNED                  85
#define ERROR_INVALID_PASSWORD                  86
#define ERROR_INVALID_PARAMETER                 87
#define ERROR_NET_WRITE_FAULT                   88
#define ERROR_NO_PROC_SLOTS                     89
#define ERROR_INVALID_AT_INTERRUPT_TIME         104
#define ERROR_DISK_CHANGE                       107
#define ERROR_DRIVE_LOCKED                      108
#define ERROR_BROKEN_PIPE                       109
#define ERROR_OPEN_FAILED                       110
#define ERROR_BUFFER_OVERFLOW                   111
#define ERROR_DISK_FULL                         112
#define ERROR_NO_MORE_SEARCH_HANDLES            113
#define ERROR_INVALID_TARGET_HANDLE             114
#define ERROR_CALL_NOT_IMPLEMENTED              120
#define ERROR_SEM_TIMEOUT                       121
#define ERROR_INSUFFICIENT_BUFFER               122
#define ERROR_INVALID_NAME                      123
#define ERROR_MOD_NOT_FOUND                     126
#define ERROR_PROC_NOT_FOUND                    127
#define ERROR_WAIT_NO_CHILDREN                  128
#define ERROR_CHILD_NOT_COMPLETE                129
#define ERROR_DIRECT_ACCESS_HANDLE              130
#define ERROR_NEGATIVE_SEEK                     131
#define ERROR_SEEK_ON_DEVICE                    132
#define ERROR_BUSY_DRIVE                        142
#define ERROR_DIR_NOT_EMPTY                     145
#define ERROR_SIGNAL_REFUSED                    156
#define ERROR_NOT_LOCKED                        158
#define ERROR_BAD_ARGUMENTS                     160
#define ERROR_BAD_PATHNAME                      161
#define ERROR_SIGNAL_PENDING                    162
#define ERROR_MAX_THRDS_REACHED                 164
#define ERROR_LOCK_FAILED                       167
#define ERROR_BUSY                              170
#define ERROR_INVALID_ORDINAL                   182
#define ERROR_ALREADY_EXISTS                    183
#define ERROR_BAD_EXE_FORMAT                    193
#define ERROR_ENVVAR_NOT_FOUND                  203
#define ERROR_NO_SIGNAL_SENT                    205
#define ERROR_FILENAME_EXCED_RANGE              206
#define ERROR_META_EXPANSION_TOO_LONG           208
#define ERROR_INVALID_SIGNAL_NUMBER             209
#define ERROR_THREAD_1_INACTIVE                 210
#define ERROR_BAD_PIPE                          230
#define ERROR_PIPE_BUSY                         231
#define ERROR_NO_DATA                           232
#define ERROR_PIPE_NOT_CONNECTED                233
#define ERROR_MORE_DATA                         234
#define ERROR_NO_WORK_DONE                      235
#define ERROR_NO_MORE_ITEMS                     259
#define ERROR_DIRECTORY                         267
#define ERROR_EA_TABLE_FULL                     277
#define ERROR_NOT_OWNER                         288
#define ERROR_TOO_MANY_POSTS                    298
#define ERROR_MR_MID_NOT_FOUND                  317
#define ERROR_INVALID_ADDRESS                   487
#define ERROR_ARITHMETIC_OVERFLOW               534
#define ERROR_PIPE_CONNECTED                    535
#define ERROR_PIPE_LISTENING                    536
#define ERROR_WAIT_1                            731
#define ERROR_ABANDONED_WAIT_0                  735
#define ERROR_ELEVATION_REQUIRED                740
#define ERROR_OPERATION_ABORTED                 995
#define ERROR_IO_INCOMPLETE                     996
#define ERROR_IO_PENDING                        997
#define ERROR_NOACCESS                          998
#define ERROR_STACK_OVERFLOW                    1001
#define ERROR_INVALID_FLAGS                     1004
#define ERROR_FILE_INVALID                      1006
#define ERROR_NO_TOKEN                          1008
#define ERROR_CANTOPEN                          1011
#define ERROR_CANTREAD                          1012
#define ERROR_CANTWRITE                         1013
#define ERROR_SERVICE_ALREADY_RUNNING           1056
#define ERROR_SERVICE_NOT_ACTIVE                1062
#define ERROR_PROCESS_ABORTED                   1067
#define ERROR_SERVICE_EXISTS                    1073
#define ERROR_END_OF_MEDIA                      1100
#define ERROR_FILEMARK_DETECTED                 1101
#define ERROR_BEGINNING_OF_MEDIA                1102
#define ERROR_SETMARK_DETECTED                  1103
#define ERROR_NO_DATA_DETECTED                  1104
#define ERROR_INVALID_BLOCK_LENGTH              1106
#define ERROR_BUS_RESET                         1111
#define ERROR_NO_UNICODE_TRANSLATION            1113
#define ERROR_DLL_INIT_FAILED                   1114
#define ERROR_IO_DEVICE                         1117
#define ERROR_EOM_OVERFLOW                      1129
#define ERROR_POSSIBLE_DEADLOCK                 1131
#define ERROR_MAPPED_ALIGNMENT                  1132
#define ERROR_OLD_WIN_VERSION                   1150
#define ERROR_DEVICE_REQUIRES_CLEANING          1165
#define ERROR_DEVICE_DOOR_OPEN                  1166
#define ERROR_DEVICE_NOT_CONNECTED              1167
#define ERROR_NOT_FOUND                         1168
#define ERROR_BAD_DEVICE                        1200
#define ERROR_INVALID_NETNAME                   1214
#define ERROR_CANCELLED                         1223
#define ERROR_CONNECTION_REFUSED                1225
#define ERROR_GRACEFUL_DISCONNECT               1226
#define ERROR_ADDRESS_ALREADY_ASSOCIATED        1227
#define ERROR_ADDRESS_NOT_ASSOCIATED            1228
#define ERROR_CONNECTION_INVALID                1229
#define ERROR_CONNECTION_ACTIVE                 1230
#define ERROR_NETWORK_UNREACHABLE               1231
#define ERROR_HOST_UNREACHABLE                  1232
#define ERROR_PROTOCOL_UNREACHABLE              1233
#define ERROR_PORT_UNREACHABLE                  1234
#define ERROR_REQUEST_ABORTED                   1235
#define ERROR_CONNECTION_ABORTED                1236
#define ERROR_RETRY                             1237
#define ERROR_CONNECTION_COUNT_LIMIT            1238
#define ERROR_INCORRECT_ADDRESS                 1241
#define ERROR_ALREADY_REGISTERED                1242
#define ERROR_SERVICE_NOT_FOUND                 1243
#define ERROR_NOT_AUTHENTICATED                 1244
#define ERROR_ALREADY_INITIALIZED               1247
#define ERROR_UNIDENTIFIED_ERROR                1287
#define ERROR_UNKNOWN_REVISION                  1305
#define ERROR_PRIVILEGE_NOT_HELD                1314
#define ERROR_NO_SUCH_USER                      1317
#define ERROR_NONE_MAPPED                       1332
#define ERROR_INVALID_SID                       1337
#define ERROR_INVALID_SECURITY_DESCR            1338
#define ERROR_INTERNAL_ERROR                    1359
#define ERROR_DISK_CORRUPT                      1393
#define ERROR_NO_SYSTEM_RESOURCES               1450
#define ERROR_WORKING_SET_QUOTA                 1453
#define ERROR_COMMITMENT_LIMIT                  1455
#define ERROR_TIMEOUT                           1460
#define ERROR_INCORRECT_SIZE                    1462
#define ERROR_SYMLINK_NOT_SUPPORTED             1464
#define ERROR_DEVICE_REMOVED                    1617
#define ERROR_UNSUPPORTED_TYPE                  1630
#define ERROR_INVALID_USER_BUFFER               1784
#define ERROR_RESOURCE_TYPE_NOT_FOUND           1813
#define ERROR_NOT_ENOUGH_QUOTA                  1816
#define ERROR_INVALID_TIME                      1901
#define ERROR_CANT_ACCESS_FILE                  1920
#define ERROR_CANT_RESOLVE_FILENAME             1921
#define ERROR_BAD_USERNAME                      2202
#define ERROR_NOT_CONNECTED                     2250
#define ERROR_OPEN_FILES                        2401
#define ERROR_ACTIVE_CONNECTIONS                2402
#define ERROR_DEVICE_IN_USE                     2404
#define ERROR_EMPTY                             4306
#define ERROR_DEVICE_NOT_AVAILABLE              4319
#define ERROR_NOT_A_REPARSE_POINT               4390
#define ERROR_INVALID_REPARSE_DATA              4392
#define ERROR_RESOURCE_NOT_FOUND                5007
#define ERROR_INVALID_STATE                     5023
#define ERROR_CLUSTER_NETWORK_NOT_FOUND         5045
#define ERROR_CTX_CLOSE_PENDING                 7007
#define ERROR_MUI_FILE_NOT_FOUND                15100
#define ERROR_MUI_INVALID_FILE                  15101
#define ERROR_MUI_INVALID_RC_CONFIG             15102
#define ERROR_MUI_INVALID_LOCALE_NAME           15103
#define ERROR_MUI_INVALID_ULTIMATEFALLBACK_NAME 15104
#define ERROR_MUI_FILE_NOT_LOADED               15105

#endif /* NDWIN_ERROR_H */
