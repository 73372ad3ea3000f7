//! One source of packets: the state of its decoding.

use hartrace_flow::decode::{self, Clock, Phase, Source as _, Track, TrackState};
use hartrace_flow::{
    Blocks, Cause, Consumer, Context, Event, HartId, Mark, Mode, Ownership, Reason, Trap,
};

use super::aids::{Aids, Tap};
use super::modes::Doubt;
use super::pending::{Next, Outcomes, Pending, Trouble, reason};
use super::trail::{More, Returns};
use super::{Ctx, ETrace, Message, Settings};
use crate::data::{Batch, DataSource};
use crate::packet::quick::Plain;
use crate::{BranchMap, Fault, Packet, Report, Start};

/// One source.
#[derive(Debug)]
pub struct Source {
    pub(super) track: Track,
    /// The address sent last, which differences are relative to.
    base: u64,
    /// The instruction the walk stands before has retired: a packet named it.
    pub(super) named: bool,
    /// And a packet of format 3 follows it at once: no other instruction retired in
    /// between (6.6.2).
    pub(super) closed: bool,
    /// Outcomes reported for branches not passed yet: at most that of the
    /// instruction the walk stands before.
    pub(super) carry: Outcomes,
    /// The packet that waits for the one after it.
    pub(super) pending: Option<Pending>,
    /// What was reported last.
    owner: Ownership,
    pub(super) clock: Clock,
    /// The time at which the packet that waits was sent, by its encapsulation.
    pub(super) stamp: Option<u64>,
    /// A full address has been seen: nothing depends on what came before.
    anchored: bool,
    /// The encoder is in a mode that is not understood: nothing is decoded.
    pub(super) refused: bool,
    pub(super) doubt: Option<Doubt>,
    /// An optional mode is on, so that packets depend on tables.
    modal: bool,
    /// What the packet that waits says besides, if it is modal.
    pub(super) more: More,
    /// For the optional modes.
    pub(super) aids: Aids,
    /// Data trace.
    pub(super) data: DataSource,
    /// Room for accesses on their way to the consumer.
    pub(super) batch: Batch,
}

/// The state of a source in plain values.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    track: TrackState,
    base: u64,
    named: bool,
    closed: bool,
    carry: Outcomes,
    pending: Option<Pending>,
    owner: Ownership,
    clock: Clock,
    stamp: Option<u64>,
    refused: bool,
    doubt: Option<Doubt>,
    more: More,
    aids: Aids,
    data: DataSource,
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

impl decode::Source<ETrace> for Source {
    type State = State;

    fn new(settings: &Settings, src: u16) -> Source {
        let mut source = Source {
            track: Track::new(HartId(src.into()), None),
            base: 0,
            named: false,
            closed: false,
            carry: Outcomes::default(),
            pending: None,
            owner: Ownership::default(),
            clock: Clock::default(),
            stamp: None,
            anchored: false,
            refused: false,
            doubt: None,
            modal: false,
            more: More::default(),
            aids: Aids::default(),
            data: DataSource::default(),
            batch: Batch::default(),
        };
        source.adopt(settings);
        source
    }

    #[inline]
    fn track(&mut self) -> &mut Track {
        &mut self.track
    }

    #[inline(always)]
    fn message<C: Consumer>(
        &mut self,
        message: &Message,
        cx: &mut decode::Ctx<'_, '_, Settings, C>,
    ) -> Result<(), Reason> {
        if self.modal {
            return self.modal_message(message, cx);
        }
        let done = self.any(message, &mut inner::<false, C>(cx));
        done.map_err(reason)
    }

    fn is_placed(&mut self, message: &Message) -> bool {
        // The tables of the optional modes follow the code.
        let is_sync = match message {
            Message::Packet(packet) | Message::Timed(packet, _) => packet.format() == 3,
            _ => false,
        };
        self.named && (is_sync || !self.modal)
    }

