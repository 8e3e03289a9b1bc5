/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files: by handle and by name. */
#ifndef NDWIN_FILE_H
#define NDWIN_FILE_H

#include "rights.h"
#include "types.h"

#define GENERIC_READ    0x80000000
#define GENERIC_WRITE   0x40000000
#define GENERIC_EXECUTE 0x20000000
#define GENERIC_ALL     0x10000000

#define FILE_READ_DATA         0x0001
#define FILE_WRITE_DATA        0x0002
#define FILE_APPEND_DATA       0x0004
#define FILE_READ_EA           0x0008
#define FILE_WRITE_EA          0x0010
#define FILE_EXECUTE           0x0020
#define FILE_READ_ATTRIBUTES   0x0080
#define FILE_WRITE_ATTRIBUTES  0x0100
#define FILE_LIST_DIRECTORY    0x0001
#define FILE_ADD_FILE          0x0002
#define FILE_ADD_SUBDIRECTORY  0x0004
#define FILE_TRAVERSE          0x0020
#define FILE_DELETE_CHILD      0x0040
#define FILE_ALL_ACCESS        (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0x1FF)
#define FILE_GENERIC_READ      (STANDARD_RIGHTS_READ | FILE_READ_DATA | FILE_READ_ATTRIBUTES | FILE_READ_EA | SYNCHRONIZE)
#define FILE_GENERIC_WRITE                                                                                           \
    (STANDARD_RIGHTS_WRITE | FILE_WRITE_DATA | FILE_WRITE_ATTRIBUTES | FILE_WRITE_EA | FILE_APPEND_DATA | SYNCHRONIZE)
#define FILE_GENERIC_EXECUTE (STANDARD_RIGHTS_EXECUTE | FILE_READ_ATTRIBUTES | FILE_EXECUTE | SYNCHRONIZE)
#define FILE_SHARE_READ        0x00000001
#define FILE_SHARE_WRITE       0x00000002
#define FILE_SHARE_DELETE      0x00000004

#define CREATE_NEW        1
#define CREATE_ALWAYS     2
#define OPEN_EXISTING     3
#define OPEN_ALWAYS       4
#define TRUNCATE_EXISTING 5

#define INVALID_FILE_ATTRIBUTES    ((DWORD)-1)
#define FILE_ATTRIBUTE_READONLY    0x00000001
#define FILE_ATTRIBUTE_HIDDEN      0x00000002
#define FILE_ATTRIBUTE_SYSTEM      0x00000004
#define FILE_ATTRIBUTE_DIRECTORY   0x00000010
#define FILE_ATTRIBUTE_ARCHIVE     0x00000020
#define FILE_ATTRIBUTE_DEVICE      0x00000040
#define FILE_ATTRIBUTE_NORMAL      0x00000080
#define FILE_ATTRIBUTE_TEMPORARY   0x00000100
/* No file has these. */
#define FILE_ATTRIBUTE_SPARSE_FILE   0x00000200
#define FILE_ATTRIBUTE_REPARSE_POINT 0x00000400
#define FILE_ATTRIBUTE_COMPRESSED    0x00000800
#define FILE_ATTRIBUTE_OFFLINE       0x00001000
#define FILE_ATTRIBUTE_ENCRYPTED     0x00004000
#define FILE_FLAG_WRITE_THROUGH      0x80000000
#define FILE_FLAG_OVERLAPPED         0x40000000
#define FILE_FLAG_NO_BUFFERING       0x20000000
#define FILE_FLAG_RANDOM_ACCESS      0x10000000
#define FILE_FLAG_SEQUENTIAL_SCAN    0x08000000
#define FILE_FLAG_DELETE_ON_CLOSE    0x04000000
#define FILE_FLAG_BACKUP_SEMANTICS   0x02000000
/* Not for a symbolic link. */
#define FILE_FLAG_OPEN_REPARSE_POINT 0x00200000

#define FILE_BEGIN   0
#define FILE_CURRENT 1
#define FILE_END     2
#define INVALID_FILE_SIZE        ((DWORD)0xFFFFFFFF)
#define INVALID_SET_FILE_POINTER ((DWORD)-1)

