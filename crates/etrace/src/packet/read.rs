//! Reads packets from their fields.

use super::bits::{Source, bit, mask};
use super::{
    BranchMap, Context, DataSupport, Layout, Packet, QualStatus, Report, Start, Support, Trap,
};
use crate::config::SupportParameters;
use crate::{Fault, Shortening, Version};

/// The packet that these fields make.
#[inline]
pub(crate) fn read(from: &mut impl Source, layout: &Layout) -> Result<Packet, Fault> {
    match from.field("format", 2) {
        0 => format0(from, layout),
        1 => Ok(format1(from, layout)),
        2 => Ok(Packet::Address(report(from, layout))),
        _ => Ok(format3(from, layout)),
    }
}

/// How wide the map of so many branches is (tables 6.6 and 6.10).
#[inline]
pub(crate) const fn map_width(branches: u32) -> u32 {
    // 1, 3, 7, 15 or 31: as many ones as the number has bits.
    (1 << (32 - branches.leading_zeros())) - 1
}

fn format0(from: &mut impl Source, layout: &Layout) -> Result<Packet, Fault> {
    let subformat = match layout.f0s_width {
        0 => u64::from(layout.bpred_size == 0),
        width => from.field("subformat", width.into()),
    };
    match subformat {
        0 if layout.bpred_size > 0 => branch_count(from, layout),
        1 if layout.cache_size > 0 => Ok(jump_target(from, layout)),
        _ => Err(Fault::UnknownSubformat),
    }
}

fn branch_count(from: &mut impl Source, layout: &Layout) -> Result<Packet, Fault> {
    let branch_count = from.field("branch_count", 32) as u32;
    let address = match from.field("branch_fmt", 2) {
        0 => None,
        1 => return Err(Fault::UnknownBranchFmt),
        fmt => Some((fmt == 3, report(from, layout))),
    };
    Ok(Packet::BranchCount {
        branch_count,
        address,
    })
}

fn jump_target(from: &mut impl Source, layout: &Layout) -> Packet {
    let index = from.field("index", layout.cache_size.into()) as u16;
    let count = from.field("branches", 5) as u32;
    let mut last = bit(count.into(), 4);
    let mut map = BranchMap::default();
    if count > 0 {
        let width = map_width(count);
        let bits = from.field("branch_map", width);
        last = bit(bits, width - 1);
        map = branch_map(bits, count);
    }
    let irreport = from.field("irreport", 1) != 0;
    Packet::JumpTarget {
        index,
        map,
        irreport: irreport != last,
        irdepth: irdepth(from, layout),
    }
}

/// `irdepth`, or `irets` in its place.
fn irdepth(from: &mut impl Source, layout: &Layout) -> u16 {
    let name = if layout.iret_ext { "irets" } else { "irdepth" };
    from.field(name, layout.irdepth_width.into()) as u16
}

fn format1(from: &mut impl Source, layout: &Layout) -> Packet {
    match from.field("branches", 5) as u32 {
        0 => Packet::Branches {
            map: branch_map(from.field("branch_map", 31), 31),
            address: None,
        },
        count => Packet::Branches {
            map: branch_map(from.field("branch_map", map_width(count)), count),
            address: Some(report(from, layout)),
        },
    }
}

/// Bits above the number of branches mean nothing.
fn branch_map(bits: u64, count: u32) -> BranchMap {
    BranchMap {
        bits: (bits & mask(count)) as u32,
        count: count as u8,
    }
}

/// An address, with so many bits after it in the packet.
#[inline]
fn address(from: &mut impl Source, after: u32, layout: &Layout) -> u64 {
    let width = u32::from(layout.address_width());
    if layout.shortening == Shortening::Packet {
        return from.field("address", width);
    }
    // As many whole bytes as there are, and one bit.
    let sent = match from.left().saturating_sub(after) {
        0..9 => 0,
        left => ((left - 1) / 8 * 8 + 1).min(65),
    };
    let field = from.field("address", sent);
    let unused = 64 - sent.min(64);
    let extended = match sent {
        0 => 0,
        _ => (field << unused) as i64 >> unused,
    };
    extended as u64 & mask(width)
}

fn report(from: &mut impl Source, layout: &Layout) -> Report {
    let address = address(from, 3 + u32::from(layout.irdepth_width), layout);
    let sent = ["notify", "updiscon", "irreport"].map(|name| from.field(name, 1) != 0);
    let irdepth = irdepth(from, layout);
    Report::from_sent(address, sent, irdepth, layout)
}

