//! Entries to steps: all harts of a log.

use alloc::vec::Vec;

use hartrace_isa::{Isa, Xlen};

use super::Entry;
use super::causes::Waiting;
use super::effects::Parts;
use super::hart::{Ground, Hart};
use crate::site::Sites;
use crate::{LineErrorKind, unreported};
use hartrace_flow::erase::Dyn;
use hartrace_flow::{
    Effects, HartId, Image, Insn, Mode, Observer, RegWrite, Signal, SpaceId, Step, Wants,
};

/// What is known about a log besides its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryOptions {
    /// The instruction set; from the image, or GC of the width of the
    /// entries, when it is not given.
    pub isa: Option<Isa>,
    /// More harts than this are a fault in the log.
    pub max_harts: usize,
    /// A jump that no instruction makes and no entry explains is where the log
    /// says the instruction went, not a trap, if the log records traps; and where the log
    /// ends, nothing is given that is only likely: for a verifier.
    pub plain_jumps: bool,
}

impl Default for EntryOptions {
    fn default() -> Self {
        EntryOptions {
            isa: None,
            max_harts: 1024,
            plain_jumps: false,
        }
    }
}

/// Turns the entries of a log, or of a port, into steps. The step of an entry is given
/// with the next entry of its hart, which shows where it went.
///
/// * A hart that goes where its last instruction cannot send it has taken a trap. Its
///   cause is unknown, unless the image has an ecall or ebreak there, or the handler
///   reads `mcause` or `scause` within 256 steps (for observers that want no effects,
///   since steps have to wait for that). After an indirect jump, a trap cannot be
///   distinguished from the jump, unless the register is known or entries have
///   [`Entry::next`] or [`Entry::handler`]; after mret or sret, unless `mepc` or `sepc` is
///   known by the last trap or the last CSR instruction with a known operand. A rise in
///   privilege is a trap, too.
/// * Modes that no entry has are followed: M at the start; M at a trap, or S where
///   `medeleg` or `mideleg` say so; MPP or SPP at a return. These fields and registers
///   are as the last trap, or the last CSR instruction whose operand is known, left them.
/// * Instructions that no entry has are those of the image.
#[derive(Clone, Debug)]
pub struct EntrySteps<'a> {
    options: EntryOptions,
    isa: Option<Isa>,
    sites: Option<Sites<'a>>,
    harts: Vec<Hart>,
    /// Position of the hart of the last entry.
    current: usize,
    /// Every hart is lost and none has been heard of since.
    quiet: bool,
    unreported: Effects,
    /// Steps that wait for a cause.
    waiting: Waiting,
    /// Entries record traps: what none explains is none.
    records_traps: bool,
    /// Entries show what retired. Otherwise lines only list what is about to execute.
    pub(crate) commits: bool,
}

/// What takes the steps: an observer, and what it wants.
pub(crate) struct Out<'o, 'd> {
    pub(crate) to: &'o mut Dyn<'d>,
    pub(crate) parts: Parts,
}

/// The effects that an observer wants.
pub(crate) const fn parts<O: Observer>() -> Parts {
    Parts {
        regs: O::WANTS.contains(Wants::REGS),
        csrs: O::WANTS.contains(Wants::CSRS),
        accesses: O::WANTS.contains(Wants::ACCESSES),
    }
}

impl<'a> EntrySteps<'a> {
    /// Steps of a log, with the program's image if there is one.
    #[must_use]
    pub fn new(options: EntryOptions, image: Option<&'a Image>) -> EntrySteps<'a> {
        EntrySteps {
            options,
            isa: options.isa.or(image.and_then(Image::isa)),
            sites: image.map(|image| Sites::new(image, SpaceId::FIRST)),
            harts: Vec::new(),
            current: 0,
            quiet: false,
            unreported: unreported(),
            waiting: Waiting::default(),
            records_traps: true,
            commits: true,
        }
    }

    /// The width of harts whose entries do not say.
    #[must_use]
    pub fn xlen(&self) -> Xlen {
        self.isa.map_or(Xlen::Rv64, |isa| isa.xlen())
    }

    /// The program.
    pub(crate) fn image(&self) -> Option<&'a Image> {
        self.sites.as_ref().map(|sites| sites.image)
    }

    /// The instruction of the image at an address.
    #[must_use]
    pub fn code(&mut self, pc: u64) -> Option<u32> {
        Some(self.sites.as_mut()?.get(pc)?.bits)
    }

