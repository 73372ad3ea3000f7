//! Reads data packets from their fields.

use super::{DataLayout, DataPacket, Outstanding};
use crate::Fault;
use crate::packet::bits::{Source, mask};

/// The packet that these fields make.
pub(super) fn read(
    from: &mut impl Source,
    layout: &DataLayout,
    outstanding: &Outstanding,
) -> Result<DataPacket, Fault> {
    let format = from.field("format", layout.format_width.into());
    if layout.mmacas {
        return class(from, layout, format);
    }
    match format {
        0 | 1 if layout.is_split() => load_request(from, layout, format == 0, false),
        0..=3 => transfer(from, layout, format, false),
        4 if layout.is_split() => load_response(from, layout),
        5 => csr(from, layout, None),
        6 => {
            let subtype = from.field("subtype", 3) as u8;
            match layout.is_split() {
                true => atomic_request(from, layout, subtype),
                false => atomic(from, layout, subtype),
            }
        }
        7 if layout.is_split() => Ok(atomic_response(from, layout, outstanding)),
        _ => Err(Fault::UnknownDataFormat),
    }
}

/// The packet of a class, with [`DataLayout::mmacas`].
fn class(from: &mut impl Source, layout: &DataLayout, class: u64) -> Result<DataPacket, Fault> {
    match class {
        0 | 1 => {
            let (format, multiple) = (from.field("subformat", 2), class == 1);
            match format {
                0 | 1 if layout.is_split() => load_request(from, layout, format == 0, multiple),
                _ => transfer(from, layout, format, multiple),
            }
        }
        2 => match from.field("subformat", 4) as u8 {
            0..=3 => Err(Fault::UnknownSubtype),
            subformat @ 4..=6 => csr(from, layout, Some(subformat & 3)),
            7 => swap_failure(from, layout),
            subformat if layout.is_split() => atomic_request(from, layout, subformat & 7),
            subformat => atomic(from, layout, subformat & 7),
        },
        _ if layout.is_split() => load_response(from, layout),
        _ => Err(Fault::UnknownDataFormat),
    }
}

/// `size`: at most eight bytes, and no more than `data_width`.
fn size(from: &mut impl Source, layout: &DataLayout) -> Result<u8, Fault> {
    let size = from.field("size", layout.size_width.into()) as u8;
    match 8u32.checked_shl(size.into()) {
        Some(bits) if bits <= layout.data_width.into() => Ok(size),
        _ => Err(Fault::UnknownDataSize),
    }
}

/// The same of an atomic: the draft has one bit for it.
fn atomic_size(from: &mut impl Source, layout: &DataLayout) -> Result<u8, Fault> {
    if layout.version.is_draft() {
        let size = from.field("size", 1) as u8 + 2;
        return match 8 << size <= layout.data_width {
            true => Ok(size),
            false => Err(Fault::UnknownDataSize),
        };
    }
    size(from, layout)
}

