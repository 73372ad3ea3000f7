//! Counters for the contents of a trace.

use alloc::vec::Vec;

use hartrace_flow::Warning;
use hartrace_flow::decode::{Framing as _, Onlooker, Place};
use hartrace_flow::tally::{self, Count, Tallied, TalliedInParts};

use crate::data::FORMATS;
use crate::decode::{ETrace, Glance, PlainGlance, TransfersGlance};
use crate::encapsulation::{Heads, WINDOW, window};
use crate::packet::quick::{self, Plain};
use crate::{
    BranchMap, Config, DataConfig, DataFollower, DataPacket, Encapsulated, Encapsulation, Fault,
    Framer, Kind, Layout, Outstanding, Packet, PacketName, Piece, QualStatus, Report, Support,
};

/// Counts packets of instruction trace by format ([`Packet::name`]) and by
/// source.
pub type Tally = tally::Tally<Extras>;

/// Branches that packets reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// In maps.
    pub mapped: u64,
    /// Those of them that were taken.
    pub taken: u64,
    /// In counts of predicted branches.
    pub predicted: u64,
    /// The branches after those, which were not.
    pub mispredicted: u64,
}

impl Branches {
    fn add(&mut self, more: Branches) {
        self.mapped += more.mapped;
        self.taken += more.taken;
        self.predicted += more.predicted;
        self.mispredicted += more.mispredicted;
    }

    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.mapped + self.predicted + self.mispredicted
    }
}

/// Why packets were sent, as far as they show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    /// A notification.
    pub notify: u64,
    /// A jump target followed by a format 3 packet.
    pub updiscon: u64,
    /// Something about the return stack.
    pub irreport: u64,
    /// Exceptions.
    pub exceptions: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Traps of either kind without the handler's address.
    pub no_handler: u64,
    /// The trace ended.
    pub ended: u64,
    /// Packets were lost.
    pub lost: u64,
}

impl Reasons {
    fn add(&mut self, more: Reasons) {
        self.notify += more.notify;
        self.updiscon += more.updiscon;
        self.irreport += more.irreport;
        self.exceptions += more.exceptions;
        self.interrupts += more.interrupts;
        self.no_handler += more.no_handler;
        self.ended += more.ended;
        self.lost += more.lost;
    }
}

/// What only E-Trace has.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Packets of data trace, where their layout is not known. Otherwise they are
    /// counted by what they are ([`DataPacket::name`]).
    pub data: Count,
    /// The layout of data packets.
    data_layout: Option<DataFollower>,
    /// The same before any packet.
    data_config: Option<DataFollower>,
    /// Whether there is data trace, once a support packet has reported it.
    denable: Option<bool>,
    /// Branches that packets reported.
    pub branches: Branches,
    /// Why packets were sent.
    pub reasons: Reasons,
    /// Bits of all payloads, and what they would be without compression, in
    /// whole bytes each.
    pub payload_bits: u64,
    /// See `payload_bits`.
    pub whole_bits: u64,
    /// Bits of common packets by [`common`], computed once; 0: not yet.
    sizes: [u32; 32],
    /// As support packets have changed it.
    layout: Option<Layout>,
    /// How packets are sent, and what comes before the payloads of the source that all this
    /// is of, where packets are such as the fast path reads.
    form: Encapsulation,
    heads: Heads,
    /// That source, and what there is of the others.
    current: u16,
    others: Vec<(u16, Parked)>,
}

/// What support packets and data packets of one source have said.
#[derive(Clone, Debug, Default)]
struct Parked {
    data_layout: Option<DataFollower>,
    denable: Option<bool>,
    layout: Option<Layout>,
}

impl Tallied for Extras {
    type Kind = PacketName;
    type Framer = Framer;
    type Layout = Layout;

    #[inline]
    fn number(kind: PacketName) -> u8 {
        kind as u8
    }

    fn piece(tally: &mut Tally, at: u64, piece: &Piece<'_>, layout: &Layout) {
        match *piece {
            Piece::Idle(bytes) => tally.idle += bytes,
            Piece::Bad(fault, bytes) => tally.fault(fault.reason(0), bytes),
            Piece::Lost(_, fault, value, bytes) => tally.fault(fault.reason(value), bytes),
            Piece::Packet(packet) => {
                tally.extras.enter(packet.src);
                tally.stamped += u64::from(packet.time.is_some());
                match packet.kind {
                    Kind::Data => count_data(tally, at, packet),
                    Kind::Instruction => count_packet(tally, at, packet, layout),
                }
            }
        }
    }

