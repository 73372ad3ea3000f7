//! Periodic synchronisation (8.2).

use super::unit::Unit;
use crate::{Config, ResyncRule, ResyncUnit};

/// Counts from one synchronisation to the next.
#[derive(Clone, Debug)]
pub(super) struct Resync {
    unit: ResyncUnit,
    pub(super) rule: ResyncRule,
    /// `max_resync`.
    limit: u64,
    /// Packets since the last synchronisation.
    packets: u64,
    /// When that was, and how many halfwords had retired before it.
    time: u64,
    halfwords: u64,
    /// Up to this time, and this number of halfwords, nothing is due.
    pub(super) time_limit: u64,
    pub(super) halfword_limit: u64,
}

impl Resync {
    pub(super) fn new(config: &Config) -> Resync {
        let mut resync = Resync {
            unit: config.resync.unit,
            rule: config.resync.rule,
            limit: 1 << (u32::from(config.resync.max & 31) + 4),
            packets: 0,
            time: 0,
            halfwords: 0,
            time_limit: u64::MAX,
            halfword_limit: u64::MAX,
        };
        resync.set_limits();
        resync
    }

    fn set_limits(&mut self) {
        match self.unit {
            ResyncUnit::Off | ResyncUnit::Packets => {}
            ResyncUnit::Cycles => self.time_limit = self.time.saturating_add(self.limit),
            ResyncUnit::Halfwords => {
                self.halfword_limit = self.halfwords.saturating_add(self.limit);
            }
        }
    }

    /// So many packets were sent.
    #[inline]
    pub(super) fn count(&mut self, packets: u64) {
        self.packets += packets;
    }

    /// How many packets may be sent before something is due.
    #[inline]
    pub(super) fn packets_left(&self) -> u64 {
        match self.unit {
            ResyncUnit::Packets => self.limit.saturating_sub(self.packets),
            _ => u64::MAX,
        }
    }

    /// A synchronisation packet was sent for this unit.
    pub(super) fn restart(&mut self, unit: &Unit) {
        self.packets = 0;
        self.time = unit.time;
        self.halfwords = unit.halfwords;
        self.set_limits();
    }

    #[inline]
    fn elapsed(&self, time: u64, halfwords: u64) -> u64 {
        match self.unit {
            ResyncUnit::Off => 0,
            ResyncUnit::Packets => self.packets,
            ResyncUnit::Cycles => time.saturating_sub(self.time),
            ResyncUnit::Halfwords => halfwords.saturating_sub(self.halfwords),
        }
    }

    /// Whether the counter has reached its limit, at this time and with so many
    /// halfwords retired.
    #[inline]
    pub(super) fn is_full(&self, time: u64, halfwords: u64) -> bool {
        self.elapsed(time, halfwords) >= self.limit
    }

    /// Whether it has passed the limit at this unit.
    pub(super) fn is_over(&self, unit: &Unit) -> bool {
        self.elapsed(unit.time, unit.halfwords) > self.limit
    }

    /// Whether it will have with one packet more.
    pub(super) fn is_over_behind(&self, unit: &Unit) -> bool {
        match self.unit {
            ResyncUnit::Packets => self.packets >= self.limit,
            _ => self.is_over(unit),
        }
    }

    /// Whether nothing is due for so many packets, nor until so many halfwords have
    /// retired, whatever the time is.
    pub(super) fn is_far(&self, packets: u64, halfwords: u64) -> bool {
        match self.unit {
            ResyncUnit::Off => true,
            ResyncUnit::Packets => packets < self.packets_left(),
            ResyncUnit::Cycles => false,
            ResyncUnit::Halfwords => halfwords < self.halfword_limit,
        }
    }

    /// Whether packets have filled the counter.
    #[inline]
    pub(super) fn has_packets(&self) -> bool {
        self.unit == ResyncUnit::Packets && self.packets >= self.limit
    }
}
