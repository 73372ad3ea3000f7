//! Packets: the payloads of chapter 6 as values.
//!
//! A packet is a sequence of fields, the first in the lowest bits. Encoders
//! omit upper bits that equal the last bit sent (*sign-based compression*), so
//! a payload of any length represents a whole packet.

pub(crate) mod bits;
mod name;
pub(crate) mod quick;
pub(crate) mod read;
pub(crate) mod write;

use alloc::vec::Vec;

use crate::config::SupportParameters;
use crate::{Fault, Ioption, Ioptions, Kind, MAX_PAYLOAD, NotifyBit, Padding, Shortening, Version};
use bits::{Reader, Source as _, Writer, bit};

pub use name::PacketName;

const IRET_EXT: Ioption = Ioption::ImplicitReturnExtension;

/// What the bytes of packets depend on: the widths of all their fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Which text.
    pub version: Version,
    /// `iaddress_width_p`.
    pub iaddress_width: u8,
    /// `iaddress_lsb_p`.
    pub iaddress_lsb: u8,
    /// `privilege_width_p`.
    pub privilege_width: u8,
    /// `context_width_p`, 0 if `nocontext_p`.
    pub context_width: u8,
    /// `time_width_p`, 0 if `notime_p`.
    pub time_width: u8,
    /// `ecause_width_p`.
    pub ecause_width: u8,
    /// `f0s_width_p`.
    pub f0s_width: u8,
    /// `bpred_size_p`. Without a subformat field, format 0 is a branch count
    /// where this is not 0, and a jump target index otherwise.
    pub bpred_size: u8,
    /// `cache_size_p`, the width of `index`.
    pub cache_size: u8,
    /// Width of `irdepth`, or of `irets`.
    pub irdepth_width: u8,
    /// The field is `irets` (2.05).
    pub iret_ext: bool,
    /// Width of `encoder_mode`.
    pub encoder_mode_width: u8,
    /// Width of `ioptions` (draft: `options`).
    pub ioptions_width: u8,
    /// Width of `doptions`; `None` where support packets end with `ioptions`.
    pub doptions_width: Option<u8>,
    /// Trap packets leave the handler's address out.
    pub implicit_exception: bool,
    /// The bit of `ioptions` that reports so.
    pub exception_bit: Option<u8>,
    /// What compression leaves out.
    pub shortening: Shortening,
    /// What the bits after the last field are.
    pub padding: Padding,
    /// What `notify` is compared with.
    pub notify_bit: NotifyBit,
    /// Trap packets of interrupts have `tval` too.
    pub interrupt_tval: bool,
}

impl Layout {
    /// The layout of what comes after a packet: support packets switch implicit
    /// exception on and off, and those of 2.05 have the parameters of the encoder.
    pub fn follow(&mut self, packet: &Packet) {
        let Packet::Support(support) = packet else {
            return;
        };
        if let Some(bit) = self.exception_bit {
            self.implicit_exception = support.ioptions >> bit & 1 != 0;
        }
        if self.version.is_standard() {
            let options = u32::from(Ioptions::STANDARD.width());
            let parameters = SupportParameters::from_field(support.ioptions >> options);
            let extended = Ioptions::STANDARD.get(support.ioptions, IRET_EXT);
            self.iret_ext = extended == Some(true);
            self.irdepth_width = parameters.irdepth_width(self.iret_ext);
            self.f0s_width = parameters.f0s_width;
            self.bpred_size = parameters.bpred_size;
            self.cache_size = parameters.cache_size;
            // It does not say whether there is a time.
            if self.time_width > 0 {
                self.time_width = parameters.time_bits();
            }
        }
    }

    /// Whether trap packets, of interrupts or not, have `tval`; in the draft it is `tvalepc`.
    #[must_use]
    #[inline]
    pub const fn has_tval(&self, interrupt: bool) -> bool {
        self.version.is_draft() || !interrupt || self.interrupt_tval
    }

    /// Whether packets are compressed, padded and marked as chapter 6 has it.
    #[must_use]
    #[inline]
    pub const fn is_plain(&self) -> bool {
        matches!(self.shortening, Shortening::Packet)
            && matches!(self.padding, Padding::Sign)
            && matches!(self.notify_bit, NotifyBit::Address)
    }

    /// Width of an `address` field.
    #[must_use]
    #[inline]
    pub const fn address_width(&self) -> u8 {
        self.iaddress_width.saturating_sub(self.iaddress_lsb)
    }

    /// Width of a `time` field, which the draft does not have.
    pub(crate) const fn time_width(&self) -> u8 {
        match self.version.is_draft() {
            true => 0,
            false => self.time_width,
        }
    }