    #[inline(always)]
    fn quick(tally: &mut Tally, at: u64, bytes: &[u8], layout: &Layout) -> Option<usize> {
        let (window @ &[first, ..], _) = bytes.split_first_chunk::<WINDOW>()?;
        let head = tally.extras.heads.of(Kind::Instruction, first);
        let Some((head, packet)) = head.and_then(|head| Some((head, head.open(window)?))) else {
            return quick_data(tally, bytes, bytes.len());
        };
        let timed = u64::from(head.is_timed());
        let bytes = packet.payload_bytes() as u64;
        let changed = tally.extras.layout.as_ref();
        let read = quick::read(packet.word()?, changed.unwrap_or(layout))?;
        let place = Place {
            at,
            len: packet.len as u64,
        };
        tally.stamped += timed;
        tally.message(read.name(), tally.extras.current, place, read.is_sync());
        tally.extras.packet(&read, bytes, layout);
        Some(packet.len)
    }
}

/// What the packets of a source have said of those that follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    src: u16,
    denable: Option<bool>,
    layout: Option<Layout>,
    data: Option<(DataConfig, Outstanding)>,
}

impl Said {
    fn new(
        src: u16,
        denable: Option<bool>,
        layout: Option<Layout>,
        data: Option<&DataFollower>,
    ) -> Said {
        Said {
            src,
            denable,
            layout,
            data: data.map(DataFollower::said),
        }
    }
}

impl TalliedInParts for Extras {
    type State = Vec<Said>;

    fn state(&self) -> Vec<Said> {
        let parked = |(src, of): &(u16, Parked)| {
            Said::new(*src, of.denable, of.layout, of.data_layout.as_ref())
        };
        let data = self.data_layout.as_ref();
        let current = Said::new(self.current, self.denable, self.layout, data);
        let nothing = Said::new(0, None, None, self.data_config.as_ref());
        let all = self.others.iter().map(parked).chain([current]);
        let mut said: Vec<_> = all
            .filter(|said| Said { src: 0, ..*said } != nothing)
            .collect();
        said.sort_by_key(|said| said.src);
        said
    }

    fn set_state(&mut self, state: &Vec<Said>) {
        for said in state {
            self.enter(said.src);
            self.denable = said.denable;
            self.layout = said.layout;
            if let (Some(follower), Some(data)) = (&mut self.data_layout, said.data) {
                follower.set_said(data);
            }
        }
        self.sizes = [0; 32];
    }

    fn append(&mut self, later: Extras) {
        self.branches.add(later.branches);
        self.reasons.add(later.reasons);
        self.data.add_all(later.data);
        self.payload_bits += later.payload_bits;
        self.whole_bits += later.whole_bits;
        self.set_state(&later.state());
    }
}

/// Counts the loads and stores of data trace that start in the first `limit` of the bytes;
/// how many bytes they are.
fn quick_data(tally: &mut Tally, bytes: &[u8], limit: usize) -> Option<usize> {
    let extras = &tally.extras;
    let head = *extras.heads.of(Kind::Data, *bytes.first()?)?;
    let formats = extras.data_layout.as_ref()?.formats();
    if extras.denable == Some(false) {
        return None;
    }
    let (mut counts, mut end) = ([Count::default(); FORMATS], 0);
    while end < limit
        && let Some(window) = window(bytes, end)
        && let Some(packet) = head.open(window)
        && let Some(format) = formats.of(&packet)
        && let Some(count) = counts.get_mut(usize::from(format))
    {
        count.add(packet.len as u64);
        end += packet.len;
    }
    add_transfers(tally, counts, head.is_timed());
    (end > 0).then_some(end)
}

/// Loads and stores by format.
fn add_transfers(tally: &mut Tally, counts: [Count; FORMATS], is_timed: bool) {
    for (count, format) in counts.into_iter().zip(0..) {
        if count.messages > 0 {
            tally.messages(PacketName::of_transfer(format), tally.extras.current, count);
            tally.stamped += count.messages * u64::from(is_timed);
        }
    }
}