    #[cold]
    fn lose(&mut self, reason: Reason, at: u64, bytes: u64) {
        self.named = false;
        self.carry = Outcomes::default();
        self.pending = None;
        self.stamp = None;
        (self.aids.known, self.aids.fresh) = (false, false);
        self.data.lose();
        if let Some(vectors) = &mut self.aids.vectors {
            vectors.forget();
        }
        if let Some(doubt) = &mut self.doubt {
            doubt.failed = true;
        }
        self.track.lose(reason, at, bytes);
    }

    fn finish<C: Consumer>(&mut self, cx: &mut decode::Ctx<'_, '_, Settings, C>) {
        if self.track.is_running() {
            let done = match self.aids.predictor.is_some() {
                true => self.predicted(cx, |source, cx| source.end(Next::Unknown, cx)),
                false => {
                    let done = self.end(Next::Unknown, &mut inner::<true, C>(cx));
                    done.map_err(reason)
                }
            };
            if let Err(reason) = done {
                self.lose(reason, cx.place.at, 0);
            }
        }
        let phase = self.track.phase;
        match phase {
            Phase::Trapped(trap) => self.track.event(&Event::Trap(trap), cx.out),
            Phase::Lost(gap) => self.track.event(&Event::Gap(gap), cx.out),
            _ => {}
        }
        if let Phase::Running | Phase::Trapped(_) = phase {
            let reason = Fault::NoEnd.reason(self.track.walk.pc(cx.blocks));
            self.track.warn(reason, cx.place.at, true, cx.out);
        }
        self.track.phase = Phase::Start;
    }

    fn state(&self, blocks: &Blocks<'_>) -> State {
        State {
            track: self.track.state(blocks),
            base: self.base,
            named: self.named,
            closed: self.closed,
            carry: self.carry,
            pending: self.pending,
            owner: self.owner,
            clock: self.clock,
            stamp: self.stamp,
            refused: self.refused,
            doubt: self.doubt,
            more: self.more,
            aids: self.aids.clone(),
            data: self.data.clone(),
        }
    }

    fn set_state(&mut self, state: &State, blocks: &mut Blocks<'_>) {
        self.track.set_state(&state.track, blocks);
        self.base = state.base;
        self.named = state.named;
        self.closed = state.closed;
        self.carry = state.carry;
        self.pending = state.pending;
        self.owner = state.owner;
        self.clock = state.clock;
        self.stamp = state.stamp;
        self.refused = state.refused;
        self.doubt = state.doubt;
        self.more = state.more;
        self.aids.clone_from(&state.aids);
        self.data.clone_from(&state.data);
        self.modal = self.aids.is_modal();
    }

    fn hint(&mut self, state: &State) {
        self.clock.hint(state.clock);
    }

    fn is_anchored(&self) -> bool {
        self.anchored
    }

    fn leave_open(state: &mut State) {
        state.data.leave_open();
    }

    fn is_open(state: &State) -> bool {
        state.data.is_open()
    }

    fn complete(state: &mut State, before: &State) -> bool {
        state.data.complete(&before.data)
    }
}

/// The same context, without a predictor.
#[inline(always)]
fn inner<'x, 'a, const MODAL: bool, C>(
    cx: &'x mut decode::Ctx<'_, 'a, Settings, C>,
) -> Ctx<'x, 'a, C> {
    Ctx {
        settings: cx.settings,
        blocks: cx.blocks,
        out: cx.out,
        place: cx.place,
        table: None,
        modal: MODAL,
    }
}

impl Source {
    /// Other modes.
    pub(super) fn adopt(&mut self, settings: &Settings) {
        self.aids.adopt(settings, &mut self.track);
        self.modal = self.aids.is_modal();
    }

