//! From the data half of the ingress port to packets.

use alloc::boxed::Box;

use hartrace_flow::{Access, AccessKind, DataIngress};

use super::history::{History, Place, Sent};
use super::quick::{Framed, Words};
use super::read::value_mask;
use super::write::length;
use super::{Compression, DataConfig, DataLayout, DataPacket, Outstanding};
use crate::{Config, Payload, Version};

/// A split access that waits for its response.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// The subtype of an atomic.
    atomic: Option<u8>,
    size: u8,
    /// What an atomic stores.
    stored: u64,
}

/// The data trace of one hart.
#[derive(Clone, Debug)]
pub(crate) struct DataEncoder {
    version: Version,
    config: DataConfig,
    layout: DataLayout,
    history: History,
    outstanding: Outstanding,
    /// Accesses are unified, with addresses and data.
    plain: bool,
    /// And may have packets of a word.
    words: Option<Words>,
    /// By id; empty unless accesses are split.
    requests: Box<[Option<Request>]>,
}

/// Most packets of one cycle of the port: an access and a response.
pub(crate) type Packets = [Option<DataPacket>; 2];

impl DataEncoder {
    /// `None` if there is no data trace.
    pub(crate) fn new(config: &Config) -> Option<DataEncoder> {
        let mut data = config.data?;
        data.csr_diff_width = data.layout(config.version, config.xlen).csr_diff_width;
        let ids = if data.split { 1 << data.lrid_width } else { 0 };
        let layout = data.layout(config.version, config.xlen);
        Some(DataEncoder {
            version: config.version,
            config: data,
            layout,
            words: Words::new(config.version, &data, &layout),
            history: History::default(),
            outstanding: Outstanding::default(),
            plain: !(data.split || data.no_address || data.no_data || data.mmacas),
            requests: alloc::vec![None; ids].into_boxed_slice(),
        })
    }