/// Counts packets while they are decoded, until it is dropped.
#[derive(Debug)]
pub struct Counter<'t> {
    tally: &'t mut Tally,
    layout: Layout,
    /// Whose plain packets are counted here, in that layout.
    current: Option<u16>,
    /// Those that the tally does not have yet.
    plain: PlainCount,
    pending: bool,
}

/// Plain packets.
#[derive(Debug, Default)]
struct PlainCount {
    /// With an address, without, and with an address only.
    kinds: [Count; 3],
    /// Those with an address, by the number of branches.
    by_branches: [u64; 32],
    /// Branches that were not taken.
    not_taken: u64,
    /// Bytes of the payloads.
    payload: u64,
}

impl<'t> Counter<'t> {
    /// One for a trace with this layout.
    #[must_use]
    pub fn new(tally: &'t mut Tally, layout: Layout) -> Counter<'t> {
        let mut counter = Counter {
            tally,
            layout,
            current: None,
            plain: PlainCount::default(),
            pending: false,
        };
        counter.follow();
        counter
    }
}

impl Onlooker<ETrace> for Counter<'_> {
    fn piece(&mut self, at: u64, piece: &Piece<'_>) {
        self.flush();
        self.tally.piece(at, piece, &self.layout);
        self.follow();
    }

    #[inline(always)]
    fn message(&mut self, glance: Glance) {
        match glance {
            Glance::Plain(glance) => self.plain(glance),
            Glance::Transfers(glance) => self.transfers(glance),
        }
    }

    fn messages(&mut self, at: u64, bytes: &[u8], len: usize) {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|_| done < len) {
            // They change nothing that counting the others depends on.
            if let Some(used) = quick_data(self.tally, rest, len - done) {
                done += used;
                continue;
            }
            self.flush();
            if let Some(used) = Extras::quick(self.tally, at + done as u64, rest, &self.layout) {
                done += used;
                continue;
            }
            let mut framer = Framer::of(self.tally.extras.form).at(at + done as u64);
            let rest = rest.get(..len - done).unwrap_or(rest);
            self.tally.feed(&mut framer, rest, &self.layout);
            self.follow();
            break;
        }
    }
}

/// Number of bits that are 1. Few are the rule, and not all processors count them.
#[inline(always)]
fn ones(bits: u32) -> u32 {
    match ONES.get(bits as usize) {
        Some(&ones) => ones.into(),
        None => bits.count_ones(),
    }
}

/// For all numbers of eight bits.
#[allow(clippy::indexing_slicing)] // at compile time
const ONES: [u8; 256] = {
    let mut ones = [0; 256];
    let mut i = 1;
    while i < 256 {
        ones[i] = ones[i / 2] + (i % 2) as u8;
        i += 1;
    }
    ones
};

