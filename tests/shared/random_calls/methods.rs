//! Calls of the methods of each interface, except those that create and release objects.

use super::{BYTES, IDS, Life, one};
use ndcompat::Status;
use ndcompat::types::{AdapterInfo, Completion, RegionFlags, RequestType};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use support::com::{
    Adapter, Com, CompletionQueue, Connector, Listener, MemoryRegion, SharedReceiveQueue, Unknown,
};
use support::library::CancelIoEx;

impl Life {
    pub(super) fn call_queue_pair(&mut self) -> Status {
        let (list, count) = self.sges();
        let (sges, flags) = (self.pointer(&list), self.flags());
        let (region, window) = (
            self.mostly(|chance, objects| one(chance, &objects.regions).as_ptr()),
            self.mostly(|chance, objects| one(chance, &objects.windows).as_ptr()),
        );
        // SAFETY: no arguments.
        let token = unsafe { one(&mut self.chance, &self.objects.regions).get_remote_token() };
        let (at, length) = (self.memory.as_ptr() as u64, self.chance.usize(..=2 * BYTES));
        let pair = one(&mut self.chance, &self.objects.pairs);
        let context = null_mut();
        // SAFETY: objects are live ones or null, the SGEs are as many as told and their memory lives as long as the queue
        // pairs; numbers may be anything.
        unsafe {
            match self.chance.u32(..12) {
                0 => {
                    self.last = "Flush";
                    pair.flush()
                }
                1 => {
                    self.last = "Bind";
                    pair.bind(context, region, window, at as *const c_void, length, flags)
                }
                2 => {
                    self.last = "Invalidate";
                    pair.invalidate(context, window, flags)
                }
                3 | 4 => {
                    self.last = "Read";
                    pair.read(context, sges, count, at, token, flags)
                }
                5 | 6 => {
                    self.last = "Write";
                    pair.write(context, sges, count, at, token, flags)
                }
                7..9 => {
                    self.last = "Send";
                    pair.send(context, sges, count, flags)
                }
                _ => {
                    self.last = "Receive";
                    pair.receive(context, sges, count)
                }
            }
        }
    }

    pub(super) fn call_connector(&mut self) -> Status {
        let pair = self.pair();
        let (raw, length) = self.address();
        let (inbound, outbound) = (self.number(), self.number());
        let data = [0_u8; 1024];
        let (data, data_length) = match self.chance.u32(..4) {
            0 => (null(), self.number().min(64)),
            1 => (data.as_ptr().cast(), self.chance.u32(..=1024)),
            _ => (data.as_ptr().cast(), self.chance.u32(..=48)),
        };
        let connector = one(&mut self.chance, &self.objects.connectors).cast::<Connector>().unwrap();
        let kind = self.chance.u32(..14);
        let mut buffer = [0_u8; 256];
        let mut room = self.chance.u32(..=256);
        let buffer: *mut c_void =
            if self.chance.u32(..8) == 0 { null_mut() } else { buffer.as_mut_ptr().cast() };
        let (mut a, mut b) = (0, 0);
        // SAFETY: objects are live ones or null, addresses, data and buffers have the lengths told; requests are watched to
        // their end.
        unsafe {
            match kind {
                0 | 1 => {
                    self.last = "Connector::Bind";
                    connector.bind(raw.as_ptr().cast(), length)
                }
                2 | 3 => {
                    self.last = "Connect";
                    self.begin("Connect", |ov| {
                        connector.connect(
                            pair,
                            raw.as_ptr().cast(),
                            length,
                            inbound,
                            outbound,
                            data,
                            data_length,
                            ov,
                        )
                    })
                }
                4 => {
                    self.last = "CompleteConnect";
                    self.begin("CompleteConnect", |ov| connector.complete_connect(ov))
                }
                5 | 6 => {
                    self.last = "Accept";
                    self.begin("Accept", |ov| {
                        connector.accept(pair, inbound, outbound, data, data_length, ov)
                    })
                }
                7 => {
                    self.last = "Reject";
                    connector.reject(data, data_length)
                }
                8 => {
                    self.last = "GetReadLimits";
                    connector.get_read_limits(&mut a, &mut b)
                }
                9 => {
                    self.last = "GetPrivateData";
                    connector.get_private_data(buffer, &mut room)
                }
                10 => {
                    self.last = "GetLocalAddress";
                    connector.get_local_address(buffer, &mut room)
                }
                11 => {
                    self.last = "GetPeerAddress";
                    connector.get_peer_address(buffer, &mut room)
                }
                12 => {
                    self.last = "NotifyDisconnect";
                    self.begin("NotifyDisconnect", |ov| connector.notify_disconnect(ov))
                }
                _ => {
                    self.last = "Disconnect";
                    self.begin("Disconnect", |ov| connector.disconnect(ov))
                }
            }
        }
    }

