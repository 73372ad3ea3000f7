//! Stretches of instructions, data accesses and gaps as rows.

use crate::rows::{Accesses, Gaps, Runs};
use crate::table::{Projection, Table};
use crate::zone::Zone;
use hartrace_flow::{
    Context, DataAccess, Event, Exit, Gap, HartId, Image, Mark, Mode, Ownership, Packer, Reason,
    Run, SpaceId, Unpacker,
};
use hartrace_print::words::access_kind;

/// How a stretch ends, if not by an instruction: places in [`Exits`](crate::rows::Exits).
const END: u8 = Exit::Stop as u8;
const TRAP: u8 = 12;
const CONTEXT: u8 = 13;
const GAP: u8 = 14;

/// Kinds of gaps: places in [`GapKinds`](crate::rows::GapKinds).
const LOSS: u8 = 0;
const DATA: u8 = 1;
const WARNING: u8 = 2;
const UNCONFIRMED: u8 = 3;
const NOT_TRACED: u8 = 4;

/// The tables that are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowTables {
    pub(crate) runs: Option<Projection>,
    pub(crate) accesses: Option<Projection>,
    pub(crate) gaps: Option<Projection>,
}

impl FlowTables {
    /// Whether every run has to be looked at.
    pub(crate) const fn is_detailed(&self) -> bool {
        self.runs.is_some() || self.accesses.is_some()
    }
}

/// Makes rows of stretches, accesses and gaps.
pub(crate) struct Flow<'a> {
    image: &'a Image,
    tables: FlowTables,
    /// Whether [`Flow::take_zones`] and [`Flow::save`] are called.
    indexed: bool,
    harts: Vec<(HartId, HartFlow)>,
    recent: usize,
    /// The checkpoint before what comes.
    pub(crate) position: u64,
    /// There are enough rows for a batch.
    pub(crate) is_full: bool,
}

/// A hart and its rows that have not been taken.
pub(crate) struct HartFlow {
    pub(crate) runs: Option<Runs>,
    pub(crate) accesses: Option<Accesses>,
    pub(crate) gaps: Option<Gaps>,
    /// Instructions so far.
    insn: u64,
    /// The time of the next run, if it is known, and the last that was known.
    next_time: Option<u64>,
    last_time: Option<u64>,
    mode: Option<Mode>,
    context: Option<u64>,
    space: SpaceId,
    /// Tracing has been turned off.
    is_off: bool,
    /// The stretch that has not ended.
    open: Option<Stretch>,
    /// The last run, with the instructions before it and its time.
    last: Option<(Run, u64, Option<u64>)>,
    /// What the rows since the last checkpoint have in common.
    zone: Zone,
}

/// A stretch of instructions.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: u64,
    end: u64,
    insns: u64,
    time: Option<u64>,
    position: u64,
}

/// Instructions of runs.
fn insns(runs: &[Run]) -> u64 {
    runs.iter().map(|run| u64::from(run.insns)).sum()
}

