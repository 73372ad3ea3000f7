//! Writes packets as fields.

use super::bits::{Writer, mask};
use super::read::map_width;
use super::{BranchMap, Context, Layout, Packet, Report, Support, Trap};
use crate::Shortening;

/// All fields of the packet.
#[inline(always)]
pub(crate) fn write(packet: &Packet, layout: &Layout) -> Writer {
    let mut to = Writer::default();
    match *packet {
        Packet::Branches { map, address } => {
            // The number of branches is 0 where no address follows.
            let count = match address {
                Some(_) => u64::from(map.count & 31),
                None => 0,
            };
            let width = match address {
                Some(_) => map_width(count as u32),
                None => 31,
            };
            let map = u64::from(map.bits) & mask(width);
            to.put(1 | count << 2 | map << 7, 7 + width);
            if let Some(address) = address {
                report(&mut to, &address, layout);
            }
        }
        Packet::Address(address) => {
            to.put(2, 2);
            report(&mut to, &address, layout);
        }
        Packet::JumpTarget {
            index,
            map,
            irreport,
            irdepth,
        } => jump_target(&mut to, (index, map), (irreport, irdepth), layout),
        _ => rare(&mut to, packet, layout),
    }
    to
}

/// The formats that are not most of a trace.
fn rare(to: &mut Writer, packet: &Packet, layout: &Layout) {
    match *packet {
        Packet::Branches { .. } | Packet::Address(_) | Packet::JumpTarget { .. } => {}
        Packet::BranchCount {
            branch_count,
            address,
        } => {
            to.put(0, 2 + u32::from(layout.f0s_width));
            to.put(branch_count.into(), 32);
            match address {
                None => to.put(0, 2),
                Some((failed, address)) => {
                    to.put(2 | u64::from(failed), 2);
                    report(to, &address, layout);
                }
            }
        }
        Packet::Start(start) => {
            to.put(3 | u64::from(start.branch) << 4, 5);
            owner(to, start.privilege, start.time, start.context, layout);
            put_address(to, start.address, layout);
        }
        Packet::Trap(trap) => write_trap(to, &trap, layout),
        Packet::Context(Context {
            privilege,
            time,
            context,
        }) => {
            to.put(3 | 2 << 2, 4);
            owner(to, privilege, time, context, layout);
        }
        Packet::Support(support) => write_support(to, &support, layout),
    }
}

/// Format 0 subformat 1.
fn jump_target(
    to: &mut Writer,
    (index, map): (u16, BranchMap),
    (irreport, irdepth): (bool, u16),
    layout: &Layout,
) {
    let Short { bits, width } = short_index(index, map, layout);
    to.put(bits, width);
    to.put(u64::from(map.last() != irreport), 1);
    to.put(irdepth.into(), layout.irdepth_width.into());
}

/// A packet of which all further bits repeat the last one here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    bits: u64,
    /// How many of them, at least 1.
    width: u32,
}

impl Short {
    /// The payload, and how many bytes of it must be sent.
    #[inline]
    pub(crate) const fn compressed(self) -> ([u8; 8], u32) {
        let unused = 64 - self.width;
        let extended = (self.bits << unused) as i64 >> unused;
        // One bit of those that are all the same must stay.
        let needed = 65 - (extended ^ extended >> 63).leading_zeros();
        (extended.to_le_bytes(), needed.div_ceil(8))
    }

    /// The shorter of two, or the first.
    #[inline]
    pub(crate) const fn or(self, other: Short) -> Short {
        match self.compressed().1 <= other.compressed().1 {
            true => self,
            false => other,
        }
    }
}

/// A full branch map without an address.
#[inline]
pub(crate) const fn short_map(map: BranchMap) -> Short {
    Short {
        bits: 1 | (map.bits as u64 & mask(31)) << 7,
        width: 7 + 31,
    }
}

/// A report by its address that says nothing else, if it is short.
#[inline]
pub(crate) fn short_report(map: BranchMap, report: &Report, layout: &Layout) -> Option<Short> {
    let (head, width) = match map.count & 31 {
        0 => (2, 2),
        count => {
            let outcomes = u64::from(map.bits) & mask(map.width());
            (1 | u64::from(count) << 2 | outcomes << 7, 7 + map.width())
        }
    };
    let address = report.significant(layout);
    let all = width + address;
    (all <= 64 && layout.is_plain()).then(|| Short {
        bits: head | (report.address & mask(address)) << width,
        width: all,
    })
}

/// A report by its address.
pub(crate) fn by_address(map: BranchMap, report: Report, layout: &Layout) -> Writer {
    let address = Some(report);
    match map.count {
        0 => write(&Packet::Address(report), layout),
        _ => write(&Packet::Branches { map, address }, layout),
    }
}

/// [`short_difference`] of any length.
#[cold]
pub(crate) fn plain_fields(map: BranchMap, difference: u64, layout: &Layout) -> Writer {
    let address = difference >> (layout.iaddress_lsb & 63);
    let mut report = Report {
        address: address & mask(layout.address_width().into()),
        ..Report::default()
    };
    report.irdepth = report.idle_irdepth(layout);
    by_address(map, report, layout)
}