    /// A message in an optional mode.
    #[inline(never)]
    fn modal_message<C: Consumer>(
        &mut self,
        message: &Message,
        cx: &mut decode::Ctx<'_, '_, Settings, C>,
    ) -> Result<(), Reason> {
        match self.aids.predictor.is_some() {
            true => self.predicted(cx, |source, cx| source.any(message, cx)),
            false => self.any(message, &mut inner::<true, C>(cx)).map_err(reason),
        }
    }

    /// Does something with the predictor at hand.
    fn predicted<'a, C: Consumer>(
        &mut self,
        cx: &mut decode::Ctx<'_, 'a, Settings, C>,
        what: impl FnOnce(&mut Source, &mut Ctx<'_, 'a, Tap<'_, C>>) -> Result<(), Trouble>,
    ) -> Result<(), Reason> {
        let Some(mut predictor) = self.aids.predictor.take() else {
            return Err(Fault::UnknownOption.reason(0));
        };
        let table = predictor.shared_for_runs();
        let mut tap = Tap { out: cx.out, table };
        let mut inner = Ctx {
            settings: cx.settings,
            blocks: cx.blocks,
            out: &mut tap,
            place: cx.place,
            table: Some(table),
            modal: true,
        };
        let done = what(self, &mut inner);
        self.aids.predictor = Some(predictor);
        done.map_err(reason)
    }

    /// Any message.
    #[inline(always)]
    fn any<C: Consumer>(
        &mut self,
        message: &Message,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        match message {
            Message::Plain(packet) => self.plain(packet, cx),
            Message::PlainTimed(packet, time) => self.timed_plain(packet, *time, cx),
            Message::Packet(packet) => self.packet(packet, cx),
            Message::Data(bytes) => {
                self.data_payload(bytes, cx);
                Ok(())
            }
            Message::Timed(packet, time) => self.timed(packet, *time, cx),
            Message::Unexpected => {
                let reason = Fault::UnexpectedData.reason(0);
                self.track.doubt(reason, cx.place.at, cx.out);
                Ok(())
            }
        }
    }

    /// A packet that is only branches, or an address, or both, where all that is walked now
    /// was walked before. False if it is not, or not as simple: then it is still to be decoded.
    #[inline(always)]
    pub(super) fn repeat<C: Consumer>(
        &mut self,
        packet: Plain,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        out: &mut C,
    ) -> bool {
        if self.modal || !self.track.is_running() {
            return false;
        }
        if let Some(before) = self.pending {
            if !self.repeat_pending(&before, blocks, out) {
                return false;
            }
            self.pending = None;
        }
        match packet.address {
            Some(field) => {
                self.wait_for((packet.map, field), settings);
                true
            }
            None => self.repeat_branches(packet.map, blocks, out),
        }
    }

    /// A packet that is only branches, or an address, or both.
    #[inline(always)]
    pub(super) fn plain<C: Consumer>(
        &mut self,
        packet: &Plain,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        if !self.track.is_running() {
            return self.unsynchronised(cx);
        }
        match packet.address {
            Some(field) => self.address((packet.map, field), cx),
            None => self.branches(packet.map, cx),
        }
    }

    /// Any packet.
    pub(super) fn packet<C: Consumer>(
        &mut self,
        packet: &Packet,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        match *packet {
            Packet::Branches { map, address } if self.track.is_running() => match address {
                Some(report) => self.report((map, report), More::default(), cx),
                None => self.branches(map, cx),
            },
            Packet::Address(report) if self.track.is_running() => {
                self.report((BranchMap::default(), report), More::default(), cx)
            }
            Packet::BranchCount {
                branch_count,
                address,
            } if self.track.is_running() => self.branch_count(branch_count, address, cx),
            Packet::JumpTarget {
                index,
                map,
                irreport,
                irdepth,
            } if self.track.is_running() => {
                let returns = returns(cx.settings, irreport, irdepth);
                self.jump_target(index, map, returns, cx)
            }
            _ => self.seldom(packet, cx),
        }
    }

