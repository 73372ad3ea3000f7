//! From packets to accesses.

use hartrace_flow::{Access, AccessKind, DataAccess, Part, PlainAccesses};

use super::encode::FAILURE;
use super::history::{History, Sent};
use super::{Batch, DataConfig, DataPacket, Outstanding, Transfers};
use crate::encapsulation::Head;
use crate::{Config, Fault, MAX_PAYLOAD};

/// The data trace of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DataSource {
    history: History,
    pub(crate) outstanding: Outstanding,
    /// Packets are of no use until the next synchronisation.
    pub(crate) lost: bool,
    /// What the history does not know may be known to a decoder that began earlier.
    open: bool,
    /// Such a base was needed.
    lacked: bool,
}

impl DataSource {
    /// Something is missing: nothing can be decoded until the next synchronisation.
    pub(crate) fn lose(&mut self) {
        self.history.clear();
        self.lost = true;
        self.open = false;
    }

    /// The decoder began in the middle of the stream, and is synchronised. An encoder
    /// need not start afresh there, though 7.1.3 has it that way.
    pub(crate) fn leave_open(&mut self) {
        self.open = true;
    }

    /// Whether the history may lack something.
    pub(crate) const fn is_open(&self) -> bool {
        self.open || self.lacked
    }

    /// Takes over what is lacking from a decoder that began earlier; whether it was not
    /// needed.
    pub(crate) fn complete(&mut self, before: &DataSource) -> bool {
        if core::mem::take(&mut self.open) {
            self.history.complete(&before.history);
        }
        !core::mem::take(&mut self.lacked)
    }

    /// A synchronisation: the next access of each size comes in full.
    pub(crate) fn synchronise(&mut self) {
        self.lost = false;
    }

    /// The accesses of loads and stores at the front of the bytes, which are packets that
    /// `head` fits, as far as they are plain: how many, and how many bytes they are.
    /// Without `values` their addresses and data, and those that come later, mean nothing.
    pub(crate) fn transfers(
        &mut self,
        from: (&Head, &[u8]),
        transfers: &Transfers,
        out: &mut Batch,
        values: bool,
    ) -> (usize, usize) {
        transfers.read_all(from, &mut self.history, out, values)
    }

