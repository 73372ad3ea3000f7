//! The packets of one hart.

use hartrace_isa::Itype;

use super::Sink;
use super::hart::{Due, Hart, Open};
use super::prediction::Prediction;
use super::unit::Unit;
use crate::modes::returns::Returns;
use crate::packet::bits::{Writer, mask};
use crate::packet::write::{by_address, short_index, short_report};
use crate::{
    BranchMap, Config, Context, IdleIrdepth, Layout, Packet, QualStatus, Report, ResyncRule, Start,
    Support, Trap, Version,
};

/// Exception code of an illegal instruction.
const ILLEGAL: u32 = 2;

/// An address, or a difference, as a field.
#[inline]
fn field(config: &Config, layout: &Layout, addr: u64) -> u64 {
    addr >> config.iaddress_lsb & mask(layout.address_width().into())
}

/// A report of an address, or of a difference, and nothing else.
#[inline]
pub(super) fn plain_report(config: &Config, layout: &Layout, addr: u64) -> Report {
    Report {
        address: field(config, layout, addr),
        ..Report::default()
    }
}

/// A report by its index in the cache.
fn indexed(
    config: &Config,
    (index, map): (u16, BranchMap),
    report: Report,
    layout: &Layout,
) -> Writer {
    let idle = config.idle_irdepth == IdleIrdepth::Ones || map.last();
    let irreport = report.irreport;
    let irdepth = match irreport {
        true => report.irdepth,
        false if idle => mask(layout.irdepth_width.into()) as u16,
        false => 0,
    };
    let packet = Packet::JumpTarget {
        index,
        map,
        irreport,
        irdepth,
    };
    packet.fields(layout)
}

/// The first of two packets, unless the other is shorter.
fn shortest(first: Writer, other: Writer) -> Writer {
    match first.compressed_len() <= other.compressed_len() {
        true => first,
        false => other,
    }
}

impl Hart {
    #[inline]
    fn emit(&mut self, packet: &Packet, sink: &mut impl Sink) {
        self.out.send(packet, self.cur.time, sink);
        self.resync.count(1);
    }

    /// An address as a field.
    fn full(&self, config: &Config, addr: u64) -> u64 {
        field(config, &self.out.layout, addr)
    }

    /// The branches were reported.
    pub(super) fn clear_branches(&mut self) {
        self.map = Default::default();
        if let Some(prediction) = &mut self.prediction {
            prediction.clear();
        }
    }

    /// What a packet for the current instruction reports about returns, if it is
    /// not the target of another jump.
    pub(super) fn ir_report(&self) -> Option<u16> {
        let returns = self.returns.as_ref()?;
        match self.implied {
            true => returns.landed(),
            false => returns.here().filter(|_| !self.is_settled_branch(returns)),
        }
    }

    /// Whether the current instruction is a branch for which `irdepth` is not needed:
    /// its own outcome says that it is the first branch since the last return.
    fn is_settled_branch(&self, returns: &Returns) -> bool {
        self.cur.itype.is_branch() && !returns.counts()
    }

    /// The address of the current instruction, with the branches before it.
    /// `returns` is what [`Hart::ir_report`] says.
    #[inline(never)]
    pub(super) fn report(
        &mut self,
        config: &Config,
        notify: bool,
        updiscon: bool,
        returns: Option<u16>,
        sink: &mut impl Sink,
    ) {
        let target = self.due == Some(Due::Target);
        let landing = self.landing.filter(|_| target);
        let (updiscon, irdepth) = match self.returns.as_ref().and_then(Returns::repeated) {
            _ if target => (updiscon, landing.and_then(|landing| landing.report)),
            // The return before was left out. So that it is not taken for one that
            // only passes the address, it counts as a jump now.
            _ if self.implied && !notify => (true, returns),
            // Its target may be passed before it. Counted as left out it cannot
            // be mistaken for that.
            _ if self.implied => {
                let here = self.returns.as_ref().and_then(Returns::here);
                (updiscon, here)
            }
            Some(last) if returns.is_some() => {
                self.report_return(config, last, sink);
                (updiscon, None)
            }
            _ => (updiscon, returns),
        };
        let report = Report {
            notify,
            updiscon,
            ..self.report_of(config, self.cur.addr, irdepth)
        };
        let index = match &self.targets {
            Some(targets) if self.hit && target && !updiscon => Some(targets.index(self.cur.addr)),
            _ => None,
        };
        self.send_report(config, (self.cur.addr, report), index, sink);
    }

