/* What peer.c and ndpeer say to each other, and rping's message, which has the same form. */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stdint.h>
#include <string.h>

/* Memory that the sender lets the other side read and write. All in network order. */
typedef struct Announcement
{
    uint64_t Address;
    uint32_t Token; /* the rkey: ND's remote token as it is in memory */
    uint32_t Size;
} Announcement;

/* One registered block at each side. */
enum
{
    PageSize = 4096,
    TransferSize = 3 * PageSize + 5,
    InAt = 0,
    OutAt = PageSize,
    TargetAt = 2 * PageSize,  /* the other side writes and reads here */
    SourceAt = 6 * PageSize,  /* what this side writes */
    BackAt = 10 * PageSize,   /* what this side has read back */
    MemorySize = 14 * PageSize
};

static inline uint64_t ToBigEndian64(uint64_t value)
{
    unsigned char bytes[8];
    int i;
    for (i = 0; i < 8; i++)
    {
        bytes[i] = (unsigned char)(value >> (56 - 8 * i));
    }
    memcpy(&value, bytes, sizeof(value));
    return value;
}

static inline uint64_t FromBigEndian64(uint64_t value)
{
    return ToBigEndian64(value); /* swaps or not, both ways alike */
}

/* The private data of the connection request, and of the answer. */
static inline const char* SaidBy(int server)
{
    return server ? "come in, says the server" : "may I, asks the client";
}

static inline char PatternByte(int server, int i)
{
    return (char)(server ? 3 * i + 1 : 7 * i + 2);
}

static inline void FillPattern(char* memory, int server)
{
    int i;
    for (i = 0; i < TransferSize; i++)
    {
        memory[i] = PatternByte(server, i);
    }
}

static inline int HasPattern(const char* memory, int server)
{
    int i;
    for (i = 0; i < TransferSize; i++)
    {
        if (memory[i] != PatternByte(server, i))
        {
            return 0;
        }
    }
    return 1;
}

#endif
