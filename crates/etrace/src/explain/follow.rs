//! Full addresses of packets, from the packets alone.

use alloc::collections::BTreeMap;

use crate::config::SupportParameters;
use crate::modes::Targets;
use crate::packet::bits::mask;
use crate::{Config, Ioption, Packet, QualStatus, Report, Support};

/// Keeps the address that each source reported last, so that a packet can be shown
/// with the full one; and the jump target cache, as far as packets tell.
#[derive(Clone, Debug)]
pub struct Follower {
    config: Config,
    sources: BTreeMap<u16, Last>,
}

#[derive(Clone, Debug)]
struct Last {
    /// The field in full.
    address: Option<u64>,
    /// Addresses are no differences.
    full: bool,
    targets: Option<Targets>,
    /// Synchronisation packets leave the cache as it is.
    keeps: bool,
    /// The next synchronisation packet starts the trace: the cache is empty.
    starts: bool,
    /// An address that enters the cache if a packet of format 0, 1 or 2 follows: it
    /// was a jump's target then.
    pending: Option<u64>,
}

impl Follower {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(config: &Config) -> Follower {
        Follower {
            config: config.clone(),
            sources: BTreeMap::new(),
        }
    }

    /// The full address of the next packet, where it has one and it can be known.
    ///
    /// A handler that implicit exception mode leaves out cannot. Nor can an entry of
    /// the cache that a return may have filled: which returns were predicted, only
    /// the code tells.
    pub fn packet(&mut self, src: u16, packet: &Packet) -> Option<u64> {
        let config = &self.config;
        let last = self.sources.entry(src).or_insert_with(|| Last::new(config));
        last.follow(packet);
        let report = match packet {
            Packet::BranchCount { address, .. } => address.map(|(_, report)| report),
            Packet::Branches { address, .. } => *address,
            Packet::Address(report) => Some(*report),
            Packet::Start(start) => return last.set(Some(start.address), config),
            Packet::Trap(trap) => return last.set(trap.address, config),
            Packet::JumpTarget { index, .. } => {
                let target = last.targets.as_ref().and_then(|t| t.get(*index));
                let width = u32::from(config.layout().address_width());
                let field = target.map(|target| target >> config.iaddress_lsb & mask(width));
                return last.set(field, config);
            }
            Packet::Support(support) => {
                last.support(support, config);
                None
            }
            Packet::Context(_) => None,
        };
        let report = report?;
        let known = match last.full {
            true => Some(report.address),
            false => last.address.map(|from| from.wrapping_add(report.address)),
        };
        let address = last.set(known, config);
        // A count that is sent for its number reports no target (6.8).
        let most = u32::MAX;
        if !matches!(packet, Packet::BranchCount { branch_count, .. } if *branch_count == most) {
            last.note(&report, address);
        }
        address
    }

    /// Something is missing: differences lead nowhere until the next full
    /// address.
    pub fn lost(&mut self) {
        for last in self.sources.values_mut() {
            last.forget();
        }
    }
}

impl Last {
    fn new(config: &Config) -> Last {
        Last {
            address: None,
            full: config.full_address,
            targets: config.jump_target_cache.then(|| targets(config)),
            keeps: config.resync_disabled(),
            starts: true,
            pending: None,
        }
    }

    /// What a packet says about the address before it, and about the cache.
    fn follow(&mut self, packet: &Packet) {
        let pending = self.pending.take();
        let jumped = match packet {
            Packet::Start(_) | Packet::Trap(_) => {
                if core::mem::take(&mut self.starts) || !self.keeps {
                    self.reset();
                }
                false
            }
            Packet::Support(support) => support.qual_status == QualStatus::EndedNtr,
            Packet::Context(_) => {
                self.pending = pending;
                false
            }
            _ => true,
        };
        if let (true, Some(target), Some(targets)) = (jumped, pending, &mut self.targets) {
            targets.update(target);
        }
    }

    /// The address of a report, where it is known.
    fn note(&mut self, report: &Report, address: Option<u64>) {
        let Some(address) = address else {
            // Whatever it was, the entry is another one now.
            return self.reset();
        };
        match (&mut self.targets, report.irreport) {
            (Some(targets), true) => targets.disuse(address),
            (Some(targets), false) if report.updiscon => {
                targets.update(address);
            }
            _ if report.notify => {}
            _ => self.pending = Some(address),
        }
    }

    fn support(&mut self, support: &Support, config: &Config) {
        let told = |option| config.ioptions.get(support.ioptions, option);
        self.full = told(Ioption::FullAddress).unwrap_or(self.full);
        self.keeps = told(Ioption::ResyncDisabled).unwrap_or(self.keeps);
        let cached = told(Ioption::JumpTargetCache).unwrap_or(self.targets.is_some());
        let mut config = config.clone();
        if config.version.is_standard() {
            let parameters = support.ioptions >> config.ioptions.width();
            config.cache_size = SupportParameters::from_field(parameters).cache_size;
        }
        match &self.targets {
            Some(targets) if cached && targets.has_size(config.cache_size) => {}
            _ => self.targets = (cached && config.cache_size > 0).then(|| self::targets(&config)),
        }
        match support.qual_status {
            QualStatus::NoChange => {}
            QualStatus::TraceLost => self.forget(),
            QualStatus::EndedRep | QualStatus::EndedNtr => self.starts = true,
        }
    }