#define LOCKFILE_FAIL_IMMEDIATELY 0x00000001
#define LOCKFILE_EXCLUSIVE_LOCK   0x00000002

#define FILE_TYPE_UNKNOWN 0x0000
#define FILE_TYPE_DISK    0x0001
#define FILE_TYPE_CHAR    0x0002
#define FILE_TYPE_PIPE    0x0003

#define STD_INPUT_HANDLE  ((DWORD)-10)
#define STD_OUTPUT_HANDLE ((DWORD)-11)
#define STD_ERROR_HANDLE  ((DWORD)-12)

#define MOVEFILE_REPLACE_EXISTING   0x00000001
#define MOVEFILE_COPY_ALLOWED       0x00000002
#define MOVEFILE_DELAY_UNTIL_REBOOT 0x00000004
#define MOVEFILE_WRITE_THROUGH      0x00000008

#define COPY_FILE_FAIL_IF_EXISTS              0x00000001
#define COPY_FILE_RESTARTABLE                 0x00000002
#define COPY_FILE_OPEN_SOURCE_FOR_WRITE       0x00000004
#define COPY_FILE_ALLOW_DECRYPTED_DESTINATION 0x00000008
#define COPY_FILE_COPY_SYMLINK                0x00000800
#define COPY_FILE_NO_BUFFERING                0x00001000
#define CALLBACK_CHUNK_FINISHED 0x00000000
#define CALLBACK_STREAM_SWITCH  0x00000001
#define PROGRESS_CONTINUE 0
#define PROGRESS_CANCEL   1
#define PROGRESS_STOP     2
#define PROGRESS_QUIET    3
typedef DWORD (CALLBACK *LPPROGRESS_ROUTINE)(
    LARGE_INTEGER size, LARGE_INTEGER copied, LARGE_INTEGER streamSize, LARGE_INTEGER streamCopied, DWORD stream, DWORD reason,
    HANDLE source, HANDLE target, LPVOID data);

typedef struct _BY_HANDLE_FILE_INFORMATION {
    DWORD dwFileAttributes;
    FILETIME ftCreationTime;
    FILETIME ftLastAccessTime;
    FILETIME ftLastWriteTime;
    DWORD dwVolumeSerialNumber;
    DWORD nFileSizeHigh;
    DWORD nFileSizeLow;
    DWORD nNumberOfLinks;
    DWORD nFileIndexHigh;
    DWORD nFileIndexLow;
} BY_HANDLE_FILE_INFORMATION, *PBY_HANDLE_FILE_INFORMATION, *LPBY_HANDLE_FILE_INFORMATION;

typedef struct _WIN32_FILE_ATTRIBUTE_DATA {
    DWORD dwFileAttributes;
    FILETIME ftCreationTime;
    FILETIME ftLastAccessTime;
    FILETIME ftLastWriteTime;
    DWORD nFileSizeHigh;
    DWORD nFileSizeLow;
} WIN32_FILE_ATTRIBUTE_DATA, *LPWIN32_FILE_ATTRIBUTE_DATA;

typedef struct _WIN32_FIND_DATAA {
    DWORD dwFileAttributes;
    FILETIME ftCreationTime;
    FILETIME ftLastAccessTime;
    FILETIME ftLastWriteTime;
    DWORD nFileSizeHigh;
    DWORD nFileSizeLow;
    DWORD dwReserved0;
    DWORD dwReserved1;
    CHAR cFileName[MAX_PATH];
    CHAR cAlternateFileName[14];
} WIN32_FIND_DATAA, *PWIN32_FIND_DATAA, *LPWIN32_FIND_DATAA;

typedef struct _WIN32_FIND_DATAW {
    DWORD dwFileAttributes;
    FILETIME ftCreationTime;
    FILETIME ftLastAccessTime;
    FILETIME ftLastWriteTime;
    DWORD nFileSizeHigh;
    DWORD nFileSizeLow;
    DWORD dwReserved0;
    DWORD dwReserved1;
    WCHAR cFileName[MAX_PATH];
    WCHAR cAlternateFileName[14];
} WIN32_FIND_DATAW, *PWIN32_FIND_DATAW, *LPWIN32_FIND_DATAW;

