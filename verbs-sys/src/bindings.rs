// Made by ci/bindings from rdma-core 44.0-2 with bindgen 0.72.1. Do not edit.

use libc::{pthread_cond_t, pthread_mutex_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};

pub type __u16 = ::core::ffi::c_ushort;
pub type __u32 = ::core::ffi::c_uint;
pub type __u64 = ::core::ffi::c_ulonglong;
pub type __be16 = __u16;
pub type __be32 = __u32;
pub type __be64 = __u64;
pub const IB_UVERBS_ACCESS_LOCAL_WRITE: ib_uverbs_access_flags = 1;
pub const IB_UVERBS_ACCESS_REMOTE_WRITE: ib_uverbs_access_flags = 2;
pub const IB_UVERBS_ACCESS_REMOTE_READ: ib_uverbs_access_flags = 4;
pub const IB_UVERBS_ACCESS_REMOTE_ATOMIC: ib_uverbs_access_flags = 8;
pub const IB_UVERBS_ACCESS_MW_BIND: ib_uverbs_access_flags = 16;
pub const IB_UVERBS_ACCESS_ZERO_BASED: ib_uverbs_access_flags = 32;
pub const IB_UVERBS_ACCESS_ON_DEMAND: ib_uverbs_access_flags = 64;
pub const IB_UVERBS_ACCESS_HUGETLB: ib_uverbs_access_flags = 128;
pub const IB_UVERBS_ACCESS_RELAXED_ORDERING: ib_uverbs_access_flags = 1048576;
pub const IB_UVERBS_ACCESS_OPTIONAL_RANGE: ib_uverbs_access_flags = 1072693248;
pub type ib_uverbs_access_flags = ::core::ffi::c_uint;
pub const IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH: ib_uverbs_advise_mr_advice = 0;
pub const IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE: ib_uverbs_advise_mr_advice = 1;
pub const IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT: ib_uverbs_advise_mr_advice = 2;
pub type ib_uverbs_advise_mr_advice = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_gid {
    pub raw: [u8; 16usize],
    pub global: ibv_gid__bindgen_ty_1,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_gid__bindgen_ty_1 {
    pub subnet_prefix: __be64,
    pub interface_id: __be64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_gid__bindgen_ty_1"][::core::mem::size_of::<ibv_gid__bindgen_ty_1>() - 16usize];
    ["Alignment of ibv_gid__bindgen_ty_1"][::core::mem::align_of::<ibv_gid__bindgen_ty_1>() - 8usize];
    ["Offset of field: ibv_gid__bindgen_ty_1::subnet_prefix"]
        [::core::mem::offset_of!(ibv_gid__bindgen_ty_1, subnet_prefix) - 0usize];
    ["Offset of field: ibv_gid__bindgen_ty_1::interface_id"]
        [::core::mem::offset_of!(ibv_gid__bindgen_ty_1, interface_id) - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_gid"][::core::mem::size_of::<ibv_gid>() - 16usize];
    ["Alignment of ibv_gid"][::core::mem::align_of::<ibv_gid>() - 8usize];
    ["Offset of field: ibv_gid::raw"][::core::mem::offset_of!(ibv_gid, raw) - 0usize];
    ["Offset of field: ibv_gid::global"][::core::mem::offset_of!(ibv_gid, global) - 0usize];
};
pub const IBV_NODE_UNKNOWN: ibv_node_type = -1;
pub const IBV_NODE_CA: ibv_node_type = 1;
pub const IBV_NODE_SWITCH: ibv_node_type = 2;
pub const IBV_NODE_ROUTER: ibv_node_type = 3;
pub const IBV_NODE_RNIC: ibv_node_type = 4;
pub const IBV_NODE_USNIC: ibv_node_type = 5;
pub const IBV_NODE_USNIC_UDP: ibv_node_type = 6;
pub const IBV_NODE_UNSPECIFIED: ibv_node_type = 7;
pub type ibv_node_type = ::core::ffi::c_int;
pub const IBV_TRANSPORT_UNKNOWN: ibv_transport_type = -1;
pub const IBV_TRANSPORT_IB: ibv_transport_type = 0;
pub const IBV_TRANSPORT_IWARP: ibv_transport_type = 1;
pub const IBV_TRANSPORT_USNIC: ibv_transport_type = 2;
pub const IBV_TRANSPORT_USNIC_UDP: ibv_transport_type = 3;
pub const IBV_TRANSPORT_UNSPECIFIED: ibv_transport_type = 4;
pub type ibv_transport_type = ::core::ffi::c_int;
pub const IBV_DEVICE_RESIZE_MAX_WR: ibv_device_cap_flags = 1;
pub const IBV_DEVICE_BAD_PKEY_CNTR: ibv_device_cap_flags = 2;
pub const IBV_DEVICE_BAD_QKEY_CNTR: ibv_device_cap_flags = 4;
pub const IBV_DEVICE_RAW_MULTI: ibv_device_cap_flags = 8;
pub const IBV_DEVICE_AUTO_PATH_MIG: ibv_device_cap_flags = 16;
pub const IBV_DEVICE_CHANGE_PHY_PORT: ibv_device_cap_flags = 32;
pub const IBV_DEVICE_UD_AV_PORT_ENFORCE: ibv_device_cap_flags = 64;
pub const IBV_DEVICE_CURR_QP_STATE_MOD: ibv_device_cap_flags = 128;
pub const IBV_DEVICE_SHUTDOWN_PORT: ibv_device_cap_flags = 256;
pub const IBV_DEVICE_INIT_TYPE: ibv_device_cap_flags = 512;
pub const IBV_DEVICE_PORT_ACTIVE_EVENT: ibv_device_cap_flags = 1024;
pub const IBV_DEVICE_SYS_IMAGE_GUID: ibv_device_cap_flags = 2048;
pub const IBV_DEVICE_RC_RNR_NAK_GEN: ibv_device_cap_flags = 4096;
pub const IBV_DEVICE_SRQ_RESIZE: ibv_device_cap_flags = 8192;
pub const IBV_DEVICE_N_NOTIFY_CQ: ibv_device_cap_flags = 16384;
pub const IBV_DEVICE_MEM_WINDOW: ibv_device_cap_flags = 131072;
pub const IBV_DEVICE_UD_IP_CSUM: ibv_device_cap_flags = 262144;
pub const IBV_DEVICE_XRC: ibv_device_cap_flags = 1048576;
pub const IBV_DEVICE_MEM_MGT_EXTENSIONS: ibv_device_cap_flags = 2097152;
pub const IBV_DEVICE_MEM_WINDOW_TYPE_2A: ibv_device_cap_flags = 8388608;
pub const IBV_DEVICE_MEM_WINDOW_TYPE_2B: ibv_device_cap_flags = 16777216;
pub const IBV_DEVICE_RC_IP_CSUM: ibv_device_cap_flags = 33554432;
pub const IBV_DEVICE_RAW_IP_CSUM: ibv_device_cap_flags = 67108864;
pub const IBV_DEVICE_MANAGED_FLOW_STEERING: ibv_device_cap_flags = 536870912;
pub type ibv_device_cap_flags = ::core::ffi::c_uint;
pub const IBV_ATOMIC_NONE: ibv_atomic_cap = 0;
pub const IBV_ATOMIC_HCA: ibv_atomic_cap = 1;
pub const IBV_ATOMIC_GLOB: ibv_atomic_cap = 2;
pub type ibv_atomic_cap = ::core::ffi::c_uint;
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_alloc_dm_attr {
    pub _bindgen_opaque_blob: [u64; 2usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_alloc_dm_attr"][::core::mem::size_of::<ibv_alloc_dm_attr>() - 16usize];
    ["Alignment of ibv_alloc_dm_attr"][::core::mem::align_of::<ibv_alloc_dm_attr>() - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_dm {
    pub _bindgen_opaque_blob: [u64; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_dm"][::core::mem::size_of::<ibv_dm>() - 32usize];
    ["Alignment of ibv_dm"][::core::mem::align_of::<ibv_dm>() - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_device_attr {
    pub fw_ver: [::core::ffi::c_char; 64usize],
    pub node_guid: __be64,
    pub sys_image_guid: __be64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: ::core::ffi::c_int,
    pub max_qp_wr: ::core::ffi::c_int,
    pub device_cap_flags: ::core::ffi::c_uint,
    pub max_sge: ::core::ffi::c_int,
    pub max_sge_rd: ::core::ffi::c_int,
    pub max_cq: ::core::ffi::c_int,
    pub max_cqe: ::core::ffi::c_int,
    pub max_mr: ::core::ffi::c_int,
    pub max_pd: ::core::ffi::c_int,
    pub max_qp_rd_atom: ::core::ffi::c_int,
    pub max_ee_rd_atom: ::core::ffi::c_int,
    pub max_res_rd_atom: ::core::ffi::c_int,
    pub max_qp_init_rd_atom: ::core::ffi::c_int,
    pub max_ee_init_rd_atom: ::core::ffi::c_int,
    pub atomic_cap: ibv_atomic_cap,
    pub max_ee: ::core::ffi::c_int,
    pub max_rdd: ::core::ffi::c_int,
    pub max_mw: ::core::ffi::c_int,
    pub max_raw_ipv6_qp: ::core::ffi::c_int,
    pub max_raw_ethy_qp: ::core::ffi::c_int,
    pub max_mcast_grp: ::core::ffi::c_int,
    pub max_mcast_qp_attach: ::core::ffi::c_int,
    pub max_total_mcast_qp_attach: ::core::ffi::c_int,
    pub max_ah: ::core::ffi::c_int,
    pub max_fmr: ::core::ffi::c_int,
    pub max_map_per_fmr: ::core::ffi::c_int,
    pub max_srq: ::core::ffi::c_int,
    pub max_srq_wr: ::core::ffi::c_int,
    pub max_srq_sge: ::core::ffi::c_int,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_device_attr"][::core::mem::size_of::<ibv_device_attr>() - 232usize];
    ["Alignment of ibv_device_attr"][::core::mem::align_of::<ibv_device_attr>() - 8usize];
    ["Offset of field: ibv_device_attr::fw_ver"][::core::mem::offset_of!(ibv_device_attr, fw_ver) - 0usize];
    ["Offset of field: ibv_device_attr::node_guid"]
        [::core::mem::offset_of!(ibv_device_attr, node_guid) - 64usize];
    ["Offset of field: ibv_device_attr::sys_image_guid"]
        [::core::mem::offset_of!(ibv_device_attr, sys_image_guid) - 72usize];
    ["Offset of field: ibv_device_attr::max_mr_size"]
        [::core::mem::offset_of!(ibv_device_attr, max_mr_size) - 80usize];
    ["Offset of field: ibv_device_attr::page_size_cap"]
        [::core::mem::offset_of!(ibv_device_attr, page_size_cap) - 88usize];
    ["Offset of field: ibv_device_attr::vendor_id"]
        [::core::mem::offset_of!(ibv_device_attr, vendor_id) - 96usize];
    ["Offset of field: ibv_device_attr::vendor_part_id"]
        [::core::mem::offset_of!(ibv_device_attr, vendor_part_id) - 100usize];
    ["Offset of field: ibv_device_attr::hw_ver"][::core::mem::offset_of!(ibv_device_attr, hw_ver) - 104usize];
    ["Offset of field: ibv_device_attr::max_qp"][::core::mem::offset_of!(ibv_device_attr, max_qp) - 108usize];
    ["Offset of field: ibv_device_attr::max_qp_wr"]
        [::core::mem::offset_of!(ibv_device_attr, max_qp_wr) - 112usize];
    ["Offset of field: ibv_device_attr::device_cap_flags"]
        [::core::mem::offset_of!(ibv_device_attr, device_cap_flags) - 116usize];
    ["Offset of field: ibv_device_attr::max_sge"]
        [::core::mem::offset_of!(ibv_device_attr, max_sge) - 120usize];
    ["Offset of field: ibv_device_attr::max_sge_rd"]
        [::core::mem::offset_of!(ibv_device_attr, max_sge_rd) - 124usize];
    ["Offset of field: ibv_device_attr::max_cq"][::core::mem::offset_of!(ibv_device_attr, max_cq) - 128usize];
    ["Offset of field: ibv_device_attr::max_cqe"]
        [::core::mem::offset_of!(ibv_device_attr, max_cqe) - 132usize];
    ["Offset of field: ibv_device_attr::max_mr"][::core::mem::offset_of!(ibv_device_attr, max_mr) - 136usize];
    ["Offset of field: ibv_device_attr::max_pd"][::core::mem::offset_of!(ibv_device_attr, max_pd) - 140usize];
    ["Offset of field: ibv_device_attr::max_qp_rd_atom"]
        [::core::mem::offset_of!(ibv_device_attr, max_qp_rd_atom) - 144usize];
    ["Offset of field: ibv_device_attr::max_ee_rd_atom"]
        [::core::mem::offset_of!(ibv_device_attr, max_ee_rd_atom) - 148usize];
    ["Offset of field: ibv_device_attr::max_res_rd_atom"]
        [::core::mem::offset_of!(ibv_device_attr, max_res_rd_atom) - 152usize];
    ["Offset of field: ibv_device_attr::max_qp_init_rd_atom"]
        [::core::mem::offset_of!(ibv_device_attr, max_qp_init_rd_atom) - 156usize];
    ["Offset of field: ibv_device_attr::max_ee_init_rd_atom"]
        [::core::mem::offset_of!(ibv_device_attr, max_ee_init_rd_atom) - 160usize];
    ["Offset of field: ibv_device_attr::atomic_cap"]
        [::core::mem::offset_of!(ibv_device_attr, atomic_cap) - 164usize];
    ["Offset of field: ibv_device_attr::max_ee"][::core::mem::offset_of!(ibv_device_attr, max_ee) - 168usize];
    ["Offset of field: ibv_device_attr::max_rdd"]
        [::core::mem::offset_of!(ibv_device_attr, max_rdd) - 172usize];
    ["Offset of field: ibv_device_attr::max_mw"][::core::mem::offset_of!(ibv_device_attr, max_mw) - 176usize];
    ["Offset of field: ibv_device_attr::max_raw_ipv6_qp"]
        [::core::mem::offset_of!(ibv_device_attr, max_raw_ipv6_qp) - 180usize];
    ["Offset of field: ibv_device_attr::max_raw_ethy_qp"]
        [::core::mem::offset_of!(ibv_device_attr, max_raw_ethy_qp) - 184usize];
    ["Offset of field: ibv_device_attr::max_mcast_grp"]
        [::core::mem::offset_of!(ibv_device_attr, max_mcast_grp) - 188usize];
    ["Offset of field: ibv_device_attr::max_mcast_qp_attach"]
        [::core::mem::offset_of!(ibv_device_attr, max_mcast_qp_attach) - 192usize];
    ["Offset of field: ibv_device_attr::max_total_mcast_qp_attach"]
        [::core::mem::offset_of!(ibv_device_attr, max_total_mcast_qp_attach) - 196usize];
    ["Offset of field: ibv_device_attr::max_ah"][::core::mem::offset_of!(ibv_device_attr, max_ah) - 200usize];
    ["Offset of field: ibv_device_attr::max_fmr"]
        [::core::mem::offset_of!(ibv_device_attr, max_fmr) - 204usize];
    ["Offset of field: ibv_device_attr::max_map_per_fmr"]
        [::core::mem::offset_of!(ibv_device_attr, max_map_per_fmr) - 208usize];
    ["Offset of field: ibv_device_attr::max_srq"]
        [::core::mem::offset_of!(ibv_device_attr, max_srq) - 212usize];
    ["Offset of field: ibv_device_attr::max_srq_wr"]
        [::core::mem::offset_of!(ibv_device_attr, max_srq_wr) - 216usize];
    ["Offset of field: ibv_device_attr::max_srq_sge"]
        [::core::mem::offset_of!(ibv_device_attr, max_srq_sge) - 220usize];
    ["Offset of field: ibv_device_attr::max_pkeys"]
        [::core::mem::offset_of!(ibv_device_attr, max_pkeys) - 224usize];
    ["Offset of field: ibv_device_attr::local_ca_ack_delay"]
        [::core::mem::offset_of!(ibv_device_attr, local_ca_ack_delay) - 226usize];
    ["Offset of field: ibv_device_attr::phys_port_cnt"]
        [::core::mem::offset_of!(ibv_device_attr, phys_port_cnt) - 227usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_query_device_ex_input {
    pub _bindgen_opaque_blob: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_query_device_ex_input"][::core::mem::size_of::<ibv_query_device_ex_input>() - 4usize];
    ["Alignment of ibv_query_device_ex_input"][::core::mem::align_of::<ibv_query_device_ex_input>() - 4usize];
};
#[repr(C)]
#[repr(align(8))]
pub struct ibv_device_attr_ex {
    pub _bindgen_opaque_blob: [u64; 50usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_device_attr_ex"][::core::mem::size_of::<ibv_device_attr_ex>() - 400usize];
    ["Alignment of ibv_device_attr_ex"][::core::mem::align_of::<ibv_device_attr_ex>() - 8usize];
};
pub const IBV_MTU_256: ibv_mtu = 1;
pub const IBV_MTU_512: ibv_mtu = 2;
pub const IBV_MTU_1024: ibv_mtu = 3;
pub const IBV_MTU_2048: ibv_mtu = 4;
pub const IBV_MTU_4096: ibv_mtu = 5;
pub type ibv_mtu = ::core::ffi::c_uint;
pub const IBV_PORT_NOP: ibv_port_state = 0;
pub const IBV_PORT_DOWN: ibv_port_state = 1;
pub const IBV_PORT_INIT: ibv_port_state = 2;
pub const IBV_PORT_ARMED: ibv_port_state = 3;
pub const IBV_PORT_ACTIVE: ibv_port_state = 4;
pub const IBV_PORT_ACTIVE_DEFER: ibv_port_state = 5;
pub type ibv_port_state = ::core::ffi::c_uint;
pub const IBV_LINK_LAYER_UNSPECIFIED: _bindgen_ty_19 = 0;
pub const IBV_LINK_LAYER_INFINIBAND: _bindgen_ty_19 = 1;
pub const IBV_LINK_LAYER_ETHERNET: _bindgen_ty_19 = 2;
pub type _bindgen_ty_19 = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_port_attr {
    pub state: ibv_port_state,
    pub max_mtu: ibv_mtu,
    pub active_mtu: ibv_mtu,
    pub gid_tbl_len: ::core::ffi::c_int,
    pub port_cap_flags: u32,
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: u8,
    pub flags: u8,
    pub port_cap_flags2: u16,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_port_attr"][::core::mem::size_of::<ibv_port_attr>() - 52usize];
    ["Alignment of ibv_port_attr"][::core::mem::align_of::<ibv_port_attr>() - 4usize];
    ["Offset of field: ibv_port_attr::state"][::core::mem::offset_of!(ibv_port_attr, state) - 0usize];
    ["Offset of field: ibv_port_attr::max_mtu"][::core::mem::offset_of!(ibv_port_attr, max_mtu) - 4usize];
    ["Offset of field: ibv_port_attr::active_mtu"]
        [::core::mem::offset_of!(ibv_port_attr, active_mtu) - 8usize];
    ["Offset of field: ibv_port_attr::gid_tbl_len"]
        [::core::mem::offset_of!(ibv_port_attr, gid_tbl_len) - 12usize];
    ["Offset of field: ibv_port_attr::port_cap_flags"]
        [::core::mem::offset_of!(ibv_port_attr, port_cap_flags) - 16usize];
    ["Offset of field: ibv_port_attr::max_msg_sz"]
        [::core::mem::offset_of!(ibv_port_attr, max_msg_sz) - 20usize];
    ["Offset of field: ibv_port_attr::bad_pkey_cntr"]
        [::core::mem::offset_of!(ibv_port_attr, bad_pkey_cntr) - 24usize];
    ["Offset of field: ibv_port_attr::qkey_viol_cntr"]
        [::core::mem::offset_of!(ibv_port_attr, qkey_viol_cntr) - 28usize];
    ["Offset of field: ibv_port_attr::pkey_tbl_len"]
        [::core::mem::offset_of!(ibv_port_attr, pkey_tbl_len) - 32usize];
    ["Offset of field: ibv_port_attr::lid"][::core::mem::offset_of!(ibv_port_attr, lid) - 34usize];
    ["Offset of field: ibv_port_attr::sm_lid"][::core::mem::offset_of!(ibv_port_attr, sm_lid) - 36usize];
    ["Offset of field: ibv_port_attr::lmc"][::core::mem::offset_of!(ibv_port_attr, lmc) - 38usize];
    ["Offset of field: ibv_port_attr::max_vl_num"]
        [::core::mem::offset_of!(ibv_port_attr, max_vl_num) - 39usize];
    ["Offset of field: ibv_port_attr::sm_sl"][::core::mem::offset_of!(ibv_port_attr, sm_sl) - 40usize];
    ["Offset of field: ibv_port_attr::subnet_timeout"]
        [::core::mem::offset_of!(ibv_port_attr, subnet_timeout) - 41usize];
    ["Offset of field: ibv_port_attr::init_type_reply"]
        [::core::mem::offset_of!(ibv_port_attr, init_type_reply) - 42usize];
    ["Offset of field: ibv_port_attr::active_width"]
        [::core::mem::offset_of!(ibv_port_attr, active_width) - 43usize];
    ["Offset of field: ibv_port_attr::active_speed"]
        [::core::mem::offset_of!(ibv_port_attr, active_speed) - 44usize];
    ["Offset of field: ibv_port_attr::phys_state"]
        [::core::mem::offset_of!(ibv_port_attr, phys_state) - 45usize];
    ["Offset of field: ibv_port_attr::link_layer"]
        [::core::mem::offset_of!(ibv_port_attr, link_layer) - 46usize];
    ["Offset of field: ibv_port_attr::flags"][::core::mem::offset_of!(ibv_port_attr, flags) - 47usize];
    ["Offset of field: ibv_port_attr::port_cap_flags2"]
        [::core::mem::offset_of!(ibv_port_attr, port_cap_flags2) - 48usize];
};
pub const IBV_EVENT_CQ_ERR: ibv_event_type = 0;
pub const IBV_EVENT_QP_FATAL: ibv_event_type = 1;
pub const IBV_EVENT_QP_REQ_ERR: ibv_event_type = 2;
pub const IBV_EVENT_QP_ACCESS_ERR: ibv_event_type = 3;
pub const IBV_EVENT_COMM_EST: ibv_event_type = 4;
pub const IBV_EVENT_SQ_DRAINED: ibv_event_type = 5;
pub const IBV_EVENT_PATH_MIG: ibv_event_type = 6;
pub const IBV_EVENT_PATH_MIG_ERR: ibv_event_type = 7;
pub const IBV_EVENT_DEVICE_FATAL: ibv_event_type = 8;
pub const IBV_EVENT_PORT_ACTIVE: ibv_event_type = 9;
pub const IBV_EVENT_PORT_ERR: ibv_event_type = 10;
pub const IBV_EVENT_LID_CHANGE: ibv_event_type = 11;
pub const IBV_EVENT_PKEY_CHANGE: ibv_event_type = 12;
pub const IBV_EVENT_SM_CHANGE: ibv_event_type = 13;
pub const IBV_EVENT_SRQ_ERR: ibv_event_type = 14;
pub const IBV_EVENT_SRQ_LIMIT_REACHED: ibv_event_type = 15;
pub const IBV_EVENT_QP_LAST_WQE_REACHED: ibv_event_type = 16;
pub const IBV_EVENT_CLIENT_REREGISTER: ibv_event_type = 17;
pub const IBV_EVENT_GID_CHANGE: ibv_event_type = 18;
pub const IBV_EVENT_WQ_FATAL: ibv_event_type = 19;
pub type ibv_event_type = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_async_event {
    pub element: ibv_async_event__bindgen_ty_1,
    pub event_type: ibv_event_type,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_async_event__bindgen_ty_1 {
    pub cq: *mut ibv_cq,
    pub qp: *mut ibv_qp,
    pub srq: *mut ibv_srq,
    pub wq: *mut ibv_wq,
    pub port_num: ::core::ffi::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_async_event__bindgen_ty_1"]
        [::core::mem::size_of::<ibv_async_event__bindgen_ty_1>() - 8usize];
    ["Alignment of ibv_async_event__bindgen_ty_1"]
        [::core::mem::align_of::<ibv_async_event__bindgen_ty_1>() - 8usize];
    ["Offset of field: ibv_async_event__bindgen_ty_1::cq"]
        [::core::mem::offset_of!(ibv_async_event__bindgen_ty_1, cq) - 0usize];
    ["Offset of field: ibv_async_event__bindgen_ty_1::qp"]
        [::core::mem::offset_of!(ibv_async_event__bindgen_ty_1, qp) - 0usize];
    ["Offset of field: ibv_async_event__bindgen_ty_1::srq"]
        [::core::mem::offset_of!(ibv_async_event__bindgen_ty_1, srq) - 0usize];
    ["Offset of field: ibv_async_event__bindgen_ty_1::wq"]
        [::core::mem::offset_of!(ibv_async_event__bindgen_ty_1, wq) - 0usize];
    ["Offset of field: ibv_async_event__bindgen_ty_1::port_num"]
        [::core::mem::offset_of!(ibv_async_event__bindgen_ty_1, port_num) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_async_event"][::core::mem::size_of::<ibv_async_event>() - 16usize];
    ["Alignment of ibv_async_event"][::core::mem::align_of::<ibv_async_event>() - 8usize];
    ["Offset of field: ibv_async_event::element"][::core::mem::offset_of!(ibv_async_event, element) - 0usize];
    ["Offset of field: ibv_async_event::event_type"]
        [::core::mem::offset_of!(ibv_async_event, event_type) - 8usize];
};
pub const IBV_WC_SUCCESS: ibv_wc_status = 0;
pub const IBV_WC_LOC_LEN_ERR: ibv_wc_status = 1;
pub const IBV_WC_LOC_QP_OP_ERR: ibv_wc_status = 2;
pub const IBV_WC_LOC_EEC_OP_ERR: ibv_wc_status = 3;
pub const IBV_WC_LOC_PROT_ERR: ibv_wc_status = 4;
pub const IBV_WC_WR_FLUSH_ERR: ibv_wc_status = 5;
pub const IBV_WC_MW_BIND_ERR: ibv_wc_status = 6;
pub const IBV_WC_BAD_RESP_ERR: ibv_wc_status = 7;
pub const IBV_WC_LOC_ACCESS_ERR: ibv_wc_status = 8;
pub const IBV_WC_REM_INV_REQ_ERR: ibv_wc_status = 9;
pub const IBV_WC_REM_ACCESS_ERR: ibv_wc_status = 10;
pub const IBV_WC_REM_OP_ERR: ibv_wc_status = 11;
pub const IBV_WC_RETRY_EXC_ERR: ibv_wc_status = 12;
pub const IBV_WC_RNR_RETRY_EXC_ERR: ibv_wc_status = 13;
pub const IBV_WC_LOC_RDD_VIOL_ERR: ibv_wc_status = 14;
pub const IBV_WC_REM_INV_RD_REQ_ERR: ibv_wc_status = 15;
pub const IBV_WC_REM_ABORT_ERR: ibv_wc_status = 16;
pub const IBV_WC_INV_EECN_ERR: ibv_wc_status = 17;
pub const IBV_WC_INV_EEC_STATE_ERR: ibv_wc_status = 18;
pub const IBV_WC_FATAL_ERR: ibv_wc_status = 19;
pub const IBV_WC_RESP_TIMEOUT_ERR: ibv_wc_status = 20;
pub const IBV_WC_GENERAL_ERR: ibv_wc_status = 21;
pub const IBV_WC_TM_ERR: ibv_wc_status = 22;
pub const IBV_WC_TM_RNDV_INCOMPLETE: ibv_wc_status = 23;
pub type ibv_wc_status = ::core::ffi::c_uint;
pub const IBV_WC_SEND: ibv_wc_opcode = 0;
pub const IBV_WC_RDMA_WRITE: ibv_wc_opcode = 1;
pub const IBV_WC_RDMA_READ: ibv_wc_opcode = 2;
pub const IBV_WC_COMP_SWAP: ibv_wc_opcode = 3;
pub const IBV_WC_FETCH_ADD: ibv_wc_opcode = 4;
pub const IBV_WC_BIND_MW: ibv_wc_opcode = 5;
pub const IBV_WC_LOCAL_INV: ibv_wc_opcode = 6;
pub const IBV_WC_TSO: ibv_wc_opcode = 7;
pub const IBV_WC_ATOMIC_WRITE: ibv_wc_opcode = 9;
pub const IBV_WC_RECV: ibv_wc_opcode = 128;
pub const IBV_WC_RECV_RDMA_WITH_IMM: ibv_wc_opcode = 129;
pub const IBV_WC_TM_ADD: ibv_wc_opcode = 130;
pub const IBV_WC_TM_DEL: ibv_wc_opcode = 131;
pub const IBV_WC_TM_SYNC: ibv_wc_opcode = 132;
pub const IBV_WC_TM_RECV: ibv_wc_opcode = 133;
pub const IBV_WC_TM_NO_TAG: ibv_wc_opcode = 134;
pub const IBV_WC_DRIVER1: ibv_wc_opcode = 135;
pub const IBV_WC_DRIVER2: ibv_wc_opcode = 136;
pub const IBV_WC_DRIVER3: ibv_wc_opcode = 137;
pub type ibv_wc_opcode = ::core::ffi::c_uint;
pub const IBV_WC_GRH: ibv_wc_flags = 1;
pub const IBV_WC_WITH_IMM: ibv_wc_flags = 2;
pub const IBV_WC_IP_CSUM_OK: ibv_wc_flags = 4;
pub const IBV_WC_WITH_INV: ibv_wc_flags = 8;
pub const IBV_WC_TM_SYNC_REQ: ibv_wc_flags = 16;
pub const IBV_WC_TM_MATCH: ibv_wc_flags = 32;
pub const IBV_WC_TM_DATA_VALID: ibv_wc_flags = 64;
pub type ibv_wc_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_wc {
    pub wr_id: u64,
    pub status: ibv_wc_status,
    pub opcode: ibv_wc_opcode,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub __bindgen_anon_1: ibv_wc__bindgen_ty_1,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: ::core::ffi::c_uint,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_wc__bindgen_ty_1 {
    pub imm_data: __be32,
    pub invalidated_rkey: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_wc__bindgen_ty_1"][::core::mem::size_of::<ibv_wc__bindgen_ty_1>() - 4usize];
    ["Alignment of ibv_wc__bindgen_ty_1"][::core::mem::align_of::<ibv_wc__bindgen_ty_1>() - 4usize];
    ["Offset of field: ibv_wc__bindgen_ty_1::imm_data"]
        [::core::mem::offset_of!(ibv_wc__bindgen_ty_1, imm_data) - 0usize];
    ["Offset of field: ibv_wc__bindgen_ty_1::invalidated_rkey"]
        [::core::mem::offset_of!(ibv_wc__bindgen_ty_1, invalidated_rkey) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_wc"][::core::mem::size_of::<ibv_wc>() - 48usize];
    ["Alignment of ibv_wc"][::core::mem::align_of::<ibv_wc>() - 8usize];
    ["Offset of field: ibv_wc::wr_id"][::core::mem::offset_of!(ibv_wc, wr_id) - 0usize];
    ["Offset of field: ibv_wc::status"][::core::mem::offset_of!(ibv_wc, status) - 8usize];
    ["Offset of field: ibv_wc::opcode"][::core::mem::offset_of!(ibv_wc, opcode) - 12usize];
    ["Offset of field: ibv_wc::vendor_err"][::core::mem::offset_of!(ibv_wc, vendor_err) - 16usize];
    ["Offset of field: ibv_wc::byte_len"][::core::mem::offset_of!(ibv_wc, byte_len) - 20usize];
    ["Offset of field: ibv_wc::qp_num"][::core::mem::offset_of!(ibv_wc, qp_num) - 28usize];
    ["Offset of field: ibv_wc::src_qp"][::core::mem::offset_of!(ibv_wc, src_qp) - 32usize];
    ["Offset of field: ibv_wc::wc_flags"][::core::mem::offset_of!(ibv_wc, wc_flags) - 36usize];
    ["Offset of field: ibv_wc::pkey_index"][::core::mem::offset_of!(ibv_wc, pkey_index) - 40usize];
    ["Offset of field: ibv_wc::slid"][::core::mem::offset_of!(ibv_wc, slid) - 42usize];
    ["Offset of field: ibv_wc::sl"][::core::mem::offset_of!(ibv_wc, sl) - 44usize];
    ["Offset of field: ibv_wc::dlid_path_bits"][::core::mem::offset_of!(ibv_wc, dlid_path_bits) - 45usize];
};
pub const IBV_ACCESS_LOCAL_WRITE: ibv_access_flags = 1;
pub const IBV_ACCESS_REMOTE_WRITE: ibv_access_flags = 2;
pub const IBV_ACCESS_REMOTE_READ: ibv_access_flags = 4;
pub const IBV_ACCESS_REMOTE_ATOMIC: ibv_access_flags = 8;
pub const IBV_ACCESS_MW_BIND: ibv_access_flags = 16;
pub const IBV_ACCESS_ZERO_BASED: ibv_access_flags = 32;
pub const IBV_ACCESS_ON_DEMAND: ibv_access_flags = 64;
pub const IBV_ACCESS_HUGETLB: ibv_access_flags = 128;
pub const IBV_ACCESS_RELAXED_ORDERING: ibv_access_flags = 1048576;
pub type ibv_access_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_mw_bind_info {
    pub mr: *mut ibv_mr,
    pub addr: u64,
    pub length: u64,
    pub mw_access_flags: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_mw_bind_info"][::core::mem::size_of::<ibv_mw_bind_info>() - 32usize];
    ["Alignment of ibv_mw_bind_info"][::core::mem::align_of::<ibv_mw_bind_info>() - 8usize];
    ["Offset of field: ibv_mw_bind_info::mr"][::core::mem::offset_of!(ibv_mw_bind_info, mr) - 0usize];
    ["Offset of field: ibv_mw_bind_info::addr"][::core::mem::offset_of!(ibv_mw_bind_info, addr) - 8usize];
    ["Offset of field: ibv_mw_bind_info::length"]
        [::core::mem::offset_of!(ibv_mw_bind_info, length) - 16usize];
    ["Offset of field: ibv_mw_bind_info::mw_access_flags"]
        [::core::mem::offset_of!(ibv_mw_bind_info, mw_access_flags) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_pd {
    pub context: *mut ibv_context,
    pub handle: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_pd"][::core::mem::size_of::<ibv_pd>() - 16usize];
    ["Alignment of ibv_pd"][::core::mem::align_of::<ibv_pd>() - 8usize];
    ["Offset of field: ibv_pd::context"][::core::mem::offset_of!(ibv_pd, context) - 0usize];
    ["Offset of field: ibv_pd::handle"][::core::mem::offset_of!(ibv_pd, handle) - 8usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_td_init_attr {
    pub _bindgen_opaque_blob: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_td_init_attr"][::core::mem::size_of::<ibv_td_init_attr>() - 4usize];
    ["Alignment of ibv_td_init_attr"][::core::mem::align_of::<ibv_td_init_attr>() - 4usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_td {
    pub _bindgen_opaque_blob: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_td"][::core::mem::size_of::<ibv_td>() - 8usize];
    ["Alignment of ibv_td"][::core::mem::align_of::<ibv_td>() - 8usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_xrcd_init_attr {
    pub _bindgen_opaque_blob: [u32; 3usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_xrcd_init_attr"][::core::mem::size_of::<ibv_xrcd_init_attr>() - 12usize];
    ["Alignment of ibv_xrcd_init_attr"][::core::mem::align_of::<ibv_xrcd_init_attr>() - 4usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_xrcd {
    pub _bindgen_opaque_blob: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_xrcd"][::core::mem::size_of::<ibv_xrcd>() - 8usize];
    ["Alignment of ibv_xrcd"][::core::mem::align_of::<ibv_xrcd>() - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_mr {
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    pub addr: *mut ::core::ffi::c_void,
    pub length: usize,
    pub handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_mr"][::core::mem::size_of::<ibv_mr>() - 48usize];
    ["Alignment of ibv_mr"][::core::mem::align_of::<ibv_mr>() - 8usize];
    ["Offset of field: ibv_mr::context"][::core::mem::offset_of!(ibv_mr, context) - 0usize];
    ["Offset of field: ibv_mr::pd"][::core::mem::offset_of!(ibv_mr, pd) - 8usize];
    ["Offset of field: ibv_mr::addr"][::core::mem::offset_of!(ibv_mr, addr) - 16usize];
    ["Offset of field: ibv_mr::length"][::core::mem::offset_of!(ibv_mr, length) - 24usize];
    ["Offset of field: ibv_mr::handle"][::core::mem::offset_of!(ibv_mr, handle) - 32usize];
    ["Offset of field: ibv_mr::lkey"][::core::mem::offset_of!(ibv_mr, lkey) - 36usize];
    ["Offset of field: ibv_mr::rkey"][::core::mem::offset_of!(ibv_mr, rkey) - 40usize];
};
pub const IBV_MW_TYPE_1: ibv_mw_type = 1;
pub const IBV_MW_TYPE_2: ibv_mw_type = 2;
pub type ibv_mw_type = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_mw {
    pub context: *mut ibv_context,
    pub pd: *mut ibv_pd,
    pub rkey: u32,
    pub handle: u32,
    pub type_: ibv_mw_type,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_mw"][::core::mem::size_of::<ibv_mw>() - 32usize];
    ["Alignment of ibv_mw"][::core::mem::align_of::<ibv_mw>() - 8usize];
    ["Offset of field: ibv_mw::context"][::core::mem::offset_of!(ibv_mw, context) - 0usize];
    ["Offset of field: ibv_mw::pd"][::core::mem::offset_of!(ibv_mw, pd) - 8usize];
    ["Offset of field: ibv_mw::rkey"][::core::mem::offset_of!(ibv_mw, rkey) - 16usize];
    ["Offset of field: ibv_mw::handle"][::core::mem::offset_of!(ibv_mw, handle) - 20usize];
    ["Offset of field: ibv_mw::type_"][::core::mem::offset_of!(ibv_mw, type_) - 24usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_global_route {
    pub dgid: ibv_gid,
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_global_route"][::core::mem::size_of::<ibv_global_route>() - 24usize];
    ["Alignment of ibv_global_route"][::core::mem::align_of::<ibv_global_route>() - 8usize];
    ["Offset of field: ibv_global_route::dgid"][::core::mem::offset_of!(ibv_global_route, dgid) - 0usize];
    ["Offset of field: ibv_global_route::flow_label"]
        [::core::mem::offset_of!(ibv_global_route, flow_label) - 16usize];
    ["Offset of field: ibv_global_route::sgid_index"]
        [::core::mem::offset_of!(ibv_global_route, sgid_index) - 20usize];
    ["Offset of field: ibv_global_route::hop_limit"]
        [::core::mem::offset_of!(ibv_global_route, hop_limit) - 21usize];
    ["Offset of field: ibv_global_route::traffic_class"]
        [::core::mem::offset_of!(ibv_global_route, traffic_class) - 22usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_ah_attr {
    pub grh: ibv_global_route,
    pub dlid: u16,
    pub sl: u8,
    pub src_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port_num: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_ah_attr"][::core::mem::size_of::<ibv_ah_attr>() - 32usize];
    ["Alignment of ibv_ah_attr"][::core::mem::align_of::<ibv_ah_attr>() - 8usize];
    ["Offset of field: ibv_ah_attr::grh"][::core::mem::offset_of!(ibv_ah_attr, grh) - 0usize];
    ["Offset of field: ibv_ah_attr::dlid"][::core::mem::offset_of!(ibv_ah_attr, dlid) - 24usize];
    ["Offset of field: ibv_ah_attr::sl"][::core::mem::offset_of!(ibv_ah_attr, sl) - 26usize];
    ["Offset of field: ibv_ah_attr::src_path_bits"]
        [::core::mem::offset_of!(ibv_ah_attr, src_path_bits) - 27usize];
    ["Offset of field: ibv_ah_attr::static_rate"]
        [::core::mem::offset_of!(ibv_ah_attr, static_rate) - 28usize];
    ["Offset of field: ibv_ah_attr::is_global"][::core::mem::offset_of!(ibv_ah_attr, is_global) - 29usize];
    ["Offset of field: ibv_ah_attr::port_num"][::core::mem::offset_of!(ibv_ah_attr, port_num) - 30usize];
};
pub const IBV_SRQ_MAX_WR: ibv_srq_attr_mask = 1;
pub const IBV_SRQ_LIMIT: ibv_srq_attr_mask = 2;
pub type ibv_srq_attr_mask = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_srq_attr {
    pub max_wr: u32,
    pub max_sge: u32,
    pub srq_limit: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_srq_attr"][::core::mem::size_of::<ibv_srq_attr>() - 12usize];
    ["Alignment of ibv_srq_attr"][::core::mem::align_of::<ibv_srq_attr>() - 4usize];
    ["Offset of field: ibv_srq_attr::max_wr"][::core::mem::offset_of!(ibv_srq_attr, max_wr) - 0usize];
    ["Offset of field: ibv_srq_attr::max_sge"][::core::mem::offset_of!(ibv_srq_attr, max_sge) - 4usize];
    ["Offset of field: ibv_srq_attr::srq_limit"][::core::mem::offset_of!(ibv_srq_attr, srq_limit) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_srq_init_attr {
    pub srq_context: *mut ::core::ffi::c_void,
    pub attr: ibv_srq_attr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_srq_init_attr"][::core::mem::size_of::<ibv_srq_init_attr>() - 24usize];
    ["Alignment of ibv_srq_init_attr"][::core::mem::align_of::<ibv_srq_init_attr>() - 8usize];
    ["Offset of field: ibv_srq_init_attr::srq_context"]
        [::core::mem::offset_of!(ibv_srq_init_attr, srq_context) - 0usize];
    ["Offset of field: ibv_srq_init_attr::attr"][::core::mem::offset_of!(ibv_srq_init_attr, attr) - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_srq_init_attr_ex {
    pub _bindgen_opaque_blob: [u64; 8usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_srq_init_attr_ex"][::core::mem::size_of::<ibv_srq_init_attr_ex>() - 64usize];
    ["Alignment of ibv_srq_init_attr_ex"][::core::mem::align_of::<ibv_srq_init_attr_ex>() - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_wq_init_attr {
    pub _bindgen_opaque_blob: [u64; 6usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_wq_init_attr"][::core::mem::size_of::<ibv_wq_init_attr>() - 48usize];
    ["Alignment of ibv_wq_init_attr"][::core::mem::align_of::<ibv_wq_init_attr>() - 8usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_wq_attr {
    pub _bindgen_opaque_blob: [u32; 5usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_wq_attr"][::core::mem::size_of::<ibv_wq_attr>() - 20usize];
    ["Alignment of ibv_wq_attr"][::core::mem::align_of::<ibv_wq_attr>() - 4usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_rwq_ind_table {
    pub _bindgen_opaque_blob: [u64; 3usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_rwq_ind_table"][::core::mem::size_of::<ibv_rwq_ind_table>() - 24usize];
    ["Alignment of ibv_rwq_ind_table"][::core::mem::align_of::<ibv_rwq_ind_table>() - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_rwq_ind_table_init_attr {
    pub _bindgen_opaque_blob: [u64; 3usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_rwq_ind_table_init_attr"][::core::mem::size_of::<ibv_rwq_ind_table_init_attr>() - 24usize];
    ["Alignment of ibv_rwq_ind_table_init_attr"]
        [::core::mem::align_of::<ibv_rwq_ind_table_init_attr>() - 8usize];
};
pub const IBV_QPT_RC: ibv_qp_type = 2;
pub const IBV_QPT_UC: ibv_qp_type = 3;
pub const IBV_QPT_UD: ibv_qp_type = 4;
pub const IBV_QPT_RAW_PACKET: ibv_qp_type = 8;
pub const IBV_QPT_XRC_SEND: ibv_qp_type = 9;
pub const IBV_QPT_XRC_RECV: ibv_qp_type = 10;
pub const IBV_QPT_DRIVER: ibv_qp_type = 255;
pub type ibv_qp_type = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_qp_cap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_qp_cap"][::core::mem::size_of::<ibv_qp_cap>() - 20usize];
    ["Alignment of ibv_qp_cap"][::core::mem::align_of::<ibv_qp_cap>() - 4usize];
    ["Offset of field: ibv_qp_cap::max_send_wr"][::core::mem::offset_of!(ibv_qp_cap, max_send_wr) - 0usize];
    ["Offset of field: ibv_qp_cap::max_recv_wr"][::core::mem::offset_of!(ibv_qp_cap, max_recv_wr) - 4usize];
    ["Offset of field: ibv_qp_cap::max_send_sge"][::core::mem::offset_of!(ibv_qp_cap, max_send_sge) - 8usize];
    ["Offset of field: ibv_qp_cap::max_recv_sge"]
        [::core::mem::offset_of!(ibv_qp_cap, max_recv_sge) - 12usize];
    ["Offset of field: ibv_qp_cap::max_inline_data"]
        [::core::mem::offset_of!(ibv_qp_cap, max_inline_data) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_qp_init_attr {
    pub qp_context: *mut ::core::ffi::c_void,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub cap: ibv_qp_cap,
    pub qp_type: ibv_qp_type,
    pub sq_sig_all: ::core::ffi::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_qp_init_attr"][::core::mem::size_of::<ibv_qp_init_attr>() - 64usize];
    ["Alignment of ibv_qp_init_attr"][::core::mem::align_of::<ibv_qp_init_attr>() - 8usize];
    ["Offset of field: ibv_qp_init_attr::qp_context"]
        [::core::mem::offset_of!(ibv_qp_init_attr, qp_context) - 0usize];
    ["Offset of field: ibv_qp_init_attr::send_cq"]
        [::core::mem::offset_of!(ibv_qp_init_attr, send_cq) - 8usize];
    ["Offset of field: ibv_qp_init_attr::recv_cq"]
        [::core::mem::offset_of!(ibv_qp_init_attr, recv_cq) - 16usize];
    ["Offset of field: ibv_qp_init_attr::srq"][::core::mem::offset_of!(ibv_qp_init_attr, srq) - 24usize];
    ["Offset of field: ibv_qp_init_attr::cap"][::core::mem::offset_of!(ibv_qp_init_attr, cap) - 32usize];
    ["Offset of field: ibv_qp_init_attr::qp_type"]
        [::core::mem::offset_of!(ibv_qp_init_attr, qp_type) - 52usize];
    ["Offset of field: ibv_qp_init_attr::sq_sig_all"]
        [::core::mem::offset_of!(ibv_qp_init_attr, sq_sig_all) - 56usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_qp_init_attr_ex {
    pub _bindgen_opaque_blob: [u64; 17usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_qp_init_attr_ex"][::core::mem::size_of::<ibv_qp_init_attr_ex>() - 136usize];
    ["Alignment of ibv_qp_init_attr_ex"][::core::mem::align_of::<ibv_qp_init_attr_ex>() - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_qp_open_attr {
    pub _bindgen_opaque_blob: [u64; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_qp_open_attr"][::core::mem::size_of::<ibv_qp_open_attr>() - 32usize];
    ["Alignment of ibv_qp_open_attr"][::core::mem::align_of::<ibv_qp_open_attr>() - 8usize];
};
pub const IBV_QP_STATE: ibv_qp_attr_mask = 1;
pub const IBV_QP_CUR_STATE: ibv_qp_attr_mask = 2;
pub const IBV_QP_EN_SQD_ASYNC_NOTIFY: ibv_qp_attr_mask = 4;
pub const IBV_QP_ACCESS_FLAGS: ibv_qp_attr_mask = 8;
pub const IBV_QP_PKEY_INDEX: ibv_qp_attr_mask = 16;
pub const IBV_QP_PORT: ibv_qp_attr_mask = 32;
pub const IBV_QP_QKEY: ibv_qp_attr_mask = 64;
pub const IBV_QP_AV: ibv_qp_attr_mask = 128;
pub const IBV_QP_PATH_MTU: ibv_qp_attr_mask = 256;
pub const IBV_QP_TIMEOUT: ibv_qp_attr_mask = 512;
pub const IBV_QP_RETRY_CNT: ibv_qp_attr_mask = 1024;
pub const IBV_QP_RNR_RETRY: ibv_qp_attr_mask = 2048;
pub const IBV_QP_RQ_PSN: ibv_qp_attr_mask = 4096;
pub const IBV_QP_MAX_QP_RD_ATOMIC: ibv_qp_attr_mask = 8192;
pub const IBV_QP_ALT_PATH: ibv_qp_attr_mask = 16384;
pub const IBV_QP_MIN_RNR_TIMER: ibv_qp_attr_mask = 32768;
pub const IBV_QP_SQ_PSN: ibv_qp_attr_mask = 65536;
pub const IBV_QP_MAX_DEST_RD_ATOMIC: ibv_qp_attr_mask = 131072;
pub const IBV_QP_PATH_MIG_STATE: ibv_qp_attr_mask = 262144;
pub const IBV_QP_CAP: ibv_qp_attr_mask = 524288;
pub const IBV_QP_DEST_QPN: ibv_qp_attr_mask = 1048576;
pub const IBV_QP_RATE_LIMIT: ibv_qp_attr_mask = 33554432;
pub type ibv_qp_attr_mask = ::core::ffi::c_uint;
pub const IBV_QPS_RESET: ibv_qp_state = 0;
pub const IBV_QPS_INIT: ibv_qp_state = 1;
pub const IBV_QPS_RTR: ibv_qp_state = 2;
pub const IBV_QPS_RTS: ibv_qp_state = 3;
pub const IBV_QPS_SQD: ibv_qp_state = 4;
pub const IBV_QPS_SQE: ibv_qp_state = 5;
pub const IBV_QPS_ERR: ibv_qp_state = 6;
pub const IBV_QPS_UNKNOWN: ibv_qp_state = 7;
pub type ibv_qp_state = ::core::ffi::c_uint;
pub const IBV_MIG_MIGRATED: ibv_mig_state = 0;
pub const IBV_MIG_REARM: ibv_mig_state = 1;
pub const IBV_MIG_ARMED: ibv_mig_state = 2;
pub type ibv_mig_state = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_qp_attr {
    pub qp_state: ibv_qp_state,
    pub cur_qp_state: ibv_qp_state,
    pub path_mtu: ibv_mtu,
    pub path_mig_state: ibv_mig_state,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: ::core::ffi::c_uint,
    pub cap: ibv_qp_cap,
    pub ah_attr: ibv_ah_attr,
    pub alt_ah_attr: ibv_ah_attr,
    pub pkey_index: u16,
    pub alt_pkey_index: u16,
    pub en_sqd_async_notify: u8,
    pub sq_draining: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub alt_port_num: u8,
    pub alt_timeout: u8,
    pub rate_limit: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_qp_attr"][::core::mem::size_of::<ibv_qp_attr>() - 144usize];
    ["Alignment of ibv_qp_attr"][::core::mem::align_of::<ibv_qp_attr>() - 8usize];
    ["Offset of field: ibv_qp_attr::qp_state"][::core::mem::offset_of!(ibv_qp_attr, qp_state) - 0usize];
    ["Offset of field: ibv_qp_attr::cur_qp_state"]
        [::core::mem::offset_of!(ibv_qp_attr, cur_qp_state) - 4usize];
    ["Offset of field: ibv_qp_attr::path_mtu"][::core::mem::offset_of!(ibv_qp_attr, path_mtu) - 8usize];
    ["Offset of field: ibv_qp_attr::path_mig_state"]
        [::core::mem::offset_of!(ibv_qp_attr, path_mig_state) - 12usize];
    ["Offset of field: ibv_qp_attr::qkey"][::core::mem::offset_of!(ibv_qp_attr, qkey) - 16usize];
    ["Offset of field: ibv_qp_attr::rq_psn"][::core::mem::offset_of!(ibv_qp_attr, rq_psn) - 20usize];
    ["Offset of field: ibv_qp_attr::sq_psn"][::core::mem::offset_of!(ibv_qp_attr, sq_psn) - 24usize];
    ["Offset of field: ibv_qp_attr::dest_qp_num"]
        [::core::mem::offset_of!(ibv_qp_attr, dest_qp_num) - 28usize];
    ["Offset of field: ibv_qp_attr::qp_access_flags"]
        [::core::mem::offset_of!(ibv_qp_attr, qp_access_flags) - 32usize];
    ["Offset of field: ibv_qp_attr::cap"][::core::mem::offset_of!(ibv_qp_attr, cap) - 36usize];
    ["Offset of field: ibv_qp_attr::ah_attr"][::core::mem::offset_of!(ibv_qp_attr, ah_attr) - 56usize];
    ["Offset of field: ibv_qp_attr::alt_ah_attr"]
        [::core::mem::offset_of!(ibv_qp_attr, alt_ah_attr) - 88usize];
    ["Offset of field: ibv_qp_attr::pkey_index"][::core::mem::offset_of!(ibv_qp_attr, pkey_index) - 120usize];
    ["Offset of field: ibv_qp_attr::alt_pkey_index"]
        [::core::mem::offset_of!(ibv_qp_attr, alt_pkey_index) - 122usize];
    ["Offset of field: ibv_qp_attr::en_sqd_async_notify"]
        [::core::mem::offset_of!(ibv_qp_attr, en_sqd_async_notify) - 124usize];
    ["Offset of field: ibv_qp_attr::sq_draining"]
        [::core::mem::offset_of!(ibv_qp_attr, sq_draining) - 125usize];
    ["Offset of field: ibv_qp_attr::max_rd_atomic"]
        [::core::mem::offset_of!(ibv_qp_attr, max_rd_atomic) - 126usize];
    ["Offset of field: ibv_qp_attr::max_dest_rd_atomic"]
        [::core::mem::offset_of!(ibv_qp_attr, max_dest_rd_atomic) - 127usize];
    ["Offset of field: ibv_qp_attr::min_rnr_timer"]
        [::core::mem::offset_of!(ibv_qp_attr, min_rnr_timer) - 128usize];
    ["Offset of field: ibv_qp_attr::port_num"][::core::mem::offset_of!(ibv_qp_attr, port_num) - 129usize];
    ["Offset of field: ibv_qp_attr::timeout"][::core::mem::offset_of!(ibv_qp_attr, timeout) - 130usize];
    ["Offset of field: ibv_qp_attr::retry_cnt"][::core::mem::offset_of!(ibv_qp_attr, retry_cnt) - 131usize];
    ["Offset of field: ibv_qp_attr::rnr_retry"][::core::mem::offset_of!(ibv_qp_attr, rnr_retry) - 132usize];
    ["Offset of field: ibv_qp_attr::alt_port_num"]
        [::core::mem::offset_of!(ibv_qp_attr, alt_port_num) - 133usize];
    ["Offset of field: ibv_qp_attr::alt_timeout"]
        [::core::mem::offset_of!(ibv_qp_attr, alt_timeout) - 134usize];
    ["Offset of field: ibv_qp_attr::rate_limit"][::core::mem::offset_of!(ibv_qp_attr, rate_limit) - 136usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_qp_rate_limit_attr {
    pub _bindgen_opaque_blob: [u32; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_qp_rate_limit_attr"][::core::mem::size_of::<ibv_qp_rate_limit_attr>() - 16usize];
    ["Alignment of ibv_qp_rate_limit_attr"][::core::mem::align_of::<ibv_qp_rate_limit_attr>() - 4usize];
};
pub const IBV_WR_RDMA_WRITE: ibv_wr_opcode = 0;
pub const IBV_WR_RDMA_WRITE_WITH_IMM: ibv_wr_opcode = 1;
pub const IBV_WR_SEND: ibv_wr_opcode = 2;
pub const IBV_WR_SEND_WITH_IMM: ibv_wr_opcode = 3;
pub const IBV_WR_RDMA_READ: ibv_wr_opcode = 4;
pub const IBV_WR_ATOMIC_CMP_AND_SWP: ibv_wr_opcode = 5;
pub const IBV_WR_ATOMIC_FETCH_AND_ADD: ibv_wr_opcode = 6;
pub const IBV_WR_LOCAL_INV: ibv_wr_opcode = 7;
pub const IBV_WR_BIND_MW: ibv_wr_opcode = 8;
pub const IBV_WR_SEND_WITH_INV: ibv_wr_opcode = 9;
pub const IBV_WR_TSO: ibv_wr_opcode = 10;
pub const IBV_WR_DRIVER1: ibv_wr_opcode = 11;
pub const IBV_WR_ATOMIC_WRITE: ibv_wr_opcode = 15;
pub type ibv_wr_opcode = ::core::ffi::c_uint;
pub const IBV_SEND_FENCE: ibv_send_flags = 1;
pub const IBV_SEND_SIGNALED: ibv_send_flags = 2;
pub const IBV_SEND_SOLICITED: ibv_send_flags = 4;
pub const IBV_SEND_INLINE: ibv_send_flags = 8;
pub const IBV_SEND_IP_CSUM: ibv_send_flags = 16;
pub type ibv_send_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_sge"][::core::mem::size_of::<ibv_sge>() - 16usize];
    ["Alignment of ibv_sge"][::core::mem::align_of::<ibv_sge>() - 8usize];
    ["Offset of field: ibv_sge::addr"][::core::mem::offset_of!(ibv_sge, addr) - 0usize];
    ["Offset of field: ibv_sge::length"][::core::mem::offset_of!(ibv_sge, length) - 8usize];
    ["Offset of field: ibv_sge::lkey"][::core::mem::offset_of!(ibv_sge, lkey) - 12usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_send_wr {
    pub wr_id: u64,
    pub next: *mut ibv_send_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: ::core::ffi::c_int,
    pub opcode: ibv_wr_opcode,
    pub send_flags: ::core::ffi::c_uint,
    pub __bindgen_anon_1: ibv_send_wr__bindgen_ty_1,
    pub wr: ibv_send_wr__bindgen_ty_2,
    pub qp_type: ibv_send_wr__bindgen_ty_3,
    pub __bindgen_anon_2: ibv_send_wr__bindgen_ty_4,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_send_wr__bindgen_ty_1 {
    pub imm_data: __be32,
    pub invalidate_rkey: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_1"][::core::mem::size_of::<ibv_send_wr__bindgen_ty_1>() - 4usize];
    ["Alignment of ibv_send_wr__bindgen_ty_1"][::core::mem::align_of::<ibv_send_wr__bindgen_ty_1>() - 4usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_1::imm_data"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_1, imm_data) - 0usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_1::invalidate_rkey"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_1, invalidate_rkey) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_send_wr__bindgen_ty_2 {
    pub rdma: ibv_send_wr__bindgen_ty_2__bindgen_ty_1,
    pub atomic: ibv_send_wr__bindgen_ty_2__bindgen_ty_2,
    pub ud: ibv_send_wr__bindgen_ty_2__bindgen_ty_3,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_send_wr__bindgen_ty_2__bindgen_ty_1 {
    pub remote_addr: u64,
    pub rkey: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_2__bindgen_ty_1"]
        [::core::mem::size_of::<ibv_send_wr__bindgen_ty_2__bindgen_ty_1>() - 16usize];
    ["Alignment of ibv_send_wr__bindgen_ty_2__bindgen_ty_1"]
        [::core::mem::align_of::<ibv_send_wr__bindgen_ty_2__bindgen_ty_1>() - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2__bindgen_ty_1::remote_addr"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2__bindgen_ty_1, remote_addr) - 0usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2__bindgen_ty_1::rkey"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2__bindgen_ty_1, rkey) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_send_wr__bindgen_ty_2__bindgen_ty_2 {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_2__bindgen_ty_2"]
        [::core::mem::size_of::<ibv_send_wr__bindgen_ty_2__bindgen_ty_2>() - 32usize];
    ["Alignment of ibv_send_wr__bindgen_ty_2__bindgen_ty_2"]
        [::core::mem::align_of::<ibv_send_wr__bindgen_ty_2__bindgen_ty_2>() - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2__bindgen_ty_2::remote_addr"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2__bindgen_ty_2, remote_addr) - 0usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2__bindgen_ty_2::compare_add"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2__bindgen_ty_2, compare_add) - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2__bindgen_ty_2::swap"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2__bindgen_ty_2, swap) - 16usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2__bindgen_ty_2::rkey"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2__bindgen_ty_2, rkey) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_send_wr__bindgen_ty_2__bindgen_ty_3 {
    pub ah: *mut ibv_ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_2__bindgen_ty_3"]
        [::core::mem::size_of::<ibv_send_wr__bindgen_ty_2__bindgen_ty_3>() - 16usize];
    ["Alignment of ibv_send_wr__bindgen_ty_2__bindgen_ty_3"]
        [::core::mem::align_of::<ibv_send_wr__bindgen_ty_2__bindgen_ty_3>() - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2__bindgen_ty_3::ah"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2__bindgen_ty_3, ah) - 0usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2__bindgen_ty_3::remote_qpn"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2__bindgen_ty_3, remote_qpn) - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2__bindgen_ty_3::remote_qkey"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2__bindgen_ty_3, remote_qkey) - 12usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_2"][::core::mem::size_of::<ibv_send_wr__bindgen_ty_2>() - 32usize];
    ["Alignment of ibv_send_wr__bindgen_ty_2"][::core::mem::align_of::<ibv_send_wr__bindgen_ty_2>() - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2::rdma"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2, rdma) - 0usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2::atomic"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2, atomic) - 0usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_2::ud"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_2, ud) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_send_wr__bindgen_ty_3 {
    pub xrc: ibv_send_wr__bindgen_ty_3__bindgen_ty_1,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_send_wr__bindgen_ty_3__bindgen_ty_1 {
    pub remote_srqn: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_3__bindgen_ty_1"]
        [::core::mem::size_of::<ibv_send_wr__bindgen_ty_3__bindgen_ty_1>() - 4usize];
    ["Alignment of ibv_send_wr__bindgen_ty_3__bindgen_ty_1"]
        [::core::mem::align_of::<ibv_send_wr__bindgen_ty_3__bindgen_ty_1>() - 4usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_3__bindgen_ty_1::remote_srqn"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_3__bindgen_ty_1, remote_srqn) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_3"][::core::mem::size_of::<ibv_send_wr__bindgen_ty_3>() - 4usize];
    ["Alignment of ibv_send_wr__bindgen_ty_3"][::core::mem::align_of::<ibv_send_wr__bindgen_ty_3>() - 4usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_3::xrc"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_3, xrc) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union ibv_send_wr__bindgen_ty_4 {
    pub bind_mw: ibv_send_wr__bindgen_ty_4__bindgen_ty_1,
    pub tso: ibv_send_wr__bindgen_ty_4__bindgen_ty_2,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_send_wr__bindgen_ty_4__bindgen_ty_1 {
    pub mw: *mut ibv_mw,
    pub rkey: u32,
    pub bind_info: ibv_mw_bind_info,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_4__bindgen_ty_1"]
        [::core::mem::size_of::<ibv_send_wr__bindgen_ty_4__bindgen_ty_1>() - 48usize];
    ["Alignment of ibv_send_wr__bindgen_ty_4__bindgen_ty_1"]
        [::core::mem::align_of::<ibv_send_wr__bindgen_ty_4__bindgen_ty_1>() - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_4__bindgen_ty_1::mw"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_4__bindgen_ty_1, mw) - 0usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_4__bindgen_ty_1::rkey"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_4__bindgen_ty_1, rkey) - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_4__bindgen_ty_1::bind_info"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_4__bindgen_ty_1, bind_info) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_send_wr__bindgen_ty_4__bindgen_ty_2 {
    pub hdr: *mut ::core::ffi::c_void,
    pub hdr_sz: u16,
    pub mss: u16,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_4__bindgen_ty_2"]
        [::core::mem::size_of::<ibv_send_wr__bindgen_ty_4__bindgen_ty_2>() - 16usize];
    ["Alignment of ibv_send_wr__bindgen_ty_4__bindgen_ty_2"]
        [::core::mem::align_of::<ibv_send_wr__bindgen_ty_4__bindgen_ty_2>() - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_4__bindgen_ty_2::hdr"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_4__bindgen_ty_2, hdr) - 0usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_4__bindgen_ty_2::hdr_sz"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_4__bindgen_ty_2, hdr_sz) - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_4__bindgen_ty_2::mss"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_4__bindgen_ty_2, mss) - 10usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr__bindgen_ty_4"][::core::mem::size_of::<ibv_send_wr__bindgen_ty_4>() - 48usize];
    ["Alignment of ibv_send_wr__bindgen_ty_4"][::core::mem::align_of::<ibv_send_wr__bindgen_ty_4>() - 8usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_4::bind_mw"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_4, bind_mw) - 0usize];
    ["Offset of field: ibv_send_wr__bindgen_ty_4::tso"]
        [::core::mem::offset_of!(ibv_send_wr__bindgen_ty_4, tso) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_send_wr"][::core::mem::size_of::<ibv_send_wr>() - 128usize];
    ["Alignment of ibv_send_wr"][::core::mem::align_of::<ibv_send_wr>() - 8usize];
    ["Offset of field: ibv_send_wr::wr_id"][::core::mem::offset_of!(ibv_send_wr, wr_id) - 0usize];
    ["Offset of field: ibv_send_wr::next"][::core::mem::offset_of!(ibv_send_wr, next) - 8usize];
    ["Offset of field: ibv_send_wr::sg_list"][::core::mem::offset_of!(ibv_send_wr, sg_list) - 16usize];
    ["Offset of field: ibv_send_wr::num_sge"][::core::mem::offset_of!(ibv_send_wr, num_sge) - 24usize];
    ["Offset of field: ibv_send_wr::opcode"][::core::mem::offset_of!(ibv_send_wr, opcode) - 28usize];
    ["Offset of field: ibv_send_wr::send_flags"][::core::mem::offset_of!(ibv_send_wr, send_flags) - 32usize];
    ["Offset of field: ibv_send_wr::wr"][::core::mem::offset_of!(ibv_send_wr, wr) - 40usize];
    ["Offset of field: ibv_send_wr::qp_type"][::core::mem::offset_of!(ibv_send_wr, qp_type) - 72usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_recv_wr {
    pub wr_id: u64,
    pub next: *mut ibv_recv_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: ::core::ffi::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_recv_wr"][::core::mem::size_of::<ibv_recv_wr>() - 32usize];
    ["Alignment of ibv_recv_wr"][::core::mem::align_of::<ibv_recv_wr>() - 8usize];
    ["Offset of field: ibv_recv_wr::wr_id"][::core::mem::offset_of!(ibv_recv_wr, wr_id) - 0usize];
    ["Offset of field: ibv_recv_wr::next"][::core::mem::offset_of!(ibv_recv_wr, next) - 8usize];
    ["Offset of field: ibv_recv_wr::sg_list"][::core::mem::offset_of!(ibv_recv_wr, sg_list) - 16usize];
    ["Offset of field: ibv_recv_wr::num_sge"][::core::mem::offset_of!(ibv_recv_wr, num_sge) - 24usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_ops_wr {
    pub _bindgen_opaque_blob: [u64; 9usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_ops_wr__bindgen_ty_1 {
    pub unexpected_cnt: u32,
    pub handle: u32,
    pub add: ibv_ops_wr__bindgen_ty_1__bindgen_ty_1,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_ops_wr__bindgen_ty_1__bindgen_ty_1 {
    pub recv_wr_id: u64,
    pub sg_list: *mut ibv_sge,
    pub num_sge: ::core::ffi::c_int,
    pub tag: u64,
    pub mask: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_ops_wr__bindgen_ty_1__bindgen_ty_1"]
        [::core::mem::size_of::<ibv_ops_wr__bindgen_ty_1__bindgen_ty_1>() - 40usize];
    ["Alignment of ibv_ops_wr__bindgen_ty_1__bindgen_ty_1"]
        [::core::mem::align_of::<ibv_ops_wr__bindgen_ty_1__bindgen_ty_1>() - 8usize];
    ["Offset of field: ibv_ops_wr__bindgen_ty_1__bindgen_ty_1::recv_wr_id"]
        [::core::mem::offset_of!(ibv_ops_wr__bindgen_ty_1__bindgen_ty_1, recv_wr_id) - 0usize];
    ["Offset of field: ibv_ops_wr__bindgen_ty_1__bindgen_ty_1::sg_list"]
        [::core::mem::offset_of!(ibv_ops_wr__bindgen_ty_1__bindgen_ty_1, sg_list) - 8usize];
    ["Offset of field: ibv_ops_wr__bindgen_ty_1__bindgen_ty_1::num_sge"]
        [::core::mem::offset_of!(ibv_ops_wr__bindgen_ty_1__bindgen_ty_1, num_sge) - 16usize];
    ["Offset of field: ibv_ops_wr__bindgen_ty_1__bindgen_ty_1::tag"]
        [::core::mem::offset_of!(ibv_ops_wr__bindgen_ty_1__bindgen_ty_1, tag) - 24usize];
    ["Offset of field: ibv_ops_wr__bindgen_ty_1__bindgen_ty_1::mask"]
        [::core::mem::offset_of!(ibv_ops_wr__bindgen_ty_1__bindgen_ty_1, mask) - 32usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_ops_wr__bindgen_ty_1"][::core::mem::size_of::<ibv_ops_wr__bindgen_ty_1>() - 48usize];
    ["Alignment of ibv_ops_wr__bindgen_ty_1"][::core::mem::align_of::<ibv_ops_wr__bindgen_ty_1>() - 8usize];
    ["Offset of field: ibv_ops_wr__bindgen_ty_1::unexpected_cnt"]
        [::core::mem::offset_of!(ibv_ops_wr__bindgen_ty_1, unexpected_cnt) - 0usize];
    ["Offset of field: ibv_ops_wr__bindgen_ty_1::handle"]
        [::core::mem::offset_of!(ibv_ops_wr__bindgen_ty_1, handle) - 4usize];
    ["Offset of field: ibv_ops_wr__bindgen_ty_1::add"]
        [::core::mem::offset_of!(ibv_ops_wr__bindgen_ty_1, add) - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_ops_wr"][::core::mem::size_of::<ibv_ops_wr>() - 72usize];
    ["Alignment of ibv_ops_wr"][::core::mem::align_of::<ibv_ops_wr>() - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_mw_bind {
    pub wr_id: u64,
    pub send_flags: ::core::ffi::c_uint,
    pub bind_info: ibv_mw_bind_info,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_mw_bind"][::core::mem::size_of::<ibv_mw_bind>() - 48usize];
    ["Alignment of ibv_mw_bind"][::core::mem::align_of::<ibv_mw_bind>() - 8usize];
    ["Offset of field: ibv_mw_bind::wr_id"][::core::mem::offset_of!(ibv_mw_bind, wr_id) - 0usize];
    ["Offset of field: ibv_mw_bind::send_flags"][::core::mem::offset_of!(ibv_mw_bind, send_flags) - 8usize];
    ["Offset of field: ibv_mw_bind::bind_info"][::core::mem::offset_of!(ibv_mw_bind, bind_info) - 16usize];
};
#[repr(C)]
pub struct ibv_srq {
    pub context: *mut ibv_context,
    pub srq_context: *mut ::core::ffi::c_void,
    pub pd: *mut ibv_pd,
    pub handle: u32,
    pub mutex: pthread_mutex_t,
    pub cond: pthread_cond_t,
    pub events_completed: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_arch = "x86_64")]
const _: () = {
    ["Size of ibv_srq"][::core::mem::size_of::<ibv_srq>() - 128usize];
    ["Alignment of ibv_srq"][::core::mem::align_of::<ibv_srq>() - 8usize];
    ["Offset of field: ibv_srq::context"][::core::mem::offset_of!(ibv_srq, context) - 0usize];
    ["Offset of field: ibv_srq::srq_context"][::core::mem::offset_of!(ibv_srq, srq_context) - 8usize];
    ["Offset of field: ibv_srq::pd"][::core::mem::offset_of!(ibv_srq, pd) - 16usize];
    ["Offset of field: ibv_srq::handle"][::core::mem::offset_of!(ibv_srq, handle) - 24usize];
    ["Offset of field: ibv_srq::mutex"][::core::mem::offset_of!(ibv_srq, mutex) - 32usize];
    ["Offset of field: ibv_srq::cond"][::core::mem::offset_of!(ibv_srq, cond) - 72usize];
    ["Offset of field: ibv_srq::events_completed"]
        [::core::mem::offset_of!(ibv_srq, events_completed) - 120usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_wq {
    pub _bindgen_opaque_blob: [u64; 19usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_wq"][::core::mem::size_of::<ibv_wq>() - 152usize];
    ["Alignment of ibv_wq"][::core::mem::align_of::<ibv_wq>() - 8usize];
};
#[repr(C)]
pub struct ibv_qp {
    pub context: *mut ibv_context,
    pub qp_context: *mut ::core::ffi::c_void,
    pub pd: *mut ibv_pd,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub handle: u32,
    pub qp_num: u32,
    pub state: ibv_qp_state,
    pub qp_type: ibv_qp_type,
    pub mutex: pthread_mutex_t,
    pub cond: pthread_cond_t,
    pub events_completed: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_arch = "x86_64")]
const _: () = {
    ["Size of ibv_qp"][::core::mem::size_of::<ibv_qp>() - 160usize];
    ["Alignment of ibv_qp"][::core::mem::align_of::<ibv_qp>() - 8usize];
    ["Offset of field: ibv_qp::context"][::core::mem::offset_of!(ibv_qp, context) - 0usize];
    ["Offset of field: ibv_qp::qp_context"][::core::mem::offset_of!(ibv_qp, qp_context) - 8usize];
    ["Offset of field: ibv_qp::pd"][::core::mem::offset_of!(ibv_qp, pd) - 16usize];
    ["Offset of field: ibv_qp::send_cq"][::core::mem::offset_of!(ibv_qp, send_cq) - 24usize];
    ["Offset of field: ibv_qp::recv_cq"][::core::mem::offset_of!(ibv_qp, recv_cq) - 32usize];
    ["Offset of field: ibv_qp::srq"][::core::mem::offset_of!(ibv_qp, srq) - 40usize];
    ["Offset of field: ibv_qp::handle"][::core::mem::offset_of!(ibv_qp, handle) - 48usize];
    ["Offset of field: ibv_qp::qp_num"][::core::mem::offset_of!(ibv_qp, qp_num) - 52usize];
    ["Offset of field: ibv_qp::state"][::core::mem::offset_of!(ibv_qp, state) - 56usize];
    ["Offset of field: ibv_qp::qp_type"][::core::mem::offset_of!(ibv_qp, qp_type) - 60usize];
    ["Offset of field: ibv_qp::mutex"][::core::mem::offset_of!(ibv_qp, mutex) - 64usize];
    ["Offset of field: ibv_qp::cond"][::core::mem::offset_of!(ibv_qp, cond) - 104usize];
    ["Offset of field: ibv_qp::events_completed"]
        [::core::mem::offset_of!(ibv_qp, events_completed) - 152usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_comp_channel {
    pub context: *mut ibv_context,
    pub fd: ::core::ffi::c_int,
    pub refcnt: ::core::ffi::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_comp_channel"][::core::mem::size_of::<ibv_comp_channel>() - 16usize];
    ["Alignment of ibv_comp_channel"][::core::mem::align_of::<ibv_comp_channel>() - 8usize];
    ["Offset of field: ibv_comp_channel::context"]
        [::core::mem::offset_of!(ibv_comp_channel, context) - 0usize];
    ["Offset of field: ibv_comp_channel::fd"][::core::mem::offset_of!(ibv_comp_channel, fd) - 8usize];
    ["Offset of field: ibv_comp_channel::refcnt"]
        [::core::mem::offset_of!(ibv_comp_channel, refcnt) - 12usize];
};
#[repr(C)]
pub struct ibv_cq {
    pub context: *mut ibv_context,
    pub channel: *mut ibv_comp_channel,
    pub cq_context: *mut ::core::ffi::c_void,
    pub handle: u32,
    pub cqe: ::core::ffi::c_int,
    pub mutex: pthread_mutex_t,
    pub cond: pthread_cond_t,
    pub comp_events_completed: u32,
    pub async_events_completed: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_arch = "x86_64")]
const _: () = {
    ["Size of ibv_cq"][::core::mem::size_of::<ibv_cq>() - 128usize];
    ["Alignment of ibv_cq"][::core::mem::align_of::<ibv_cq>() - 8usize];
    ["Offset of field: ibv_cq::context"][::core::mem::offset_of!(ibv_cq, context) - 0usize];
    ["Offset of field: ibv_cq::channel"][::core::mem::offset_of!(ibv_cq, channel) - 8usize];
    ["Offset of field: ibv_cq::cq_context"][::core::mem::offset_of!(ibv_cq, cq_context) - 16usize];
    ["Offset of field: ibv_cq::handle"][::core::mem::offset_of!(ibv_cq, handle) - 24usize];
    ["Offset of field: ibv_cq::cqe"][::core::mem::offset_of!(ibv_cq, cqe) - 28usize];
    ["Offset of field: ibv_cq::mutex"][::core::mem::offset_of!(ibv_cq, mutex) - 32usize];
    ["Offset of field: ibv_cq::cond"][::core::mem::offset_of!(ibv_cq, cond) - 72usize];
    ["Offset of field: ibv_cq::comp_events_completed"]
        [::core::mem::offset_of!(ibv_cq, comp_events_completed) - 120usize];
    ["Offset of field: ibv_cq::async_events_completed"]
        [::core::mem::offset_of!(ibv_cq, async_events_completed) - 124usize];
};
#[repr(C)]
#[repr(align(8))]
pub struct ibv_cq_ex {
    pub _bindgen_opaque_blob: [u64; 36usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_cq_ex"][::core::mem::size_of::<ibv_cq_ex>() - 288usize];
    ["Alignment of ibv_cq_ex"][::core::mem::align_of::<ibv_cq_ex>() - 8usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_modify_cq_attr {
    pub _bindgen_opaque_blob: [u32; 2usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_modify_cq_attr"][::core::mem::size_of::<ibv_modify_cq_attr>() - 8usize];
    ["Alignment of ibv_modify_cq_attr"][::core::mem::align_of::<ibv_modify_cq_attr>() - 4usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_ah {
    pub _bindgen_opaque_blob: [u64; 3usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_ah"][::core::mem::size_of::<ibv_ah>() - 24usize];
    ["Alignment of ibv_ah"][::core::mem::align_of::<ibv_ah>() - 8usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_flow_attr {
    pub _bindgen_opaque_blob: [u32; 5usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_flow_attr"][::core::mem::size_of::<ibv_flow_attr>() - 20usize];
    ["Alignment of ibv_flow_attr"][::core::mem::align_of::<ibv_flow_attr>() - 4usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_flow {
    pub _bindgen_opaque_blob: [u64; 3usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_flow"][::core::mem::size_of::<ibv_flow>() - 24usize];
    ["Alignment of ibv_flow"][::core::mem::align_of::<ibv_flow>() - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_flow_action {
    pub _bindgen_opaque_blob: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_flow_action"][::core::mem::size_of::<ibv_flow_action>() - 8usize];
    ["Alignment of ibv_flow_action"][::core::mem::align_of::<ibv_flow_action>() - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_flow_action_esp_attr {
    pub _bindgen_opaque_blob: [u64; 7usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_flow_action_esp_attr"][::core::mem::size_of::<ibv_flow_action_esp_attr>() - 56usize];
    ["Alignment of ibv_flow_action_esp_attr"][::core::mem::align_of::<ibv_flow_action_esp_attr>() - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct _ibv_device_ops {
    pub _bindgen_opaque_blob: [u64; 2usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of _ibv_device_ops"][::core::mem::size_of::<_ibv_device_ops>() - 16usize];
    ["Alignment of _ibv_device_ops"][::core::mem::align_of::<_ibv_device_ops>() - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_device {
    pub _ops: _ibv_device_ops,
    pub node_type: ibv_node_type,
    pub transport_type: ibv_transport_type,
    pub name: [::core::ffi::c_char; 64usize],
    pub dev_name: [::core::ffi::c_char; 64usize],
    pub dev_path: [::core::ffi::c_char; 256usize],
    pub ibdev_path: [::core::ffi::c_char; 256usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_device"][::core::mem::size_of::<ibv_device>() - 664usize];
    ["Alignment of ibv_device"][::core::mem::align_of::<ibv_device>() - 8usize];
    ["Offset of field: ibv_device::_ops"][::core::mem::offset_of!(ibv_device, _ops) - 0usize];
    ["Offset of field: ibv_device::node_type"][::core::mem::offset_of!(ibv_device, node_type) - 16usize];
    ["Offset of field: ibv_device::transport_type"]
        [::core::mem::offset_of!(ibv_device, transport_type) - 20usize];
    ["Offset of field: ibv_device::name"][::core::mem::offset_of!(ibv_device, name) - 24usize];
    ["Offset of field: ibv_device::dev_name"][::core::mem::offset_of!(ibv_device, dev_name) - 88usize];
    ["Offset of field: ibv_device::dev_path"][::core::mem::offset_of!(ibv_device, dev_path) - 152usize];
    ["Offset of field: ibv_device::ibdev_path"][::core::mem::offset_of!(ibv_device, ibdev_path) - 408usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _compat_ibv_port_attr {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ibv_context_ops {
    pub _compat_query_device: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            device_attr: *mut ibv_device_attr,
        ) -> ::core::ffi::c_int,
    >,
    pub _compat_query_port: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            port_num: u8,
            port_attr: *mut _compat_ibv_port_attr,
        ) -> ::core::ffi::c_int,
    >,
    pub _compat_alloc_pd: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_dealloc_pd: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_reg_mr: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_rereg_mr: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_dereg_mr: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub alloc_mw:
        ::core::option::Option<unsafe extern "C" fn(pd: *mut ibv_pd, type_: ibv_mw_type) -> *mut ibv_mw>,
    pub bind_mw: ::core::option::Option<
        unsafe extern "C" fn(
            qp: *mut ibv_qp,
            mw: *mut ibv_mw,
            mw_bind: *mut ibv_mw_bind,
        ) -> ::core::ffi::c_int,
    >,
    pub dealloc_mw: ::core::option::Option<unsafe extern "C" fn(mw: *mut ibv_mw) -> ::core::ffi::c_int>,
    pub _compat_create_cq: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub poll_cq: ::core::option::Option<
        unsafe extern "C" fn(
            cq: *mut ibv_cq,
            num_entries: ::core::ffi::c_int,
            wc: *mut ibv_wc,
        ) -> ::core::ffi::c_int,
    >,
    pub req_notify_cq: ::core::option::Option<
        unsafe extern "C" fn(cq: *mut ibv_cq, solicited_only: ::core::ffi::c_int) -> ::core::ffi::c_int,
    >,
    pub _compat_cq_event: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_resize_cq: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_destroy_cq: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_create_srq: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_modify_srq: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_query_srq: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_destroy_srq: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub post_srq_recv: ::core::option::Option<
        unsafe extern "C" fn(
            srq: *mut ibv_srq,
            recv_wr: *mut ibv_recv_wr,
            bad_recv_wr: *mut *mut ibv_recv_wr,
        ) -> ::core::ffi::c_int,
    >,
    pub _compat_create_qp: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_query_qp: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_modify_qp: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_destroy_qp: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub post_send: ::core::option::Option<
        unsafe extern "C" fn(
            qp: *mut ibv_qp,
            wr: *mut ibv_send_wr,
            bad_wr: *mut *mut ibv_send_wr,
        ) -> ::core::ffi::c_int,
    >,
    pub post_recv: ::core::option::Option<
        unsafe extern "C" fn(
            qp: *mut ibv_qp,
            wr: *mut ibv_recv_wr,
            bad_wr: *mut *mut ibv_recv_wr,
        ) -> ::core::ffi::c_int,
    >,
    pub _compat_create_ah: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_destroy_ah: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_attach_mcast: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_detach_mcast: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
    pub _compat_async_event: ::core::option::Option<unsafe extern "C" fn() -> *mut ::core::ffi::c_void>,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_context_ops"][::core::mem::size_of::<ibv_context_ops>() - 256usize];
    ["Alignment of ibv_context_ops"][::core::mem::align_of::<ibv_context_ops>() - 8usize];
    ["Offset of field: ibv_context_ops::_compat_query_device"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_query_device) - 0usize];
    ["Offset of field: ibv_context_ops::_compat_query_port"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_query_port) - 8usize];
    ["Offset of field: ibv_context_ops::_compat_alloc_pd"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_alloc_pd) - 16usize];
    ["Offset of field: ibv_context_ops::_compat_dealloc_pd"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_dealloc_pd) - 24usize];
    ["Offset of field: ibv_context_ops::_compat_reg_mr"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_reg_mr) - 32usize];
    ["Offset of field: ibv_context_ops::_compat_rereg_mr"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_rereg_mr) - 40usize];
    ["Offset of field: ibv_context_ops::_compat_dereg_mr"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_dereg_mr) - 48usize];
    ["Offset of field: ibv_context_ops::alloc_mw"]
        [::core::mem::offset_of!(ibv_context_ops, alloc_mw) - 56usize];
    ["Offset of field: ibv_context_ops::bind_mw"]
        [::core::mem::offset_of!(ibv_context_ops, bind_mw) - 64usize];
    ["Offset of field: ibv_context_ops::dealloc_mw"]
        [::core::mem::offset_of!(ibv_context_ops, dealloc_mw) - 72usize];
    ["Offset of field: ibv_context_ops::_compat_create_cq"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_create_cq) - 80usize];
    ["Offset of field: ibv_context_ops::poll_cq"]
        [::core::mem::offset_of!(ibv_context_ops, poll_cq) - 88usize];
    ["Offset of field: ibv_context_ops::req_notify_cq"]
        [::core::mem::offset_of!(ibv_context_ops, req_notify_cq) - 96usize];
    ["Offset of field: ibv_context_ops::_compat_cq_event"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_cq_event) - 104usize];
    ["Offset of field: ibv_context_ops::_compat_resize_cq"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_resize_cq) - 112usize];
    ["Offset of field: ibv_context_ops::_compat_destroy_cq"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_destroy_cq) - 120usize];
    ["Offset of field: ibv_context_ops::_compat_create_srq"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_create_srq) - 128usize];
    ["Offset of field: ibv_context_ops::_compat_modify_srq"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_modify_srq) - 136usize];
    ["Offset of field: ibv_context_ops::_compat_query_srq"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_query_srq) - 144usize];
    ["Offset of field: ibv_context_ops::_compat_destroy_srq"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_destroy_srq) - 152usize];
    ["Offset of field: ibv_context_ops::post_srq_recv"]
        [::core::mem::offset_of!(ibv_context_ops, post_srq_recv) - 160usize];
    ["Offset of field: ibv_context_ops::_compat_create_qp"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_create_qp) - 168usize];
    ["Offset of field: ibv_context_ops::_compat_query_qp"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_query_qp) - 176usize];
    ["Offset of field: ibv_context_ops::_compat_modify_qp"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_modify_qp) - 184usize];
    ["Offset of field: ibv_context_ops::_compat_destroy_qp"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_destroy_qp) - 192usize];
    ["Offset of field: ibv_context_ops::post_send"]
        [::core::mem::offset_of!(ibv_context_ops, post_send) - 200usize];
    ["Offset of field: ibv_context_ops::post_recv"]
        [::core::mem::offset_of!(ibv_context_ops, post_recv) - 208usize];
    ["Offset of field: ibv_context_ops::_compat_create_ah"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_create_ah) - 216usize];
    ["Offset of field: ibv_context_ops::_compat_destroy_ah"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_destroy_ah) - 224usize];
    ["Offset of field: ibv_context_ops::_compat_attach_mcast"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_attach_mcast) - 232usize];
    ["Offset of field: ibv_context_ops::_compat_detach_mcast"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_detach_mcast) - 240usize];
    ["Offset of field: ibv_context_ops::_compat_async_event"]
        [::core::mem::offset_of!(ibv_context_ops, _compat_async_event) - 248usize];
};
#[repr(C)]
pub struct ibv_context {
    pub device: *mut ibv_device,
    pub ops: ibv_context_ops,
    pub cmd_fd: ::core::ffi::c_int,
    pub async_fd: ::core::ffi::c_int,
    pub num_comp_vectors: ::core::ffi::c_int,
    pub mutex: pthread_mutex_t,
    pub abi_compat: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_arch = "x86_64")]
const _: () = {
    ["Size of ibv_context"][::core::mem::size_of::<ibv_context>() - 328usize];
    ["Alignment of ibv_context"][::core::mem::align_of::<ibv_context>() - 8usize];
    ["Offset of field: ibv_context::device"][::core::mem::offset_of!(ibv_context, device) - 0usize];
    ["Offset of field: ibv_context::ops"][::core::mem::offset_of!(ibv_context, ops) - 8usize];
    ["Offset of field: ibv_context::cmd_fd"][::core::mem::offset_of!(ibv_context, cmd_fd) - 264usize];
    ["Offset of field: ibv_context::async_fd"][::core::mem::offset_of!(ibv_context, async_fd) - 268usize];
    ["Offset of field: ibv_context::num_comp_vectors"]
        [::core::mem::offset_of!(ibv_context, num_comp_vectors) - 272usize];
    ["Offset of field: ibv_context::mutex"][::core::mem::offset_of!(ibv_context, mutex) - 280usize];
    ["Offset of field: ibv_context::abi_compat"][::core::mem::offset_of!(ibv_context, abi_compat) - 320usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_cq_init_attr_ex {
    pub _bindgen_opaque_blob: [u64; 7usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_cq_init_attr_ex"][::core::mem::size_of::<ibv_cq_init_attr_ex>() - 56usize];
    ["Alignment of ibv_cq_init_attr_ex"][::core::mem::align_of::<ibv_cq_init_attr_ex>() - 8usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_parent_domain_init_attr {
    pub _bindgen_opaque_blob: [u64; 6usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_parent_domain_init_attr"][::core::mem::size_of::<ibv_parent_domain_init_attr>() - 48usize];
    ["Alignment of ibv_parent_domain_init_attr"]
        [::core::mem::align_of::<ibv_parent_domain_init_attr>() - 8usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_counters_init_attr {
    pub _bindgen_opaque_blob: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_counters_init_attr"][::core::mem::size_of::<ibv_counters_init_attr>() - 4usize];
    ["Alignment of ibv_counters_init_attr"][::core::mem::align_of::<ibv_counters_init_attr>() - 4usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_counters {
    pub _bindgen_opaque_blob: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_counters"][::core::mem::size_of::<ibv_counters>() - 8usize];
    ["Alignment of ibv_counters"][::core::mem::align_of::<ibv_counters>() - 8usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_counter_attach_attr {
    pub _bindgen_opaque_blob: [u32; 3usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_counter_attach_attr"][::core::mem::size_of::<ibv_counter_attach_attr>() - 12usize];
    ["Alignment of ibv_counter_attach_attr"][::core::mem::align_of::<ibv_counter_attach_attr>() - 4usize];
};
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct ibv_values_ex {
    pub _bindgen_opaque_blob: [u64; 3usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_values_ex"][::core::mem::size_of::<ibv_values_ex>() - 24usize];
    ["Alignment of ibv_values_ex"][::core::mem::align_of::<ibv_values_ex>() - 8usize];
};
#[repr(C)]
pub struct verbs_context {
    pub query_port: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            port_num: u8,
            port_attr: *mut ibv_port_attr,
            port_attr_len: usize,
        ) -> ::core::ffi::c_int,
    >,
    pub advise_mr: ::core::option::Option<
        unsafe extern "C" fn(
            pd: *mut ibv_pd,
            advice: ib_uverbs_advise_mr_advice,
            flags: u32,
            sg_list: *mut ibv_sge,
            num_sges: u32,
        ) -> ::core::ffi::c_int,
    >,
    pub alloc_null_mr: ::core::option::Option<unsafe extern "C" fn(pd: *mut ibv_pd) -> *mut ibv_mr>,
    pub read_counters: ::core::option::Option<
        unsafe extern "C" fn(
            counters: *mut ibv_counters,
            counters_value: *mut u64,
            ncounters: u32,
            flags: u32,
        ) -> ::core::ffi::c_int,
    >,
    pub attach_counters_point_flow: ::core::option::Option<
        unsafe extern "C" fn(
            counters: *mut ibv_counters,
            attr: *mut ibv_counter_attach_attr,
            flow: *mut ibv_flow,
        ) -> ::core::ffi::c_int,
    >,
    pub create_counters: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            init_attr: *mut ibv_counters_init_attr,
        ) -> *mut ibv_counters,
    >,
    pub destroy_counters:
        ::core::option::Option<unsafe extern "C" fn(counters: *mut ibv_counters) -> ::core::ffi::c_int>,
    pub reg_dm_mr: ::core::option::Option<
        unsafe extern "C" fn(
            pd: *mut ibv_pd,
            dm: *mut ibv_dm,
            dm_offset: u64,
            length: usize,
            access: ::core::ffi::c_uint,
        ) -> *mut ibv_mr,
    >,
    pub alloc_dm: ::core::option::Option<
        unsafe extern "C" fn(context: *mut ibv_context, attr: *mut ibv_alloc_dm_attr) -> *mut ibv_dm,
    >,
    pub free_dm: ::core::option::Option<unsafe extern "C" fn(dm: *mut ibv_dm) -> ::core::ffi::c_int>,
    pub modify_flow_action_esp: ::core::option::Option<
        unsafe extern "C" fn(
            action: *mut ibv_flow_action,
            attr: *mut ibv_flow_action_esp_attr,
        ) -> ::core::ffi::c_int,
    >,
    pub destroy_flow_action:
        ::core::option::Option<unsafe extern "C" fn(action: *mut ibv_flow_action) -> ::core::ffi::c_int>,
    pub create_flow_action_esp: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            attr: *mut ibv_flow_action_esp_attr,
        ) -> *mut ibv_flow_action,
    >,
    pub modify_qp_rate_limit: ::core::option::Option<
        unsafe extern "C" fn(qp: *mut ibv_qp, attr: *mut ibv_qp_rate_limit_attr) -> ::core::ffi::c_int,
    >,
    pub alloc_parent_domain: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            attr: *mut ibv_parent_domain_init_attr,
        ) -> *mut ibv_pd,
    >,
    pub dealloc_td: ::core::option::Option<unsafe extern "C" fn(td: *mut ibv_td) -> ::core::ffi::c_int>,
    pub alloc_td: ::core::option::Option<
        unsafe extern "C" fn(context: *mut ibv_context, init_attr: *mut ibv_td_init_attr) -> *mut ibv_td,
    >,
    pub modify_cq: ::core::option::Option<
        unsafe extern "C" fn(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> ::core::ffi::c_int,
    >,
    pub post_srq_ops: ::core::option::Option<
        unsafe extern "C" fn(
            srq: *mut ibv_srq,
            op: *mut ibv_ops_wr,
            bad_op: *mut *mut ibv_ops_wr,
        ) -> ::core::ffi::c_int,
    >,
    pub destroy_rwq_ind_table: ::core::option::Option<
        unsafe extern "C" fn(rwq_ind_table: *mut ibv_rwq_ind_table) -> ::core::ffi::c_int,
    >,
    pub create_rwq_ind_table: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            init_attr: *mut ibv_rwq_ind_table_init_attr,
        ) -> *mut ibv_rwq_ind_table,
    >,
    pub destroy_wq: ::core::option::Option<unsafe extern "C" fn(wq: *mut ibv_wq) -> ::core::ffi::c_int>,
    pub modify_wq: ::core::option::Option<
        unsafe extern "C" fn(wq: *mut ibv_wq, wq_attr: *mut ibv_wq_attr) -> ::core::ffi::c_int,
    >,
    pub create_wq: ::core::option::Option<
        unsafe extern "C" fn(context: *mut ibv_context, wq_init_attr: *mut ibv_wq_init_attr) -> *mut ibv_wq,
    >,
    pub query_rt_values: ::core::option::Option<
        unsafe extern "C" fn(context: *mut ibv_context, values: *mut ibv_values_ex) -> ::core::ffi::c_int,
    >,
    pub create_cq_ex: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            init_attr: *mut ibv_cq_init_attr_ex,
        ) -> *mut ibv_cq_ex,
    >,
    pub priv_: *mut verbs_ex_private,
    pub query_device_ex: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            input: *const ibv_query_device_ex_input,
            attr: *mut ibv_device_attr_ex,
            attr_size: usize,
        ) -> ::core::ffi::c_int,
    >,
    pub ibv_destroy_flow:
        ::core::option::Option<unsafe extern "C" fn(flow: *mut ibv_flow) -> ::core::ffi::c_int>,
    pub ABI_placeholder2: ::core::option::Option<unsafe extern "C" fn()>,
    pub ibv_create_flow: ::core::option::Option<
        unsafe extern "C" fn(qp: *mut ibv_qp, flow_attr: *mut ibv_flow_attr) -> *mut ibv_flow,
    >,
    pub ABI_placeholder1: ::core::option::Option<unsafe extern "C" fn()>,
    pub open_qp: ::core::option::Option<
        unsafe extern "C" fn(context: *mut ibv_context, attr: *mut ibv_qp_open_attr) -> *mut ibv_qp,
    >,
    pub create_qp_ex: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            qp_init_attr_ex: *mut ibv_qp_init_attr_ex,
        ) -> *mut ibv_qp,
    >,
    pub get_srq_num: ::core::option::Option<
        unsafe extern "C" fn(srq: *mut ibv_srq, srq_num: *mut u32) -> ::core::ffi::c_int,
    >,
    pub create_srq_ex: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            srq_init_attr_ex: *mut ibv_srq_init_attr_ex,
        ) -> *mut ibv_srq,
    >,
    pub open_xrcd: ::core::option::Option<
        unsafe extern "C" fn(
            context: *mut ibv_context,
            xrcd_init_attr: *mut ibv_xrcd_init_attr,
        ) -> *mut ibv_xrcd,
    >,
    pub close_xrcd: ::core::option::Option<unsafe extern "C" fn(xrcd: *mut ibv_xrcd) -> ::core::ffi::c_int>,
    pub _ABI_placeholder3: u64,
    pub sz: usize,
    pub context: ibv_context,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_arch = "x86_64")]
const _: () = {
    ["Size of verbs_context"][::core::mem::size_of::<verbs_context>() - 648usize];
    ["Alignment of verbs_context"][::core::mem::align_of::<verbs_context>() - 8usize];
    ["Offset of field: verbs_context::query_port"]
        [::core::mem::offset_of!(verbs_context, query_port) - 0usize];
    ["Offset of field: verbs_context::advise_mr"][::core::mem::offset_of!(verbs_context, advise_mr) - 8usize];
    ["Offset of field: verbs_context::alloc_null_mr"]
        [::core::mem::offset_of!(verbs_context, alloc_null_mr) - 16usize];
    ["Offset of field: verbs_context::read_counters"]
        [::core::mem::offset_of!(verbs_context, read_counters) - 24usize];
    ["Offset of field: verbs_context::attach_counters_point_flow"]
        [::core::mem::offset_of!(verbs_context, attach_counters_point_flow) - 32usize];
    ["Offset of field: verbs_context::create_counters"]
        [::core::mem::offset_of!(verbs_context, create_counters) - 40usize];
    ["Offset of field: verbs_context::destroy_counters"]
        [::core::mem::offset_of!(verbs_context, destroy_counters) - 48usize];
    ["Offset of field: verbs_context::reg_dm_mr"]
        [::core::mem::offset_of!(verbs_context, reg_dm_mr) - 56usize];
    ["Offset of field: verbs_context::alloc_dm"][::core::mem::offset_of!(verbs_context, alloc_dm) - 64usize];
    ["Offset of field: verbs_context::free_dm"][::core::mem::offset_of!(verbs_context, free_dm) - 72usize];
    ["Offset of field: verbs_context::modify_flow_action_esp"]
        [::core::mem::offset_of!(verbs_context, modify_flow_action_esp) - 80usize];
    ["Offset of field: verbs_context::destroy_flow_action"]
        [::core::mem::offset_of!(verbs_context, destroy_flow_action) - 88usize];
    ["Offset of field: verbs_context::create_flow_action_esp"]
        [::core::mem::offset_of!(verbs_context, create_flow_action_esp) - 96usize];
    ["Offset of field: verbs_context::modify_qp_rate_limit"]
        [::core::mem::offset_of!(verbs_context, modify_qp_rate_limit) - 104usize];
    ["Offset of field: verbs_context::alloc_parent_domain"]
        [::core::mem::offset_of!(verbs_context, alloc_parent_domain) - 112usize];
    ["Offset of field: verbs_context::dealloc_td"]
        [::core::mem::offset_of!(verbs_context, dealloc_td) - 120usize];
    ["Offset of field: verbs_context::alloc_td"][::core::mem::offset_of!(verbs_context, alloc_td) - 128usize];
    ["Offset of field: verbs_context::modify_cq"]
        [::core::mem::offset_of!(verbs_context, modify_cq) - 136usize];
    ["Offset of field: verbs_context::post_srq_ops"]
        [::core::mem::offset_of!(verbs_context, post_srq_ops) - 144usize];
    ["Offset of field: verbs_context::destroy_rwq_ind_table"]
        [::core::mem::offset_of!(verbs_context, destroy_rwq_ind_table) - 152usize];
    ["Offset of field: verbs_context::create_rwq_ind_table"]
        [::core::mem::offset_of!(verbs_context, create_rwq_ind_table) - 160usize];
    ["Offset of field: verbs_context::destroy_wq"]
        [::core::mem::offset_of!(verbs_context, destroy_wq) - 168usize];
    ["Offset of field: verbs_context::modify_wq"]
        [::core::mem::offset_of!(verbs_context, modify_wq) - 176usize];
    ["Offset of field: verbs_context::create_wq"]
        [::core::mem::offset_of!(verbs_context, create_wq) - 184usize];
    ["Offset of field: verbs_context::query_rt_values"]
        [::core::mem::offset_of!(verbs_context, query_rt_values) - 192usize];
    ["Offset of field: verbs_context::create_cq_ex"]
        [::core::mem::offset_of!(verbs_context, create_cq_ex) - 200usize];
    ["Offset of field: verbs_context::priv_"][::core::mem::offset_of!(verbs_context, priv_) - 208usize];
    ["Offset of field: verbs_context::query_device_ex"]
        [::core::mem::offset_of!(verbs_context, query_device_ex) - 216usize];
    ["Offset of field: verbs_context::ibv_destroy_flow"]
        [::core::mem::offset_of!(verbs_context, ibv_destroy_flow) - 224usize];
    ["Offset of field: verbs_context::ABI_placeholder2"]
        [::core::mem::offset_of!(verbs_context, ABI_placeholder2) - 232usize];
    ["Offset of field: verbs_context::ibv_create_flow"]
        [::core::mem::offset_of!(verbs_context, ibv_create_flow) - 240usize];
    ["Offset of field: verbs_context::ABI_placeholder1"]
        [::core::mem::offset_of!(verbs_context, ABI_placeholder1) - 248usize];
    ["Offset of field: verbs_context::open_qp"][::core::mem::offset_of!(verbs_context, open_qp) - 256usize];
    ["Offset of field: verbs_context::create_qp_ex"]
        [::core::mem::offset_of!(verbs_context, create_qp_ex) - 264usize];
    ["Offset of field: verbs_context::get_srq_num"]
        [::core::mem::offset_of!(verbs_context, get_srq_num) - 272usize];
    ["Offset of field: verbs_context::create_srq_ex"]
        [::core::mem::offset_of!(verbs_context, create_srq_ex) - 280usize];
    ["Offset of field: verbs_context::open_xrcd"]
        [::core::mem::offset_of!(verbs_context, open_xrcd) - 288usize];
    ["Offset of field: verbs_context::close_xrcd"]
        [::core::mem::offset_of!(verbs_context, close_xrcd) - 296usize];
    ["Offset of field: verbs_context::_ABI_placeholder3"]
        [::core::mem::offset_of!(verbs_context, _ABI_placeholder3) - 304usize];
    ["Offset of field: verbs_context::sz"][::core::mem::offset_of!(verbs_context, sz) - 312usize];
    ["Offset of field: verbs_context::context"][::core::mem::offset_of!(verbs_context, context) - 320usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ibv_sa_path_rec {
    pub dgid: ibv_gid,
    pub sgid: ibv_gid,
    pub dlid: __be16,
    pub slid: __be16,
    pub raw_traffic: ::core::ffi::c_int,
    pub flow_label: __be32,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub reversible: ::core::ffi::c_int,
    pub numb_path: u8,
    pub pkey: __be16,
    pub sl: u8,
    pub mtu_selector: u8,
    pub mtu: u8,
    pub rate_selector: u8,
    pub rate: u8,
    pub packet_life_time_selector: u8,
    pub packet_life_time: u8,
    pub preference: u8,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ibv_sa_path_rec"][::core::mem::size_of::<ibv_sa_path_rec>() - 64usize];
    ["Alignment of ibv_sa_path_rec"][::core::mem::align_of::<ibv_sa_path_rec>() - 8usize];
    ["Offset of field: ibv_sa_path_rec::dgid"][::core::mem::offset_of!(ibv_sa_path_rec, dgid) - 0usize];
    ["Offset of field: ibv_sa_path_rec::sgid"][::core::mem::offset_of!(ibv_sa_path_rec, sgid) - 16usize];
    ["Offset of field: ibv_sa_path_rec::dlid"][::core::mem::offset_of!(ibv_sa_path_rec, dlid) - 32usize];
    ["Offset of field: ibv_sa_path_rec::slid"][::core::mem::offset_of!(ibv_sa_path_rec, slid) - 34usize];
    ["Offset of field: ibv_sa_path_rec::raw_traffic"]
        [::core::mem::offset_of!(ibv_sa_path_rec, raw_traffic) - 36usize];
    ["Offset of field: ibv_sa_path_rec::flow_label"]
        [::core::mem::offset_of!(ibv_sa_path_rec, flow_label) - 40usize];
    ["Offset of field: ibv_sa_path_rec::hop_limit"]
        [::core::mem::offset_of!(ibv_sa_path_rec, hop_limit) - 44usize];
    ["Offset of field: ibv_sa_path_rec::traffic_class"]
        [::core::mem::offset_of!(ibv_sa_path_rec, traffic_class) - 45usize];
    ["Offset of field: ibv_sa_path_rec::reversible"]
        [::core::mem::offset_of!(ibv_sa_path_rec, reversible) - 48usize];
    ["Offset of field: ibv_sa_path_rec::numb_path"]
        [::core::mem::offset_of!(ibv_sa_path_rec, numb_path) - 52usize];
    ["Offset of field: ibv_sa_path_rec::pkey"][::core::mem::offset_of!(ibv_sa_path_rec, pkey) - 54usize];
    ["Offset of field: ibv_sa_path_rec::sl"][::core::mem::offset_of!(ibv_sa_path_rec, sl) - 56usize];
    ["Offset of field: ibv_sa_path_rec::mtu_selector"]
        [::core::mem::offset_of!(ibv_sa_path_rec, mtu_selector) - 57usize];
    ["Offset of field: ibv_sa_path_rec::mtu"][::core::mem::offset_of!(ibv_sa_path_rec, mtu) - 58usize];
    ["Offset of field: ibv_sa_path_rec::rate_selector"]
        [::core::mem::offset_of!(ibv_sa_path_rec, rate_selector) - 59usize];
    ["Offset of field: ibv_sa_path_rec::rate"][::core::mem::offset_of!(ibv_sa_path_rec, rate) - 60usize];
    ["Offset of field: ibv_sa_path_rec::packet_life_time_selector"]
        [::core::mem::offset_of!(ibv_sa_path_rec, packet_life_time_selector) - 61usize];
    ["Offset of field: ibv_sa_path_rec::packet_life_time"]
        [::core::mem::offset_of!(ibv_sa_path_rec, packet_life_time) - 62usize];
    ["Offset of field: ibv_sa_path_rec::preference"]
        [::core::mem::offset_of!(ibv_sa_path_rec, preference) - 63usize];
};
pub const RDMA_CM_EVENT_ADDR_RESOLVED: rdma_cm_event_type = 0;
pub const RDMA_CM_EVENT_ADDR_ERROR: rdma_cm_event_type = 1;
pub const RDMA_CM_EVENT_ROUTE_RESOLVED: rdma_cm_event_type = 2;
pub const RDMA_CM_EVENT_ROUTE_ERROR: rdma_cm_event_type = 3;
pub const RDMA_CM_EVENT_CONNECT_REQUEST: rdma_cm_event_type = 4;
pub const RDMA_CM_EVENT_CONNECT_RESPONSE: rdma_cm_event_type = 5;
pub const RDMA_CM_EVENT_CONNECT_ERROR: rdma_cm_event_type = 6;
pub const RDMA_CM_EVENT_UNREACHABLE: rdma_cm_event_type = 7;
pub const RDMA_CM_EVENT_REJECTED: rdma_cm_event_type = 8;
pub const RDMA_CM_EVENT_ESTABLISHED: rdma_cm_event_type = 9;
pub const RDMA_CM_EVENT_DISCONNECTED: rdma_cm_event_type = 10;
pub const RDMA_CM_EVENT_DEVICE_REMOVAL: rdma_cm_event_type = 11;
pub const RDMA_CM_EVENT_MULTICAST_JOIN: rdma_cm_event_type = 12;
pub const RDMA_CM_EVENT_MULTICAST_ERROR: rdma_cm_event_type = 13;
pub const RDMA_CM_EVENT_ADDR_CHANGE: rdma_cm_event_type = 14;
pub const RDMA_CM_EVENT_TIMEWAIT_EXIT: rdma_cm_event_type = 15;
pub type rdma_cm_event_type = ::core::ffi::c_uint;
pub const RDMA_PS_IPOIB: rdma_port_space = 2;
pub const RDMA_PS_TCP: rdma_port_space = 262;
pub const RDMA_PS_UDP: rdma_port_space = 273;
pub const RDMA_PS_IB: rdma_port_space = 319;
pub type rdma_port_space = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct rdma_ib_addr {
    pub sgid: ibv_gid,
    pub dgid: ibv_gid,
    pub pkey: __be16,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_ib_addr"][::core::mem::size_of::<rdma_ib_addr>() - 40usize];
    ["Alignment of rdma_ib_addr"][::core::mem::align_of::<rdma_ib_addr>() - 8usize];
    ["Offset of field: rdma_ib_addr::sgid"][::core::mem::offset_of!(rdma_ib_addr, sgid) - 0usize];
    ["Offset of field: rdma_ib_addr::dgid"][::core::mem::offset_of!(rdma_ib_addr, dgid) - 16usize];
    ["Offset of field: rdma_ib_addr::pkey"][::core::mem::offset_of!(rdma_ib_addr, pkey) - 32usize];
};
#[repr(C)]
pub struct rdma_addr {
    pub __bindgen_anon_1: rdma_addr__bindgen_ty_1,
    pub __bindgen_anon_2: rdma_addr__bindgen_ty_2,
    pub addr: rdma_addr__bindgen_ty_3,
}
#[repr(C)]
pub union rdma_addr__bindgen_ty_1 {
    pub src_addr: ::core::mem::ManuallyDrop<sockaddr>,
    pub src_sin: ::core::mem::ManuallyDrop<sockaddr_in>,
    pub src_sin6: ::core::mem::ManuallyDrop<sockaddr_in6>,
    pub src_storage: ::core::mem::ManuallyDrop<sockaddr_storage>,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_addr__bindgen_ty_1"][::core::mem::size_of::<rdma_addr__bindgen_ty_1>() - 128usize];
    ["Alignment of rdma_addr__bindgen_ty_1"][::core::mem::align_of::<rdma_addr__bindgen_ty_1>() - 8usize];
    ["Offset of field: rdma_addr__bindgen_ty_1::src_addr"]
        [::core::mem::offset_of!(rdma_addr__bindgen_ty_1, src_addr) - 0usize];
    ["Offset of field: rdma_addr__bindgen_ty_1::src_sin"]
        [::core::mem::offset_of!(rdma_addr__bindgen_ty_1, src_sin) - 0usize];
    ["Offset of field: rdma_addr__bindgen_ty_1::src_sin6"]
        [::core::mem::offset_of!(rdma_addr__bindgen_ty_1, src_sin6) - 0usize];
    ["Offset of field: rdma_addr__bindgen_ty_1::src_storage"]
        [::core::mem::offset_of!(rdma_addr__bindgen_ty_1, src_storage) - 0usize];
};
#[repr(C)]
pub union rdma_addr__bindgen_ty_2 {
    pub dst_addr: ::core::mem::ManuallyDrop<sockaddr>,
    pub dst_sin: ::core::mem::ManuallyDrop<sockaddr_in>,
    pub dst_sin6: ::core::mem::ManuallyDrop<sockaddr_in6>,
    pub dst_storage: ::core::mem::ManuallyDrop<sockaddr_storage>,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_addr__bindgen_ty_2"][::core::mem::size_of::<rdma_addr__bindgen_ty_2>() - 128usize];
    ["Alignment of rdma_addr__bindgen_ty_2"][::core::mem::align_of::<rdma_addr__bindgen_ty_2>() - 8usize];
    ["Offset of field: rdma_addr__bindgen_ty_2::dst_addr"]
        [::core::mem::offset_of!(rdma_addr__bindgen_ty_2, dst_addr) - 0usize];
    ["Offset of field: rdma_addr__bindgen_ty_2::dst_sin"]
        [::core::mem::offset_of!(rdma_addr__bindgen_ty_2, dst_sin) - 0usize];
    ["Offset of field: rdma_addr__bindgen_ty_2::dst_sin6"]
        [::core::mem::offset_of!(rdma_addr__bindgen_ty_2, dst_sin6) - 0usize];
    ["Offset of field: rdma_addr__bindgen_ty_2::dst_storage"]
        [::core::mem::offset_of!(rdma_addr__bindgen_ty_2, dst_storage) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union rdma_addr__bindgen_ty_3 {
    pub ibaddr: rdma_ib_addr,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_addr__bindgen_ty_3"][::core::mem::size_of::<rdma_addr__bindgen_ty_3>() - 40usize];
    ["Alignment of rdma_addr__bindgen_ty_3"][::core::mem::align_of::<rdma_addr__bindgen_ty_3>() - 8usize];
    ["Offset of field: rdma_addr__bindgen_ty_3::ibaddr"]
        [::core::mem::offset_of!(rdma_addr__bindgen_ty_3, ibaddr) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_addr"][::core::mem::size_of::<rdma_addr>() - 296usize];
    ["Alignment of rdma_addr"][::core::mem::align_of::<rdma_addr>() - 8usize];
    ["Offset of field: rdma_addr::addr"][::core::mem::offset_of!(rdma_addr, addr) - 256usize];
};
#[repr(C)]
pub struct rdma_route {
    pub addr: rdma_addr,
    pub path_rec: *mut ibv_sa_path_rec,
    pub num_paths: ::core::ffi::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_route"][::core::mem::size_of::<rdma_route>() - 312usize];
    ["Alignment of rdma_route"][::core::mem::align_of::<rdma_route>() - 8usize];
    ["Offset of field: rdma_route::addr"][::core::mem::offset_of!(rdma_route, addr) - 0usize];
    ["Offset of field: rdma_route::path_rec"][::core::mem::offset_of!(rdma_route, path_rec) - 296usize];
    ["Offset of field: rdma_route::num_paths"][::core::mem::offset_of!(rdma_route, num_paths) - 304usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rdma_event_channel {
    pub fd: ::core::ffi::c_int,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_event_channel"][::core::mem::size_of::<rdma_event_channel>() - 4usize];
    ["Alignment of rdma_event_channel"][::core::mem::align_of::<rdma_event_channel>() - 4usize];
    ["Offset of field: rdma_event_channel::fd"][::core::mem::offset_of!(rdma_event_channel, fd) - 0usize];
};
#[repr(C)]
pub struct rdma_cm_id {
    pub verbs: *mut ibv_context,
    pub channel: *mut rdma_event_channel,
    pub context: *mut ::core::ffi::c_void,
    pub qp: *mut ibv_qp,
    pub route: rdma_route,
    pub ps: rdma_port_space,
    pub port_num: u8,
    pub event: *mut rdma_cm_event,
    pub send_cq_channel: *mut ibv_comp_channel,
    pub send_cq: *mut ibv_cq,
    pub recv_cq_channel: *mut ibv_comp_channel,
    pub recv_cq: *mut ibv_cq,
    pub srq: *mut ibv_srq,
    pub pd: *mut ibv_pd,
    pub qp_type: ibv_qp_type,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_cm_id"][::core::mem::size_of::<rdma_cm_id>() - 416usize];
    ["Alignment of rdma_cm_id"][::core::mem::align_of::<rdma_cm_id>() - 8usize];
    ["Offset of field: rdma_cm_id::verbs"][::core::mem::offset_of!(rdma_cm_id, verbs) - 0usize];
    ["Offset of field: rdma_cm_id::channel"][::core::mem::offset_of!(rdma_cm_id, channel) - 8usize];
    ["Offset of field: rdma_cm_id::context"][::core::mem::offset_of!(rdma_cm_id, context) - 16usize];
    ["Offset of field: rdma_cm_id::qp"][::core::mem::offset_of!(rdma_cm_id, qp) - 24usize];
    ["Offset of field: rdma_cm_id::route"][::core::mem::offset_of!(rdma_cm_id, route) - 32usize];
    ["Offset of field: rdma_cm_id::ps"][::core::mem::offset_of!(rdma_cm_id, ps) - 344usize];
    ["Offset of field: rdma_cm_id::port_num"][::core::mem::offset_of!(rdma_cm_id, port_num) - 348usize];
    ["Offset of field: rdma_cm_id::event"][::core::mem::offset_of!(rdma_cm_id, event) - 352usize];
    ["Offset of field: rdma_cm_id::send_cq_channel"]
        [::core::mem::offset_of!(rdma_cm_id, send_cq_channel) - 360usize];
    ["Offset of field: rdma_cm_id::send_cq"][::core::mem::offset_of!(rdma_cm_id, send_cq) - 368usize];
    ["Offset of field: rdma_cm_id::recv_cq_channel"]
        [::core::mem::offset_of!(rdma_cm_id, recv_cq_channel) - 376usize];
    ["Offset of field: rdma_cm_id::recv_cq"][::core::mem::offset_of!(rdma_cm_id, recv_cq) - 384usize];
    ["Offset of field: rdma_cm_id::srq"][::core::mem::offset_of!(rdma_cm_id, srq) - 392usize];
    ["Offset of field: rdma_cm_id::pd"][::core::mem::offset_of!(rdma_cm_id, pd) - 400usize];
    ["Offset of field: rdma_cm_id::qp_type"][::core::mem::offset_of!(rdma_cm_id, qp_type) - 408usize];
};
pub const RDMA_MAX_RESP_RES: _bindgen_ty_24 = 255;
pub const RDMA_MAX_INIT_DEPTH: _bindgen_ty_24 = 255;
pub type _bindgen_ty_24 = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rdma_conn_param {
    pub private_data: *const ::core::ffi::c_void,
    pub private_data_len: u8,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub flow_control: u8,
    pub retry_count: u8,
    pub rnr_retry_count: u8,
    pub srq: u8,
    pub qp_num: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_conn_param"][::core::mem::size_of::<rdma_conn_param>() - 24usize];
    ["Alignment of rdma_conn_param"][::core::mem::align_of::<rdma_conn_param>() - 8usize];
    ["Offset of field: rdma_conn_param::private_data"]
        [::core::mem::offset_of!(rdma_conn_param, private_data) - 0usize];
    ["Offset of field: rdma_conn_param::private_data_len"]
        [::core::mem::offset_of!(rdma_conn_param, private_data_len) - 8usize];
    ["Offset of field: rdma_conn_param::responder_resources"]
        [::core::mem::offset_of!(rdma_conn_param, responder_resources) - 9usize];
    ["Offset of field: rdma_conn_param::initiator_depth"]
        [::core::mem::offset_of!(rdma_conn_param, initiator_depth) - 10usize];
    ["Offset of field: rdma_conn_param::flow_control"]
        [::core::mem::offset_of!(rdma_conn_param, flow_control) - 11usize];
    ["Offset of field: rdma_conn_param::retry_count"]
        [::core::mem::offset_of!(rdma_conn_param, retry_count) - 12usize];
    ["Offset of field: rdma_conn_param::rnr_retry_count"]
        [::core::mem::offset_of!(rdma_conn_param, rnr_retry_count) - 13usize];
    ["Offset of field: rdma_conn_param::srq"][::core::mem::offset_of!(rdma_conn_param, srq) - 14usize];
    ["Offset of field: rdma_conn_param::qp_num"][::core::mem::offset_of!(rdma_conn_param, qp_num) - 16usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct rdma_ud_param {
    pub private_data: *const ::core::ffi::c_void,
    pub private_data_len: u8,
    pub ah_attr: ibv_ah_attr,
    pub qp_num: u32,
    pub qkey: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_ud_param"][::core::mem::size_of::<rdma_ud_param>() - 56usize];
    ["Alignment of rdma_ud_param"][::core::mem::align_of::<rdma_ud_param>() - 8usize];
    ["Offset of field: rdma_ud_param::private_data"]
        [::core::mem::offset_of!(rdma_ud_param, private_data) - 0usize];
    ["Offset of field: rdma_ud_param::private_data_len"]
        [::core::mem::offset_of!(rdma_ud_param, private_data_len) - 8usize];
    ["Offset of field: rdma_ud_param::ah_attr"][::core::mem::offset_of!(rdma_ud_param, ah_attr) - 16usize];
    ["Offset of field: rdma_ud_param::qp_num"][::core::mem::offset_of!(rdma_ud_param, qp_num) - 48usize];
    ["Offset of field: rdma_ud_param::qkey"][::core::mem::offset_of!(rdma_ud_param, qkey) - 52usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct rdma_cm_event {
    pub id: *mut rdma_cm_id,
    pub listen_id: *mut rdma_cm_id,
    pub event: rdma_cm_event_type,
    pub status: ::core::ffi::c_int,
    pub param: rdma_cm_event__bindgen_ty_1,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union rdma_cm_event__bindgen_ty_1 {
    pub conn: rdma_conn_param,
    pub ud: rdma_ud_param,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_cm_event__bindgen_ty_1"][::core::mem::size_of::<rdma_cm_event__bindgen_ty_1>() - 56usize];
    ["Alignment of rdma_cm_event__bindgen_ty_1"]
        [::core::mem::align_of::<rdma_cm_event__bindgen_ty_1>() - 8usize];
    ["Offset of field: rdma_cm_event__bindgen_ty_1::conn"]
        [::core::mem::offset_of!(rdma_cm_event__bindgen_ty_1, conn) - 0usize];
    ["Offset of field: rdma_cm_event__bindgen_ty_1::ud"]
        [::core::mem::offset_of!(rdma_cm_event__bindgen_ty_1, ud) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rdma_cm_event"][::core::mem::size_of::<rdma_cm_event>() - 80usize];
    ["Alignment of rdma_cm_event"][::core::mem::align_of::<rdma_cm_event>() - 8usize];
    ["Offset of field: rdma_cm_event::id"][::core::mem::offset_of!(rdma_cm_event, id) - 0usize];
    ["Offset of field: rdma_cm_event::listen_id"][::core::mem::offset_of!(rdma_cm_event, listen_id) - 8usize];
    ["Offset of field: rdma_cm_event::event"][::core::mem::offset_of!(rdma_cm_event, event) - 16usize];
    ["Offset of field: rdma_cm_event::status"][::core::mem::offset_of!(rdma_cm_event, status) - 20usize];
    ["Offset of field: rdma_cm_event::param"][::core::mem::offset_of!(rdma_cm_event, param) - 24usize];
};
pub const RDMA_OPTION_ID: _bindgen_ty_25 = 0;
pub const RDMA_OPTION_IB: _bindgen_ty_25 = 1;
pub type _bindgen_ty_25 = ::core::ffi::c_uint;
pub const RDMA_OPTION_ID_TOS: _bindgen_ty_26 = 0;
pub const RDMA_OPTION_ID_REUSEADDR: _bindgen_ty_26 = 1;
pub const RDMA_OPTION_ID_AFONLY: _bindgen_ty_26 = 2;
pub const RDMA_OPTION_ID_ACK_TIMEOUT: _bindgen_ty_26 = 3;
pub type _bindgen_ty_26 = ::core::ffi::c_uint;
pub const RDMA_OPTION_IB_PATH: _bindgen_ty_27 = 1;
pub type _bindgen_ty_27 = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct verbs_ex_private {
    pub _address: u8,
}
unsafe extern "C" {
    pub fn ibv_get_device_name(device: *mut ibv_device) -> *const ::core::ffi::c_char;
    pub fn ibv_get_device_guid(device: *mut ibv_device) -> __be64;
    pub fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    pub fn ibv_close_device(context: *mut ibv_context) -> ::core::ffi::c_int;
    pub fn ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> ::core::ffi::c_int;
    pub fn ibv_ack_async_event(event: *mut ibv_async_event);
    pub fn ibv_query_device(
        context: *mut ibv_context,
        device_attr: *mut ibv_device_attr,
    ) -> ::core::ffi::c_int;
    pub fn ibv_query_port(
        context: *mut ibv_context,
        port_num: u8,
        port_attr: *mut _compat_ibv_port_attr,
    ) -> ::core::ffi::c_int;
    pub fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    pub fn ibv_dealloc_pd(pd: *mut ibv_pd) -> ::core::ffi::c_int;
    pub fn ibv_reg_mr_iova2(
        pd: *mut ibv_pd,
        addr: *mut ::core::ffi::c_void,
        length: usize,
        iova: u64,
        access: ::core::ffi::c_uint,
    ) -> *mut ibv_mr;
    pub fn ibv_reg_mr(
        pd: *mut ibv_pd,
        addr: *mut ::core::ffi::c_void,
        length: usize,
        access: ::core::ffi::c_int,
    ) -> *mut ibv_mr;
    pub fn ibv_dereg_mr(mr: *mut ibv_mr) -> ::core::ffi::c_int;
    pub fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
    pub fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> ::core::ffi::c_int;
    pub fn ibv_create_cq(
        context: *mut ibv_context,
        cqe: ::core::ffi::c_int,
        cq_context: *mut ::core::ffi::c_void,
        channel: *mut ibv_comp_channel,
        comp_vector: ::core::ffi::c_int,
    ) -> *mut ibv_cq;
    pub fn ibv_resize_cq(cq: *mut ibv_cq, cqe: ::core::ffi::c_int) -> ::core::ffi::c_int;
    pub fn ibv_destroy_cq(cq: *mut ibv_cq) -> ::core::ffi::c_int;
    pub fn ibv_get_cq_event(
        channel: *mut ibv_comp_channel,
        cq: *mut *mut ibv_cq,
        cq_context: *mut *mut ::core::ffi::c_void,
    ) -> ::core::ffi::c_int;
    pub fn ibv_ack_cq_events(cq: *mut ibv_cq, nevents: ::core::ffi::c_uint);
    pub fn ibv_create_srq(pd: *mut ibv_pd, srq_init_attr: *mut ibv_srq_init_attr) -> *mut ibv_srq;
    pub fn ibv_modify_srq(
        srq: *mut ibv_srq,
        srq_attr: *mut ibv_srq_attr,
        srq_attr_mask: ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
    pub fn ibv_query_srq(srq: *mut ibv_srq, srq_attr: *mut ibv_srq_attr) -> ::core::ffi::c_int;
    pub fn ibv_destroy_srq(srq: *mut ibv_srq) -> ::core::ffi::c_int;
    pub fn ibv_create_qp(pd: *mut ibv_pd, qp_init_attr: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    pub fn ibv_modify_qp(
        qp: *mut ibv_qp,
        attr: *mut ibv_qp_attr,
        attr_mask: ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
    pub fn ibv_query_qp(
        qp: *mut ibv_qp,
        attr: *mut ibv_qp_attr,
        attr_mask: ::core::ffi::c_int,
        init_attr: *mut ibv_qp_init_attr,
    ) -> ::core::ffi::c_int;
    pub fn ibv_destroy_qp(qp: *mut ibv_qp) -> ::core::ffi::c_int;
    pub fn rdma_create_event_channel() -> *mut rdma_event_channel;
    pub fn rdma_destroy_event_channel(channel: *mut rdma_event_channel);
    pub fn rdma_create_id(
        channel: *mut rdma_event_channel,
        id: *mut *mut rdma_cm_id,
        context: *mut ::core::ffi::c_void,
        ps: rdma_port_space,
    ) -> ::core::ffi::c_int;
    pub fn rdma_destroy_id(id: *mut rdma_cm_id) -> ::core::ffi::c_int;
    pub fn rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut sockaddr) -> ::core::ffi::c_int;
    pub fn rdma_resolve_addr(
        id: *mut rdma_cm_id,
        src_addr: *mut sockaddr,
        dst_addr: *mut sockaddr,
        timeout_ms: ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
    pub fn rdma_resolve_route(id: *mut rdma_cm_id, timeout_ms: ::core::ffi::c_int) -> ::core::ffi::c_int;
    pub fn rdma_connect(id: *mut rdma_cm_id, conn_param: *mut rdma_conn_param) -> ::core::ffi::c_int;
    pub fn rdma_establish(id: *mut rdma_cm_id) -> ::core::ffi::c_int;
    pub fn rdma_listen(id: *mut rdma_cm_id, backlog: ::core::ffi::c_int) -> ::core::ffi::c_int;
    pub fn rdma_accept(id: *mut rdma_cm_id, conn_param: *mut rdma_conn_param) -> ::core::ffi::c_int;
    pub fn rdma_reject(
        id: *mut rdma_cm_id,
        private_data: *const ::core::ffi::c_void,
        private_data_len: u8,
    ) -> ::core::ffi::c_int;
    pub fn rdma_notify(id: *mut rdma_cm_id, event: ibv_event_type) -> ::core::ffi::c_int;
    pub fn rdma_disconnect(id: *mut rdma_cm_id) -> ::core::ffi::c_int;
    pub fn rdma_get_cm_event(
        channel: *mut rdma_event_channel,
        event: *mut *mut rdma_cm_event,
    ) -> ::core::ffi::c_int;
    pub fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> ::core::ffi::c_int;
    pub fn rdma_get_devices(num_devices: *mut ::core::ffi::c_int) -> *mut *mut ibv_context;
    pub fn rdma_free_devices(list: *mut *mut ibv_context);
    pub fn rdma_set_option(
        id: *mut rdma_cm_id,
        level: ::core::ffi::c_int,
        optname: ::core::ffi::c_int,
        optval: *mut ::core::ffi::c_void,
        optlen: usize,
    ) -> ::core::ffi::c_int;
    pub fn rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> ::core::ffi::c_int;
    pub fn rdma_init_qp_attr(
        id: *mut rdma_cm_id,
        qp_attr: *mut ibv_qp_attr,
        qp_attr_mask: *mut ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
}
