//! How much of what a trace is made of.

use alloc::collections::BTreeMap;

use crate::{Fault, Kind, Layout, Packet, Piece, QualStatus, Report};

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub packets: u64,
    /// Their bytes together, headers included.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// What one source sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// All its packets.
    pub all: Count,
    /// Those where decoding can begin.
    pub syncs: u64,
    /// The most bytes of the stream from one of these to the next.
    pub longest: u64,
    /// Offset of the first and of the last of them.
    pub span: Option<(u64, u64)>,
}

impl Source {
    /// Bytes of the stream from one full address to the next, in the mean;
    /// `None` with fewer than two.
    #[must_use]
    pub fn interval(&self) -> Option<u64> {
        let (first, last) = self.span?;
        (last - first).checked_div(self.syncs - 1)
    }
}

/// Branches that packets told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// In maps.
    pub mapped: u64,
    /// Those of them that were taken.
    pub taken: u64,
    /// In counts of predicted branches.
    pub predicted: u64,
    /// The branches behind those, which were not.
    pub mispredicted: u64,
}

impl Branches {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.mapped + self.predicted + self.mispredicted
    }
}

/// Why packets were sent, as far as they tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    /// A notification.
    pub notify: u64,
    /// A jump target with a format 3 packet behind it.
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

/// Counts packets by format and by source.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    kinds: BTreeMap<&'static str, Count>,
    sources: BTreeMap<u16, Source>,
    faults: BTreeMap<&'static str, (Option<Fault>, Count)>,
    /// Bytes of padding.
    pub idle: u64,
    /// Packets of data trace, which are not looked into.
    pub data: Count,
    /// Branches that packets told.
    pub branches: Branches,
    /// Why packets were sent.
    pub reasons: Reasons,
    /// Bits of all payloads, and what they would be without compression, in
    /// whole bytes each.
    pub payload_bits: u64,
    /// See `payload_bits`.
    pub whole_bits: u64,
}

impl Tally {
    /// Takes the next piece of the stream and its offset.
    pub fn piece(&mut self, at: u64, piece: &Piece<'_>, layout: &Layout) {
        match *piece {
            Piece::Idle(bytes) => self.idle += bytes,
            Piece::Bad(fault, bytes) => self.fault(fault, bytes),
            Piece::Packet(_, Kind::Data, payload) => self.data.add(payload.len() as u64 + 1),
            Piece::Packet(src, Kind::Instruction, payload) => match Packet::read(payload, layout) {
                Ok(packet) => self.packet(at, src, &packet, payload.len() as u64, layout),
                Err(fault) => self.fault(fault, payload.len() as u64 + 1),
            },
        }
    }

    fn packet(&mut self, at: u64, src: u16, packet: &Packet, payload: u64, layout: &Layout) {
        self.payload_bits += payload * 8;
        self.whole_bits += u64::from(packet.bits(layout)).next_multiple_of(8);
        self.kinds
            .entry(packet.name())
            .or_default()
            .add(payload + 1);
        let source = self.sources.entry(src).or_default();
        source.all.add(payload + 1);
        if packet.sync().is_some() {
            let (first, last) = source.span.unwrap_or((at, at));
            source.span = Some((first, at));
            source.longest = source.longest.max(at - last);
            source.syncs += 1;
        }
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

    fn fault(&mut self, fault: Fault, bytes: u64) {
        let (kind, count) = self.faults.entry(fault.code()).or_default();
        *kind = Some(fault);
        count.add(bytes);
    }

    /// Packets by what they are ([`Packet::name`]), in the order of their
    /// formats.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, Count)> + '_ {
        self.kinds.iter().map(|(&name, &count)| (name, count))
    }

    /// Packets by source.
    pub fn sources(&self) -> impl Iterator<Item = (u16, Source)> + '_ {
        self.sources.iter().map(|(&src, &source)| (src, source))
    }

    /// Pieces that are no good packets, by what is wrong with them.
    pub fn faults(&self) -> impl Iterator<Item = (Fault, Count)> + '_ {
        let known = self.faults.values();
        known.filter_map(|&(fault, count)| Some((fault?, count)))
    }

    /// All good packets of instruction trace.
    #[must_use]
    pub fn all(&self) -> Count {
        let mut all = Count::default();
        for count in self.kinds.values() {
            all.packets += count.packets;
            all.bytes += count.bytes;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RandomPackets as _;
    use crate::{BranchMap, Config, Framer, Start, Trap, Version};
    use alloc::vec::Vec;
    use hartrace_isa::Xlen;
    use hartrace_testkit::Random;

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
            let bad: u64 = tally.faults().map(|(_, count)| count.bytes).sum();
            let all = tally.all().bytes + tally.data.bytes + tally.idle + bad;
            assert_eq!(all, bytes.len() as u64);
            let sources: u64 = tally.sources().map(|(_, source)| source.all.bytes).sum();
            assert_eq!(sources, tally.all().bytes);
            assert!(tally.whole_bits >= tally.payload_bits);
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
        assert_eq!((tally.branches, branches.all()), (branches, 76));
        let reasons = Reasons {
            notify: 1,
            interrupts: 1,
            no_handler: 1,
            ..Reasons::default()
        };
        assert_eq!(tally.reasons, reasons);
        let (_, source) = tally.sources().next().unwrap();
        // A trap without a handler is none.
        assert_eq!((source.syncs, source.all.packets), (2, 6));
        assert_eq!(source.interval(), Some(source.longest));
        let kinds: Vec<_> = tally.kinds().map(|(name, _)| name).collect();
        assert_eq!(
            kinds.join("; "),
            "0.0 branch count; 0.0 branch count, address; 1 branches, address; \
             3.0 start; 3.1 trap"
        );
    }
}