    pub(super) fn call_listener(&mut self) -> Status {
        let (raw, length) = self.address();
        let (connector, backlog) = (self.connector(), self.number());
        let mut buffer = [0_u8; 256];
        let mut room = self.chance.u32(..=256);
        let listener = one(&mut self.chance, &self.objects.listeners).cast::<Listener>().unwrap();
        // SAFETY: objects are live ones or null, addresses and buffers have the lengths told; requests are watched to their
        // end.
        unsafe {
            match self.chance.u32(..5) {
                0 => {
                    self.last = "Listener::Bind";
                    listener.bind(raw.as_ptr().cast(), length)
                }
                1 => {
                    self.last = "Listen";
                    listener.listen(backlog)
                }
                2 => {
                    self.last = "Listener::GetLocalAddress";
                    listener.get_local_address(buffer.as_mut_ptr().cast(), &mut room)
                }
                3 => {
                    self.last = "Listener::CancelOverlappedRequests";
                    listener.cancel_overlapped_requests()
                }
                _ => {
                    self.last = "GetConnectionRequest";
                    self.begin("GetConnectionRequest", |ov| listener.get_connection_request(connector, ov))
                }
            }
        }
    }

    pub(super) fn call_region(&mut self) -> Status {
        let (buffer, flags) = (
            self.memory.as_ptr().cast::<c_void>(),
            RegionFlags::from_bits_retain(self.flags().bits() & 0x1F),
        );
        let buffer = if self.chance.u32(..8) == 0 { null() } else { buffer };
        let length = self.chance.usize(..=BYTES);
        let region = one(&mut self.chance, &self.objects.regions).cast::<MemoryRegion>().unwrap();
        // SAFETY: the memory lives as long as the regions, and has the length told, or is null; requests are watched to their
        // end.
        unsafe {
            match self.chance.u32(..4) {
                0 | 1 => {
                    self.last = "Register";
                    self.begin("Register", |ov| region.register(buffer, length, flags, ov))
                }
                2 => {
                    self.last = "Deregister";
                    self.begin("Deregister", |ov| region.deregister(ov))
                }
                _ => {
                    self.last = "MemoryRegion::CancelOverlappedRequests";
                    region.cancel_overlapped_requests()
                }
            }
        }
    }

    pub(super) fn call_queues(&mut self) -> Status {
        let (depth, kind) = (self.number(), self.chance.u32(..5));
        let (list, count) = self.sges();
        let sges = self.pointer(&list);
        let mut results = [const {
            Completion {
                status: Status::INTERNAL_ERROR,
                bytes_transferred: 0,
                queue_pair_context: 0,
                request_context: 0,
                request_type: RequestType::Receive,
            }
        }; 4];
        let queue = one(&mut self.chance, &self.objects.queues).cast::<CompletionQueue>().unwrap();
        let shared = one(&mut self.chance, &self.objects.shared).cast::<SharedReceiveQueue>().unwrap();
        let (mut group, mut affinity) = (0, 0);
        // SAFETY: results have room for four, the SGEs are as many as told and their memory lives as long as the queues;
        // requests are watched to their end.
        unsafe {
            match self.chance.u32(..9) {
                0 | 1 => {
                    self.last = "CompletionQueue::Notify";
                    self.begin("Notify", |ov| queue.notify(kind, ov))
                }
                2 => {
                    self.last = "Resize";
                    queue.resize(depth)
                }
                3 => {
                    self.last = "GetResults";
                    queue.get_results(results.as_mut_ptr(), 4);
                    Status::SUCCESS
                }
                4 => {
                    self.last = "CompletionQueue::CancelOverlappedRequests";
                    queue.cancel_overlapped_requests()
                }
                5 => {
                    self.last = "SharedReceiveQueue::Notify";
                    self.begin("SharedReceiveQueue::Notify", |ov| shared.notify(ov))
                }
                6 => {
                    self.last = "Modify";
                    shared.modify(depth, kind)
                }
                7 => {
                    self.last = "GetNotifyAffinity";
                    shared.get_notify_affinity(&mut group, &mut affinity)
                }
                _ => {
                    self.last = "SharedReceiveQueue::Receive";
                    shared.receive(null_mut(), sges, count)
                }
            }
        }
    }

    pub(super) fn call_adapter(&mut self) -> Status {
        let file = self.file();
        let mut info = AdapterInfo { info_version: self.number(), ..AdapterInfo::default() };
        let mut length = self.chance.u32(..=2 * size_of::<AdapterInfo>() as u32);
        let room = length.min(size_of::<AdapterInfo>() as u32);
        let mut list = [0_u64; 128];
        let adapter = one(&mut self.chance, &self.objects.adapters).cast::<Adapter>().unwrap();
        // SAFETY: each buffer has the length told, and the rest are locals.
        unsafe {
            match self.chance.u32(..4) {
                0 => {
                    self.last = "Query";
                    length = room;
                    adapter.query(&mut info, &mut length)
                }
                1 => {
                    self.last = "QueryAddressList";
                    length = self.chance.u32(..=1024);
                    adapter.query_address_list(list.as_mut_ptr().cast(), &mut length)
                }
                2 => {
                    self.last = "QueryInterface";
                    let id = *one(&mut self.chance, &IDS);
                    let mut out = null_mut();
                    let status = adapter.unknown().query_interface(&id, &mut out);
                    if status == Status::SUCCESS {
                        drop(Com::<Unknown>::from_raw(out));
                    }
                    status
                }
                _ => {
                    self.last = "CancelIoEx";
                    CancelIoEx(file, null_mut());
                    Status::SUCCESS
                }
            }
        }
    }
}