    /// Bits of the longest packet.
    #[must_use]
    pub const fn longest(&self) -> usize {
        let head = 2 + 2 + 1 + self.privilege_width as usize;
        let owner = self.context_width as usize + self.time_width as usize;
        let cause = self.ecause_width as usize + 2;
        let trap = head + owner + cause + 2 * self.iaddress_width as usize;
        let tail = self.iaddress_width as usize + 3 + self.irdepth_width as usize;
        let branches = 2 + 5 + 31 + tail;
        let count = 2 + self.f0s_width as usize + 32 + 2 + tail;
        let index = 2 + 2 + self.cache_size as usize + 36 + 1 + self.irdepth_width as usize;
        let doptions = match self.doptions_width {
            Some(width) => 2 + width as usize,
            None => 0,
        };
        let support =
            7 + self.encoder_mode_width as usize + self.ioptions_width as usize + doptions;
        let all = [trap, branches, count, index, support];
        let mut longest = 0;
        let mut i = 0;
        while i < all.len() {
            #[allow(clippy::indexing_slicing, reason = "i is below the length")]
            if all[i] > longest {
                longest = all[i];
            }
            i += 1;
        }
        longest
    }
}

/// Outcomes of branches, the oldest in bit 0: 0 for taken, 1 for not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BranchMap {
    /// The outcomes; bits above `count` are 0.
    pub bits: u32,
    /// How many, at most 31.
    pub count: u8,
}

impl BranchMap {
    /// Width of `branch_map`, 0 without one.
    #[inline]
    pub(crate) const fn width(self) -> u32 {
        match self.count & 31 {
            0 => 0,
            count => read::map_width(count as u32),
        }
    }

    /// The bit before `irreport` in a jump target packet: the outcome of the
    /// last branch, which bits without a meaning repeat, or `branches` = 0.
    pub(crate) const fn last(self) -> bool {
        self.count > 0 && self.bits >> ((self.count - 1) & 31) & 1 != 0
    }
}

/// The address at the end of formats 0, 1 and 2, and what comes with it.
///
/// `notify`, `updiscon` and `irreport` are sent as differences to the bit
/// before them; here `true` means that they differ, which is when they say
/// something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    /// The field: an address or a difference of addresses, without its
    /// `iaddress_lsb` lowest bits, in as many bits as the field has.
    pub address: u64,
    /// Sent because of a notification.
    pub notify: bool,
    /// The target of an uninferable jump, and a format 3 follows.
    pub updiscon: bool,
    /// `irdepth` or `irets` is reported.
    pub irreport: bool,
    /// The field, `irdepth` or `irets`, whatever `irreport` says.
    pub irdepth: u16,
}

impl Report {
    /// `notify`, `updiscon` and `irreport` as they are sent: different from the
    /// bit before them, or not.
    #[must_use]
    #[inline]
    pub const fn sent(&self, layout: &Layout) -> [bool; 3] {
        let notify = match layout.notify_bit {
            NotifyBit::Address => self.notify ^ last_bit(self.address, layout),
            NotifyBit::Unused => false,
        };
        let updiscon = self.updiscon ^ notify;
        [notify, updiscon, self.irreport ^ updiscon]
    }

    /// From the fields as they were sent.
    pub(crate) const fn from_sent(
        address: u64,
        [notify, updiscon, irreport]: [bool; 3],
        irdepth: u16,
        layout: &Layout,
    ) -> Report {
        Report {
            address,
            notify: match layout.notify_bit {
                NotifyBit::Address => notify ^ last_bit(address, layout),
                NotifyBit::Unused => false,
            },
            updiscon: updiscon ^ notify,
            irreport: irreport ^ updiscon,
            irdepth,
        }
    }

    /// Bits of the address that are left when `notify`, `updiscon`, `irreport` and
    /// `irdepth` say nothing and all that repeats is compressed away.
    #[inline]
    pub(crate) const fn significant(&self, layout: &Layout) -> u32 {
        let unused = 64 - layout.address_width() as u32;
        let address = (self.address << unused) as i64 >> unused;
        // One bit of those that are all the same must stay.
        65 - (address ^ address >> 63).leading_zeros()
    }

    /// What `irdepth` is to hold while `irreport` says nothing: `updiscon` in
    /// every bit, so that it is compressed away (6.6.3).
    #[must_use]
    #[inline]
    pub const fn idle_irdepth(&self, layout: &Layout) -> u16 {
        let [_, updiscon, _] = self.sent(layout);
        match updiscon {
            true => bits::mask(layout.irdepth_width as u32) as u16,
            false => 0,
        }
    }
}

/// The last bit of an address field.
#[inline]
const fn last_bit(address: u64, layout: &Layout) -> bool {
    bit(address, (layout.address_width() as u32).wrapping_sub(1))
}

