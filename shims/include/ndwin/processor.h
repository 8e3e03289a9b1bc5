/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processors: affinity, topology, priorities. */
#ifndef NDWIN_PROCESSOR_H
#define NDWIN_PROCESSOR_H

#include "types.h"

#define MAXIMUM_PROC_PER_GROUP 64
#define MAXIMUM_PROCESSORS     MAXIMUM_PROC_PER_GROUP
#define ALL_PROCESSOR_GROUPS   0xFFFF

NDW_API(DWORD_PTR, SetThreadAffinityMask, (HANDLE thread, DWORD_PTR mask));
NDW_API(BOOL, GetProcessAffinityMask, (HANDLE process, PDWORD_PTR mask, PDWORD_PTR system));
NDW_API(BOOL, SetProcessAffinityMask, (HANDLE process, DWORD_PTR mask));
NDW_API(BOOL, GetProcessGroupAffinity, (HANDLE process, PUSHORT count, PUSHORT groups));
NDW_API(BOOL, SetThreadGroupAffinity, (HANDLE thread, const GROUP_AFFINITY *affinity, PGROUP_AFFINITY previous));
NDW_API(BOOL, GetThreadGroupAffinity, (HANDLE thread, PGROUP_AFFINITY affinity));
NDW_API(DWORD, SetThreadIdealProcessor, (HANDLE thread, DWORD processor));
NDW_API(BOOL, SetThreadIdealProcessorEx,
    (HANDLE thread, PPROCESSOR_NUMBER processor, PPROCESSOR_NUMBER previous));
NDW_API(BOOL, GetThreadIdealProcessorEx, (HANDLE thread, PPROCESSOR_NUMBER processor));
NDW_API(DWORD, GetCurrentProcessorNumber, (void));
NDW_API(void, GetCurrentProcessorNumberEx, (PPROCESSOR_NUMBER processor));
NDW_API(DWORD, GetActiveProcessorCount, (WORD group));
NDW_API(DWORD, GetMaximumProcessorCount, (WORD group));
NDW_API(WORD, GetActiveProcessorGroupCount, (void));
NDW_API(WORD, GetMaximumProcessorGroupCount, (void));

NDW_API(BOOL, GetNumaHighestNodeNumber, (PULONG highest));
NDW_API(BOOL, GetNumaNodeProcessorMask, (UCHAR node, PULONGLONG mask));
NDW_API(BOOL, GetNumaNodeProcessorMaskEx, (USHORT node, PGROUP_AFFINITY mask));
NDW_API(BOOL, GetNumaNodeProcessorMask2, (USHORT node, PGROUP_AFFINITY masks, USHORT count, PUSHORT required));
NDW_API(BOOL, GetNumaProcessorNode, (UCHAR processor, PUCHAR node));
NDW_API(BOOL, GetNumaProcessorNodeEx, (PPROCESSOR_NUMBER processor, PUSHORT node));
NDW_API(BOOL, GetNumaAvailableMemoryNode, (UCHAR node, PULONGLONG bytes));
NDW_API(BOOL, GetNumaAvailableMemoryNodeEx, (USHORT node, PULONGLONG bytes));

typedef enum _LOGICAL_PROCESSOR_RELATIONSHIP {
    RelationProcessorCore,
    RelationNumaNode,
    RelationCache,
    RelationProcessorPackage,
    RelationGroup,
    RelationProcessorDie,
    RelationNumaNodeEx,
    RelationProcessorModule,
    RelationAll = 0xFFFF
} LOGICAL_PROCESSOR_RELATIONSHIP;

typedef enum _PROCESSOR_CACHE_TYPE {
    CacheUnified,
    CacheInstruction,
    CacheData,
    CacheTrace
} PROCESSOR_CACHE_TYPE;

#define CACHE_FULLY_ASSOCIATIVE 0xFF
#define LTP_PC_SMT 0x1