    /// The access of a plain load or store, with a payload of `len` bytes; `None` for any
    /// other packet.
    pub(crate) fn transfer<'b>(
        &mut self,
        (payload, len): (&[u8; MAX_PAYLOAD], usize),
        transfers: &Transfers,
        out: &'b mut Batch,
    ) -> Option<PlainAccesses<'b>> {
        transfers.read_one(payload, len, &mut self.history, out)?;
        Some(out.first(1))
    }

    /// The access that a packet reports, or its part of one.
    pub(crate) fn packet(
        &mut self,
        packet: &DataPacket,
        config: &Config,
        data: &DataConfig,
    ) -> Result<DataAccess, Fault> {
        let access = self.any(packet, config, data);
        self.lacked |= self.open && matches!(access, Err(Fault::NoDataBase));
        access
    }

    fn any(
        &mut self,
        packet: &DataPacket,
        config: &Config,
        data: &DataConfig,
    ) -> Result<DataAccess, Fault> {
        let history = &mut self.history;
        match *packet {
            DataPacket::Transfer {
                store,
                aligned,
                size,
                diff,
                data: value,
                address,
                ..
            } => {
                let fields = (address.map(|field| (field, aligned)), value);
                let (addr, value) = restored(history, fields, size, diff, data)?;
                let kind = match store {
                    false => AccessKind::Load,
                    true => AccessKind::Store,
                };
                Ok(whole(config, kind, size, addr, value, None))
            }
            DataPacket::LoadRequest {
                aligned,
                size,
                lrid,
                diff,
                address,
                ..
            } => {
                let place = (address, aligned, diff == 0);
                let addr = history
                    .address(place, size, data)
                    .ok_or(Fault::NoDataBase)?;
                let access = whole(config, AccessKind::Load, size, Some(addr), None, None);
                Ok(DataAccess {
                    part: Part::Request(lrid),
                    ..access
                })
            }
            DataPacket::LoadResponse {
                size,
                lrid,
                resp,
                data: field,
            } => {
                let value = self.answer((resp, field), size)?;
                // It may answer an atomic, whose operand it is.
                let operand = value.filter(|_| data.mmacas);
                let access = whole(config, AccessKind::Load, size, None, value, operand);
                Ok(DataAccess {
                    part: Part::Response(lrid),
                    ..access
                })
            }
            DataPacket::AtomicResponse {
                lrid,
                resp,
                data: field,
            } => {
                let size = self.outstanding.size(lrid);
                let value = self.answer((resp, field), size)?;
                let access = whole(config, AccessKind::AtomicSwap, size, None, None, value);
                Ok(DataAccess {
                    part: Part::Response(lrid),
                    ..access
                })
            }
            DataPacket::Atomic { .. } | DataPacket::AtomicRequest { .. } => {
                self.outstanding.note(packet);
                self.atomic(packet, config, data)
            }
            DataPacket::SwapFailure {
                size,
                diff,
                operand,
                address,
            } => {
                let place = (address, true, diff == 0);
                let addr = history.address(place, size, data);
                let addr = Some(addr.ok_or(Fault::NoDataBase)?);
                let kind = AccessKind::CompareSwapFailure;
                Ok(whole(config, kind, size, addr, operand, None))
            }
            DataPacket::Csr {
                subtype,
                diff,
                data: value,
                operand,
                address,
            } => {
                let (csr, value) = match value {
                    None => {
                        let csr = history.csr(address, diff).ok_or(Fault::NoDataBase)?;
                        (csr, None)
                    }
                    Some(field) => {
                        let (size, sent) = (csr_size(config), Sent::from_diff(diff, data));
                        let value = history.data(field, size, sent).ok_or(Fault::NoDataBase)?;
                        (address, Some(value))
                    }
                };
                let kind = AccessKind::from_code(4 | subtype).ok_or(Fault::UnknownSubtype)?;
                let size = csr_size(config);
                Ok(whole(config, kind, size, Some(csr.into()), value, operand))
            }
        }
    }

    /// The data of a response; `None` for an error.
    fn answer(&mut self, (resp, field): (u8, u64), size: u8) -> Result<Option<u64>, Fault> {
        if resp == 0 {
            return Ok(None);
        }
        let sent = Sent::from_code(resp);
        let value = self.history.data(field, size, sent);
        Ok(Some(value.ok_or(Fault::NoDataBase)?))
    }

    /// An atomic, or the request of one.
    fn atomic(
        &mut self,
        packet: &DataPacket,
        config: &Config,
        data: &DataConfig,
    ) -> Result<DataAccess, Fault> {
        let history = &mut self.history;
        match *packet {
            DataPacket::Atomic {
                subtype,
                size,
                diff,
                operand,
                data: value,
                address,
            } => {
                let fields = (address.map(|field| (field, true)), value);
                let (addr, value) = restored(history, fields, size, diff, data)?;
                let kind = kind(subtype, data)?;
                let operand = operand.filter(|_| subtype != FAILURE);
                Ok(whole(config, kind, size, addr, value, operand))
            }
            DataPacket::AtomicRequest {
                subtype,
                size,
                lrid,
                diff,
                operand,
                address,
            } => {
                let place = (address, true, diff == 0);
                let addr = history
                    .address(place, size, data)
                    .ok_or(Fault::NoDataBase)?;
                let kind = kind(subtype, data)?;
                let access = whole(config, kind, size, Some(addr), Some(operand), None);
                Ok(DataAccess {
                    part: match subtype {
                        FAILURE => Part::Whole,
                        _ => Part::Request(lrid),
                    },
                    ..access
                })
            }
            _ => Err(Fault::UnknownDataFormat),
        }
    }
}

/// The address and the data of a packet that may have both, from its fields: those of
/// the address are its bits and whether it is aligned.
fn restored(
    history: &mut History,
    (address, value): (Option<(u64, bool)>, Option<u64>),
    size: u8,
    diff: u8,
    data: &DataConfig,
) -> Result<(Option<u64>, Option<u64>), Fault> {
    let sent = match address {
        Some(_) => Sent::from_code(diff),
        None => Sent::from_diff(diff, data),
    };
    let addr = match address {
        Some((field, aligned)) => {
            let place = (field, aligned, diff == 0);
            let addr = history.address(place, size, data);
            Some(addr.ok_or(Fault::NoDataBase)?)
        }
        None => None,
    };
    let value = match value {
        Some(field) => Some(history.data(field, size, sent).ok_or(Fault::NoDataBase)?),
        None => None,
    };
    Ok((addr, value))
}

/// log2 of the bytes of a CSR.
const fn csr_size(config: &Config) -> u8 {
    match config.xlen.bits() {
        32 => 2,
        _ => 3,
    }
}

/// What an atomic does; the draft reserves the last code.
const fn kind(subtype: u8, data: &DataConfig) -> Result<AccessKind, Fault> {
    match AccessKind::from_code(8 | subtype) {
        Some(AccessKind::ConditionalStoreFailure) if !data.failures => Err(Fault::UnknownSubtype),
        Some(kind) => Ok(kind),
        None => Err(Fault::UnknownSubtype),
    }
}

/// An access that is not assigned to an instruction yet.
fn whole(
    config: &Config,
    kind: AccessKind,
    size: u8,
    addr: Option<u64>,
    data: Option<u64>,
    operand: Option<u64>,
) -> DataAccess {
    DataAccess {
        insn: None,
        access: Access {
            kind,
            size,
            addr: config.xlen.wrap(addr.unwrap_or(0)),
            paddr: None,
            data,
            operand,
        },
        has_address: addr.is_some(),
        part: Part::Whole,
    }
}