    /// The target of a return that was left out, with the branches before it.
    pub(super) fn report_return(
        &mut self,
        config: &Config,
        (target, depth): (u64, u16),
        sink: &mut impl Sink,
    ) {
        let report = self.report_of(config, target, Some(depth));
        self.send_report(config, (target, report), None, sink);
    }

    /// A report of this address, and of the returns before it.
    fn report_of(&self, config: &Config, addr: u64, irdepth: Option<u16>) -> Report {
        let from = if config.full_address { 0 } else { self.base };
        Report {
            irreport: irdepth.is_some(),
            irdepth: irdepth.unwrap_or_default(),
            ..plain_report(config, &self.out.layout, addr.wrapping_sub(from))
        }
    }

    /// Sends a report, in the format that 8.1 chooses; `index` if the address is
    /// in the cache.
    fn send_report(
        &mut self,
        config: &Config,
        (addr, mut report): (u64, Report),
        index: Option<u16>,
        sink: &mut impl Sink,
    ) {
        let map = self.map;
        let ones = mask(self.out.layout.irdepth_width.into()) as u16;
        if !report.irreport {
            report.irdepth = match config.idle_irdepth {
                IdleIrdepth::Repeated => report.idle_irdepth(&self.out.layout),
                IdleIrdepth::Ones => ones,
            };
        }
        let address = Some(report);
        match (self.prediction.is_some() || index.is_some(), map.count) {
            (false, 0) => self.emit(&Packet::Address(report), sink),
            (false, _) => self.emit(&Packet::Branches { map, address }, sink),
            (true, _) => self.send_modal(config, report, index, sink),
        }
        self.clear_branches();
        self.base = addr;
        self.settle_returns();
    }

    /// A report where branches are counted, or the address may be in the cache.
    fn send_modal(
        &mut self,
        config: &Config,
        report: Report,
        index: Option<u16>,
        sink: &mut impl Sink,
    ) {
        self.resync.count(1);
        let (map, layout, time) = (self.map, &self.out.layout, self.cur.time);
        let count = self.prediction.as_ref().and_then(Prediction::count);
        let fields = match (count, index) {
            (Some((branch_count, failed)), _) => {
                let address = Some((failed, report));
                let packet = Packet::BranchCount {
                    branch_count,
                    address,
                };
                packet.fields(layout)
            }
            (None, None) => by_address(map, report, layout),
            (None, Some(index)) => {
                // The shorter one (6.8).
                let silent = !report.irreport && config.idle_irdepth == IdleIrdepth::Repeated;
                let short = short_report(map, &report, layout).filter(|_| silent);
                if let Some(short) = short {
                    let packet = short_index(index, map, layout).or(short);
                    return self.out.send_short(packet, time, sink);
                }
                let indexed = indexed(config, (index, map), report, layout);
                shortest(indexed, by_address(map, report, layout))
            }
        };
        self.out.send_fields(fields, time, sink);
    }

    /// Returns are counted from here.
    fn settle_returns(&mut self) {
        if let Some(returns) = &mut self.returns {
            returns.settle();
        }
    }

    /// As many branches as a packet holds, or one that was not predicted.
    pub(super) fn branches(&mut self, config: &Config, sink: &mut impl Sink) {
        let packet = match self.prediction.as_ref().and_then(|p| p.count()) {
            // The count has reached its maximum: with the address, though none is
            // needed.
            Some((_, false)) => {
                let returns = self.ir_report();
                return self.report(config, false, false, returns, sink);
            }
            Some((branch_count, true)) => Packet::BranchCount {
                branch_count,
                address: None,
            },
            None => Packet::Branches {
                map: self.map,
                address: None,
            },
        };
        self.emit(&packet, sink);
        self.clear_branches();
        self.settle_returns();
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
        self.named(sink);
        self.synchronised();
    }

