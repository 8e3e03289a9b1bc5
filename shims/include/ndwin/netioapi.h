/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* <netioapi.h>: rows and tables of interfaces and addresses. An interface's name is Linux's, and its alias the same. */
#ifndef NDWIN_NETIOAPI_H
#define NDWIN_NETIOAPI_H

#include "iphlpapi.h"

#ifndef IPHLPAPI_DLL_LINKAGE
#define IPHLPAPI_DLL_LINKAGE DECLSPEC_IMPORT
#endif
#define NETIO_STATUS     DWORD
#define NETIO_SUCCESS(x) ((x) == NO_ERROR)
#define NETIOAPI_API_    WINAPI
#define NETIOAPI_API     IPHLPAPI_DLL_LINKAGE NETIO_STATUS NETIOAPI_API_

#define IF_MAX_STRING_SIZE 256
#define NDIS_IF_MAX_STRING_SIZE IF_MAX_STRING_SIZE
#ifndef IF_NAMESIZE
#define IF_NAMESIZE 16
#endif

typedef enum { NdisMedium802_3 = 0, NdisMediumInfiniBand = 14, NdisMediumLoopback = 17 } NDIS_MEDIUM;
typedef enum {
    NdisPhysicalMediumUnspecified = 0,
    NdisPhysicalMediumInfiniband = 11,
    NdisPhysicalMedium802_3 = 14
} NDIS_PHYSICAL_MEDIUM;
typedef enum {
    NET_IF_ACCESS_LOOPBACK = 1,
    NET_IF_ACCESS_BROADCAST,
    NET_IF_ACCESS_POINT_TO_POINT,
    NET_IF_ACCESS_POINT_TO_MULTI_POINT
} NET_IF_ACCESS_TYPE;
typedef enum { NET_IF_DIRECTION_SENDRECEIVE = 0, NET_IF_DIRECTION_SENDONLY, NET_IF_DIRECTION_RECEIVEONLY } NET_IF_DIRECTION_TYPE;
typedef enum { NET_IF_ADMIN_STATUS_UP = 1, NET_IF_ADMIN_STATUS_DOWN, NET_IF_ADMIN_STATUS_TESTING } NET_IF_ADMIN_STATUS;
typedef enum {
    MediaConnectStateUnknown = 0,
    MediaConnectStateConnected,
    MediaConnectStateDisconnected
} NET_IF_MEDIA_CONNECT_STATE;
typedef IP_PREFIX_ORIGIN NL_PREFIX_ORIGIN;
typedef IP_SUFFIX_ORIGIN NL_SUFFIX_ORIGIN;
typedef IP_DAD_STATE NL_DAD_STATE;

typedef struct _MIB_IF_ROW2 {
    NET_LUID InterfaceLuid;
    NET_IFINDEX InterfaceIndex;
    GUID InterfaceGuid;
    WCHAR Alias[IF_MAX_STRING_SIZE + 1];
    WCHAR Description[IF_MAX_STRING_SIZE + 1];
    ULONG PhysicalAddressLength;
    UCHAR PhysicalAddress[IF_MAX_PHYS_ADDRESS_LENGTH];
    UCHAR PermanentPhysicalAddress[IF_MAX_PHYS_ADDRESS_LENGTH];
    ULONG Mtu;
    IFTYPE Type;
    TUNNEL_TYPE TunnelType;
    NDIS_MEDIUM MediaType;
    NDIS_PHYSICAL_MEDIUM PhysicalMediumType;
    NET_IF_ACCESS_TYPE AccessType;
    NET_IF_DIRECTION_TYPE DirectionType;
    struct {
        BOOLEAN HardwareInterface : 1;
        BOOLEAN FilterInterface : 1;
        BOOLEAN ConnectorPresent : 1;
        BOOLEAN NotAuthenticated : 1;
        BOOLEAN NotMediaConnected : 1;
        BOOLEAN Paused : 1;
        BOOLEAN LowPower : 1;
        BOOLEAN EndPointInterface : 1;
    } InterfaceAndOperStatusFlags;
    IF_OPER_STATUS OperStatus;
    NET_IF_ADMIN_STATUS AdminStatus;
    NET_IF_MEDIA_CONNECT_STATE MediaConnectState;
    NET_IF_NETWORK_GUID NetworkGuid;
    NET_IF_CONNECTION_TYPE ConnectionType;
    ULONG64 TransmitLinkSpeed;
    ULONG64 ReceiveLinkSpeed;
    ULONG64 InOctets;
    ULONG64 InUcastPkts;
    ULONG64 InNUcastPkts;
    ULONG64 InDiscards;
    ULONG64 InErrors;
    ULONG64 InUnknownProtos;
    ULONG64 InUcastOctets;
    ULONG64 InMulticastOctets;
    ULONG64 InBroadcastOctets;
    ULONG64 OutOctets;
    ULONG64 OutUcastPkts;
    ULONG64 OutNUcastPkts;
    ULONG64 OutDiscards;
    ULONG64 OutErrors;
    ULONG64 OutUcastOctets;
    ULONG64 OutMulticastOctets;
    ULONG64 OutBroadcastOctets;
    ULONG64 OutQLen;
} MIB_IF_ROW2, *PMIB_IF_ROW2;

