//! Control transfers, noted down while the interpreter runs.
//!
//! Recording a transfer as it happens would slow every jump down. The
//! interpreter only notes it, and the records are brought up to date when it
//! comes back: before that nobody can look at them. Where everything is
//! recorded, most notes are overwritten before anybody reads them.

use hartrace_ctr::{Ctr, Raw};
use hartrace_flow::{Cause, Mode, Transfer};
use hartrace_isa::Itype;

use crate::cpu::Cpu;

/// Room for notes: more than the records can hold, and little enough to stay
/// in the processor's cache.
const ROOM: usize = 512;

/// A jump or branch.
#[derive(Clone, Copy, Debug, Default)]
struct Note {
    source: u64,
    target: u64,
    time: u64,
    /// Number of the instruction in the code.
    index: u32,
    not_taken: bool,
}

/// Room for notes: none without control transfer records.
#[derive(Debug)]
pub(crate) struct Notes {
    room: Vec<Note>,
}

impl Notes {
    pub(crate) fn new(records: bool) -> Notes {
        let room = if records { ROOM } else { 0 };
        Notes {
            room: vec![Note::default(); room],
        }
    }
}

/// What is to be noted while the mode stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) taken: bool,
    pub(crate) not_taken: bool,
    pub(crate) jumps: bool,
}

/// Notes being taken.
pub(crate) struct Pen<'a> {
    pub(crate) wanted: Wanted,
    room: &'a mut [Note],
    at: usize,
    /// Notes that were overwritten.
    unseen: u64,
    kinds: &'a [Itype],
}

impl<'a> Pen<'a> {
    /// Begins. `kinds` are those of the instructions, by number.
    #[inline]
    pub(crate) fn new(notes: &'a mut Notes, kinds: &'a [Itype], cpu: &Cpu) -> Pen<'a> {
        let types = cpu.ctr.as_ref().map_or(0, |ctr| ctr.wanted());
        Pen {
            wanted: Wanted {
                taken: types >> Itype::Taken.code() & 1 != 0,
                not_taken: types >> Itype::NotTaken.code() & 1 != 0,
                jumps: types >> Itype::IndirectCall.code() != 0,
            },
            room: &mut notes.room,
            at: 0,
            unseen: 0,
            kinds,
        }
    }

    /// Notes a transfer. Only to be asked for what is wanted.
    #[inline(always)]
    pub(crate) fn note(
        &mut self,
        cpu: &mut Cpu,
        (source, target): (u64, u64),
        time: u64,
        index: usize,
        not_taken: bool,
    ) {
        if self.at == self.room.len() {
            self.turn_page(cpu);
        }
        if let Some(note) = self.room.get_mut(self.at) {
            *note = Note {
                source,
                target,
                time,
                index: index as u32,
                not_taken,
            };
            self.at += 1;
        }
    }

    /// There is no more room.
    #[cold]
    #[inline(never)]
    fn turn_page(&mut self, cpu: &mut Cpu) {
        let Some(ctr) = cpu.ctr.as_deref_mut() else {
            return;
        };
        match ctr.memory() {
            Some(_) => self.unseen += self.at as u64,
            None => self.read_to(ctr),
        }
        self.at = 0;
    }

    /// Brings the records up to date.
    #[inline]
    pub(crate) fn finish(mut self, cpu: &mut Cpu) {
        if (self.at != 0 || self.unseen != 0)
            && let Some(ctr) = cpu.ctr.as_deref_mut()
        {
            self.read_to(ctr);
        }
    }

    /// Reads the notes to the records: the last ones that matter, or all.
    #[inline(never)]
    fn read_to(&mut self, ctr: &mut Ctr) {
        let (new, old) = self.room.split_at(self.at.min(self.room.len()));
        // What the new notes have not overwritten yet.
        let old = if self.unseen == 0 { &[] } else { old };
        let there = (old.len() + new.len()) as u64;
        let skip = match ctr.memory() {
            Some(memory) => there.saturating_sub(memory),
            None => 0,
        };
        let unseen = self.unseen.saturating_sub(old.len() as u64) + skip;
        let kinds = self.kinds;
        let raws = old.iter().chain(new).skip(skip as usize).map(|note| Raw {
            source: note.source,
            target: note.target,
            time: note.time,
            kind: if note.not_taken {
                Itype::NotTaken
            } else {
                let kind = kinds.get(note.index as usize).copied();
                kind.unwrap_or(Itype::None)
            },
        });
        ctr.replay(unseen, raws);
        self.unseen = 0;
    }
}

impl Cpu {
    /// Tells the control transfer records of a trap or a return from one, which
    /// has happened: the mode and pc are those behind it.
    pub(crate) fn record(&mut self, source: u64, from: Mode, kind: Itype, cause: Option<Cause>) {
        if let Some(ctr) = &mut self.ctr {
            ctr.record(&Transfer {
                source,
                target: self.pc,
                kind,
                from: Some(from),
                to: Some(self.mode),
                cause,
                time: Some(self.cycles),
                ..Transfer::default()
            });
        }
    }
}