    /// The next entry of its hart.
    ///
    /// # Errors
    ///
    /// [`LineErrorKind::MissingCode`] without an instruction;
    /// [`LineErrorKind::TooManyHarts`]. The steps are then missing:
    /// call [`EntrySteps::lost`]. [`LineErrorKind::CodeDiffers`] if
    /// the image has another instruction; the entry counts.
    pub fn entry<O: Observer>(&mut self, entry: &Entry, out: &mut O) -> Result<(), LineErrorKind> {
        let parts = parts::<O>();
        self.take(entry, &mut Out { to: out, parts })
    }

    /// Gives the last instruction of a hart at once, if its entry shows where it went and
    /// in which mode: then it does not wait for the next entry. For a source that is
    /// checked while it runs.
    pub fn settle<O: Observer>(&mut self, hart: HartId, out: &mut O) {
        let parts = parts::<O>();
        self.settle_hart(hart, &mut Out { to: out, parts });
    }

    /// Whether the step of everything before has been given, so that an instruction of
    /// this hart that retires plainly may be left out ([`EntrySteps::pass`]); then also the
    /// mode that it is in if its entry would have none.
    #[inline]
    #[must_use]
    pub fn settled(&self, hart: HartId) -> Option<Mode> {
        let current = self.harts.get(self.current)?;
        (current.id == hart).then(|| current.settled())?
    }

    /// Leaves out an instruction that has been dealt with elsewhere, after
    /// [`EntrySteps::settled`]. It went to `next`, wrote `reg` and nothing else but memory,
    /// and stayed in its mode.
    #[inline]
    pub fn pass(&mut self, insn: &Insn, reg: Option<&RegWrite>) {
        if let Some(hart) = self.harts.get_mut(self.current) {
            hart.pass(insn, reg);
        }
    }

    /// Steps of one hart are missing, or of all: what is after the gap does not follow
    /// what is before.
    pub fn lost<O: Observer>(&mut self, hart: Option<HartId>, out: &mut O) {
        let parts = parts::<O>();
        self.lose(hart, &mut Out { to: out, parts });
    }

    /// The log has ended: gives the last step of each hart. Does not end the observer.
    pub fn flush<O: Observer>(&mut self, out: &mut O) {
        let parts = parts::<O>();
        self.end(&mut Out { to: out, parts });
    }

    /// As [`EntrySteps::entry`].
    pub(crate) fn take(
        &mut self,
        entry: &Entry,
        out: &mut Out<'_, '_>,
    ) -> Result<(), LineErrorKind> {
        match self.enter(entry, out)? {
            Some(bits) => self.retire(entry, bits, out),
            None => Ok(()),
        }
    }

    /// The first half of [`EntrySteps::take`]: gives what waited for the entry. The bits
    /// of its instruction if that retired and now has to wait ([`EntrySteps::retire`]).
    pub(crate) fn enter(
        &mut self,
        entry: &Entry,
        out: &mut Out<'_, '_>,
    ) -> Result<Option<u32>, LineErrorKind> {
        let narrow = entry.xlen.unwrap_or(self.xlen()) == Xlen::Rv32;
        let known = match entry.bits {
            Some(bits) => Some(short(bits)),
            None => self.code(entry.pc),
        };
        // What a fetch or an interrupt prevented is not known, nor needed.
        let Some(bits) = known.or(entry.trap.map(|_| 0)) else {
            return Err(LineErrorKind::MissingCode(entry.pc));
        };
        let (hart, mut ground) = self.with(entry.hart, Some(narrow))?;
        if let Some(trap) = entry.trap {
            hart.trapped(entry, trap, known, &mut ground, out);
            return Ok(None);
        }
        hart.enter(entry, &mut ground, out);
        Ok(Some(bits))
    }

    /// The second half: the instruction of the entry waits for the next one.
    #[inline]
    pub(crate) fn retire(
        &mut self,
        entry: &Entry,
        bits: u32,
        out: &mut Out<'_, '_>,
    ) -> Result<(), LineErrorKind> {
        let (hart, ground) = self.with(entry.hart, None)?;
        if let Some(cause) = hart.retired(entry, bits, out.parts) {
            ground.waiting.cause(entry.hart, cause, out.to);
        }
        let differs = |site: crate::site::Site| site.bits != bits;
        if entry.bits.is_some()
            && let Some(sites) = &mut self.sites
            && sites.get(entry.pc).is_some_and(differs)
        {
            return Err(LineErrorKind::CodeDiffers(entry.pc));
        }
        Ok(())
    }