typedef enum _GET_FILEEX_INFO_LEVELS {
    GetFileExInfoStandard,
    GetFileExMaxInfoLevel
} GET_FILEEX_INFO_LEVELS;

typedef enum _FINDEX_INFO_LEVELS {
    FindExInfoStandard,
    FindExInfoBasic,
    FindExInfoMaxInfoLevel
} FINDEX_INFO_LEVELS;

/* It makes no difference here. */
#define FIND_FIRST_EX_LARGE_FETCH 0x00000002

typedef enum _FINDEX_SEARCH_OPS {
    FindExSearchNameMatch,
    FindExSearchLimitToDirectories,
    FindExSearchLimitToDevices,
    FindExSearchMaxSearchOp
} FINDEX_SEARCH_OPS;

typedef enum _FILE_INFO_BY_HANDLE_CLASS {
    FileBasicInfo,
    FileStandardInfo,
    FileNameInfo,
    FileRenameInfo,
    FileDispositionInfo,
    FileAllocationInfo,
    FileEndOfFileInfo,
    FileStreamInfo,
    FileCompressionInfo,
    FileAttributeTagInfo,
    FileIdBothDirectoryInfo,
    FileIdBothDirectoryRestartInfo,
    FileIoPriorityHintInfo,
    FileRemoteProtocolInfo,
    FileFullDirectoryInfo,
    FileFullDirectoryRestartInfo,
    FileStorageInfo,
    FileAlignmentInfo,
    FileIdInfo,
    FileIdExtdDirectoryInfo,
    FileIdExtdDirectoryRestartInfo,
    FileDispositionInfoEx,
    FileRenameInfoEx,
    FileCaseSensitiveInfo,
    FileNormalizedNameInfo,
    MaximumFileInfoByHandleClass
} FILE_INFO_BY_HANDLE_CLASS, *PFILE_INFO_BY_HANDLE_CLASS;

typedef struct _FILE_BASIC_INFO {
    LARGE_INTEGER CreationTime;
    LARGE_INTEGER LastAccessTime;
    LARGE_INTEGER LastWriteTime;
    LARGE_INTEGER ChangeTime;
    DWORD FileAttributes;
} FILE_BASIC_INFO, *PFILE_BASIC_INFO;

typedef struct _FILE_STANDARD_INFO {
    LARGE_INTEGER AllocationSize;
    LARGE_INTEGER EndOfFile;
    DWORD NumberOfLinks;
    BOOLEAN DeletePending;
    BOOLEAN Directory;
} FILE_STANDARD_INFO, *PFILE_STANDARD_INFO;

/* The length of a name is in bytes. */
typedef struct _FILE_NAME_INFO {
    DWORD FileNameLength;
    WCHAR FileName[1];
} FILE_NAME_INFO, *PFILE_NAME_INFO;

#define FILE_RENAME_FLAG_REPLACE_IF_EXISTS 0x00000001
#define FILE_RENAME_FLAG_POSIX_SEMANTICS   0x00000002
typedef struct _FILE_RENAME_INFO {
    __extension__ union {
        BOOLEAN ReplaceIfExists;
        DWORD Flags;
    };
    HANDLE RootDirectory;
    DWORD FileNameLength;
    WCHAR FileName[1];
} FILE_RENAME_INFO, *PFILE_RENAME_INFO;

#define FILE_DISPOSITION_FLAG_DO_NOT_DELETE   0x00000000
#define FILE_DISPOSITION_FLAG_DELETE          0x00000001
#define FILE_DISPOSITION_FLAG_POSIX_SEMANTICS 0x00000002
typedef struct _FILE_DISPOSITION_INFO_EX {
    DWORD Flags;
} FILE_DISPOSITION_INFO_EX, *PFILE_DISPOSITION_INFO_EX;

typedef struct _FILE_ALLOCATION_INFO {
    LARGE_INTEGER AllocationSize;
} FILE_ALLOCATION_INFO, *PFILE_ALLOCATION_INFO;

typedef struct _FILE_END_OF_FILE_INFO {
    LARGE_INTEGER EndOfFile;
} FILE_END_OF_FILE_INFO, *PFILE_END_OF_FILE_INFO;