    /// A packet with an address that is not a synchronisation.
    fn report<C: Consumer>(
        &mut self,
        (map, report): (BranchMap, Report),
        more: More,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let more = More {
            returns: returns(cx.settings, report.irreport, report.irdepth),
            ..more
        };
        self.address((map, report.address), cx)?;
        self.set_more(more);
        if report.notify {
            self.resolve(Next::Sync, cx)?;
            self.closed = false;
            self.track.event(&Event::Mark(Mark::Notify), cx.out);
        } else if report.updiscon {
            self.resolve(Next::Flow, cx)?;
            self.closed = true;
        }
        Ok(())
    }

    /// The hart came by the address in this field, sooner or later.
    #[inline(always)]
    fn address<C: Consumer>(
        &mut self,
        (map, field): (BranchMap, u64),
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        self.resolve(Next::Flow, cx)?;
        self.wait_for((map, field), cx.settings);
        Ok(())
    }

    /// A packet with this address waits for the next one.
    #[inline(always)]
    fn wait_for(&mut self, (map, field): (BranchMap, u64), settings: &Settings) {
        let from = match settings.modes.full_address {
            true => 0,
            false => self.base,
        };
        let moved = from.wrapping_add(field << settings.layout.iaddress_lsb);
        self.base = canonical(settings, moved);
        self.pending = Some(Pending {
            address: self.base,
            outcomes: self.carry.and(Outcomes::of(map)),
            modal: false,
            arrived: false,
        });
    }

    /// What the packet that waits says besides.
    fn set_more(&mut self, more: More) {
        if let Some(pending) = &mut self.pending
            && !more.is_nothing()
        {
            pending.modal = true;
            self.more = more;
        }
    }

    /// Format 0 subformat 0.
    fn branch_count<C: Consumer>(
        &mut self,
        branch_count: u32,
        address: Option<(bool, Report)>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let most = cx.settings.config.max_branch_count;
        if cx.table.is_none() {
            return Err((Fault::UnknownSubformat, 0));
        }
        if branch_count > most {
            return Err((Fault::LargeBranchCount, u64::from(branch_count)));
        }
        let more = More {
            predicted: u64::from(branch_count) + 31,
            fails: address.is_none_or(|(failed, _)| failed),
            returns: Returns::Any,
        };
        let Some((_, report)) = address else {
            self.resolve(Next::Flow, cx)?;
            return self.use_up_predicted(more, cx);
        };
        self.report((BranchMap::default(), report), more, cx)?;
        if branch_count == u32::MAX {
            // Sent for its number: the address is that of the last branch (6.8).
            self.resolve(Next::Sync, cx)?;
            self.closed = false;
        }
        Ok(())
    }

    /// Format 0 subformat 1.
    fn jump_target<C: Consumer>(
        &mut self,
        index: u16,
        map: BranchMap,
        returns: Returns,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        // The jump before may have filled the entry.
        self.resolve(Next::Flow, cx)?;
        let Some(targets) = &self.aids.targets else {
            return Err((Fault::UnknownSubformat, 0));
        };
        let target = targets.get(index);
        self.base = target.ok_or((Fault::EmptyEntry, u64::from(index)))?;
        self.pending = Some(Pending {
            address: self.base,
            outcomes: self.carry.and(Outcomes::of(map)),
            modal: false,
            arrived: false,
        });
        self.set_more(More {
            returns,
            ..More::default()
        });
        Ok(())
    }

    /// A full map of branches and no address.
    #[inline]
    fn branches<C: Consumer>(
        &mut self,
        map: BranchMap,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        self.resolve(Next::Flow, cx)?;
        self.use_up(Outcomes::of(map), cx)
    }