/// A length in as many bits as a value has log2 of bytes, and so many bytes; extended
/// by their sign and cut to the size of a value.
fn counted(from: &mut impl Source, [len, name]: [&'static str; 2], size: u8) -> u64 {
    let bytes = from.field(len, size.into()) as u32 + 1;
    let value = from.field(name, 8 * bytes);
    let unused = 64 - 8 * bytes.min(8);
    ((value << unused) as i64 >> unused) as u64 & value_mask(size)
}

/// The bits of a value.
pub(super) const fn value_mask(size: u8) -> u64 {
    mask(8 << (size & 3))
}

/// The last field of a packet without an address.
fn last_data(from: &mut impl Source, layout: &DataLayout, size: u8) -> u64 {
    from.field("data", layout.data_width.into()) & value_mask(size)
}

fn address(from: &mut impl Source, layout: &DataLayout) -> u64 {
    from.field("address", layout.daddress_width.into())
}

/// `diff` of packets without an address: 10 is reserved.
fn data_diff(from: &mut impl Source, layout: &DataLayout) -> Result<u8, Fault> {
    match from.field("diff", layout.diff_width.into()) {
        2 => Err(Fault::UnknownDiff),
        diff => Ok(diff as u8),
    }
}

fn transfer(
    from: &mut impl Source,
    layout: &DataLayout,
    format: u64,
    multiple: bool,
) -> Result<DataPacket, Fault> {
    let size = size(from, layout)?;
    let (diff, data, addr) = match (layout.no_data, layout.no_address) {
        (true, _) => {
            let diff = from.field("diff", 1) as u8;
            (diff, None, Some(address(from, layout)))
        }
        (false, true) => {
            let diff = data_diff(from, layout)?;
            (diff, Some(last_data(from, layout, size)), None)
        }
        (false, false) => {
            let diff = from.field("diff", 2) as u8;
            let data = counted(from, ["data_len", "data"], size);
            (diff, Some(data), Some(address(from, layout)))
        }
    };
    Ok(DataPacket::Transfer {
        multiple,
        store: format & 2 != 0,
        aligned: format & 1 == 0,
        size,
        diff,
        data,
        address: addr,
    })
}

fn load_request(
    from: &mut impl Source,
    layout: &DataLayout,
    aligned: bool,
    multiple: bool,
) -> Result<DataPacket, Fault> {
    Ok(DataPacket::LoadRequest {
        multiple,
        aligned,
        size: size(from, layout)?,
        lrid: from.field(layout.id(), layout.lrid_width.into()) as u16,
        diff: from.field("diff", 1) as u8,
        address: address(from, layout),
    })
}

fn load_response(from: &mut impl Source, layout: &DataLayout) -> Result<DataPacket, Fault> {
    let size = size(from, layout)?;
    let lrid = from.field(layout.id(), layout.lrid_width.into()) as u16;
    let resp = from.field("resp", 2) as u8;
    let data = match resp {
        0 => 0,
        _ => last_data(from, layout, size),
    };
    Ok(DataPacket::LoadResponse {
        size,
        lrid,
        resp,
        data,
    })
}

/// A compare-and-swap that failed. It has no packet without an address.
fn swap_failure(from: &mut impl Source, layout: &DataLayout) -> Result<DataPacket, Fault> {
    if layout.no_address {
        return Err(Fault::UnknownSubtype);
    }
    let size = size(from, layout)?;
    let (diff, operand) = match layout.no_data {
        true => (from.field("diff", 1), None),
        false => {
            let diff = from.field("diff", 2);
            (diff, Some(counted(from, ["op_len", "operand"], size)))
        }
    };
    Ok(DataPacket::SwapFailure {
        size,
        diff: diff as u8,
        operand,
        address: address(from, layout),
    })
}

fn atomic(from: &mut impl Source, layout: &DataLayout, subtype: u8) -> Result<DataPacket, Fault> {
    let size = atomic_size(from, layout)?;
    let (diff, operand, data, addr) = match (layout.no_data, layout.no_address) {
        (true, _) => {
            let diff = from.field("diff", 1) as u8;
            (diff, None, None, Some(address(from, layout)))
        }
        (false, true) => {
            let diff = data_diff(from, layout)?;
            let operand = counted(from, ["op_len", "operand"], size);
            let data = last_data(from, layout, size);
            (diff, Some(operand), Some(data), None)
        }
        (false, false) => {
            let diff = from.field("diff", 2) as u8;
            let operand = counted(from, ["op_len", "operand"], size);
            let data = counted(from, ["data_len", "data"], size);
            let address = address(from, layout);
            (diff, Some(operand), Some(data), Some(address))
        }
    };
    Ok(DataPacket::Atomic {
        subtype,
        size,
        diff,
        operand,
        data,
        address: addr,
    })
}

fn atomic_request(
    from: &mut impl Source,
    layout: &DataLayout,
    subtype: u8,
) -> Result<DataPacket, Fault> {
    let size = atomic_size(from, layout)?;
    Ok(DataPacket::AtomicRequest {
        subtype,
        size,
        lrid: from.field(layout.id(), layout.lrid_width.into()) as u16,
        diff: from.field("diff", layout.request_diff_width().into()) as u8,
        operand: counted(from, ["op_len", "operand"], size),
        address: address(from, layout),
    })
}

fn atomic_response(
    from: &mut impl Source,
    layout: &DataLayout,
    outstanding: &Outstanding,
) -> DataPacket {
    let lrid = from.field(layout.id(), layout.lrid_width.into()) as u16;
    let resp = from.field("resp", 2) as u8;
    let data = match resp {
        0 => 0,
        _ => counted(from, ["data_len", "data"], outstanding.size(lrid)),
    };
    DataPacket::AtomicResponse { lrid, resp, data }
}

/// An access to a CSR; its subtype if that has been read.
fn csr(
    from: &mut impl Source,
    layout: &DataLayout,
    subtype: Option<u8>,
) -> Result<DataPacket, Fault> {
    let width = match layout.no_data {
        true => layout.csr_subtype_width,
        false => 2,
    };
    let subtype = match subtype {
        Some(subtype) => subtype,
        None => from.field("subtype", width.into()) as u8,
    };
    if layout.no_data {
        let diff = from.field("diff", layout.csr_diff_width.into()) as u8;
        let high = from.field("addr_msbs", 6);
        let low = from.field("addr_lsbs", 6);
        return checked_csr(DataPacket::Csr {
            subtype,
            diff,
            data: None,
            operand: None,
            address: (high << 6 | low) as u16,
        });
    }
    let diff = data_diff(from, layout)?;
    let data = counted(from, ["data_len", "data"], layout.csr_size);
    let high = from.field("addr_msbs", 6);
    let operand = match high >> 4 {
        3 => None,
        _ => Some(counted(from, ["op_len", "operand"], layout.csr_size)),
    };
    let low = from.field("addr_lsbs", 6);
    checked_csr(DataPacket::Csr {
        subtype,
        diff,
        data: Some(data),
        operand,
        address: (high << 6 | low) as u16,
    })
}

/// Of the subtypes of CSR packets 11 is reserved.
fn checked_csr(packet: DataPacket) -> Result<DataPacket, Fault> {
    match packet {
        DataPacket::Csr { subtype: 3.., .. } => Err(Fault::UnknownSubtype),
        packet => Ok(packet),
    }
}