typedef struct _FILE_ATTRIBUTE_TAG_INFO {
    DWORD FileAttributes;
    DWORD ReparseTag;
} FILE_ATTRIBUTE_TAG_INFO, *PFILE_ATTRIBUTE_TAG_INFO;

#define STORAGE_INFO_FLAGS_ALIGNED_DEVICE              0x00000001
#define STORAGE_INFO_FLAGS_PARTITION_ALIGNED_ON_DEVICE 0x00000002
#define STORAGE_INFO_OFFSET_UNKNOWN                    0xFFFFFFFF
typedef struct _FILE_STORAGE_INFO {
    ULONG LogicalBytesPerSector;
    ULONG PhysicalBytesPerSectorForAtomicity;
    ULONG PhysicalBytesPerSectorForPerformance;
    ULONG FileSystemEffectivePhysicalBytesPerSectorForAtomicity;
    ULONG Flags;
    ULONG ByteOffsetForSectorAlignment;
    ULONG ByteOffsetForPartitionAlignment;
} FILE_STORAGE_INFO, *PFILE_STORAGE_INFO;
typedef struct _FILE_ALIGNMENT_INFO {
    ULONG AlignmentRequirement;
} FILE_ALIGNMENT_INFO, *PFILE_ALIGNMENT_INFO;

typedef enum _PRIORITY_HINT {
    IoPriorityHintVeryLow,
    IoPriorityHintLow,
    IoPriorityHintNormal,
    MaximumIoPriorityHintType
} PRIORITY_HINT;
typedef struct _FILE_IO_PRIORITY_HINT_INFO {
    PRIORITY_HINT PriorityHint;
} FILE_IO_PRIORITY_HINT_INFO, *PFILE_IO_PRIORITY_HINT_INFO;

typedef struct _FILE_ID_128 {
    BYTE Identifier[16];
} FILE_ID_128, *PFILE_ID_128;
typedef struct _FILE_ID_INFO {
    ULONGLONG VolumeSerialNumber;
    FILE_ID_128 FileId;
} FILE_ID_INFO, *PFILE_ID_INFO;

#define FILE_NAME_NORMALIZED 0x0
#define FILE_NAME_OPENED     0x8
#define VOLUME_NAME_DOS      0x0
#define VOLUME_NAME_GUID     0x1
#define VOLUME_NAME_NT       0x2
#define VOLUME_NAME_NONE     0x4

struct _SECURITY_ATTRIBUTES;
struct _OVERLAPPED;

NDW_API(HANDLE, CreateFileA, (LPCSTR name, DWORD access, DWORD share, struct _SECURITY_ATTRIBUTES *security,
                              DWORD disposition, DWORD flags, HANDLE pattern));
NDW_API(HANDLE, CreateFileW, (LPCWSTR name, DWORD access, DWORD share, struct _SECURITY_ATTRIBUTES *security,
                              DWORD disposition, DWORD flags, HANDLE pattern));
NDW_API(BOOL, ReadFile, (HANDLE file, LPVOID buffer, DWORD length, LPDWORD count, struct _OVERLAPPED *overlapped));
NDW_API(BOOL, WriteFile, (HANDLE file, LPCVOID buffer, DWORD length, LPDWORD count, struct _OVERLAPPED *overlapped));
NDW_API(DWORD, GetFileSize, (HANDLE file, LPDWORD high));
NDW_API(BOOL, GetFileSizeEx, (HANDLE file, PLARGE_INTEGER size));
NDW_API(DWORD, SetFilePointer, (HANDLE file, LONG distance, PLONG high, DWORD method));
NDW_API(BOOL, SetFilePointerEx, (HANDLE file, LARGE_INTEGER distance, PLARGE_INTEGER position, DWORD method));
NDW_API(BOOL, SetEndOfFile, (HANDLE file));
NDW_API(BOOL, FlushFileBuffers, (HANDLE file));
NDW_API(BOOL, LockFile, (HANDLE file, DWORD at, DWORD atHigh, DWORD length, DWORD lengthHigh));
NDW_API(BOOL, LockFileEx, (HANDLE file, DWORD flags, DWORD reserved, DWORD length, DWORD lengthHigh,
                           struct _OVERLAPPED *overlapped));
