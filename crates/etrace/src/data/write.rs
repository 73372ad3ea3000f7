//! Writes data packets as fields.

use super::read::value_mask;
use super::{DataLayout, DataPacket, Outstanding};
use crate::packet::bits::{Writer, mask};

/// All fields of the packet.
#[inline]
pub(super) fn write(packet: &DataPacket, layout: &DataLayout, outstanding: &Outstanding) -> Writer {
    let mut to = Writer::default();
    match *packet {
        DataPacket::Transfer {
            size,
            diff,
            data: Some(data),
            address: Some(address),
            ..
        } if !(layout.no_data || layout.no_address || layout.mmacas) => {
            // Nearly all packets are of this kind.
            let mut head = u64::from(packet.format());
            let mut width = u32::from(layout.format_width);
            head |= (u64::from(size) | u64::from(diff & 3) << layout.size_width) << width;
            width += u32::from(layout.size_width) + 2;
            let bytes = length(data, size);
            head |= u64::from(bytes - 1) << width;
            width += u32::from(size);
            let value = u128::from(data & mask(8 * bytes));
            to.wide(u128::from(head) | value << width, width + 8 * bytes);
            to.put(address, layout.daddress_width.into());
        }
        _ => any(&mut to, packet, layout, outstanding),
    }
    to
}

/// Bytes of a value, the others of which repeat its sign.
#[inline]
pub(super) const fn length(value: u64, size: u8) -> u32 {
    let size = size & 3;
    let unused = 64 - (8 << size);
    let extended = (value << unused) as i64 >> unused;
    let flipped = extended ^ extended >> 63;
    // One bit of those that are all the same must stay.
    let bits = 65 - flipped.leading_zeros();
    bits.div_ceil(8)
}

/// The length of a value and its bytes.
fn counted(to: &mut Writer, value: u64, size: u8) {
    let bytes = length(value, size);
    to.put(u64::from(bytes - 1), size.into());
    to.put(value, 8 * bytes);
}

/// The last field of a packet without an address: extended by its sign.
fn last_data(to: &mut Writer, value: u64, size: u8, layout: &DataLayout) {
    let unused = 64 - (8u32 << (size & 3));
    let extended = (value << unused) as i64 >> unused;
    to.put(extended as u64, layout.data_width.into());
}

fn any(to: &mut Writer, packet: &DataPacket, layout: &DataLayout, outstanding: &Outstanding) {
    let id = u32::from(layout.lrid_width);
    let address_width = u32::from(layout.daddress_width);
    let varies = u32::from(layout.diff_width);
    head(to, packet, layout);
    match *packet {
        DataPacket::Transfer {
            size,
            diff,
            data,
            address,
            ..
        } => {
            to.put(size.into(), layout.size_width.into());
            match (layout.no_data, layout.no_address) {
                (true, _) => {
                    to.put(diff.into(), 1);
                    to.put(address.unwrap_or(0), address_width);
                }
                (false, true) => {
                    to.put(diff.into(), varies);
                    last_data(to, data.unwrap_or(0), size, layout);
                }
                (false, false) => {
                    to.put(diff.into(), 2);
                    counted(to, data.unwrap_or(0), size);
                    to.put(address.unwrap_or(0), address_width);
                }
            }
        }
        DataPacket::LoadRequest {
            size,
            lrid,
            diff,
            address,
            ..
        } => {
            to.put(size.into(), layout.size_width.into());
            to.put(lrid.into(), id);
            to.put(diff.into(), 1);
            to.put(address, address_width);
        }
        DataPacket::LoadResponse {
            size,
            lrid,
            resp,
            data,
        } => {
            to.put(size.into(), layout.size_width.into());
            to.put(lrid.into(), id);
            to.put(resp.into(), 2);
            if resp != 0 {
                last_data(to, data, size, layout);
            }
        }
        DataPacket::Atomic { .. } | DataPacket::AtomicRequest { .. } => atomic(to, packet, layout),
        DataPacket::SwapFailure {
            size,
            diff,
            operand,
            address,
        } => {
            to.put(size.into(), layout.size_width.into());
            to.put(diff.into(), if layout.no_data { 1 } else { 2 });
            if !layout.no_data {
                counted(to, operand.unwrap_or(0), size);
            }
            to.put(address, address_width);
        }
        DataPacket::AtomicResponse { lrid, resp, data } => {
            to.put(lrid.into(), id);
            to.put(resp.into(), 2);
            if resp != 0 {
                let size = outstanding.size(lrid);
                counted(to, data & value_mask(size), size);
            }
        }
        DataPacket::Csr { .. } => csr(to, packet, layout),
    }
}