typedef struct _CACHE_DESCRIPTOR {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD Size;
    PROCESSOR_CACHE_TYPE Type;
} CACHE_DESCRIPTOR, *PCACHE_DESCRIPTOR;

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION {
    ULONG_PTR ProcessorMask;
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    __extension__ union {
        struct {
            BYTE Flags;
        } ProcessorCore;
        struct {
            DWORD NodeNumber;
        } NumaNode;
        CACHE_DESCRIPTOR Cache;
        ULONGLONG Reserved[2];
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION;

typedef struct _PROCESSOR_RELATIONSHIP {
    BYTE Flags;
    BYTE EfficiencyClass;
    BYTE Reserved[20];
    WORD GroupCount;
    GROUP_AFFINITY GroupMask[1];
} PROCESSOR_RELATIONSHIP, *PPROCESSOR_RELATIONSHIP;

typedef struct _NUMA_NODE_RELATIONSHIP {
    DWORD NodeNumber;
    BYTE Reserved[18];
    WORD GroupCount;
    __extension__ union {
        GROUP_AFFINITY GroupMask;
        GROUP_AFFINITY GroupMasks[1];
    };
} NUMA_NODE_RELATIONSHIP, *PNUMA_NODE_RELATIONSHIP;

typedef struct _CACHE_RELATIONSHIP {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD CacheSize;
    PROCESSOR_CACHE_TYPE Type;
    BYTE Reserved[18];
    WORD GroupCount;
    __extension__ union {
        GROUP_AFFINITY GroupMask;
        GROUP_AFFINITY GroupMasks[1];
    };
} CACHE_RELATIONSHIP, *PCACHE_RELATIONSHIP;

typedef struct _PROCESSOR_GROUP_INFO {
    BYTE MaximumProcessorCount;
    BYTE ActiveProcessorCount;
    BYTE Reserved[38];
    KAFFINITY ActiveProcessorMask;
} PROCESSOR_GROUP_INFO, *PPROCESSOR_GROUP_INFO;

typedef struct _GROUP_RELATIONSHIP {
    WORD MaximumGroupCount;
    WORD ActiveGroupCount;
    BYTE Reserved[20];
    PROCESSOR_GROUP_INFO GroupInfo[1];
} GROUP_RELATIONSHIP, *PGROUP_RELATIONSHIP;

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX {
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    DWORD Size;
    __extension__ union {
        PROCESSOR_RELATIONSHIP Processor;
        NUMA_NODE_RELATIONSHIP NumaNode;
        CACHE_RELATIONSHIP Cache;
        GROUP_RELATIONSHIP Group;
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX;

NDW_API(BOOL, GetLogicalProcessorInformation, (PSYSTEM_LOGICAL_PROCESSOR_INFORMATION buffer, PDWORD length));
NDW_API(BOOL, GetLogicalProcessorInformationEx,
    (LOGICAL_PROCESSOR_RELATIONSHIP relation, PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX buffer, PDWORD length));

#define THREAD_PRIORITY_IDLE          (-15)
#define THREAD_PRIORITY_LOWEST        (-2)
#define THREAD_PRIORITY_BELOW_NORMAL  (-1)
#define THREAD_PRIORITY_NORMAL        0
#define THREAD_PRIORITY_ABOVE_NORMAL  1
#define THREAD_PRIORITY_HIGHEST       2
#define THREAD_PRIORITY_TIME_CRITICAL 15
#define THREAD_PRIORITY_ERROR_RETURN  0x7FFFFFFF
#define THREAD_MODE_BACKGROUND_BEGIN  0x00010000
#define THREAD_MODE_BACKGROUND_END    0x00020000

#define NORMAL_PRIORITY_CLASS       0x00000020
#define IDLE_PRIORITY_CLASS         0x00000040
#define HIGH_PRIORITY_CLASS         0x00000080
#define REALTIME_PRIORITY_CLASS     0x00000100
#define BELOW_NORMAL_PRIORITY_CLASS 0x00004000
#define ABOVE_NORMAL_PRIORITY_CLASS 0x00008000

NDW_API(BOOL, SetThreadPriority, (HANDLE thread, int priority));
NDW_API(int, GetThreadPriority, (HANDLE thread));
NDW_API(BOOL, SetPriorityClass, (HANDLE process, DWORD priorityClass));
NDW_API(DWORD, GetPriorityClass, (HANDLE process));
NDW_API(BOOL, SetThreadPriorityBoost, (HANDLE thread, BOOL disable));
NDW_API(BOOL, GetThreadPriorityBoost, (HANDLE thread, PBOOL disabled));
NDW_API(BOOL, SetProcessPriorityBoost, (HANDLE process, BOOL disable));
NDW_API(BOOL, GetProcessPriorityBoost, (HANDLE process, PBOOL disabled));

NDW_API(BOOL, GetProcessTimes,
    (HANDLE process, LPFILETIME creation, LPFILETIME exit, LPFILETIME kernel, LPFILETIME user));
NDW_API(BOOL, GetThreadTimes,
    (HANDLE thread, LPFILETIME creation, LPFILETIME exit, LPFILETIME kernel, LPFILETIME user));
NDW_API(BOOL, QueryUnbiasedInterruptTime, (PULONGLONG time));
NDW_API(void, QueryInterruptTime, (PULONGLONG time));
/* The others are as precise. */
NDW_INLINE void QueryInterruptTimePrecise(PULONGLONG time) { QueryInterruptTime(time); }
NDW_INLINE void QueryUnbiasedInterruptTimePrecise(PULONGLONG time) { QueryUnbiasedInterruptTime(time); }

/* IsProcessorFeaturePresent is FALSE for any other number. */
#define PF_COMPARE_EXCHANGE_DOUBLE               2
#define PF_MMX_INSTRUCTIONS_AVAILABLE            3
#define PF_XMMI_INSTRUCTIONS_AVAILABLE           6
#define PF_3DNOW_INSTRUCTIONS_AVAILABLE          7
#define PF_RDTSC_INSTRUCTION_AVAILABLE           8
#define PF_PAE_ENABLED                           9
#define PF_XMMI64_INSTRUCTIONS_AVAILABLE         10
#define PF_NX_ENABLED                            12
#define PF_SSE3_INSTRUCTIONS_AVAILABLE           13
#define PF_COMPARE_EXCHANGE128                   14
#define PF_COMPARE64_EXCHANGE128                 15
#define PF_CHANNELS_ENABLED                      16
#define PF_XSAVE_ENABLED                         17
#define PF_ARM_VFP_32_REGISTERS_AVAILABLE        18
#define PF_ARM_NEON_INSTRUCTIONS_AVAILABLE       19
#define PF_SECOND_LEVEL_ADDRESS_TRANSLATION      20
#define PF_VIRT_FIRMWARE_ENABLED                 21
#define PF_RDWRFSGSBASE_AVAILABLE                22
#define PF_FASTFAIL_AVAILABLE                    23
#define PF_RDRAND_INSTRUCTION_AVAILABLE          28
#define PF_ARM_V8_INSTRUCTIONS_AVAILABLE         29
#define PF_ARM_V8_CRYPTO_INSTRUCTIONS_AVAILABLE  30
#define PF_ARM_V8_CRC32_INSTRUCTIONS_AVAILABLE   31
#define PF_RDTSCP_INSTRUCTION_AVAILABLE          32
#define PF_RDPID_INSTRUCTION_AVAILABLE           33
#define PF_ARM_V81_ATOMIC_INSTRUCTIONS_AVAILABLE 34
#define PF_SSSE3_INSTRUCTIONS_AVAILABLE          36
#define PF_SSE4_1_INSTRUCTIONS_AVAILABLE         37
#define PF_SSE4_2_INSTRUCTIONS_AVAILABLE         38
#define PF_AVX_INSTRUCTIONS_AVAILABLE            39
#define PF_AVX2_INSTRUCTIONS_AVAILABLE           40
#define PF_AVX512F_INSTRUCTIONS_AVAILABLE        41
NDW_API(BOOL, IsProcessorFeaturePresent, (DWORD feature));

#endif /* NDWIN_PROCESSOR_H */