    /// Rare packets, and all packets while the position of the hart is
    /// unknown.
    #[cold]
    fn seldom<C: Consumer>(
        &mut self,
        packet: &Packet,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        match packet {
            Packet::Support(support) => {
                let traced = !matches!(self.track.phase, Phase::Start | Phase::Stopped);
                let done = self.support(support, cx);
                let data = cx.settings.told(support).data;
                if support.data.is_some_and(|data| data.dloss) {
                    self.lose_data(Fault::DataLost, cx);
                }
                if data == Some(true)
                    && data != cx.settings.modes.data
                    && cx.settings.data.is_none()
                {
                    let reason = Fault::DataNotDecoded.reason(0);
                    self.track.warn(reason, cx.place.at, false, cx.out);
                }
                self.doubt(cx.settings, support, traced, cx.place.end())?;
                done
            }
            _ if self.refused => Err((Fault::UnknownOption, 0)),
            Packet::Start(_) | Packet::Trap(_) if self.lacks_start(cx.settings) => {
                self.unsynchronised(cx)
            }
            Packet::Start(start) => self.start(start, cx),
            Packet::Trap(trap) => self.trap(trap, cx),
            Packet::Context(context) => {
                let owner = ownership(cx.settings, context.privilege, context.context)?;
                if matches!(self.track.phase, Phase::Running) {
                    self.resolve(Next::Unknown, cx)?;
                }
                self.tell_owner(owner, cx);
                self.tell_time(context.time, cx);
                Ok(())
            }
            Packet::BranchCount { .. }
            | Packet::JumpTarget { .. }
            | Packet::Branches { .. }
            | Packet::Address(_) => self.unsynchronised(cx),
        }
    }

    /// Whether a synchronisation packet is of no use: the encoder goes on with
    /// tables that are not known.
    fn lacks_start(&self, settings: &Settings) -> bool {
        settings.modes.needs_start() && !self.aids.known && !self.aids.fresh
    }

    /// A packet about the flow while it is not known where the hart is.
    #[cold]
    fn unsynchronised<C: Consumer>(&mut self, cx: &mut Ctx<'_, '_, C>) -> Result<(), Trouble> {
        if self.refused {
            return Err((Fault::UnknownOption, 0));
        }
        match &mut self.track.phase {
            Phase::Lost(gap) => {
                gap.bytes += cx.place.len;
                Ok(())
            }
            Phase::Trapped(trap) => {
                let trap = *trap;
                self.track.event(&Event::Trap(trap), cx.out);
                Err((Fault::NotSynchronised, 0))
            }
            _ => Err((Fault::NotSynchronised, 0)),
        }
    }

    /// Format 3 subformat 0.
    fn start<C: Consumer>(
        &mut self,
        start: &Start,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let mut sync = Sync {
            address: full(cx.settings, start.address),
            taken: !start.branch,
            owner: ownership(cx.settings, start.privilege, start.context)?,
            time: cx.settings.time(start.time),
        };
        // In a loop without a decision it may as well be the next round.
        let repeats = cx.settings.config.resync_repeats
            && self.pending.is_some_and(|p| p.address == sync.address)
            && (self
                .track
                .walk
                .is_branch_at_sync(cx.blocks, sync.address, cx.place.end())
                || !self.leads_to(cx.blocks, sync.address, false));
        match self.track.phase {
            Phase::Running if repeats => match self.resolve(Next::Sync, cx) {
                Ok(()) => sync.taken = self.carry.is_taken(),
                Err((fault, value)) => self.lose(fault.reason(value), cx.place.at, 0),
            },
            Phase::Running => {
                if let Err((fault, value)) = self.walk_to(sync, cx) {
                    self.lose(fault.reason(value), cx.place.at, 0);
                }
            }
            Phase::Trapped(trap) => {
                let handler = Some(sync.address);
                self.track
                    .event(&Event::Trap(Trap { handler, ..trap }), cx.out);
            }
            _ => {}
        }
        self.synchronise(sync, cx);
        Ok(())
    }