    /// Something is missing.
    fn forget(&mut self) {
        (self.address, self.pending, self.starts) = (None, None, true);
        self.reset();
    }

    /// No entry of the cache is known.
    fn reset(&mut self) {
        if let Some(targets) = &mut self.targets {
            targets.reset();
        }
    }

    /// A new address; gives it as the program has it.
    fn set(&mut self, field: Option<u64>, config: &Config) -> Option<u64> {
        self.address = field;
        let width = u32::from(config.iaddress_width).clamp(1, 64);
        let address = field? << config.iaddress_lsb.min(63) & mask(width);
        // Upper bits that are not traced repeat the highest that is.
        let unused = 64 - width;
        let extended = (address << unused) as i64 >> unused;
        Some(extended as u64 & mask(config.xlen.bits()))
    }
}

/// An empty cache.
fn targets(config: &Config) -> Targets {
    Targets::new(config.cache_size, config.iaddress_lsb)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BranchMap, Start, Trap, Version};
    use hartrace_isa::Xlen;

    #[test]
    fn differences_are_followed() {
        let config = Config {
            iaddress_width: 39,
            ..Config::new(Version::V2_0, Xlen::Rv64)
        };
        let mut follower = Follower::new(&config);
        let delta = |delta: i64| {
            let address = (delta >> 1) as u64 & mask(38);
            Packet::Address(Report {
                address,
                ..Report::default()
            })
        };
        let start = |address: u64| {
            Packet::Start(Start {
                address: address >> 1 & mask(38),
                ..Start::default()
            })
        };
        assert_eq!(follower.packet(0, &delta(4)), None);
        assert_eq!(follower.packet(0, &start(0x8000_0000)), Some(0x8000_0000));
        assert_eq!(follower.packet(0, &delta(-8)), Some(0x7fff_fff8));
        assert_eq!(follower.packet(1, &delta(4)), None);
        // The kernel's half, and back round.
        let kernel = 0xffff_ffff_ffff_fffe;
        assert_eq!(follower.packet(0, &start(kernel)), Some(kernel));
        assert_eq!(follower.packet(0, &delta(4)), Some(2));
        assert_eq!(follower.packet(0, &delta(-4)), Some(kernel));
        follower.lost();
        assert_eq!(follower.packet(0, &delta(4)), None);
        let trap = Packet::Trap(Trap {
            address: Some(8),
            ..Trap::default()
        });
        assert_eq!(follower.packet(0, &trap), Some(16));
        let jump = Packet::JumpTarget {
            index: 1,
            map: BranchMap::default(),
            irreport: false,
            irdepth: 0,
        };
        assert_eq!(follower.packet(0, &jump), None);
        assert_eq!(follower.packet(0, &delta(4)), None);
        // Full addresses need no base.
        let support = Packet::Support(crate::Support {
            ioptions: 4,
            ..crate::Support::default()
        });
        assert_eq!(follower.packet(0, &support), None);
        assert_eq!(follower.packet(0, &delta(4)), Some(4));
        // RV32 has 32 bits.
        let mut follower = Follower::new(&Config::new(Version::V2_0, Xlen::Rv32));
        let high = Packet::Start(Start {
            address: 0x7fff_fff0,
            ..Start::default()
        });
        assert_eq!(follower.packet(0, &high), Some(0xffff_ffe0));
    }

    #[test]
    fn entries_of_the_cache_are_followed() {
        let config = Config {
            cache_size: 5,
            jump_target_cache: true,
            ..Config::new(Version::V2_0, Xlen::Rv64)
        };
        let by = |delta: i64| {
            let address = (delta >> 1) as u64 & mask(63);
            Report {
                address,
                ..Report::default()
            }
        };
        let to = |delta: i64| Packet::Address(by(delta));
        let index = |index: u16| Packet::JumpTarget {
            index,
            map: BranchMap::default(),
            irreport: false,
            irdepth: 0,
        };
        let start = Packet::Start(Start {
            address: 0x1000 >> 1,
            ..Start::default()
        });
        let mut follower = Follower::new(&config);
        let mut shows = |packet: &Packet| follower.packet(0, packet);
        assert_eq!(shows(&start), Some(0x1000));
        assert_eq!(shows(&to(0x1006)), Some(0x2006));
        assert_eq!(shows(&to(-0x1006)), Some(0x1000));
        // Both were targets of jumps, because another packet followed.
        assert_eq!(shows(&index(3)), Some(0x2006));
        assert_eq!(shows(&to(4)), Some(0x200a), "differences go on from there");
        assert_eq!(shows(&index(0)), Some(0x1000));
        // Reported because of a notification: not a target.
        let notify = Packet::Address(Report {
            notify: true,
            ..by(0x20)
        });
        assert_eq!(shows(&notify), Some(0x1020));
        assert_eq!(shows(&index(16)), None);
        assert_eq!(shows(&to(4)), None);
        // A synchronisation empties it.
        assert_eq!(shows(&start), Some(0x1000));
        assert_eq!(shows(&index(3)), None);
    }
}