NDW_API(BOOL, UnlockFile, (HANDLE file, DWORD at, DWORD atHigh, DWORD length, DWORD lengthHigh));
NDW_API(BOOL, UnlockFileEx, (HANDLE file, DWORD reserved, DWORD length, DWORD lengthHigh, struct _OVERLAPPED *overlapped));
NDW_API(DWORD, GetFileType, (HANDLE file));
NDW_API(BOOL, GetFileInformationByHandle, (HANDLE file, LPBY_HANDLE_FILE_INFORMATION information));
NDW_API(BOOL, GetFileInformationByHandleEx, (HANDLE file, FILE_INFO_BY_HANDLE_CLASS kind, LPVOID information, DWORD size));
NDW_API(BOOL, SetFileInformationByHandle, (HANDLE file, FILE_INFO_BY_HANDLE_CLASS kind, LPVOID information, DWORD size));
NDW_API(BOOL, GetFileTime, (HANDLE file, LPFILETIME creation, LPFILETIME lastAccess, LPFILETIME lastWrite));
NDW_API(BOOL, SetFileTime, (HANDLE file, const FILETIME *creation, const FILETIME *lastAccess, const FILETIME *lastWrite));
NDW_API(BOOL, SetFileValidData, (HANDLE file, LONGLONG length));
NDW_API(DWORD, GetFinalPathNameByHandleA, (HANDLE file, LPSTR path, DWORD room, DWORD flags));
NDW_API(DWORD, GetFinalPathNameByHandleW, (HANDLE file, LPWSTR path, DWORD room, DWORD flags));
NDW_API(HANDLE, GetStdHandle, (DWORD number));
NDW_API(BOOL, SetStdHandle, (DWORD number, HANDLE handle));

NDW_API(BOOL, CreatePipe, (PHANDLE reader, PHANDLE writer, struct _SECURITY_ATTRIBUTES *security, DWORD size));

#define SYMBOLIC_LINK_FLAG_DIRECTORY                 0x1
#define SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE 0x2
NDW_API(BOOL, CreateHardLinkA, (LPCSTR link, LPCSTR file, struct _SECURITY_ATTRIBUTES *security));
NDW_API(BOOL, CreateHardLinkW, (LPCWSTR link, LPCWSTR file, struct _SECURITY_ATTRIBUTES *security));
NDW_API(BOOLEAN, CreateSymbolicLinkA, (LPCSTR link, LPCSTR target, DWORD flags));
NDW_API(BOOLEAN, CreateSymbolicLinkW, (LPCWSTR link, LPCWSTR target, DWORD flags));
NDW_API(DWORD, GetFileAttributesA, (LPCSTR name));
NDW_API(DWORD, GetFileAttributesW, (LPCWSTR name));
NDW_API(BOOL, GetFileAttributesExA, (LPCSTR name, GET_FILEEX_INFO_LEVELS level, LPVOID data));
NDW_API(BOOL, GetFileAttributesExW, (LPCWSTR name, GET_FILEEX_INFO_LEVELS level, LPVOID data));
NDW_API(BOOL, SetFileAttributesA, (LPCSTR name, DWORD attributes));
NDW_API(BOOL, SetFileAttributesW, (LPCWSTR name, DWORD attributes));
NDW_API(BOOL, DeleteFileA, (LPCSTR name));
NDW_API(BOOL, DeleteFileW, (LPCWSTR name));
NDW_API(BOOL, MoveFileA, (LPCSTR from, LPCSTR to));
NDW_API(BOOL, MoveFileW, (LPCWSTR from, LPCWSTR to));
NDW_API(BOOL, MoveFileExA, (LPCSTR from, LPCSTR to, DWORD flags));
NDW_API(BOOL, MoveFileExW, (LPCWSTR from, LPCWSTR to, DWORD flags));
NDW_API(BOOL, CopyFileA, (LPCSTR from, LPCSTR to, BOOL mustBeNew));
NDW_API(BOOL, CopyFileW, (LPCWSTR from, LPCWSTR to, BOOL mustBeNew));
NDW_API(BOOL, CopyFileExA,
    (LPCSTR from, LPCSTR to, LPPROGRESS_ROUTINE routine, LPVOID data, LPBOOL cancel, DWORD flags));