impl Counter<'_> {
    #[inline(always)]
    fn plain(&mut self, glance: PlainGlance) {
        if self.current != Some(glance.src) {
            return self.other(glance);
        }
        let Plain { map, address } = glance.plain;
        let kind = match (address.is_some(), map.count) {
            (false, _) => 1,
            (true, 0) => 2,
            (true, _) => 0,
        };
        let plain = &mut self.plain;
        if let Some(count) = plain.kinds.get_mut(kind) {
            count.add(glance.len as u64);
        }
        if kind != 1
            && let Some(count) = plain.by_branches.get_mut(usize::from(map.count))
        {
            *count += 1;
        }
        plain.not_taken += u64::from(ones(map.bits));
        plain.payload += glance.payload as u64;
        self.pending = true;
    }

    /// They change nothing that counting the others depends on.
    #[inline(never)]
    fn transfers(&mut self, glance: TransfersGlance) {
        if glance.src != self.tally.extras.current {
            self.flush();
            self.tally.extras.enter(glance.src);
            self.follow();
        }
        add_transfers(self.tally, glance.sums.counts(), glance.is_timed);
    }

    /// Of another source, or in a layout that is not the one that was given.
    #[inline(never)]
    fn other(&mut self, glance: PlainGlance) {
        self.flush();
        let payload = glance.word.to_le_bytes();
        let packet = Encapsulated {
            src: glance.src,
            kind: Kind::Instruction,
            payload: payload.get(..glance.payload).unwrap_or(&payload),
            time: None,
            len: glance.len,
        };
        self.tally.extras.enter(packet.src);
        count_packet(self.tally, 0, packet, &self.layout);
        self.follow();
    }

    /// After anything that may be about sources or layouts.
    fn follow(&mut self) {
        let extras = &self.tally.extras;
        let same = extras.layout.is_none_or(|layout| layout == self.layout);
        self.current = same.then_some(extras.current);
    }

    fn flush(&mut self) {
        if !core::mem::take(&mut self.pending) {
            return;
        }
        let plain = core::mem::take(&mut self.plain);
        let src = self.tally.extras.current;
        let [branches_address, branches, address] = plain.kinds;
        for (name, count) in [
            (PacketName::BranchesAddress, branches_address),
            (PacketName::Branches, branches),
            (PacketName::Address, address),
        ] {
            if count.messages > 0 {
                self.tally.messages(name, src, count);
            }
        }
        let extras = &mut self.tally.extras;
        let mut mapped = 31 * branches.messages;
        let full = Packet::Branches {
            map: BranchMap { bits: 0, count: 31 },
            address: None,
        };
        let mut whole = branches.messages * extras.whole_size(&full, &self.layout);
        for (count, number) in (0..).zip(plain.by_branches) {
            if number == 0 {
                continue;
            }
            let address = Report::default();
            let packet = match count {
                0 => Packet::Address(address),
                _ => Packet::Branches {
                    map: BranchMap { bits: 0, count },
                    address: Some(address),
                },
            };
            mapped += number * u64::from(count);
            whole += number * extras.whole_size(&packet, &self.layout);
        }
        extras.branches.mapped += mapped;
        extras.branches.taken += mapped - plain.not_taken;
        extras.payload_bits += plain.payload * 8;
        extras.whole_bits += whole;
    }
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Counts a packet of data trace.
fn count_data(tally: &mut Tally, at: u64, packet: Encapsulated<'_>) {
    let len = packet.len as u64;
    if tally.extras.data_layout.is_some() && tally.extras.denable != Some(false) {
        match tally.extras.data_packet(packet.payload) {
            Ok(data) => tally.message(data.name(), packet.src, Place { at, len }, false),
            Err(fault) => tally.fault(fault.reason(0), len),
        }
        return;
    }
    tally.extras.data.add(len);
    if tally.extras.denable != Some(true) {
        warn(tally, Fault::UnexpectedData, at, true);
    }
}

/// Counts a packet of instruction trace.
fn count_packet(tally: &mut Tally, at: u64, packet: Encapsulated<'_>, layout: &Layout) {
    let len = packet.len as u64;
    let layout = &mut tally.extras.layout.unwrap_or(*layout);
    match Packet::read(packet.payload, layout) {
        Ok(read) => {
            tally.message(read.name(), packet.src, Place { at, len }, read.is_sync());
            tally
                .extras
                .packet(&read, packet.payload.len() as u64, layout);
            if let Packet::Support(support) = &read {
                count_support(tally, packet.src, support, at);
                layout.follow(&read);
                tally.extras.layout = Some(*layout);
                tally.extras.sizes = [0; 32];
            }
        }
        Err(fault) => tally.fault(fault.reason(0), len),
    }
}

/// A number below 32 for packets whose size depends on it and the layout alone.
#[inline]
const fn common(packet: &Packet) -> Option<usize> {
    match packet {
        Packet::Address(_) => Some(0),
        Packet::Branches {
            map,
            address: Some(_),
        } if map.count > 0 && map.count < 32 => Some(map.count as usize),
        _ => None,
    }
}

fn warn(tally: &mut Tally, fault: Fault, at: u64, is_loss: bool) {
    let reason = fault.reason(0);
    tally.warn(Warning {
        at,
        reason,
        is_loss,
    });
}

/// What a support packet says of the trace.
fn count_support(tally: &mut Tally, src: u16, support: &Support, at: u64) {
    if matches!(
        support.qual_status,
        QualStatus::EndedRep | QualStatus::EndedNtr
    ) {
        tally.end(src);
    }
    let Some(data) = support.data else { return };
    let before = tally.extras.denable.replace(data.denable);
    if let Some(follower) = &mut tally.extras.data_layout {
        follower.support(support);
        if data.dloss {
            warn(tally, Fault::DataLost, at, false);
        }
    } else if data.denable && before != Some(true) {
        warn(tally, Fault::DataNotDecoded, at, false);
    }
}

