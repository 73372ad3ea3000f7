//! One source of packets: the state of its decoding.

use core::ops::ControlFlow;

use hartrace_flow::{
    Blocks, Cause, Consumer, Context, Event, Gap, HartId, History, Mark, Mode, Ownership, SpaceId,
    Trap, Walk,
};

use super::Settings;
use super::modes::{Doubt, Modes};
use super::time::Clock;
use super::way::{Next, Nobody, Outcomes, Pending, Trouble};
use crate::packet::quick::Plain;
use crate::{BranchMap, Ending, Fault, Packet, QualStatus, Report, Start, Support, Version};

/// One source.
#[derive(Debug)]
pub(super) struct Source {
    hart: HartId,
    pub(super) walk: Walk,
    phase: Phase,
    /// The address sent last, which differences are relative to.
    base: u64,
    /// The instruction the walk stands before has retired: a packet named it.
    pub(super) named: bool,
    /// Outcomes told for branches not passed yet: at most that of the
    /// instruction the walk stands before.
    pub(super) carry: Outcomes,
    /// The packet that waits for the one behind it.
    pub(super) pending: Option<Pending>,
    /// What was told last.
    owner: Ownership,
    clock: Clock,
    /// Instructions given when the trace last agreed with the code.
    confirmed: u64,
    /// A full address has been seen: nothing depends on what came before.
    anchored: bool,
    /// The encoder is in a mode that is not understood: nothing is decoded.
    refused: bool,
    doubt: Option<Doubt>,
    pub(super) pause: bool,
}

/// What is known about where the hart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing yet, and nothing missing.
    Start,
    /// Where the walk stands.
    Running,
    /// A trap was taken and its handler is not told yet.
    Trapped(Trap),
    /// Tracing ended.
    Stopped,
    /// Something is missing; the gap grows until the next full address.
    Lost(Gap),
}

/// The state of a source in plain values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    phase: Phase,
    pc: u64,
    /// The constant that the jump at `pc` goes by, if it does.
    constant: Option<u64>,
    space: SpaceId,
    base: u64,
    named: bool,
    carry: Outcomes,
    pending: Option<Pending>,
    owner: Ownership,
    clock: Clock,
    refused: bool,
    doubt: Option<Doubt>,
    unconfirmed: u64,
}

/// What a synchronisation packet says of the hart.
#[derive(Clone, Copy)]
struct Sync {
    address: u64,
    /// Outcome of the instruction, should it be a branch.
    taken: bool,
    owner: Ownership,
    time: Option<u64>,
}

impl Source {
    pub(super) fn new(hart: HartId, _settings: &Settings) -> Source {
        Source {
            hart,
            walk: Walk::new(hart),
            phase: Phase::Start,
            base: 0,
            named: false,
            carry: Outcomes::default(),
            pending: None,
            owner: Ownership::default(),
            clock: Clock::default(),
            confirmed: 0,
            anchored: false,
            refused: false,
            doubt: None,
            pause: false,
        }
    }

    pub(super) fn state(&self, blocks: &Blocks<'_>) -> State {
        State {
            phase: self.phase,
            pc: self.walk.pc(blocks),
            constant: self.walk.constant(blocks),
            space: self.walk.space(),
            base: self.base,
            named: self.named,
            carry: self.carry,
            pending: self.pending,
            owner: self.owner,
            clock: self.clock,
            refused: self.refused,
            doubt: self.doubt,
            unconfirmed: self.walk.instructions().wrapping_sub(self.confirmed),
        }
    }

    pub(super) fn set_state(&mut self, state: &State, blocks: &mut Blocks<'_>) {
        self.walk = Walk::new(self.hart);
        self.walk.enter(blocks, state.space);
        self.walk
            .restart(blocks, state.constant.unwrap_or(state.pc));
        if state.constant.is_some() {
            self.walk.step(blocks, &mut History::default(), &mut Nobody);
        }
        self.phase = state.phase;
        self.base = state.base;
        self.named = state.named;
        self.carry = state.carry;
        self.pending = state.pending;
        self.owner = state.owner;
        self.clock = state.clock;
        self.refused = state.refused;
        self.doubt = state.doubt;
        self.confirmed = self.walk.instructions().wrapping_sub(state.unconfirmed);
    }

    pub(super) fn set_time_hint(&mut self, state: &State) {
        self.clock.hint(state.clock);
    }

