//! The fast path for short packets: all bits in one register.
//!
//! Nearly all packets of a trace have format 1 or 2 and at most eight bytes.
//! Their fields are extracted with a few shifts, and sign-extending shifts
//! restore the bits that compression removed. Everything else takes the general
//! path.

use super::bits::mask;
use super::read::map_width;
use super::{BranchMap, Layout, Packet, Report};

/// What most packets of format 1 and 2 come to: outcomes, an address, and none
/// of the marks after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    pub(crate) map: BranchMap,
    /// The field, extended by its sign.
    pub(crate) address: Option<u64>,
}

/// As [`read`], for plain packets only.
#[inline(always)]
pub(crate) fn plain(bits: i64, layout: &Layout) -> Option<Plain> {
    let (map, field) = match bits & 3 {
        1 => {
            let count = (bits >> 2 & 31) as u32;
            let valid = ((1u64 << count) - 1) as u32;
            let map = BranchMap {
                bits: (bits >> 7) as u32 & valid,
                count: count as u8,
            };
            if count == 0 {
                let map = BranchMap {
                    bits: (bits >> 7) as u32 & 0x7fff_ffff,
                    count: 31,
                };
                let plain = is_sign(bits >> 37);
                return plain.then_some(Plain { map, address: None });
            }
            (map, bits >> (7 + map_width(count)))
        }
        2 => (BranchMap::default(), bits >> 2),
        _ => return None,
    };
    let width = u32::from(layout.address_width());
    let plain = is_sign(field >> (width.wrapping_sub(1) & 63));
    plain.then_some(Plain {
        map,
        address: Some(field as u64),
    })
}

/// A packet of format 0, in the same way: a count of branches without an address, or an
/// index of the jump target cache without a report of returns. `None` for any other.
#[inline]
pub(crate) fn format_0(bits: i64, layout: &Layout) -> Option<Packet> {
    if bits & 3 != 0 {
        return None;
    }
    let subformat = match layout.f0s_width {
        0 => u64::from(layout.bpred_size == 0),
        width => bits as u64 >> 2 & mask(width.into()),
    };
    let bits = bits >> (2 + layout.f0s_width);
    match subformat {
        0 if layout.bpred_size > 0 => branch_count(bits),
        1 if layout.cache_size > 0 => jump_target(bits, layout),
        _ => None,
    }
}

/// `branch_fmt` = 00.
#[inline(always)]
fn branch_count(bits: i64) -> Option<Packet> {
    let branch_count = u32::try_from(bits).ok()?;
    Some(Packet::BranchCount {
        branch_count,
        address: None,
    })
}

#[inline(always)]
fn jump_target(bits: i64, layout: &Layout) -> Option<Packet> {
    let index = (bits as u64 & mask(layout.cache_size.into())) as u16;
    let bits = bits >> layout.cache_size;
    let count = (bits & 31) as u32;
    let width = if count == 0 { 0 } else { map_width(count) };
    let map = BranchMap {
        bits: ((bits >> 5) as u64 & mask(count)) as u32,
        count: count as u8,
    };
    // From the last bit of the map, or of the count, on all bits must be the same.
    let plain = is_sign(bits >> (4 + width));
    let irdepth = match bits < 0 {
        true => mask(layout.irdepth_width.into()) as u16,
        false => 0,
    };
    plain.then_some(Packet::JumpTarget {
        index,
        map,
        irreport: false,
        irdepth,
    })
}

/// A packet of format 1 or 2 whose payload is one word, its last bit repeated. `None`
/// for any other, and for one that has something wrong.
#[inline(always)]
pub(crate) fn read(bits: i64, layout: &Layout) -> Option<Packet> {
    match bits & 3 {
        1 => {
            let count = (bits >> 2 & 31) as u32;
            if count == 0 {
                return full_map(bits);
            }
            let map = BranchMap {
                bits: ((bits >> 7) as u64 & mask(count)) as u32,
                count: count as u8,
            };
            let address = Some(report(bits >> (7 + map_width(count)), layout)?);
            Some(Packet::Branches { map, address })
        }
        2 => Some(Packet::Address(report(bits >> 2, layout)?)),
        _ => None,
    }
}

/// 31 branches and no address.
#[inline(always)]
fn full_map(bits: i64) -> Option<Packet> {
    let map = BranchMap {
        bits: (bits >> 7) as u32 & 0x7fff_ffff,
        count: 31,
    };
    let plain = is_sign(bits >> 37);
    plain.then_some(Packet::Branches { map, address: None })
}

/// The address and what follows it.
#[inline(always)]
fn report(bits: i64, layout: &Layout) -> Option<Report> {
    let width = u32::from(layout.address_width());
    let irdepth_width = u32::from(layout.irdepth_width).min(59);
    // From the last bit of the address on; a shift by 63 leaves the sign.
    let tail = bits >> width.checked_sub(1)?.min(63);
    if !is_sign(tail >> (3 + irdepth_width)) {
        return None;
    }
    let differ = tail ^ tail >> 1;
    Some(Report {
        address: bits as u64 & mask(width),
        notify: differ & 1 != 0,
        updiscon: differ & 2 != 0,
        irreport: differ & 4 != 0,
        irdepth: ((tail >> 4) as u64 & mask(irdepth_width)) as u16,
    })
}

/// Whether all bits are the same.
#[inline(always)]
const fn is_sign(bits: i64) -> bool {
    bits == 0 || bits == -1
}