impl Extras {
    /// Counts packets of data trace by their kind, if the settings have any.
    #[must_use]
    pub fn of(config: &Config) -> Extras {
        Extras {
            data_layout: DataFollower::new(config),
            data_config: DataFollower::new(config),
            form: config.encapsulation,
            heads: match config.layout().is_plain() {
                true => Heads::new(&config.encapsulation, 0),
                false => Heads::NONE,
            },
            ..Extras::default()
        }
    }

    /// Goes on with what this source has said.
    fn enter(&mut self, src: u16) {
        if src == self.current {
            return;
        }
        let known = self.others.iter().position(|other| other.0 == src);
        let next = match known {
            Some(at) => self.others.swap_remove(at).1,
            None => Parked {
                data_layout: self.data_config.clone(),
                ..Parked::default()
            },
        };
        if next.layout != self.layout {
            self.sizes = [0; 32];
        }
        let before = Parked {
            data_layout: core::mem::replace(&mut self.data_layout, next.data_layout),
            denable: core::mem::replace(&mut self.denable, next.denable),
            layout: core::mem::replace(&mut self.layout, next.layout),
        };
        self.others.push((self.current, before));
        self.current = src;
        if self.heads != Heads::NONE {
            self.heads = Heads::new(&self.form, src);
        }
    }

    fn data_packet(&mut self, payload: &[u8]) -> Result<DataPacket, Fault> {
        let follower = self.data_layout.as_mut();
        let follower = follower.ok_or(Fault::UnexpectedData)?;
        follower.read(payload)
    }

    /// Bits of a packet without compression, in the layout that was given or what support
    /// packets have made of it.
    #[inline]
    fn size(&mut self, packet: &Packet, given: &Layout) -> u32 {
        let layout = self.layout.as_ref().unwrap_or(given);
        match common(packet).and_then(|number| self.sizes.get_mut(number)) {
            Some(size) => {
                if *size == 0 {
                    *size = packet.bits(layout);
                }
                *size
            }
            None => packet.bits(layout),
        }
    }

    /// The same in whole bytes.
    fn whole_size(&mut self, packet: &Packet, given: &Layout) -> u64 {
        u64::from(self.size(packet, given)).next_multiple_of(8)
    }

    fn packet(&mut self, packet: &Packet, payload: u64, layout: &Layout) {
        self.payload_bits += payload * 8;
        self.whole_bits += self.whole_size(packet, layout);
        match *packet {
            Packet::BranchCount {
                branch_count,
                address,
            } => {
                self.branches.predicted += u64::from(branch_count) + 31;
                let failed = address.is_none_or(|(failed, _)| failed);
                self.branches.mispredicted += u64::from(failed);
                self.report(address.map(|(_, report)| report));
            }
            Packet::JumpTarget { map, irreport, .. } => {
                self.map(map.count, map.bits);
                self.reasons.irreport += u64::from(irreport);
            }
            Packet::Branches { map, address } => {
                self.map(map.count, map.bits);
                self.report(address);
            }
            Packet::Address(report) => self.report(Some(report)),
            Packet::Trap(trap) => {
                self.reasons.interrupts += u64::from(trap.interrupt);
                self.reasons.exceptions += u64::from(!trap.interrupt);
                self.reasons.no_handler += u64::from(!trap.thaddr);
            }
            Packet::Support(support) => match support.qual_status {
                QualStatus::NoChange => {}
                QualStatus::TraceLost => self.reasons.lost += 1,
                QualStatus::EndedRep | QualStatus::EndedNtr => self.reasons.ended += 1,
            },
            Packet::Start(_) | Packet::Context(_) => {}
        }
    }

    fn map(&mut self, count: u8, bits: u32) {
        self.branches.mapped += u64::from(count);
        self.branches.taken += u64::from(count) - u64::from(bits.count_ones());
    }