/// Format 3 subformat 0: where the hart is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Start {
    /// `false` if the instruction is a branch that was taken.
    pub branch: bool,
    /// Code of the privilege mode.
    pub privilege: u8,
    /// The time; 0 without the field.
    pub time: u64,
    /// The context; 0 without the field.
    pub context: u64,
    /// The field: the address without its `iaddress_lsb` lowest bits.
    pub address: u64,
}

/// Format 3 subformat 1: a trap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trap {
    /// `false` if the instruction is a branch that was taken.
    pub branch: bool,
    /// Code of the privilege mode.
    pub privilege: u8,
    /// The time; 0 without the field.
    pub time: u64,
    /// The context; 0 without the field.
    pub context: u64,
    /// The cause.
    pub ecause: u32,
    /// It was an interrupt.
    pub interrupt: bool,
    /// `address` is the handler's first instruction, which retired. Always
    /// `true` in the draft, which has no such field.
    pub thaddr: bool,
    /// The field: an address without its `iaddress_lsb` lowest bits; `None` in
    /// implicit exception mode with `thaddr`.
    pub address: Option<u64>,
    /// `tval`; 2.0: `None` for interrupts. Draft: `tvalepc`, the address of an
    /// illegal instruction or else the trap value.
    pub tval: Option<u64>,
}

/// Format 3 subformat 2: a new context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    /// Code of the privilege mode.
    pub privilege: u8,
    /// The time; 0 without the field.
    pub time: u64,
    /// The context; 0 without the field.
    pub context: u64,
}

/// Format 3 subformat 3: the encoder about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Support {
    /// The encoder is enabled.
    pub ienable: bool,
    /// The algorithm; 0 is branch trace.
    pub encoder_mode: u8,
    /// What has become of the trace.
    pub qual_status: QualStatus,
    /// The modes that are on; in a standard support packet (2.05) with the
    /// parameters after them.
    pub ioptions: u32,
    /// About data trace, where the packet has room for it.
    pub data: Option<DataSupport>,
}

/// The part of a support packet about data trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DataSupport {
    /// Data trace is enabled.
    pub denable: bool,
    /// Data trace packets were lost.
    pub dloss: bool,
    /// The modes that are on.
    pub doptions: u16,
}

/// `qual_status`: what has become of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum QualStatus {
    /// Nothing.
    #[default]
    NoChange = 0,
    /// It ended; the packet before this one was sent to report where.
    EndedRep = 1,
    /// Packets were lost.
    TraceLost = 2,
    /// It ended; the packet before this one would have been sent anyway
    /// (`ended_ntr`, in the draft `ended_upd`).
    EndedNtr = 3,
}

impl QualStatus {
    /// From the lowest two bits.
    pub(crate) const fn from_bits(bits: u8) -> QualStatus {
        match bits & 3 {
            0 => QualStatus::NoChange,
            1 => QualStatus::EndedRep,
            2 => QualStatus::TraceLost,
            _ => QualStatus::EndedNtr,
        }
    }
}

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Format 0 subformat 0: branches that were predicted.
    BranchCount {
        /// The field: how many, minus 31.
        branch_count: u32,
        /// `None` if the branch after them was mispredicted
        /// (`branch_fmt` 00); else an address, and whether that is a branch
        /// that was predicted wrongly (11) or not (10).
        address: Option<(bool, Report)>,
    },
    /// Format 0 subformat 1: an entry of the jump target cache.
    JumpTarget {
        /// Which entry.
        index: u16,
        /// The branches before it, if any.
        map: BranchMap,
        /// `irdepth` is reported.
        irreport: bool,
        /// The field, whatever `irreport` says.
        irdepth: u16,
    },
    /// Format 1: branches; without an address there are 31 of them.
    Branches {
        /// Their outcomes, at least one.
        map: BranchMap,
        /// The address.
        address: Option<Report>,
    },
    /// Format 2: an address.
    Address(Report),
    /// Format 3 subformat 0.
    Start(Start),
    /// Format 3 subformat 1.
    Trap(Trap),
    /// Format 3 subformat 2.
    Context(Context),
    /// Format 3 subformat 3.
    Support(Support),
}

/// The bytes of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    bytes: [u8; MAX_PAYLOAD + 1],
    len: u8,
}

impl Payload {
    /// The bytes, at least one.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Appends it to the packets of a stream, with its header.
    #[inline]
    pub fn write_framed(&self, kind: Kind, out: &mut Vec<u8>) {
        out.push(kind.header(self.len));
        let end = out.len() + usize::from(self.len);
        // To copy all is quicker than to copy some.
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }
}