    pub(super) fn is_anchored(&self) -> bool {
        self.anchored
    }

    pub(super) fn event<C: Consumer>(&mut self, event: &Event, out: &mut C) {
        self.pause |= out.event(self.hart, event).is_break();
    }

    /// The trace agrees with the code so far.
    #[inline]
    pub(super) fn confirm(&mut self) {
        self.confirmed = self.walk.instructions();
    }

    /// Something is wrong at this offset; these bytes say nothing usable.
    #[cold]
    pub(super) fn lose(&mut self, fault: Fault, value: u64, at: u64, bytes: u64) {
        self.named = false;
        self.carry = Outcomes::default();
        self.pending = None;
        if let Some(doubt) = &mut self.doubt {
            doubt.failed = true;
        }
        if let Phase::Lost(gap) = &mut self.phase {
            gap.bytes += bytes;
            return;
        }
        let unconfirmed = self.walk.instructions().wrapping_sub(self.confirmed);
        self.phase = Phase::Lost(Gap {
            at,
            reason: fault.reason(value),
            bytes,
            unconfirmed,
        });
    }

    /// The stream ends at this offset.
    pub(super) fn finish<C: Consumer>(&mut self, blocks: &mut Blocks<'_>, at: u64, out: &mut C) {
        if self.phase == Phase::Running
            && let Err((fault, value)) = self.end(blocks, Next::Unknown, out)
        {
            self.lose(fault, value, at, 0);
        }
        match self.phase {
            Phase::Trapped(trap) => self.event(&Event::Trap(trap), out),
            Phase::Lost(gap) => self.event(&Event::Gap(gap), out),
            _ => {}
        }
        self.phase = Phase::Start;
    }