    fn report(&mut self, report: Option<Report>) {
        let report = report.unwrap_or_default();
        self.reasons.notify += u64::from(report.notify);
        self.reasons.updiscon += u64::from(report.updiscon);
        self.reasons.irreport += u64::from(report.irreport);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RandomPackets as _;
    use crate::{BranchMap, Start, Trap, Version};
    use hartrace_isa::Xlen;
    use hartrace_testkit::{Random, pieces};

    fn count(bytes: &[u8], layout: &Layout) -> Tally {
        let mut tally = Tally::default();
        let mut framer = Framer::new();
        let mut rest = bytes;
        while let Some((at, piece)) = framer.next_piece(&mut rest) {
            tally.piece(at, &piece, layout);
        }
        if let Some((at, piece)) = framer.finish() {
            tally.piece(at, &piece, layout);
        }
        tally
    }

    /// The size of all packets without compression, in whole bytes each.
    fn whole_bits(bytes: &[u8], layout: &Layout) -> u64 {
        let (mut framer, mut rest, mut bits) = (Framer::new(), bytes, 0);
        let mut layout = *layout;
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            if let Piece::Packet(Encapsulated {
                kind: Kind::Instruction,
                payload,
                ..
            }) = piece
                && let Ok(packet) = Packet::read(payload, &layout)
            {
                bits += u64::from(packet.bits(&layout)).next_multiple_of(8);
                if let Packet::Support(_) = packet {
                    layout.follow(&packet);
                }
            }
        }
        bits
    }

    #[test]
    fn every_byte_is_counted_once() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let layout = random.layout();
            let mut bytes = Vec::new();
            for _ in 0..100 {
                let packet = random.packet(&layout).write(&layout);
                let kind = match random.below(9) {
                    0 => Kind::Data,
                    _ => Kind::Instruction,
                };
                packet.write_framed(kind, &mut bytes);
                let idle = random.below(4) as usize;
                bytes.resize(bytes.len() + idle, 0);
            }
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.draw() as u8;
            let tally = count(&bytes, &layout);
            // The fast path counts the same, in chunks of any size.
            let (mut quick, mut framer) = (Tally::default(), Framer::new());
            for chunk in pieces(&bytes, &mut random) {
                quick.feed(&mut framer, chunk, &layout);
            }
            quick.finish(&mut framer, &layout);
            assert!(quick.kinds().eq(tally.kinds()));
            assert!(quick.sources().eq(tally.sources()));
            assert!(quick.faults().eq(tally.faults()));
            assert_eq!(quick.extras.branches, tally.extras.branches);
            assert_eq!(quick.extras.reasons, tally.extras.reasons);
            assert_eq!(quick.extras.payload_bits, tally.extras.payload_bits);
            assert_eq!(quick.extras.whole_bits, whole_bits(&bytes, &layout));
            let bad: u64 = tally.faults().map(|(_, count)| count.bytes).sum();
            let all = tally.all().bytes + tally.extras.data.bytes + tally.idle + bad;
            assert_eq!(all, bytes.len() as u64);
            let sources: u64 = tally.sources().map(|(_, source)| source.all.bytes).sum();
            assert_eq!(sources, tally.all().bytes);
            assert!(tally.extras.whole_bits >= tally.extras.payload_bits);
        }
    }

    #[test]
    fn what_packets_tell_is_counted() {
        let layout = Layout {
            bpred_size: 4,
            ..Config::new(Version::V2_0, Xlen::Rv64).layout()
        };
        let start = Packet::Start(Start::default());
        let report = Report {
            notify: true,
            ..Report::default()
        };
        let packets = [
            start,
            Packet::Branches {
                map: BranchMap { bits: 5, count: 4 },
                address: Some(report),
            },
            Packet::BranchCount {
                branch_count: 9,
                address: None,
            },
            Packet::BranchCount {
                branch_count: 0,
                address: Some((false, Report::default())),
            },
            Packet::Trap(Trap {
                interrupt: true,
                address: Some(0),
                ..Trap::default()
            }),
            start,
        ];
        let mut bytes = Vec::new();
        for packet in packets {
            packet
                .write(&layout)
                .write_framed(Kind::Instruction, &mut bytes);
        }
        let tally = count(&bytes, &layout);
        let branches = Branches {
            mapped: 4,
            taken: 2,
            predicted: 40 + 31,
            mispredicted: 1,
        };
        assert_eq!((tally.extras.branches, branches.all()), (branches, 76));
        let reasons = Reasons {
            notify: 1,
            interrupts: 1,
            no_handler: 1,
            ..Reasons::default()
        };
        assert_eq!(tally.extras.reasons, reasons);
        let (_, source) = tally.sources().next().unwrap();
        // A trap without a handler is none.
        assert_eq!((source.syncs, source.all.messages), (2, 6));
        assert_eq!(source.interval(), Some(source.longest));
        let kinds: Vec<_> = tally.kinds().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            kinds.join("; "),
            "0.0 branch count; 0.0 branch count, address; 1 branches, address; \
             3.0 start; 3.1 trap"
        );
    }
}