NDW_API(BOOL, CopyFileExW,
    (LPCWSTR from, LPCWSTR to, LPPROGRESS_ROUTINE routine, LPVOID data, LPBOOL cancel, DWORD flags));
NDW_API(BOOL, CreateDirectoryA, (LPCSTR name, struct _SECURITY_ATTRIBUTES *security));
NDW_API(BOOL, CreateDirectoryW, (LPCWSTR name, struct _SECURITY_ATTRIBUTES *security));
NDW_API(BOOL, RemoveDirectoryA, (LPCSTR name));
NDW_API(BOOL, RemoveDirectoryW, (LPCWSTR name));
NDW_API(BOOL, GetDiskFreeSpaceA,
    (LPCSTR folder, LPDWORD sectorsPerCluster, LPDWORD bytesPerSector, LPDWORD freeClusters, LPDWORD clusters));
NDW_API(BOOL, GetDiskFreeSpaceW,
    (LPCWSTR folder, LPDWORD sectorsPerCluster, LPDWORD bytesPerSector, LPDWORD freeClusters, LPDWORD clusters));
NDW_API(BOOL, GetDiskFreeSpaceExA,
    (LPCSTR folder, PULARGE_INTEGER usable, PULARGE_INTEGER total, PULARGE_INTEGER free));
NDW_API(BOOL, GetDiskFreeSpaceExW,
    (LPCWSTR folder, PULARGE_INTEGER usable, PULARGE_INTEGER total, PULARGE_INTEGER free));
NDW_API(HANDLE, FindFirstFileA, (LPCSTR name, LPWIN32_FIND_DATAA data));
NDW_API(HANDLE, FindFirstFileW, (LPCWSTR name, LPWIN32_FIND_DATAW data));
NDW_API(HANDLE, FindFirstFileExA, (LPCSTR name, FINDEX_INFO_LEVELS level, LPVOID data, FINDEX_SEARCH_OPS operation,
                                   LPVOID filter, DWORD flags));
NDW_API(HANDLE, FindFirstFileExW, (LPCWSTR name, FINDEX_INFO_LEVELS level, LPVOID data, FINDEX_SEARCH_OPS operation,
                                   LPVOID filter, DWORD flags));
NDW_API(BOOL, FindNextFileA, (HANDLE search, LPWIN32_FIND_DATAA data));
NDW_API(BOOL, FindNextFileW, (HANDLE search, LPWIN32_FIND_DATAW data));
NDW_API(BOOL, FindClose, (HANDLE search));
/* The folder of this library. */
NDW_API(UINT, GetSystemDirectoryA, (LPSTR buffer, UINT room));
NDW_API(UINT, GetSystemDirectoryW, (LPWSTR buffer, UINT room));
/* "/" */
NDW_API(UINT, GetWindowsDirectoryA, (LPSTR buffer, UINT room));
NDW_API(UINT, GetWindowsDirectoryW, (LPWSTR buffer, UINT room));
NDW_API(UINT, GetSystemWindowsDirectoryA, (LPSTR buffer, UINT room));
NDW_API(UINT, GetSystemWindowsDirectoryW, (LPWSTR buffer, UINT room));
/* A list of folders has semicolons or colons between them. */
NDW_API(DWORD, SearchPathA, (LPCSTR list, LPCSTR name, LPCSTR extension, DWORD size, LPSTR buffer, LPSTR *part));
NDW_API(DWORD, SearchPathW, (LPCWSTR list, LPCWSTR name, LPCWSTR extension, DWORD size, LPWSTR buffer, LPWSTR *part));
NDW_API(DWORD, GetTempPathA, (DWORD room, LPSTR buffer));
NDW_API(DWORD, GetTempPathW, (DWORD room, LPWSTR buffer));
NDW_API(UINT, GetTempFileNameA, (LPCSTR folder, LPCSTR prefix, UINT number, LPSTR name));
NDW_API(UINT, GetTempFileNameW, (LPCWSTR folder, LPCWSTR prefix, UINT number, LPWSTR name));
NDW_API(DWORD, GetCurrentDirectoryA, (DWORD room, LPSTR buffer));
NDW_API(DWORD, GetCurrentDirectoryW, (DWORD room, LPWSTR buffer));
NDW_API(BOOL, SetCurrentDirectoryA, (LPCSTR name));
NDW_API(BOOL, SetCurrentDirectoryW, (LPCWSTR name));