    /// Whether it is known where the hart is.
    #[inline]
    pub(super) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// One packet of this source, at this offset and of this length.
    pub(super) fn packet<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        packet: &Packet,
        (at, len): (u64, u64),
        out: &mut C,
    ) -> ControlFlow<()> {
        let done = match *packet {
            Packet::Branches { map, address } if self.is_running() => match address {
                Some(report) => self.report(settings, blocks, (map, report), out),
                None => self.branches(blocks, map, out),
            },
            Packet::Address(report) if self.is_running() => {
                self.report(settings, blocks, (BranchMap::default(), report), out)
            }
            _ => self.seldom(settings, blocks, packet, (at, len), out),
        };
        self.done(done, (at, len))
    }

    /// The same for a plain packet while it is known where the hart is.
    #[inline(always)]
    pub(super) fn plain<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        packet: Plain,
        place: (u64, u64),
        out: &mut C,
    ) -> ControlFlow<()> {
        let done = match packet.address {
            Some(field) => self.address(settings, blocks, (packet.map, field), out),
            None => self.branches(blocks, packet.map, out),
        };
        self.done(done, place)
    }

    /// A packet at this place was dealt with.
    #[inline(always)]
    fn done(&mut self, done: Result<(), Trouble>, (at, len): (u64, u64)) -> ControlFlow<()> {
        if let Err((fault, value)) = done {
            self.lose(fault, value, at, len);
        }
        if self.walk.take_pause() | core::mem::take(&mut self.pause) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// A packet with an address that is not a synchronisation.
    fn report<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        (map, report): (BranchMap, Report),
        out: &mut C,
    ) -> Result<(), Trouble> {
        self.address(settings, blocks, (map, report.address), out)?;
        if report.notify {
            self.resolve(blocks, Next::Sync, out)?;
            self.event(&Event::Mark(Mark::Notify), out);
        } else if report.updiscon {
            self.resolve(blocks, Next::Flow, out)?;
        }
        Ok(())
    }

    /// The hart came by the address in this field, sooner or later.
    #[inline(always)]
    fn address<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        (map, field): (BranchMap, u64),
        out: &mut C,
    ) -> Result<(), Trouble> {
        self.resolve(blocks, Next::Flow, out)?;
        let from = match settings.modes.full_address {
            true => 0,
            false => self.base,
        };
        let moved = from.wrapping_add(field << settings.layout.iaddress_lsb);
        self.base = canonical(settings, moved);
        self.pending = Some(Pending {
            address: self.base,
            outcomes: self.carry.and(Outcomes::of(map)),
            arrived: false,
        });
        Ok(())
    }

    /// A full map of branches and no address.
    #[inline]
    fn branches<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        map: BranchMap,
        out: &mut C,
    ) -> Result<(), Trouble> {
        self.resolve(blocks, Next::Flow, out)?;
        self.use_up(blocks, Outcomes::of(map), out)
    }

    /// Packets that do not come all the time, and all packets while nobody
    /// knows where the hart is.
    #[cold]
    fn seldom<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        packet: &Packet,
        (at, len): (u64, u64),
        out: &mut C,
    ) -> Result<(), Trouble> {
        match packet {
            Packet::Support(support) => {
                let traced = !matches!(self.phase, Phase::Start | Phase::Stopped);
                let done = self.support(settings, blocks, support, at, out);
                self.doubt(settings, support, traced, at + len)?;
                done
            }
            _ if self.refused => {
                self.lose(Fault::UnknownOption, 0, at, len);
                Ok(())
            }
            Packet::Start(start) => self.start(settings, blocks, start, at, out),
            Packet::Trap(trap) => self.trap(settings, blocks, trap, at, out),
            Packet::Context(context) => {
                let owner = ownership(settings, context.privilege, context.context)?;
                if matches!(self.phase, Phase::Running) {
                    self.resolve(blocks, Next::Unknown, out)?;
                }
                self.tell_owner(blocks, owner, out);
                self.tell_time(settings, context.time, out);
                Ok(())
            }
            Packet::BranchCount { .. } | Packet::JumpTarget { .. } => {
                Err((Fault::UnknownSubformat, 0))
            }
            Packet::Branches { .. } | Packet::Address(_) => match &mut self.phase {
                Phase::Lost(gap) => {
                    gap.bytes += len;
                    Ok(())
                }
                Phase::Trapped(trap) => {
                    let trap = *trap;
                    self.event(&Event::Trap(trap), out);
                    Err((Fault::NotSynchronised, 0))
                }
                _ => Err((Fault::NotSynchronised, 0)),
            },
        }
    }

    /// Format 3 subformat 0.
    fn start<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        start: &Start,
        at: u64,
        out: &mut C,
    ) -> Result<(), Trouble> {
        let sync = Sync {
            address: full(settings, start.address),
            taken: !start.branch,
            owner: ownership(settings, start.privilege, start.context)?,
            time: settings.time(start.time),
        };
        match self.phase {
            Phase::Running => {
                if let Err((fault, value)) = self.walk_to(blocks, sync, out) {
                    self.lose(fault, value, at, 0);
                }
            }
            Phase::Trapped(trap) => {
                let handler = Some(sync.address);
                self.event(&Event::Trap(Trap { handler, ..trap }), out);
            }
            _ => {}
        }
        self.synchronise(settings, blocks, sync, out);
        Ok(())
    }

    /// The way to a synchronisation packet from where the walk stands.
    fn walk_to<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        sync: Sync,
        out: &mut C,
    ) -> Result<(), Trouble> {
        let changed = sync.owner.mode != self.owner.mode;
        let moved = sync.owner.context != self.owner.context;
        if moved && !self.leads_to(blocks, sync.address, changed) {
            // Another context, and another place: an asynchronous change.
            return self.end(blocks, Next::Sync, out);
        }
        let next = self.before(blocks, sync.address);
        self.resolve(blocks, next, out)?;
        self.approach(blocks, (sync.address, sync.taken), changed, out)
    }

    /// Whatever was before, something is known again.
    fn begin<C: Consumer>(&mut self, out: &mut C) {
        match self.phase {
            Phase::Lost(gap) => self.event(&Event::Gap(gap), out),
            Phase::Start | Phase::Stopped => self.event(&Event::Mark(Mark::On), out),
            Phase::Running | Phase::Trapped(_) => {}
        }
        self.phase = Phase::Running;
    }

    /// A full address: the hart is here now.
    fn synchronise<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        sync: Sync,
        out: &mut C,
    ) {
        self.begin(out);
        self.anchored = true;
        self.pending = None;
        self.base = sync.address;
        self.tell_owner(blocks, sync.owner, out);
        self.walk.restart(blocks, sync.address);
        self.named = true;
        self.carry = Outcomes::own(self.walk.at_branch(blocks), sync.taken);
        self.confirm();
        if let Some(time) = sync.time {
            self.tell_time(settings, time, out);
        }
    }

    /// Format 3 subformat 1.
    fn trap<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        packet: &crate::Trap,
        at: u64,
        out: &mut C,
    ) -> Result<(), Trouble> {
        let owner = ownership(settings, packet.privilege, packet.context)?;
        let address = packet.address.map(|field| full(settings, field));
        let epc = self.epc(settings, blocks, packet, address, out);
        let epc = epc.unwrap_or_else(|(fault, value)| {
            self.lose(fault, value, at, 0);
            None
        });
        let code = Some(packet.ecause);
        let tval = packet.tval.map(|field| canonical(settings, field));
        let trap = Trap {
            epc,
            handler: address.filter(|_| packet.thaddr),
            cause: match packet.interrupt {
                false => Cause::Exception(code),
                true => Cause::Interrupt(code),
            },
            tval: tval.filter(|_| !tells_epc(settings, packet)),
        };
        let Some(handler) = trap.handler else {
            return self.trap_only(settings, blocks, (packet, owner, trap), out);
        };
        self.begin(out);
        self.event(&Event::Trap(trap), out);
        let sync = Sync {
            address: handler,
            taken: !packet.branch,
            owner,
            time: settings.time(packet.time),
        };
        self.synchronise(settings, blocks, sync, out);
        Ok(())
    }

    /// A trap whose handler is not told yet.
    fn trap_only<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        (packet, owner, trap): (&crate::Trap, Ownership, Trap),
        out: &mut C,
    ) -> Result<(), Trouble> {
        self.begin(out);
        if let Some(field) = packet.address {
            self.base = full(settings, field);
        }
        self.phase = Phase::Trapped(trap);
        // The mode before the trap, which is known unless tracing began here.
        self.tell_owner(blocks, owner, out);
        if let Some(time) = settings.time(packet.time) {
            self.tell_time(settings, time, out);
        }
        Ok(())
    }

    /// Gives out what there is before a trap; where the hart was then.
    fn epc<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        packet: &crate::Trap,
        address: Option<u64>,
        out: &mut C,
    ) -> Result<Option<u64>, Trouble> {
        let tval = packet.tval.map(|field| canonical(settings, field));
        let told = match settings.config.version {
            Version::V1_1_1 if tells_epc(settings, packet) => tval,
            Version::V2_0 if !packet.thaddr && !packet.interrupt => address,
            _ => None,
        };
        match self.phase {
            Phase::Running => {
                self.resolve(blocks, Next::Sync, out)?;
                let epc = self.trap_from(blocks, told, out)?;
                self.confirm();
                Ok(epc)
            }
            Phase::Trapped(before) => {
                self.event(&Event::Trap(before), out);
                Ok(None)
            }
            // On the first instruction the address is where it trapped.
            Phase::Start | Phase::Stopped => Ok(told),
            Phase::Lost(_) => Ok(None),
        }
    }

    /// Format 3 subformat 3.
    fn support<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        support: &Support,
        at: u64,
        out: &mut C,
    ) -> Result<(), Trouble> {
        if support.encoder_mode != 0 {
            return Err((Fault::UnknownMode, u64::from(support.encoder_mode)));
        }
        if support.qual_status == QualStatus::EndedRep && self.repeats(settings, blocks) {
            self.pending = None;
        }
        let next = match support.qual_status {
            QualStatus::NoChange | QualStatus::TraceLost => Next::Unknown,
            QualStatus::EndedRep => Next::Sync,
            QualStatus::EndedNtr => Next::Flow,
        };
        match (support.qual_status, self.phase) {
            (QualStatus::NoChange, Phase::Running) => self.resolve(blocks, next, out)?,
            (QualStatus::NoChange, _) => {}
            // Even where nothing was traced: the start may be what was lost.
            (QualStatus::TraceLost, phase) => {
                match phase {
                    Phase::Running => self.end(blocks, next, out)?,
                    Phase::Trapped(trap) => self.event(&Event::Trap(trap), out),
                    _ => {}
                }
                self.lose(Fault::TraceLost, 0, at, 0);
            }
            (_, Phase::Start | Phase::Stopped) => {}
            (_, Phase::Lost(gap)) => {
                self.event(&Event::Gap(gap), out);
                self.stop(out);
            }
            (_, Phase::Trapped(trap)) => {
                self.event(&Event::Trap(trap), out);
                self.stop(out);
            }
            (_, Phase::Running) => {
                self.end(blocks, next, out)?;
                self.stop(out);
            }
        }
        Ok(())
    }

    /// A support packet tells the modes; `traced` if the hart was being traced.
    fn doubt(
        &mut self,
        settings: &Settings,
        support: &Support,
        traced: bool,
        behind: u64,
    ) -> Result<(), Trouble> {
        let refused = settings.refuses(support.ioptions);
        let before = Doubt {
            modes: settings.modes,
            refused: self.refused,
            failed: false,
            behind,
        };
        if !traced {
            self.doubt = None;
        } else if settings.told(support.ioptions) != before.modes || refused != before.refused {
            self.doubt.get_or_insert(before).behind = behind;
        }
        self.refused = refused;
        if refused && support.ienable {
            return Err((Fault::UnknownOption, u64::from(support.ioptions)));
        }
        Ok(())
    }

    /// Whether a synchronisation at this offset has the modes be what they were
    /// before a support packet.
    pub(super) fn revoke(&mut self, at: u64) -> Option<Modes> {
        let doubt = self.doubt.filter(|d| d.failed && d.behind != at)?;
        self.doubt = None;
        self.refused = doubt.refused;
        Some(doubt.modes)
    }

    /// A synchronisation at this offset was reached.
    pub(super) fn settle_doubt(&mut self, at: u64) {
        self.doubt = self.doubt.filter(|d| d.behind == at);
    }

    /// Whether the packet that waits only tells again where the walk stands. The
    /// reference encoder ends like that (`Ending::Reference`); had the hart come
    /// back there by a jump, the status were another. It may have come back
    /// without any, round a loop that takes no decision.
    fn repeats(&self, settings: &Settings, blocks: &mut Blocks<'_>) -> bool {
        self.pending.is_some_and(|p| {
            let here = self.named && p.address == self.walk.pc(blocks);
            let same = here && p.outcomes == self.carry && !p.arrived;
            let told = settings.config.ending == Ending::Told;
            same && !(told && self.comes_round(blocks))
        })
    }

    /// Tracing ends.
    fn stop<C: Consumer>(&mut self, out: &mut C) {
        self.confirm();
        self.event(&Event::Mark(Mark::Off), out);
        self.phase = Phase::Stopped;
    }

    fn tell_owner<C: Consumer>(&mut self, blocks: &mut Blocks<'_>, owner: Ownership, out: &mut C) {
        let space = match owner.context {
            Some(context) => blocks.image().space_of(context),
            None => SpaceId::FIRST,
        };
        if space != self.walk.space() {
            self.walk.enter(blocks, space);
        }
        if owner != self.owner {
            self.owner = owner;
            self.event(&Event::Context(owner), out);
        }
    }

    fn tell_time<C: Consumer>(&mut self, settings: &Settings, field: u64, out: &mut C) {
        let width = settings.layout.time_width;
        if width > 0 {
            let time = self.clock.read(field, width);
            self.event(&Event::Time(time), out);
        }
    }
}