    /// The way to a synchronisation packet from where the walk stands.
    fn walk_to<C: Consumer>(&mut self, sync: Sync, cx: &mut Ctx<'_, '_, C>) -> Result<(), Trouble> {
        let changed = sync.owner.mode != self.owner.mode;
        let moved = sync.owner.context != self.owner.context;
        // What the path to the packet that waits does to the tables counts.
        let modal = cx.settings.modes.is_modal();
        let next = match moved && (modal || !self.leads_to(cx.blocks, sync.address, changed)) {
            true => Next::Sync,
            false => self.before(cx.blocks, sync.address),
        };
        self.resolve(next, cx)?;
        if moved && self.closed && !self.leads_to(cx.blocks, sync.address, changed) {
            // The last instruction of one context and the first of another (table 4.4,
            // ctype 3). Otherwise the next jump leads there (chapter 11).
            return self.end(Next::Sync, cx);
        }
        self.approach((sync.address, sync.taken), changed, cx)
    }

    /// Whatever was before, something is known again.
    fn begin<C: Consumer>(&mut self, cx: &mut Ctx<'_, '_, C>) {
        match self.track.phase {
            Phase::Lost(gap) => self.track.event(&Event::Gap(gap), cx.out),
            Phase::Start | Phase::Stopped => self.track.event(&Event::Mark(Mark::On), cx.out),
            Phase::Running | Phase::Trapped(_) => {}
        }
        self.track.phase = Phase::Running;
    }

    /// A full address: the hart is here now.
    fn synchronise<C: Consumer>(&mut self, sync: Sync, cx: &mut Ctx<'_, '_, C>) {
        self.begin(cx);
        self.synchronise_data(cx);
        self.anchored |= !cx.settings.modes.needs_start() || self.aids.fresh;
        if !cx.settings.modes.keeps || self.aids.fresh {
            self.aids.reset(&mut self.track, cx.table);
        }
        (self.aids.known, self.aids.fresh) = (true, false);
        self.pending = None;
        self.base = sync.address;
        self.tell_owner(sync.owner, cx);
        self.track.settle();
        self.track
            .synchronise(cx.blocks, sync.address, cx.place.end());
        (self.named, self.closed) = (true, false);
        self.carry = Outcomes::own(self.track.walk.at_branch(cx.blocks), sync.taken);
        self.track.confirm();
        if let Some(time) = sync.time {
            self.tell_time(time, cx);
        }
    }

    /// Format 3 subformat 1.
    fn trap<C: Consumer>(
        &mut self,
        packet: &crate::Trap,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let owner = ownership(cx.settings, packet.privilege, packet.context)?;
        let address = packet.address.map(|field| full(cx.settings, field));
        let traced = matches!(self.track.phase, Phase::Running | Phase::Trapped(_));
        let epc = self.epc(packet, address, cx);
        let epc = epc.unwrap_or_else(|(fault, value)| {
            self.lose(fault.reason(value), cx.place.at, 0);
            None
        });
        // The draft reports the last of several traps only, and what can be inferred is
        // where the first of them was taken.
        let epc = tvalepc(cx.settings, packet).or(epc);
        let implied = packet.thaddr && packet.address.is_none();
        let handler = match implied {
            false => address.filter(|_| packet.thaddr),
            true => self.handler(packet, owner),
        };
        if let Some(vectors) = &mut self.aids.vectors
            && let (Some(handler), Some(mode), false) = (handler, owner.mode, implied)
        {
            vectors.learn(mode, packet.interrupt, packet.ecause, handler);
        }
        let code = Some(packet.ecause);
        let tval = packet.tval.map(|field| canonical(cx.settings, field));
        let tval = tval.filter(|_| tvalepc(cx.settings, packet).is_none());
        let trap = Trap {
            epc,
            handler,
            cause: match packet.interrupt {
                false => Cause::Exception(code),
                true => Cause::Interrupt(code),
            },
            tval,
            pending: None,
        };
        let Some(handler) = trap.handler else {
            if !implied {
                return self.trap_only((packet, owner, trap), cx);
            }
            if traced {
                self.track.event(&Event::Trap(trap), cx.out);
            }
            return Err((Fault::UnknownHandler, u64::from(packet.ecause)));
        };
        self.begin(cx);
        self.track.event(&Event::Trap(trap), cx.out);
        let sync = Sync {
            address: handler,
            taken: !packet.branch,
            owner,
            time: cx.settings.time(packet.time),
        };
        self.synchronise(sync, cx);
        Ok(())
    }