impl Packet {
    /// Whether it has the full address of an instruction that retired, where
    /// decoding can begin.
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        match self {
            Packet::Start(_) => true,
            Packet::Trap(trap) => trap.thaddr && trap.address.is_some(),
            _ => false,
        }
    }

    /// `format`.
    #[must_use]
    pub const fn format(&self) -> u8 {
        match self {
            Packet::BranchCount { .. } | Packet::JumpTarget { .. } => 0,
            Packet::Branches { .. } => 1,
            Packet::Address(_) => 2,
            _ => 3,
        }
    }

    /// `subformat`, whether it is sent or not; `None` in formats 1 and 2.
    #[must_use]
    pub const fn subformat(&self) -> Option<u8> {
        match self {
            Packet::Branches { .. } | Packet::Address(_) => None,
            Packet::BranchCount { .. } | Packet::Start(_) => Some(0),
            Packet::JumpTarget { .. } | Packet::Trap(_) => Some(1),
            Packet::Context(_) => Some(2),
            Packet::Support(_) => Some(3),
        }
    }

    /// What it is.
    #[must_use]
    #[inline]
    pub const fn name(&self) -> PacketName {
        match self {
            Packet::BranchCount { address: None, .. } => PacketName::BranchCount,
            Packet::BranchCount { .. } => PacketName::BranchCountAddress,
            Packet::JumpTarget { map, .. } if map.count == 0 => PacketName::JumpTarget,
            Packet::JumpTarget { .. } => PacketName::JumpTargetBranches,
            Packet::Branches { address: None, .. } => PacketName::Branches,
            Packet::Branches { .. } => PacketName::BranchesAddress,
            Packet::Address(_) => PacketName::Address,
            Packet::Start(_) => PacketName::Start,
            Packet::Trap(_) => PacketName::Trap,
            Packet::Context(_) => PacketName::Context,
            Packet::Support(_) => PacketName::Support,
        }
    }

    /// Bits of all its fields, before anything is compressed away.
    #[must_use]
    pub fn bits(&self, layout: &Layout) -> u32 {
        self.fields(layout).len()
    }

    /// Reads a packet from its payload, whole or compressed as far as it may
    /// be.
    ///
    /// ```
    /// use hartrace_etrace::{Config, Packet, Report, Version};
    /// use hartrace_isa::Xlen;
    ///
    /// let layout = Config::new(Version::V2_0, Xlen::Rv64).layout();
    /// let packet = Packet::read(&[0xf2], &layout).unwrap();
    /// let minus_eight = u64::MAX >> 1 & !3;
    /// assert_eq!(packet, Packet::Address(Report { address: minus_eight, ..Report::default() }));
    /// assert_eq!(packet.write(&layout).bytes(), [0xf2]);
    /// ```
    ///
    /// # Errors
    ///
    /// Bytes that cannot be such a packet.
    pub fn read(payload: &[u8], layout: &Layout) -> Result<Packet, Fault> {
        if (1..=8).contains(&payload.len()) && layout.is_plain() {
            let bytes = payload.iter().rev();
            let word = bytes.fold(0, |word, &byte| word << 8 | u64::from(byte));
            let bits = bits::extended(word, payload.len(), 0);
            let quick = quick::read(bits, layout).or_else(|| quick::format_0(bits, layout));
            if let Some(packet) = quick {
                return Ok(packet);
            }
        }
        Packet::read_long(payload, layout)
    }

    /// As [`Packet::read`], for packets of any length.
    fn read_long(payload: &[u8], layout: &Layout) -> Result<Packet, Fault> {
        let mut fields = Reader::new(payload).ok_or(Fault::EmptyPacket)?;
        let packet = read::read(&mut fields, layout)?;
        let padded = layout.padding == Padding::Ignored && fields.left() < 8;
        match padded || fields.is_end() || packet.may_go_on(layout) {
            true => Ok(packet),
            false => Err(Fault::ExtraBits),
        }
    }

    /// Whether there may be something after the last field: a standard support
    /// packet can have information of the implementation (2.05).
    pub(crate) const fn may_go_on(&self, layout: &Layout) -> bool {
        layout.version.is_standard() && matches!(self, Packet::Support(_))
    }

    /// The payload of the packet, as short as it can be. Fields have as many
    /// bits as the layout says, whatever the values have; fields that the
    /// layout has and the packet does not are 0.
    #[must_use]
    #[inline]
    pub fn write(&self, layout: &Layout) -> Payload {
        let fields = self.fields(layout);
        match layout.is_plain() {
            true => fields.compressed(),
            false => fields.shortened(layout),
        }
    }

    /// All its fields.
    #[inline(always)]
    pub(crate) fn fields(&self, layout: &Layout) -> Writer {
        write::write(self, layout)
    }
}

#[cfg(test)]
mod tests;
