//! The packets of one hart.

use hartrace_isa::Itype;

use super::Sink;
use super::hart::{Due, FULL, Hart, Open};
use super::unit::Unit;
use crate::packet::bits::mask;
use crate::{
    Config, Context, DataSupport, IdleIrdepth, Packet, QualStatus, Report, ResyncRule, Start,
    Support, Trap, Version,
};

/// Exception code of an illegal instruction.
const ILLEGAL: u32 = 2;

impl Hart {
    #[inline]
    fn emit(&mut self, packet: &Packet, sink: &mut impl Sink) {
        self.out.send(packet, self.cur.time, sink);
        self.resync.count();
    }

    /// An address as a field.
    fn full(&self, config: &Config, addr: u64) -> u64 {
        let layout = &self.out.layout;
        addr >> config.iaddress_lsb & mask(layout.address_width().into())
    }

    /// The address of the current instruction, with the branches before it.
    #[inline(never)]
    pub(super) fn report(
        &mut self,
        config: &Config,
        notify: bool,
        updiscon: bool,
        sink: &mut impl Sink,
    ) {
        let addr = self.cur.addr;
        let from = if config.full_address { 0 } else { self.base };
        let mut report = Report {
            address: self.full(config, addr.wrapping_sub(from)),
            notify,
            updiscon,
            irreport: false,
            irdepth: 0,
        };
        report.irdepth = match config.idle_irdepth {
            IdleIrdepth::Repeated => report.idle_irdepth(&self.out.layout),
            IdleIrdepth::Ones => mask(self.out.layout.irdepth_width.into()) as u16,
        };
        let map = core::mem::take(&mut self.map);
        let packet = match map.count {
            0 => Packet::Address(report),
            _ => Packet::Branches {
                map,
                address: Some(report),
            },
        };
        self.emit(&packet, sink);
        self.base = addr;
    }

    /// A full map of branches.
    pub(super) fn branches(&mut self, sink: &mut impl Sink) {
        let map = core::mem::take(&mut self.map);
        self.emit(&Packet::Branches { map, address: None }, sink);
    }

    /// A synchronisation packet for the current instruction.
    pub(super) fn start(&mut self, config: &Config, sink: &mut impl Sink) {
        let cur = &self.cur;
        let start = Start {
            branch: cur.itype != Itype::Taken,
            privilege: cur.mode.code(),
            time: self.out.stamp(cur.time),
            context: cur.context.0,
            address: self.full(config, cur.addr),
        };
        self.emit(&Packet::Start(start), sink);
        self.synchronised();
    }

    /// A trap packet for the current instruction, the first of the handler.
    pub(super) fn handler(&mut self, config: &Config, sink: &mut impl Sink) {
        let packet = self.trap_packet(config, &self.cur, &self.trap, true);
        self.emit(&packet, sink);
        self.synchronised();
    }

    /// A packet for this trap, while its handler has not retired anything.
    pub(super) fn trap_only(&mut self, config: &Config, trap: &Unit, sink: &mut impl Sink) {
        let packet = self.trap_packet(config, trap, trap, false);
        self.emit(&packet, sink);
        self.synchronised();
    }

    fn trap_packet(&self, config: &Config, at: &Unit, trap: &Unit, thaddr: bool) -> Packet {
        let interrupt = trap.itype == Itype::Interrupt;
        // As a decoder sees it.
        let ecause = trap.cause & mask(config.ecause_width.into()) as u32;
        let tval = match config.version {
            Version::V1_1_1 if ecause == ILLEGAL && !interrupt => Some(trap.addr),
            Version::V2_0 if interrupt => None,
            _ => Some(trap.tval),
        };
        Packet::Trap(Trap {
            branch: at.itype != Itype::Taken,
            privilege: at.mode.code(),
            time: self.out.stamp(at.time),
            context: at.context.0,
            ecause,
            interrupt,
            thaddr,
            address: Some(self.full(config, self.cur.addr)),
            tval,
        })
    }

    /// What every synchronisation packet for the current unit settles.
    fn synchronised(&mut self) {
        self.map = Default::default();
        self.base = self.cur.addr;
        self.told = true;
        self.open = Open::No;
        self.sync_next = false;
        self.owes_context = false;
        self.resync.restart(&self.cur);
    }

    /// The context of the current unit, without an address.
    pub(super) fn context(&mut self, sink: &mut impl Sink) {
        let cur = &self.cur;
        let context = Context {
            privilege: cur.mode.code(),
            time: self.out.stamp(cur.time),
            context: cur.context.0,
        };
        self.emit(&Packet::Context(context), sink);
        self.owes_context = false;
    }

    /// What has become of the trace.
    pub(super) fn support(&mut self, qual_status: QualStatus, sink: &mut impl Sink) {
        let data = self.out.layout.doptions_width;
        let support = Support {
            ienable: self.enabled,
            encoder_mode: 0,
            qual_status,
            ioptions: self.ioptions,
            data: data.map(|_| DataSupport::default()),
        };
        self.emit(&Packet::Support(support), sink);
        self.announced = self.enabled;
    }

    /// Reports where the trace ends; how, for the support packet after it.
    pub(super) fn tell_end(&mut self, config: &Config, sink: &mut impl Sink) -> QualStatus {
        if self.cur.itype.is_trap() {
            if config.version == Version::V2_0 && !self.trap_told {
                self.trap_only(config, &self.cur.clone(), sink);
            }
            return QualStatus::EndedRep;
        }
        if self.owes_context {
            self.context(sink);
        }
        match self.due.take() {
            None if self.told => QualStatus::EndedNtr,
            due => {
                self.report(config, due == Some(Due::Notify), false, sink);
                match due {
                    Some(Due::Target | Due::Notify) => QualStatus::EndedNtr,
                    // On the path to it, unless that is reported.
                    Some(Due::Flush) | None => QualStatus::EndedRep,
                }
            }
        }
    }

    /// The same as the reference encoder does it: once more in any case.
    pub(super) fn tell_end_again(&mut self, config: &Config, sink: &mut impl Sink) -> QualStatus {
        if self.cur.itype.is_trap() {
            return self.tell_end(config, sink);
        }
        let full = self.resync.is_full(self.cur.time, self.cur.halfwords);
        let follows = full && self.resync.rule == ResyncRule::Exceeded;
        let updiscon = follows && self.due == Some(Due::Target);
        if let Some(due) = self.due.take() {
            self.report(config, due == Due::Notify, updiscon, sink);
        } else if self.map.count >= FULL {
            self.branches(sink);
        }
        self.report(config, false, updiscon, sink);
        QualStatus::EndedRep
    }
}