#ifdef UNICODE
typedef WIN32_FIND_DATAW WIN32_FIND_DATA;
typedef LPWIN32_FIND_DATAW LPWIN32_FIND_DATA;
#define CreateFile          CreateFileW
#define GetFileAttributes   GetFileAttributesW
#define GetFileAttributesEx GetFileAttributesExW
#define SetFileAttributes   SetFileAttributesW
#define DeleteFile          DeleteFileW
#define MoveFile            MoveFileW
#define MoveFileEx          MoveFileExW
#define CopyFile            CopyFileW
#define CopyFileEx          CopyFileExW
#define CreateDirectory     CreateDirectoryW
#define CreateHardLink      CreateHardLinkW
#define CreateSymbolicLink  CreateSymbolicLinkW
#define RemoveDirectory     RemoveDirectoryW
#define GetDiskFreeSpace    GetDiskFreeSpaceW
#define GetDiskFreeSpaceEx  GetDiskFreeSpaceExW
#define FindFirstFile       FindFirstFileW
#define FindFirstFileEx     FindFirstFileExW
#define FindNextFile        FindNextFileW
#define GetSystemDirectory  GetSystemDirectoryW
#define GetWindowsDirectory GetWindowsDirectoryW
#define GetSystemWindowsDirectory GetSystemWindowsDirectoryW
#define SearchPath          SearchPathW
#define GetTempPath         GetTempPathW
#define GetTempFileName     GetTempFileNameW
#define GetCurrentDirectory GetCurrentDirectoryW
#define SetCurrentDirectory SetCurrentDirectoryW
#define GetFinalPathNameByHandle GetFinalPathNameByHandleW
#else
typedef WIN32_FIND_DATAA WIN32_FIND_DATA;
typedef LPWIN32_FIND_DATAA LPWIN32_FIND_DATA;
#define CreateFile          CreateFileA
#define GetFileAttributes   GetFileAttributesA
#define GetFileAttributesEx GetFileAttributesExA
#define SetFileAttributes   SetFileAttributesA
#define DeleteFile          DeleteFileA
#define MoveFile            MoveFileA
#define MoveFileEx          MoveFileExA
#define CopyFile            CopyFileA
#define CopyFileEx          CopyFileExA
#define CreateDirectory     CreateDirectoryA
#define CreateHardLink      CreateHardLinkA
#define CreateSymbolicLink  CreateSymbolicLinkA
#define RemoveDirectory     RemoveDirectoryA
#define GetDiskFreeSpace    GetDiskFreeSpaceA
#define GetDiskFreeSpaceEx  GetDiskFreeSpaceExA
#define FindFirstFile       FindFirstFileA
#define FindFirstFileEx     FindFirstFileExA
#define FindNextFile        FindNextFileA
#define GetSystemDirectory  GetSystemDirectoryA
#define GetWindowsDirectory GetWindowsDirectoryA
#define GetSystemWindowsDirectory GetSystemWindowsDirectoryA
#define SearchPath          SearchPathA
#define GetTempPath         GetTempPathA
#define GetTempFileName     GetTempFileNameA
#define GetCurrentDirectory GetCurrentDirectoryA
#define SetCurrentDirectory SetCurrentDirectoryA
#define GetFinalPathNameByHandle GetFinalPathNameByHandleA
#endif

/* Behind the macro of that name, as on Windows: so the member is what programs make of it. */
typedef struct _FILE_DISPOSITION_INFO {
    BOOLEAN DeleteFile;
} FILE_DISPOSITION_INFO, *PFILE_DISPOSITION_INFO;

#endif /* NDWIN_FILE_H */