    /// The hart of the last entry, and nothing if steps wait for more than the next entry.
    #[inline]
    pub(crate) fn current(&mut self) -> Option<&mut Hart> {
        match self.waiting.is_empty() {
            true => self.harts.get_mut(self.current),
            false => None,
        }
    }

    /// As [`EntrySteps::settle`].
    fn settle_hart(&mut self, id: HartId, out: &mut Out<'_, '_>) {
        if self
            .harts
            .get(self.current)
            .is_some_and(|hart| hart.id == id)
            && let Some((hart, mut ground)) = self.ground(self.current, None)
        {
            hart.settle(&mut ground, out);
        }
    }

    /// As [`EntrySteps::lost`]. Where it may be any hart, the
    /// ones that have done nothing since the last loss are not reported again, but
    /// for the one that spoke last: a line of a thousand harts' log is not a
    /// thousand steps.
    #[cold]
    pub(crate) fn lose(&mut self, id: Option<HartId>, out: &mut Out<'_, '_>) {
        let mut told = false;
        let all = match id {
            None if self.quiet => self.current..self.harts.len().min(self.current + 1),
            _ => 0..self.harts.len(),
        };
        self.quiet |= id.is_none();
        let lost = Step::Signal(Signal::Lost);
        for at in all {
            let current = at == self.current;
            let Some(hart) = self.harts.get_mut(at).filter(|h| match id {
                Some(id) => id == h.id,
                None => current || !h.lost,
            }) else {
                continue;
            };
            hart.lost = true;
            let hart = hart.id;
            self.last(at, out);
            self.waiting.step(hart, &lost, &self.unreported, out);
            told = true;
        }
        if !told {
            let id = id.unwrap_or_default();
            self.waiting.step(id, &lost, &self.unreported, out);
        }
    }

    /// The log has ended.
    pub(crate) fn end(&mut self, out: &mut Out<'_, '_>) {
        for at in 0..self.harts.len() {
            self.last(at, out);
        }
        self.waiting.flush(out.to);
    }

    /// Gives what a hart did last, as far as it can be known without a next
    /// entry.
    fn last(&mut self, at: usize, out: &mut Out<'_, '_>) {
        if let Some((hart, mut ground)) = self.ground(at, None) {
            hart.flush(&mut ground, out);
        }
    }

    /// Whether entries record traps; otherwise one may be seen by its handler alone.
    pub(crate) fn records_traps(&mut self, records: bool) {
        self.records_traps = records;
    }

    /// A hart, and what it shares with the others; new harts are added.
    #[inline]
    pub(crate) fn with(
        &mut self,
        id: HartId,
        narrow: Option<bool>,
    ) -> Result<(&mut Hart, Ground<'_, 'a>), LineErrorKind> {
        if self.harts.get(self.current).is_none_or(|h| h.id != id) {
            self.current = self.other_hart(id)?;
        }
        self.quiet = false;
        let (hart, ground) = self
            .ground(self.current, narrow)
            .ok_or(LineErrorKind::TooManyHarts)?;
        hart.lost = false;
        Ok((hart, ground))
    }

    #[cold]
    fn other_hart(&mut self, id: HartId) -> Result<usize, LineErrorKind> {
        match self.harts.iter().position(|h| h.id == id) {
            Some(at) => Ok(at),
            None if self.harts.len() < self.options.max_harts => {
                self.harts.push(Hart::new(id));
                Ok(self.harts.len() - 1)
            }
            None => Err(LineErrorKind::TooManyHarts),
        }
    }

    #[inline]
    fn ground(&mut self, at: usize, narrow: Option<bool>) -> Option<(&mut Hart, Ground<'_, 'a>)> {
        let hart = self.harts.get_mut(at)?;
        hart.narrow = narrow.unwrap_or(hart.narrow);
        let default = if hart.narrow {
            Isa::RV32GC
        } else {
            Isa::RV64GC
        };
        let ground = Ground {
            isa: self.isa.unwrap_or(default),
            records_traps: self.records_traps,
            plain_jumps: self.options.plain_jumps && self.records_traps,
            guesses: !self.options.plain_jumps,
            commits: self.commits,
            sites: &mut self.sites,
            unreported: &self.unreported,
            waiting: &mut self.waiting,
        };
        Some((hart, ground))
    }
}

/// The bits that count: the length is in the low ones, whatever number of digits.
#[inline]
pub(crate) const fn short(bits: u32) -> u32 {
    if bits & 3 == 3 { bits } else { bits & 0xffff }
}