impl<'a> Flow<'a> {
    pub(crate) fn new(image: &'a Image, tables: FlowTables, indexed: bool) -> Flow<'a> {
        Flow {
            image,
            tables,
            indexed,
            harts: Vec::new(),
            recent: 0,
            position: 0,
            is_full: false,
        }
    }

    /// Whether data accesses are wanted.
    pub(crate) const fn wants_accesses(&self) -> bool {
        self.tables.accesses.is_some()
    }

    /// The harts with their rows.
    pub(crate) fn harts(&mut self) -> impl Iterator<Item = (HartId, &mut HartFlow)> {
        self.harts.iter_mut().map(|(id, hart)| (*id, hart))
    }

    #[inline]
    fn hart(&mut self, id: HartId) -> &mut HartFlow {
        let recent = self.harts.get(self.recent).map(|(recent, _)| *recent);
        if recent != Some(id) {
            self.find(id);
        }
        // Found or made just now.
        #[allow(clippy::indexing_slicing)]
        &mut self.harts[self.recent].1
    }

    #[cold]
    fn find(&mut self, id: HartId) {
        let known = self.harts.iter().position(|(known, _)| *known == id);
        self.recent = known.unwrap_or_else(|| {
            let mut zone = Zone::new(Table::Runs, id.0);
            zone.begin.reach(0);
            zone.add_context(None);
            let hart = HartFlow {
                runs: self.tables.runs.map(Runs::new),
                accesses: self.tables.accesses.map(Accesses::new),
                gaps: self.tables.gaps.map(Gaps::new),
                insn: 0,
                next_time: None,
                last_time: None,
                mode: None,
                context: None,
                space: SpaceId::FIRST,
                is_off: false,
                open: None,
                last: None,
                zone,
            };
            self.harts.push((id, hart));
            self.harts.len() - 1
        });
    }

    /// Runs of a hart. If only their stretch counts that has not ended, those before it are
    /// passed over; for gaps, how many instructions they have is enough.
    pub(crate) fn runs(&mut self, id: HartId, runs: &[Run]) {
        if self.only_counts() {
            self.hart(id).insn += insns(runs);
            return;
        }
        let position = self.position;
        if self.tables.is_detailed() || self.hart(id).next_time.is_some() {
            for run in runs {
                let full = self.hart(id).run(run, position);
                self.is_full |= full;
            }
            return;
        }
        let hart = self.hart(id);
        if runs.last().is_some_and(|run| !goes_on(run)) {
            hart.open = None;
            hart.insn += insns(runs);
            return;
        }
        let ended = runs.iter().rposition(|run| !goes_on(run));
        let (before, rest) = match ended {
            Some(at) => {
                hart.open = None;
                runs.split_at_checked(at + 1).unwrap_or((runs, &[]))
            }
            None => (&[][..], runs),
        };
        hart.insn += insns(before);
        for run in rest {
            hart.run(run, position);
        }
    }

    /// Runs with the times of their starts.
    pub(crate) fn timed_runs(&mut self, id: HartId, runs: &[(u64, Run)]) {
        if self.only_counts() {
            let insns = runs.iter().map(|(_, run)| u64::from(run.insns));
            self.hart(id).insn += insns.sum::<u64>();
            return self.pass_times(id, runs);
        }
        let position = self.position;
        let hart = self.hart(id);
        let mut full = false;
        for (time, run) in runs {
            hart.reach(*time);
            full |= hart.run(run, position);
        }
        self.is_full |= full;
    }

    /// Only the times of runs, for who counts instructions elsewhere.
    pub(crate) fn pass_times(&mut self, id: HartId, runs: &[(u64, Run)]) {
        if let Some((time, _)) = runs.last() {
            self.hart(id).last_time = Some(*time);
        }
    }

    /// Instructions of a hart so far, as counted elsewhere.
    pub(crate) fn set_executed(&mut self, id: HartId, insns: u64) {
        self.hart(id).insn = insns;
    }

    /// Whether nothing is of interest but how many instructions there are.
    pub(crate) const fn only_counts(&self) -> bool {
        !self.tables.is_detailed() && !self.indexed
    }

    /// An event that is not a run.
    pub(crate) fn event(&mut self, id: HartId, event: &Event) {
        let (image, position) = (self.image, self.position);
        let hart = self.hart(id);
        let full = match event {
            Event::Run(run) => hart.run(run, position),
            Event::Time(time) => {
                hart.reach(*time);
                false
            }
            Event::Trap(_) => hart.end_stretch(TRAP, None),
            Event::Context(owner) => hart.own(owner, image),
            Event::Code(space) => {
                hart.space = *space;
                false
            }
            Event::Access(access) => hart.access(image, access),
            Event::Mark(Mark::Off) => {
                hart.is_off = true;
                hart.end_stretch(END, None)
            }
            Event::Mark(Mark::On) => {
                let full = hart.end_stretch(END, None);
                // The end of a trace is not a gap, nor is its start.
                let was_off = std::mem::take(&mut hart.is_off);
                full | was_off && hart.gap_row(NOT_TRACED, None, (None, 0, 0))
            }
            Event::Mark(Mark::Reset) => hart.end_stretch(END, None),
            Event::Mark(_) => false,
            Event::Gap(gap) => hart.gap(gap),
            Event::DataGap(gap) => hart.gap_row(DATA, Some(&gap.reason), (Some(gap.at), 0, 0)),
            Event::Warning(warning) => {
                hart.gap_row(WARNING, Some(&warning.reason), (Some(warning.at), 0, 0))
            }
            Event::Unconfirmed(doubt) => {
                let reason = Reason {
                    code: "",
                    text: "the code may have been other code at the time",
                    value: doubt.address,
                };
                hart.gap_row(UNCONFIRMED, Some(&reason), (None, 0, doubt.insns))
            }
        };
        self.is_full |= full;
    }

    /// The trace ends.
    pub(crate) fn finish(&mut self) {
        for (_, hart) in &mut self.harts {
            hart.end_stretch(END, None);
        }
    }

    /// What the rows since the last time have in common. All of them begin between the two
    /// places, or in the stretch that had not ended at the first.
    pub(crate) fn take_zones(&mut self) -> Vec<Zone> {
        let taken = self.harts.iter_mut().map(|(id, hart)| {
            let mut next = Zone::new(Table::Runs, id.0);
            let open = hart.open.as_ref();
            next.begin
                .reach(hart.insn - open.map_or(0, |open| open.insns));
            let times = open.and_then(|open| open.time).into_iter();
            let times = times.chain(hart.last_time);
            times.for_each(|time| next.begin_time.reach(time));
            next.add_context(hart.context);
            let mut zone = std::mem::replace(&mut hart.zone, next);
            zone.begin.reach(hart.insn);
            zone.end = zone.begin.bounds();
            zone.end_time = zone.begin_time.bounds();
            zone.contexts.sort_unstable();
            zone
        });
        taken.collect()
    }

    /// Writes the state of all harts.
    pub(crate) fn save(&self, out: &mut Packer) {
        out.number(self.harts.len() as u64);
        for (id, hart) in &self.harts {
            out.number(id.0.into());
            out.number(hart.insn);
            out.option(hart.next_time);
            out.option(hart.last_time);
            out.option(hart.mode.map(|mode| mode.code().into()));
            out.option(hart.context);
            out.number(hart.is_off.into());
            out.option(hart.open.map(|open| open.insns));
            if let Some(open) = hart.open {
                out.number(open.start);
                out.number(open.end.wrapping_sub(open.start));
                out.option(open.time);
                out.number(open.position);
            }
        }
    }

    /// Goes on from a state; `None` if it cannot be read.
    pub(crate) fn restore(&mut self, saved: &mut Unpacker<'_>) -> Option<()> {
        for _ in 0..saved.count()? {
            let id = HartId(u32::try_from(saved.number()?).ok()?);
            let image = self.image;
            let hart = self.hart(id);
            hart.insn = saved.number()?;
            hart.next_time = saved.option()?;
            hart.last_time = saved.option()?;
            hart.mode = match saved.option()? {
                Some(code) => Some(Mode::from_code(u8::try_from(code).ok()?)?),
                None => None,
            };
            hart.context = saved.option()?;
            hart.is_off = saved.number()? != 0;
            if let Some(context) = hart.context {
                hart.space = image.space_of(Context(context));
            }
            let insns = saved.option()?;
            hart.open = match insns {
                None => None,
                Some(insns) => {
                    let start = saved.number()?;
                    Some(Stretch {
                        start,
                        end: start.wrapping_add(saved.number()?),
                        insns,
                        time: saved.option()?,
                        position: saved.number()?,
                    })
                }
            };
        }
        Some(())
    }
}

/// Whether a stretch goes on after a run.
#[inline]
const fn goes_on(run: &Run) -> bool {
    matches!(run.exit, Exit::Stop | Exit::NotTaken)
}

/// The place of a mode in [`Modes`](crate::rows::Modes).
const fn mode_word(mode: Mode) -> u8 {
    match mode {
        Mode::U => 0,
        Mode::S => 1,
        Mode::M => 2,
        Mode::D => 3,
        Mode::VU => 4,
        Mode::VS => 5,
    }
}

impl HartFlow {
    /// The next run starts at this time.
    #[inline]
    fn reach(&mut self, time: u64) {
        self.next_time = Some(time);
        self.last_time = Some(time);
        self.zone.begin_time.reach(time);
    }