typedef struct _MIB_IF_TABLE2 {
    ULONG NumEntries;
    MIB_IF_ROW2 Table[1];
} MIB_IF_TABLE2, *PMIB_IF_TABLE2;

typedef struct _MIB_UNICASTIPADDRESS_ROW {
    SOCKADDR_INET Address;
    NET_LUID InterfaceLuid;
    NET_IFINDEX InterfaceIndex;
    NL_PREFIX_ORIGIN PrefixOrigin;
    NL_SUFFIX_ORIGIN SuffixOrigin;
    ULONG ValidLifetime;
    ULONG PreferredLifetime;
    UINT8 OnLinkPrefixLength;
    BOOLEAN SkipAsSource;
    NL_DAD_STATE DadState;
    SCOPE_ID ScopeId;
    LARGE_INTEGER CreationTimeStamp;
} MIB_UNICASTIPADDRESS_ROW, *PMIB_UNICASTIPADDRESS_ROW;

typedef struct _MIB_UNICASTIPADDRESS_TABLE {
    ULONG NumEntries;
    MIB_UNICASTIPADDRESS_ROW Table[1];
} MIB_UNICASTIPADDRESS_TABLE, *PMIB_UNICASTIPADDRESS_TABLE;

typedef enum _MIB_NOTIFICATION_TYPE {
    MibParameterNotification,
    MibAddInstance,
    MibDeleteInstance,
    MibInitialNotification
} MIB_NOTIFICATION_TYPE, *PMIB_NOTIFICATION_TYPE;
typedef enum {
    RouterDiscoveryDisabled = 0,
    RouterDiscoveryEnabled,
    RouterDiscoveryDhcp,
    RouterDiscoveryUnchanged = -1
} NL_ROUTER_DISCOVERY_BEHAVIOR;
typedef enum {
    LinkLocalAlwaysOff = 0,
    LinkLocalDelayed,
    LinkLocalAlwaysOn,
    LinkLocalUnchanged = -1
} NL_LINK_LOCAL_ADDRESS_BEHAVIOR;
typedef struct _NL_INTERFACE_OFFLOAD_ROD {
    BOOLEAN NlChecksumSupported : 1;
    BOOLEAN NlOptionsSupported : 1;
    BOOLEAN TlDatagramChecksumSupported : 1;
    BOOLEAN TlStreamChecksumSupported : 1;
    BOOLEAN TlStreamOptionsSupported : 1;
    BOOLEAN FastPathCompatible : 1;
    BOOLEAN TlLargeSendOffloadSupported : 1;
    BOOLEAN TlGiantSendOffloadSupported : 1;
} NL_INTERFACE_OFFLOAD_ROD, *PNL_INTERFACE_OFFLOAD_ROD;
/* A callback gets the family, the LUID and the index; the rest is 0. */
typedef struct _MIB_IPINTERFACE_ROW {
    ADDRESS_FAMILY Family;
    NET_LUID InterfaceLuid;
    NET_IFINDEX InterfaceIndex;
    ULONG MaxReassemblySize;
    ULONG64 InterfaceIdentifier;
    ULONG MinRouterAdvertisementInterval;
    ULONG MaxRouterAdvertisementInterval;
    BOOLEAN AdvertisingEnabled;
    BOOLEAN ForwardingEnabled;
    BOOLEAN WeakHostSend;
    BOOLEAN WeakHostReceive;
    BOOLEAN UseAutomaticMetric;
    BOOLEAN UseNeighborUnreachabilityDetection;
    BOOLEAN ManagedAddressConfigurationSupported;
    BOOLEAN OtherStatefulConfigurationSupported;
    BOOLEAN AdvertiseDefaultRoute;
    NL_ROUTER_DISCOVERY_BEHAVIOR RouterDiscoveryBehavior;
    ULONG DadTransmits;
    ULONG BaseReachableTime;
    ULONG RetransmitTime;
    ULONG PathMtuDiscoveryTimeout;
    NL_LINK_LOCAL_ADDRESS_BEHAVIOR LinkLocalAddressBehavior;
    ULONG LinkLocalAddressTimeout;
    ULONG ZoneIndices[16];
    ULONG SitePrefixLength;
    ULONG Metric;
    ULONG NlMtu;
    BOOLEAN Connected;
    BOOLEAN SupportsWakeUpPatterns;
    BOOLEAN SupportsNeighborDiscovery;
    BOOLEAN SupportsRouterDiscovery;
    ULONG ReachableTime;
    NL_INTERFACE_OFFLOAD_ROD TransmitOffload;
    NL_INTERFACE_OFFLOAD_ROD ReceiveOffload;
    BOOLEAN DisableDefaultRoutes;
} MIB_IPINTERFACE_ROW, *PMIB_IPINTERFACE_ROW;
typedef void (NETIOAPI_API_ *PIPINTERFACE_CHANGE_CALLBACK)(PVOID context, PMIB_IPINTERFACE_ROW row, MIB_NOTIFICATION_TYPE type);