impl Settings {
    fn time(&self, field: u64) -> Option<u64> {
        (self.layout.time_width > 0).then_some(field)
    }
}

/// Whether `tvalepc` is the address of an illegal instruction (draft 6.3.1).
fn tells_epc(settings: &Settings, packet: &crate::Trap) -> bool {
    settings.config.version == Version::V1_1_1 && packet.ecause == 2 && !packet.interrupt
}

/// The address in a field that holds a full one.
fn full(settings: &Settings, field: u64) -> u64 {
    canonical(settings, field << settings.layout.iaddress_lsb)
}

/// An address of which only `iaddress_width` bits are told: the highest of them
/// goes on to the top.
#[inline]
fn canonical(settings: &Settings, address: u64) -> u64 {
    let unused = 64 - u32::from(settings.layout.iaddress_width);
    let extended = ((address << unused) as i64 >> unused) as u64;
    settings.config.xlen.wrap(extended)
}

/// Who runs, by the fields of a packet.
fn ownership(settings: &Settings, privilege: u8, context: u64) -> Result<Ownership, Trouble> {
    let mode = Mode::from_code(privilege);
    if mode.is_none() {
        return Err((Fault::UnknownPrivilege, u64::from(privilege)));
    }
    let context = (settings.layout.context_width > 0).then_some(Context(context));
    Ok(Ownership { mode, context })
}