    /// The packet just sent, if it was, names the current instruction.
    fn named(&mut self, sink: &mut impl Sink) {
        if !self.out.is_dropping() {
            sink.synchronised(self.id, self.cur.addr, self.cur.halfwords);
        }
    }

    /// A trap packet for the current instruction, the first of the handler.
    pub(super) fn handler(&mut self, config: &Config, sink: &mut impl Sink) {
        let packet = self.trap_packet(config, &self.cur, &self.trap, true);
        match self.implies_handler(config) {
            None => {
                self.emit(&packet, sink);
                self.named(sink);
            }
            Some(true) => {
                if let Packet::Trap(trap) = packet {
                    let address = None;
                    self.emit(&Packet::Trap(Trap { address, ..trap }), sink);
                    self.named(sink);
                }
            }
            // The mode is off for this packet.
            Some(false) => {
                let bit = self.out.layout.exception_bit.map_or(0, |bit| 1 << bit);
                let ioptions = self.ioptions & !bit;
                let all = core::mem::replace(&mut self.ioptions, ioptions);
                self.support(QualStatus::NoChange, sink);
                self.out.layout.implicit_exception = false;
                self.emit(&packet, sink);
                self.named(sink);
                self.out.layout.implicit_exception = true;
                self.ioptions = all;
                self.support(QualStatus::NoChange, sink);
            }
        }
        self.synchronised();
    }

    /// In implicit exception mode: whether the current instruction is the handler
    /// that a decoder expects. If it is not, it will be the next time.
    fn implies_handler(&mut self, config: &Config) -> Option<bool> {
        let vectors = self.vectors.as_mut()?;
        let interrupt = self.trap.itype == Itype::Interrupt;
        let cause = self.trap.cause & mask(config.ecause_width.into()) as u32;
        let (mode, addr) = (self.cur.mode, self.cur.addr);
        let known = vectors.handler(mode, interrupt, cause) == Some(addr);
        if !known {
            vectors.learn(mode, interrupt, cause, addr);
        }
        Some(known)
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
            Version::V2_0 | Version::V2_05 if interrupt && !config.interrupt_tval => None,
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
        self.clear_branches();
        self.settle_returns();
        self.restart_data();
        if !self.keeps {
            self.reset_modes();
            if let Some(prediction) = &mut self.prediction
                && self.cur.itype.is_branch()
            {
                prediction.resume(self.cur.addr, self.cur.itype == Itype::Taken);
            }
        }
        self.base = self.cur.addr;
        self.told = true;
        self.open = Open::No;
        self.sync_next = false;
        self.owes_context = false;
        self.resync.restart(&self.cur);
    }

    /// Predictor, cache and return stack start afresh.
    pub(super) fn reset_modes(&mut self) {
        if let Some(prediction) = &mut self.prediction {
            prediction.reset();
        }
        if let Some(targets) = &mut self.targets {
            targets.reset();
        }
        if let Some(returns) = &mut self.returns {
            returns.reset();
        }
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
        let reports = self.out.layout.doptions_width.is_some();
        let data = reports.then(|| self.data_support());
        let support = Support {
            ienable: self.enabled,
            encoder_mode: 0,
            qual_status,
            ioptions: self.ioptions,
            data,
        };
        self.emit(&Packet::Support(support), sink);
        self.announced = self.enabled;
    }

    /// Reports where the trace ends; how, for the support packet after it.
    pub(super) fn tell_end(&mut self, config: &Config, sink: &mut impl Sink) -> QualStatus {
        if self.cur.itype.is_trap() {
            if !config.version.is_draft() && !self.trap_told {
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
                self.due = due;
                let returns = self.ir_report();
                self.report(config, due == Some(Due::Notify), false, returns, sink);
                self.due = None;
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
        if let Some(due) = self.due {
            let returns = self.ir_report();
            self.report(config, due == Due::Notify, updiscon, returns, sink);
            self.due = None;
        } else if self.is_full() {
            self.branches(config, sink);
        }
        let returns = self.ir_report();
        self.report(config, false, updiscon, returns, sink);
        QualStatus::EndedRep
    }
}