fn format3(from: &mut impl Source, layout: &Layout) -> Packet {
    match from.field("subformat", 2) {
        0 => {
            let branch = from.field("branch", 1) != 0;
            let Context {
                privilege,
                time,
                context,
            } = owner(from, layout);
            Packet::Start(Start {
                branch,
                privilege,
                time,
                context,
                address: address(from, 0, layout),
            })
        }
        1 => Packet::Trap(trap(from, layout)),
        2 => Packet::Context(owner(from, layout)),
        _ => Packet::Support(support(from, layout)),
    }
}

/// `privilege`, `time` and `context`, which always stand together.
fn owner(from: &mut impl Source, layout: &Layout) -> Context {
    Context {
        privilege: from.field("privilege", layout.privilege_width.into()) as u8,
        time: from.field("time", layout.time_width().into()),
        context: from.field("context", layout.context_width.into()),
    }
}

fn trap(from: &mut impl Source, layout: &Layout) -> Trap {
    let draft = layout.version.is_draft();
    let branch = from.field("branch", 1) != 0;
    let Context {
        privilege,
        time,
        context,
    } = owner(from, layout);
    let ecause = from.field("ecause", layout.ecause_width.into()) as u32;
    let interrupt = from.field("interrupt", 1) != 0;
    let thaddr = draft || from.field("thaddr", 1) != 0;
    let has_tval = layout.has_tval(interrupt);
    let after = match has_tval {
        true => u32::from(layout.iaddress_width),
        false => 0,
    };
    let address = match layout.implicit_exception && thaddr {
        true => None,
        false => Some(address(from, after, layout)),
    };
    let tval = match (draft, !has_tval) {
        (true, _) => Some(from.field("tvalepc", layout.iaddress_width.into())),
        (false, false) => Some(from.field("tval", layout.iaddress_width.into())),
        (false, true) => None,
    };
    Trap {
        branch,
        privilege,
        time,
        context,
        ecause,
        interrupt,
        thaddr,
        address,
        tval,
    }
}

fn support(from: &mut impl Source, layout: &Layout) -> Support {
    if layout.version == Version::V2_05 {
        return standard_support(from);
    }
    let (enable, options) = match layout.version.is_draft() {
        true => ("enable", "options"),
        false => ("ienable", "ioptions"),
    };
    Support {
        ienable: from.field(enable, 1) != 0,
        encoder_mode: from.field("encoder_mode", layout.encoder_mode_width.into()) as u8,
        qual_status: QualStatus::from_bits(from.field("qual_status", 2) as u8),
        ioptions: from.field(options, layout.ioptions_width.into()) as u32,
        data: layout.doptions_width.map(|width| DataSupport {
            denable: from.field("denable", 1) != 0,
            dloss: from.field("dloss", 1) != 0,
            doptions: from.field("doptions", width.into()) as u16,
        }),
    }
}

/// The modes of a standard support packet, in order.
pub(crate) const STANDARD_MODES: [&str; 8] = [
    "sijump",
    "implicit_return",
    "branch_predictor",
    "jump_target_cache",
    "implicit_except",
    "full_iaddress",
    "resync_disabled",
    "iret_ext",
];

/// What it says about data trace, in order.
pub(crate) const STANDARD_DATA: [&str; 5] = [
    "mmacas_ext",
    "noaddr",
    "nodata",
    "full_daddress",
    "full_data",
];

/// The standard support packet (2.05).
fn standard_support(from: &mut impl Source) -> Support {
    let ienable = from.field("ienable", 1) != 0;
    let encoder_mode = from.field("encoder_mode", 2) as u8;
    let qual_status = QualStatus::from_bits(from.field("qual_status", 2) as u8);
    let modes = STANDARD_MODES.into_iter().map(|name| (name, 1));
    let ioptions = fields(from, modes.chain(SupportParameters::FIELDS));
    let denable = from.field("denable", 1) != 0;
    let dloss = from.field("dloss", 1) != 0;
    let doptions = fields(from, STANDARD_DATA.into_iter().map(|name| (name, 1))) as u16;
    Support {
        ienable,
        encoder_mode,
        qual_status,
        ioptions,
        data: Some(DataSupport {
            denable,
            dloss,
            doptions,
        }),
    }
}

/// Several fields as one, the first lowest.
fn fields(from: &mut impl Source, names: impl Iterator<Item = (&'static str, u8)>) -> u32 {
    let mut at = 0;
    names.fold(0, |all, (name, width)| {
        let field = (from.field(name, width.into()) as u32) << at;
        at += width;
        all | field
    })
}