/// `format`, and `subformat` or `subtype` after it.
fn head(to: &mut Writer, packet: &DataPacket, layout: &DataLayout) {
    if layout.mmacas {
        let (class, subformat) = packet.class();
        to.put(class.into(), layout.format_width.into());
        match class {
            0 | 1 => to.put(subformat.into(), 2),
            2 => to.put(subformat.into(), 4),
            _ => {}
        }
        return;
    }
    to.put(packet.format().into(), layout.format_width.into());
    match *packet {
        DataPacket::Atomic { subtype, .. } | DataPacket::AtomicRequest { subtype, .. } => {
            to.put(subtype.into(), 3);
        }
        DataPacket::Csr { subtype, .. } if layout.no_data => {
            to.put(subtype.into(), layout.csr_subtype_width.into());
        }
        DataPacket::Csr { subtype, .. } => to.put(subtype.into(), 2),
        _ => {}
    }
}

/// What follows the subtype of an atomic or the request of one.
fn atomic(to: &mut Writer, packet: &DataPacket, layout: &DataLayout) {
    let (DataPacket::Atomic { size, .. } | DataPacket::AtomicRequest { size, .. }) = *packet else {
        return;
    };
    let address_width = u32::from(layout.daddress_width);
    match layout.version.is_draft() {
        true => to.put(u64::from(size.saturating_sub(2)), 1),
        false => to.put(size.into(), layout.size_width.into()),
    }
    match *packet {
        DataPacket::AtomicRequest {
            lrid,
            diff,
            operand,
            address,
            ..
        } => {
            to.put(lrid.into(), layout.lrid_width.into());
            to.put(diff.into(), layout.request_diff_width().into());
            counted(to, operand, size);
            to.put(address, address_width);
        }
        DataPacket::Atomic {
            diff,
            operand,
            data,
            address,
            ..
        } => match (layout.no_data, layout.no_address) {
            (true, _) => {
                to.put(diff.into(), 1);
                to.put(address.unwrap_or(0), address_width);
            }
            (false, true) => {
                to.put(diff.into(), layout.diff_width.into());
                counted(to, operand.unwrap_or(0), size);
                last_data(to, data.unwrap_or(0), size, layout);
            }
            (false, false) => {
                to.put(diff.into(), 2);
                counted(to, operand.unwrap_or(0), size);
                counted(to, data.unwrap_or(0), size);
                to.put(address.unwrap_or(0), address_width);
            }
        },
        _ => {}
    }
}

fn csr(to: &mut Writer, packet: &DataPacket, layout: &DataLayout) {
    let DataPacket::Csr {
        diff,
        data,
        operand,
        address,
        ..
    } = *packet
    else {
        return;
    };
    let high = u64::from(address >> 6 & 63);
    let low = u64::from(address & 63);
    if layout.no_data {
        to.put(diff.into(), layout.csr_diff_width.into());
        to.put(high, 6);
    } else {
        to.put(diff.into(), layout.diff_width.into());
        counted(to, data.unwrap_or(0), layout.csr_size);
        to.put(high, 6);
        if high >> 4 != 3 {
            counted(to, operand.unwrap_or(0), layout.csr_size);
        }
    }
    to.put(low, 6);
}