    /// The handler of a trap whose packet leaves it out.
    fn handler(&self, packet: &crate::Trap, owner: Ownership) -> Option<u64> {
        let vectors = self.aids.vectors.as_ref()?;
        vectors.handler(owner.mode?, packet.interrupt, packet.ecause)
    }

    /// A trap whose handler is not reported yet.
    fn trap_only<C: Consumer>(
        &mut self,
        (packet, owner, trap): (&crate::Trap, Ownership, Trap),
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        self.begin(cx);
        if let Some(field) = packet.address {
            self.base = full(cx.settings, field);
        }
        self.track.phase = Phase::Trapped(trap);
        // The mode before the trap, which is known unless tracing began here.
        self.tell_owner(owner, cx);
        if let Some(time) = cx.settings.time(packet.time) {
            self.tell_time(time, cx);
        }
        Ok(())
    }

    /// Gives out what there is before a trap; where the hart was then.
    fn epc<C: Consumer>(
        &mut self,
        packet: &crate::Trap,
        address: Option<u64>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<Option<u64>, Trouble> {
        let told = match packet.thaddr || packet.interrupt {
            true => tvalepc(cx.settings, packet),
            false => address,
        };
        match self.track.phase {
            Phase::Running => {
                self.resolve(Next::Sync, cx)?;
                let epc = self.trap_from(told, cx)?;
                self.track.confirm();
                Ok(epc)
            }
            Phase::Trapped(before) => {
                self.track.event(&Event::Trap(before), cx.out);
                Ok(None)
            }
            // On the first instruction the address is where it trapped.
            Phase::Start | Phase::Stopped => Ok(told),
            Phase::Lost(_) if self.aids.fresh => Ok(told),
            // It may be the second of two traps, and its address undefined.
            Phase::Lost(_) => Ok(None),
        }
    }

    /// Whether it is known where the hart is.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.track.phase, Phase::Running)
    }

    /// Tracing ends.
    pub(super) fn stop<C: Consumer>(&mut self, cx: &mut Ctx<'_, '_, C>) {
        self.track.confirm();
        self.track.event(&Event::Mark(Mark::Off), cx.out);
        self.track.phase = Phase::Stopped;
    }

    fn tell_owner<C: Consumer>(&mut self, owner: Ownership, cx: &mut Ctx<'_, '_, C>) {
        self.track.enter(cx.blocks, owner.context);
        if owner != self.owner {
            self.owner = owner;
            self.track.event(&Event::Context(owner), cx.out);
        }
    }
}

/// What a packet says about returns.
fn returns(settings: &Settings, irreport: bool, irdepth: u16) -> Returns {
    match (
        irreport && settings.modes.implicit_return,
        settings.modes.iret_ext,
    ) {
        (false, _) => Returns::Any,
        (true, true) => Returns::Count(irdepth),
        (true, false) => Returns::Depth(irdepth),
    }
}

/// The address of an illegal instruction, which `tvalepc` has (draft 6.3.1).
fn tvalepc(settings: &Settings, packet: &crate::Trap) -> Option<u64> {
    let illegal = packet.ecause == 2 && !packet.interrupt;
    let epc = packet
        .tval
        .filter(|_| settings.config.version.is_draft() && illegal);
    epc.map(|field| canonical(settings, field))
}

/// The address in a field that holds a full one.
fn full(settings: &Settings, field: u64) -> u64 {
    canonical(settings, field << settings.layout.iaddress_lsb)
}

/// An address of which only `iaddress_width` bits are sent: the highest of them
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