/// The payload of a report of this difference of addresses that says nothing else, and how
/// many bytes of it must be sent. `None` if those are more than eight. Where packets are
/// [plain](Layout::is_plain), and an `irdepth` that says nothing is compressed away.
///
/// Whether there are branches depends on the program, and processors predict it badly:
/// there is no branch for it.
#[inline(always)]
pub(crate) const fn short_difference(
    map: BranchMap,
    difference: u64,
    layout: &Layout,
) -> Option<(u64, u32)> {
    let unused = 64u32.wrapping_sub(layout.iaddress_width as u32);
    let below = unused + layout.iaddress_lsb as u32;
    let address = (difference << (unused & 63)) as i64 >> (below & 63);
    let head = match map.count {
        0 => 2,
        count => 1 | (count as u64) << 2 | (map.bits as u64) << 7,
    };
    // Masked to the size of the array.
    #[allow(clippy::indexing_slicing)]
    let width = HEADS[(map.count & 31) as usize] as u32;
    let payload = (address << width) as u64 | head;
    if payload as i64 >> width != address {
        return None;
    }
    // One bit of those that are all the same must stay.
    let needed = 65 - (payload as i64 ^ payload as i64 >> 63).leading_zeros();
    Some((payload, needed.div_ceil(8)))
}

/// Bits before the address in format 2 and, with so many branches, in format 1.
#[allow(clippy::indexing_slicing)] // When it is compiled.
const HEADS: [u8; 32] = {
    let mut heads = [2; 32];
    let mut count = 1;
    while count < 32 {
        heads[count] = 7 + map_width(count as u32) as u8;
        count += 1;
    }
    heads
};

/// Format 0 subformat 1 up to its last outcome. While it says nothing about returns, all
/// bits after that repeat it.
#[inline]
pub(crate) fn short_index(index: u16, map: BranchMap, layout: &Layout) -> Short {
    let f0s_width = u32::from(layout.f0s_width.min(2));
    let index_width = u32::from(layout.cache_size.min(16));
    let index = u64::from(index) & mask(index_width);
    let head = mask(f0s_width) & 1 | index << f0s_width;
    let at = 2 + f0s_width + index_width;
    let (count, width) = (u32::from(map.count & 31), map.width());
    // Nothing but irdepth follows, so the bits that mean nothing repeat the
    // outcome before them: they are compressed away with it.
    let above = match map.last() {
        true => !mask(count),
        false => 0,
    };
    let outcomes = (u64::from(map.bits) & mask(count) | above) & mask(width);
    let branches = u64::from(count) | outcomes << 5;
    Short {
        bits: head << 2 | branches << at,
        width: at + 5 + width,
    }
}

/// An address that nothing has to be put together with.
fn put_address(to: &mut Writer, address: u64, layout: &Layout) {
    let width = u32::from(layout.address_width());
    match layout.shortening {
        Shortening::Packet => to.put(address, width),
        Shortening::Address => {
            let unused = 64 - width;
            let extended = (address << unused) as i64 >> unused;
            // With one bit for the sign.
            let needed = 65 - (extended ^ extended >> 63).leading_zeros();
            let all = extended as i128 as u128;
            let bits = needed.div_ceil(8) * 8 + 1;
            to.wide(all & ((1 << bits) - 1), bits);
        }
    }
}

/// [`report`] where only the address is shortened.
#[cold]
fn report_whole(to: &mut Writer, report: &Report, layout: &Layout) {
    put_address(to, report.address, layout);
    for sent in report.sent(layout) {
        to.put(sent.into(), 1);
    }
    to.put(report.irdepth.into(), layout.irdepth_width.into());
}

#[inline]
fn report(to: &mut Writer, report: &Report, layout: &Layout) {
    if layout.shortening == Shortening::Address {
        return report_whole(to, report, layout);
    }
    let width = u32::from(layout.address_width());
    let address = report.address & mask(width);
    let [notify, updiscon, irreport] = report.sent(layout);
    let irdepth_width = u32::from(layout.irdepth_width);
    let irdepth = u64::from(report.irdepth) & mask(irdepth_width);
    let bits =
        u64::from(notify) | u64::from(updiscon) << 1 | u64::from(irreport) << 2 | irdepth << 3;
    let all = u128::from(address) | u128::from(bits) << width.min(64);
    to.wide(all, width + 3 + irdepth_width);
}

fn owner(to: &mut Writer, privilege: u8, time: u64, context: u64, layout: &Layout) {
    to.put(privilege.into(), layout.privilege_width.into());
    to.put(time, layout.time_width().into());
    to.put(context, layout.context_width.into());
}

fn write_trap(to: &mut Writer, trap: &Trap, layout: &Layout) {
    let draft = layout.version.is_draft();
    to.put(3 | 1 << 2 | u64::from(trap.branch) << 4, 5);
    owner(to, trap.privilege, trap.time, trap.context, layout);
    to.put(trap.ecause.into(), layout.ecause_width.into());
    to.put(trap.interrupt.into(), 1);
    if !draft {
        to.put(trap.thaddr.into(), 1);
    }
    if !(layout.implicit_exception && (draft || trap.thaddr)) {
        let address = trap.address.unwrap_or_default();
        put_address(to, address, layout);
    }
    if layout.has_tval(trap.interrupt) {
        to.put(trap.tval.unwrap_or_default(), layout.iaddress_width.into());
    }
}

fn write_support(to: &mut Writer, support: &Support, layout: &Layout) {
    to.put(15 | u64::from(support.ienable) << 4, 5);
    to.put(
        support.encoder_mode.into(),
        layout.encoder_mode_width.into(),
    );
    to.put(support.qual_status as u64, 2);
    to.put(support.ioptions.into(), layout.ioptions_width.into());
    if let Some(width) = layout.doptions_width {
        let data = support.data.unwrap_or_default();
        to.put(data.denable.into(), 1);
        to.put(data.dloss.into(), 1);
        to.put(data.doptions.into(), width.into());
    }
}