#define MIB_IPADDR_PRIMARY 0x0001
typedef struct _MIB_IPADDRROW_XP {
    DWORD dwAddr;
    IF_INDEX dwIndex;
    DWORD dwMask;
    DWORD dwBCastAddr;
    DWORD dwReasmSize;
    unsigned short unused1;
    unsigned short wType;
} MIB_IPADDRROW_XP, MIB_IPADDRROW, *PMIB_IPADDRROW;

typedef struct _MIB_IPADDRTABLE {
    DWORD dwNumEntries;
    MIB_IPADDRROW table[1];
} MIB_IPADDRTABLE, *PMIB_IPADDRTABLE;

NDW_API(DWORD, GetIfEntry2, (PMIB_IF_ROW2 row));
NDW_API(DWORD, GetIfTable2, (PMIB_IF_TABLE2 *table));
NDW_API(DWORD, GetUnicastIpAddressTable, (ADDRESS_FAMILY family, PMIB_UNICASTIPADDRESS_TABLE *table));
NDW_API(void, FreeMibTable, (PVOID table));
/* Cancelling waits for a callback that runs. */
NDW_API(DWORD, NotifyIpInterfaceChange,
    (ADDRESS_FAMILY family, PIPINTERFACE_CHANGE_CALLBACK callback, PVOID context, BOOLEAN initial, HANDLE *handle));
NDW_API(DWORD, CancelMibChangeNotify2, (HANDLE handle));
NDW_API(DWORD, GetIpAddrTable, (PMIB_IPADDRTABLE table, PULONG size, BOOL order));
NDW_API(DWORD, GetNumberOfInterfaces, (PDWORD number));
NDW_API(DWORD, GetBestInterface, (DWORD address, PDWORD index));
NDW_API(DWORD, GetBestInterfaceEx, (struct sockaddr *address, PDWORD index));
NDW_API(DWORD, ConvertInterfaceIndexToLuid, (NET_IFINDEX index, PNET_LUID luid));
NDW_API(DWORD, ConvertInterfaceLuidToIndex, (const NET_LUID *luid, PNET_IFINDEX index));
NDW_API(DWORD, ConvertInterfaceLuidToNameA, (const NET_LUID *luid, PSTR name, SIZE_T length));
NDW_API(DWORD, ConvertInterfaceLuidToNameW, (const NET_LUID *luid, PWSTR name, SIZE_T length));
NDW_API(DWORD, ConvertInterfaceNameToLuidA, (const CHAR *name, PNET_LUID luid));
NDW_API(DWORD, ConvertInterfaceNameToLuidW, (const WCHAR *name, PNET_LUID luid));
NDW_API(DWORD, ConvertInterfaceLuidToAlias, (const NET_LUID *luid, PWSTR alias, SIZE_T length));
NDW_API(DWORD, ConvertInterfaceAliasToLuid, (const WCHAR *alias, PNET_LUID luid));
NDW_API(DWORD, ConvertLengthToIpv4Mask, (ULONG length, PULONG mask));
NDW_API(DWORD, ConvertIpv4MaskToLength, (ULONG mask, PUINT8 length));

/* The C library's functions, unless <net/if.h> has declared them. */
#ifndef _NET_IF_H
EXTERN_C unsigned if_nametoindex(const char *name) __THROW;
EXTERN_C char *if_indextoname(unsigned index, char *name) __THROW;
#endif

#endif /* NDWIN_NETIOAPI_H */