    /// Whether there are enough rows for a batch, here and in the other methods.
    #[inline]
    fn run(&mut self, run: &Run, position: u64) -> bool {
        let time = self.next_time.take();
        let mut full = false;
        if self.open.is_some_and(|open| open.end != run.start) {
            // Something in between is missing.
            full = self.end_stretch(GAP, None);
        }
        if self.accesses.is_some() {
            self.last = Some((*run, self.insn, time));
        }
        let open = self.open.get_or_insert(Stretch {
            start: run.start,
            end: run.end,
            insns: 0,
            time,
            position,
        });
        open.end = run.end;
        open.insns += u64::from(run.insns);
        self.insn += u64::from(run.insns);
        match goes_on(run) {
            true => full,
            false => full | self.end_stretch(run.exit as u8, Some(run.next)),
        }
    }

    fn end_stretch(&mut self, exit: u8, next: Option<u64>) -> bool {
        let Some(open) = self.open.take() else {
            return false;
        };
        let Some(rows) = &mut self.runs else {
            return false;
        };
        rows.context.push(self.context);
        rows.privilege.push(self.mode.map(mode_word));
        rows.start.push(open.start);
        rows.end.push(open.end);
        rows.instructions.push(open.insns);
        rows.exit.push(Some(exit));
        rows.next.push(next);
        rows.begin.push(self.insn - open.insns);
        rows.time.push(open.time);
        rows.position.push(open.position);
        rows.end_row()
    }