    /// A synchronisation packet was sent, or packets were lost: the next access of
    /// each size is sent in full.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.history.clear();
    }

    /// Value of `doptions`.
    pub(crate) const fn doptions(&self) -> u16 {
        self.config.doptions(self.version)
    }

    /// The bytes of a packet.
    #[inline]
    pub(crate) fn payload(&mut self, packet: &DataPacket) -> Payload {
        let payload = packet.write(&self.layout, &self.outstanding);
        if self.config.split {
            self.outstanding.note(packet);
        }
        payload
    }

    /// The payload of a unified load or a store, and its length, if it is as most are; it
    /// has no more than 15 bytes.
    #[inline(always)]
    pub(crate) fn word(&mut self, access: &Access) -> Option<(u128, u32)> {
        self.words.as_ref()?.write(access, &mut self.history)
    }

    /// A unified load or a store with address and data, framed; `None` for any other
    /// access.
    pub(crate) fn quick(&mut self, access: &Access) -> Option<Framed> {
        let store = match access.kind {
            AccessKind::Load => false,
            AccessKind::Store => true,
            _ => return None,
        };
        if !self.plain || !self.config.traces(access.kind, access.size, self.version) {
            return None;
        }
        let size = access.size & 3;
        let data = access.data.unwrap_or(0) & value_mask(size);
        let (diff, place, field) = self.both(access.addr, data, size, false);
        self.history.set_address(access.addr, size);
        self.history.set_data(data, size);
        let format = u64::from(store) << 1 | u64::from(!place.aligned);
        let field = field.unwrap_or(0);
        Some(Framed::transfer(
            &self.layout,
            (format, diff),
            size,
            field,
            place,
        ))
    }

    /// What is sent for one cycle of the port; `traced` says whether the filters let
    /// the access and the response pass.
    #[inline]
    pub(crate) fn cycle(&mut self, port: &DataIngress, traced: (bool, bool)) -> Packets {
        let mut packets = [None; 2];
        if port.dretire && traced.0 {
            packets[0] = self.access(port);
        }
        if port.lresp != 0 && traced.1 {
            packets[1] = self.response(port);
        }
        packets
    }

    /// An access that retired; `None` if such accesses are not traced.
    #[inline]
    fn access(&mut self, port: &DataIngress) -> Option<DataPacket> {
        let (dtype, multiple) = port.plain_dtype();
        let kind = AccessKind::from_code(dtype)?;
        if !self.config.traces(kind, port.dsize, self.version) {
            return None;
        }
        let packet = self.packet(port, kind);
        match packet {
            Some(packet) if multiple && self.config.mmacas => Some(packet.of_several()),
            packet => packet,
        }
    }

    /// The packet of an access of this kind.
    #[inline]
    fn packet(&mut self, port: &DataIngress, kind: AccessKind) -> Option<DataPacket> {
        let size = port.dsize & 3;
        let split = self.layout.is_split();
        match kind {
            AccessKind::CompareSwapFailure if self.config.split => {
                Some(self.swap_failure(port.daddr, size, port.sdata))
            }
            AccessKind::CompareSwapFailure => {
                Some(self.swap_failure(port.daddr, size, port.data as u64))
            }
            AccessKind::Load if split => Some(self.request(port, None)),
            // Without a request the data comes with the response.
            AccessKind::Load if self.config.split && self.layout.no_address => {
                self.expect(port, None);
                None
            }
            AccessKind::Load => Some(self.transfer(false, port.daddr, size, port.data as u64)),
            AccessKind::Store if self.config.split => {
                Some(self.transfer(true, port.daddr, size, port.sdata))
            }
            AccessKind::Store => Some(self.transfer(true, port.daddr, size, port.data as u64)),
            AccessKind::CsrReadWrite | AccessKind::CsrReadSet | AccessKind::CsrReadClear => {
                Some(self.csr(port))
            }
            _ if split => Some(self.request(port, Some(subtype(kind)))),
            AccessKind::ConditionalStoreFailure if self.config.split => {
                Some(self.atomic(FAILURE, port.daddr, size, (port.sdata, 0)))
            }
            _ if self.config.split && self.layout.no_address => {
                self.expect(port, Some(subtype(kind)));
                None
            }
            _ => {
                let values = (port.data as u64, (port.data >> (8u32 << size)) as u64);
                Some(self.atomic(subtype(kind), port.daddr, size, values))
            }
        }
    }

    /// A unified load, or a store.
    #[inline]
    fn transfer(&mut self, store: bool, addr: u64, size: u8, data: u64) -> DataPacket {
        let data = data & value_mask(size);
        let config = &self.config;
        let (diff, place, field) = match (config.no_data, config.no_address) {
            (false, false) => self.both(addr, data, size, false),
            (true, _) => {
                let (diff, place) = self.address_only(addr, size);
                (diff, place, None)
            }
            (false, true) => {
                let (diff, field) = self.data_only(data, size);
                (diff, History::full(addr, size, config), Some(field))
            }
        };
        self.history.set_address(addr, size);
        self.history.set_data(data, size);
        DataPacket::Transfer {
            multiple: false,
            store,
            aligned: place.aligned,
            size,
            diff,
            data: field,
            address: (!self.config.no_address).then_some(place.field),
        }
    }

    /// `diff`, the address and the data of a packet with both. An atomic has no
    /// unaligned format.
    #[inline]
    fn both(&self, addr: u64, data: u64, size: u8, atomic: bool) -> (u8, Place, Option<u64>) {
        let config = &self.config;
        let full = History::full(addr, size, config);
        let difference = match config.full_address {
            true => None,
            false => self.history.difference(addr, size, config),
        };
        let Some(difference) = difference.filter(|place| place.aligned || !atomic) else {
            return (0, full, Some(data));
        };
        let field = |sent| self.history.compress(data, size, sent);
        let (sent, field) = match (config.full_data, config.compression) {
            (true, _) => (2, None),
            (false, Compression::Xor) => (1, field(Sent::Xor)),
            (false, Compression::Differential) => (3, field(Sent::Difference)),
            (false, Compression::Dynamic) => {
                return self.shortest(full, difference, data, size);
            }
        };
        match field {
            Some(field) => (sent, difference, Some(field)),
            // Full, or nothing to refer to.
            None => (2, difference, Some(data)),
        }
    }

    /// The same with the fewest bits.
    fn shortest(
        &self,
        full: Place,
        difference: Place,
        data: u64,
        size: u8,
    ) -> (u8, Place, Option<u64>) {
        let history = &self.history;
        let plain = length(data, size);
        let (mut best, mut bytes) = ((2, data), plain);
        for (code, sent) in [(1, Sent::Xor), (3, Sent::Difference)] {
            if let Some(field) = history.compress(data, size, sent)
                && length(field, size) < bytes
            {
                bytes = length(field, size);
                best = (code, field);
            }
        }
        if 8 * plain + full.bits < 8 * bytes + difference.bits {
            return (0, full, Some(data));
        }
        (best.0, difference, Some(best.1))
    }

    /// `diff` and the address of a packet without data.
    #[inline]
    fn address_only(&self, addr: u64, size: u8) -> (u8, Place) {
        let config = &self.config;
        let full = History::full(addr, size, config);
        let difference = match config.full_address {
            true => None,
            false => self.history.difference(addr, size, config),
        };
        match difference {
            Some(place)
                if config.compression != Compression::Dynamic || place.bits <= full.bits =>
            {
                (1, place)
            }
            _ => (0, full),
        }
    }

    /// `diff` and the data of a packet without an address.
    #[inline]
    fn data_only(&self, data: u64, size: u8) -> (u8, u64) {
        self.alone(data, size, self.config.diff_width)
    }

    /// The same where `diff` has this width.
    fn alone(&self, data: u64, size: u8, width: u8) -> (u8, u64) {
        let config = &self.config;
        let code = |two: u8| if width == 1 { 1 } else { two };
        let history = &self.history;
        let field = |sent| history.compress(data, size, sent);
        let chosen = match (config.full_data, config.compression) {
            (true, _) => None,
            (false, Compression::Xor) => field(Sent::Xor).map(|field| (code(1), field)),
            (false, Compression::Differential) => {
                field(Sent::Difference).map(|field| (code(3), field))
            }
            (false, Compression::Dynamic) => {
                let all = [(1, field(Sent::Xor)), (3, field(Sent::Difference))];
                let all = all
                    .into_iter()
                    .filter_map(|(code, field)| Some((code, field?)));
                all.min_by_key(|&(_, field)| significant(field, size))
                    .filter(|&(_, field)| significant(field, size) < significant(data, size))
            }
        };
        chosen.unwrap_or((0, data))
    }

    /// A unified atomic: its data and its operand.
    fn atomic(
        &mut self,
        subtype: u8,
        addr: u64,
        size: u8,
        (data, operand): (u64, u64),
    ) -> DataPacket {
        let (data, operand) = (data & value_mask(size), operand & value_mask(size));
        let config = &self.config;
        let (diff, place, field) = match (config.no_data, config.no_address) {
            (false, false) => self.both(addr, data, size, true),
            (true, _) => {
                let (diff, place) = self.address_only(addr, size);
                match place.aligned {
                    true => (diff, place, None),
                    false => (0, History::full(addr, size, config), None),
                }
            }
            (false, true) => {
                let (diff, field) = self.data_only(data, size);
                (diff, History::full(addr, size, config), Some(field))
            }
        };
        self.history.set_address(addr, size);
        self.history.set_data(data, size);
        DataPacket::Atomic {
            subtype,
            size,
            diff,
            operand: field.map(|_| operand),
            data: field,
            address: (!self.config.no_address).then_some(shifted(place, size)),
        }
    }

    /// A compare-and-swap that failed: the operand is never compressed.
    fn swap_failure(&mut self, addr: u64, size: u8, operand: u64) -> DataPacket {
        let (diff, place) = match self.address_only(addr, size) {
            (diff, place) if place.aligned => (diff, place),
            _ => (0, History::full(addr, size, &self.config)),
        };
        self.history.set_address(addr, size);
        DataPacket::SwapFailure {
            size,
            diff: match self.config.no_data {
                true => diff,
                false => 2 * diff,
            },
            operand: (!self.config.no_data).then_some(operand & value_mask(size)),
            address: shifted(place, size),
        }
    }

    /// An access to a CSR.
    fn csr(&mut self, port: &DataIngress) -> DataPacket {
        let subtype = port.dtype & 3;
        let csr = port.daddr as u16 & 0xfff;
        let size = self.layout.csr_size;
        if self.config.no_data {
            let (address, diff) = self.history.csr_field(csr, &self.config);
            return DataPacket::Csr {
                subtype,
                diff,
                data: None,
                operand: None,
                address,
            };
        }
        let data = port.data as u64 & value_mask(size);
        let operand = (port.data >> (8u32 << size)) as u64 & value_mask(size);
        let (diff, field) = self.data_only(data, size);
        self.history.set_data(data, size);
        DataPacket::Csr {
            subtype,
            diff,
            data: Some(field),
            operand: (csr >> 10 != 3).then_some(operand),
            address: csr,
        }
    }

    /// Remembers a request until its response.
    fn expect(&mut self, port: &DataIngress, atomic: Option<u8>) {
        if let Some(request) = self.requests.get_mut(usize::from(port.lrid)) {
            *request = Some(Request {
                atomic,
                size: port.dsize & 3,
                stored: port.sdata,
            });
        }
    }

    /// The request of a split load, or of a split atomic of this subtype.
    fn request(&mut self, port: &DataIngress, atomic: Option<u8>) -> DataPacket {
        let (addr, size, lrid) = (port.daddr, port.dsize & 3, port.lrid);
        // A store-conditional that failed reads nothing.
        if atomic != Some(FAILURE) {
            self.expect(port, atomic);
        }
        let (diff, place) = self.address_only(addr, size);
        let packet = match atomic {
            None => DataPacket::LoadRequest {
                multiple: false,
                aligned: place.aligned,
                size,
                lrid,
                diff,
                address: place.field,
            },
            Some(subtype) => {
                let full = History::full(addr, size, &self.config);
                let (diff, place) = match place.aligned {
                    true => (diff, place),
                    false => (0, full),
                };
                DataPacket::AtomicRequest {
                    subtype,
                    size,
                    lrid,
                    // A difference, and the operand in full.
                    diff: if self.layout.request_diff_width() == 1 {
                        diff
                    } else {
                        diff * 2
                    },
                    operand: port.sdata & value_mask(size),
                    address: shifted(place, size),
                }
            }
        };
        self.history.set_address(addr, size);
        packet
    }

    /// The response to a split access.
    fn response(&mut self, port: &DataIngress) -> Option<DataPacket> {
        let lrid = port.lid;
        let request = self.requests.get_mut(usize::from(lrid))?.take()?;
        let size = request.size;
        let data = port.ldata & value_mask(size);
        let okay = port.lresp == OKAY;
        if !self.layout.is_split() {
            // The address or the data is left out: one phase is left.
            let wanted = okay && self.layout.no_address;
            return wanted.then(|| match request.atomic {
                None => self.transfer(false, 0, size, data),
                Some(subtype) => self.atomic(subtype, 0, size, (request.stored, data)),
            });
        }
        let (resp, field) = match okay {
            true => {
                let (code, field) = self.answer(data, size);
                self.history.set_data(data, size);
                (code, field)
            }
            false => (0, 0),
        };
        Some(match request.atomic.filter(|_| !self.config.mmacas) {
            None => DataPacket::LoadResponse {
                size,
                lrid,
                resp,
                data: field,
            },
            Some(_) => DataPacket::AtomicResponse {
                lrid,
                resp,
                data: field,
            },
        })
    }

    /// `resp` and the data of a response.
    fn answer(&self, data: u64, size: u8) -> (u8, u64) {
        match self.alone(data, size, 2) {
            (0, field) => (2, field),
            other => other,
        }
    }
}

/// `lresp` of a load that succeeded.
const OKAY: u8 = 2;

/// Subtype of a store-conditional that failed.
pub(super) const FAILURE: u8 = 7;

/// Bits of a value that compression cannot remove.
const fn significant(value: u64, size: u8) -> u32 {
    let unused = 64 - (8u32 << (size & 3));
    let extended = (value << unused) as i64 >> unused;
    65 - (extended ^ extended >> 63).leading_zeros()
}

/// An address of an atomic: always shifted.
const fn shifted(place: Place, size: u8) -> u64 {
    match place.aligned {
        true => place.field,
        false => place.field >> size,
    }
}

/// Subtype of an atomic.
const fn subtype(kind: AccessKind) -> u8 {
    match kind {
        AccessKind::ConditionalStoreFailure => FAILURE,
        kind => kind.code() & 7,
    }
}