    fn own(&mut self, owner: &Ownership, image: &Image) -> bool {
        let mode = owner.mode.or(self.mode);
        let context = owner.context.map(|Context(number)| number);
        let context = context.or(self.context);
        if let Some(context) = owner.context {
            self.space = image.space_of(context);
        }
        if (mode, context) == (self.mode, self.context) {
            return false;
        }
        let full = self.end_stretch(CONTEXT, None);
        (self.mode, self.context) = (mode, context);
        self.zone.add_context(context);
        full
    }

    fn access(&mut self, image: &Image, access: &DataAccess) -> bool {
        let Some(rows) = &mut self.accesses else {
            return false;
        };
        let place = self
            .last
            .zip(access.insn)
            .map(|((run, before, time), nth)| {
                let mut insns = image.insns(self.space, run.start, run.insns.into());
                let pc = insns.nth(nth as usize).map(|(pc, _)| pc);
                (pc, before + u64::from(nth), time)
            });
        let (pc, begin, time) = place.unwrap_or((None, self.insn, None));
        rows.context.push(self.context);
        rows.kind.push(Some(access_kind(access.access.kind)));
        let address = Some(access.access.addr).filter(|_| access.has_address);
        rows.address.push(address);
        rows.size
            .push(1u8.checked_shl(access.access.size.into()).unwrap_or(0));
        rows.data.push(access.access.data);
        rows.operand.push(access.access.operand);
        rows.pc.push(pc);
        rows.begin.push(begin);
        rows.time.push(time);
        rows.end_row()
    }

    fn gap(&mut self, gap: &Gap) -> bool {
        let full = self.end_stretch(GAP, None);
        let place = (Some(gap.at), gap.bytes, gap.unconfirmed);
        full | self.gap_row(LOSS, Some(&gap.reason), place)
    }

    fn gap_row(
        &mut self,
        kind: u8,
        reason: Option<&Reason>,
        (at, bytes, unconfirmed): (Option<u64>, u64, u64),
    ) -> bool {
        let Some(rows) = &mut self.gaps else {
            return false;
        };
        rows.kind.push(Some(kind));
        let code = reason.map(|reason| reason.code);
        rows.code.push(code.filter(|code| !code.is_empty()));
        rows.reason.push(reason.map(|reason| reason.text));
        rows.value.push(reason.and_then(Reason::shown_value));
        rows.position.push(at);
        rows.bytes.push(bytes);
        rows.unconfirmed.push(unconfirmed);
        rows.begin.push(self.insn);
        rows.time.push(self.last_time);
        rows.end_row()
    }
}
