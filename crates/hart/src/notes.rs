//! Control transfer records, and a buffer of transfers not yet recorded.
//!
//! Recording each transfer as it happens would slow down every jump. The
//! interpreter only notes it, and the records are brought up to date when they
//! are read. When everything is recorded, most notes are overwritten before
//! they are read.

use hartrace_ctr::{Ctr, Raw};
use hartrace_flow::{Cause, Mode, Transfer};
use hartrace_isa::Itype;

use crate::cpu::Cpu;

/// Room for notes: more than the records can hold. A power of two.
const ROOM: usize = 512;

/// Notes that are read at once where all of them are read.
const PAGE: usize = 128;

/// How much room is used, a power of two: as little as will do, so that notes
/// do not push the program out of the processor's cache. It stays as it is
/// until the records are brought up to date.
fn room(ctr: &Ctr) -> usize {
    let wanted = ctr.memory().map_or(PAGE, |memory| memory as usize);
    wanted.next_power_of_two().min(ROOM)
}

/// A jump or branch.
#[derive(Clone, Copy, Debug, Default)]
struct Note {
    source: u64,
    target: u64,
    time: u64,
    /// The code of its [`Itype`].
    kind: u8,
}

/// Control transfer records of a hart.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    ctr: Ctr,
    /// The program does not know of them.
    hidden: bool,
    notes: Vec<Note>,
    /// Notes taken since the records were up to date. The last ones are there,
    /// each in the place of its number.
    taken: u64,
}

impl Records {
    /// Those that the program has, or hidden ones.
    pub(crate) fn new(ctr: Ctr, hidden: bool) -> Records {
        Records {
            ctr,
            hidden,
            notes: vec![Note::default(); ROOM],
            taken: 0,
        }
    }

    /// The records as they were when they were last up to date.
    pub(crate) fn ctr(&self) -> &Ctr {
        &self.ctr
    }

    /// The same as the program knows them: not if they are hidden.
    pub(crate) fn shown(&self) -> Option<&Ctr> {
        (!self.hidden).then_some(&self.ctr)
    }

    /// So many notes were taken.
    pub(crate) fn taken(&mut self, taken: u64) {
        self.taken = taken;
    }

    /// The records, up to date.
    pub(crate) fn settle(&mut self) -> &mut Ctr {
        if self.taken != 0 {
            read_notes(&mut self.ctr, &self.notes, self.taken);
            self.taken = 0;
        }
        &mut self.ctr
    }
}

/// Brings the records up to date with the last notes of all that were taken.
#[inline(never)]
fn read_notes(ctr: &mut Ctr, notes: &[Note], taken: u64) {
    let room = room(ctr);
    let there = taken.min(room as u64);
    let wanted = ctr.memory().map_or(there, |memory| there.min(memory));
    let first = taken - wanted;
    let raws = (first..taken).filter_map(|number| {
        let note = notes.get(number as usize & (room - 1))?;
        Some(Raw {
            source: note.source,
            target: note.target,
            time: note.time,
            kind: Itype::from_code(note.kind)?,
        })
    });
    ctr.replay(first, raws);
}

/// What is to be noted while mode and settings stay as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// A bit for each code of [`Itype`].
    types: u32,
}

impl Wanted {
    /// Whether a transfer of this type is.
    #[inline(always)]
    pub(crate) fn has(self, kind: u8) -> bool {
        self.types >> (kind & 15) & 1 != 0
    }
}

/// Notes being taken.
pub(crate) struct Pen<'a> {
    pub(crate) wanted: Wanted,
    /// Numbers of the notes.
    pub(crate) taken: u64,
    /// The number at which all must be read before more are taken.
    limit: u64,
    mask: usize,
    room: &'a mut [Note],
    ctr: Option<&'a mut Ctr>,
}

impl<'a> Pen<'a> {
    #[inline]
    pub(crate) fn new(records: Option<&'a mut Records>) -> Pen<'a> {
        let Some(Records {
            ctr, notes, taken, ..
        }) = records
        else {
            return Pen {
                wanted: Wanted::default(),
                taken: 0,
                limit: u64::MAX,
                mask: 0,
                room: &mut [],
                ctr: None,
            };
        };
        Pen {
            wanted: Wanted {
                types: ctr.wanted().into(),
            },
            taken: *taken,
            limit: ctr.memory().map_or(PAGE as u64, |_| u64::MAX),
            mask: room(ctr) - 1,
            room: notes,
            ctr: Some(ctr),
        }
    }

    /// Notes a transfer. Only to be asked for what is wanted.
    #[inline(always)]
    pub(crate) fn note(&mut self, source: u64, target: u64, time: u64, kind: u8) {
        if let Some(note) = self.room.get_mut(self.taken as usize & self.mask) {
            *note = Note {
                source,
                target,
                time,
                kind,
            };
        }
        self.taken += 1;
        if self.taken == self.limit {
            turn_page(self.ctr.as_deref_mut(), self.room);
            self.taken = 0;
        }
    }
}

/// There is no more room.
#[cold]
#[inline(never)]
fn turn_page(ctr: Option<&mut Ctr>, room: &[Note]) {
    if let Some(ctr) = ctr {
        read_notes(ctr, room, PAGE as u64);
    }
}

impl Cpu {
    /// The control transfer records, up to date, if there are any.
    pub(crate) fn settled(&mut self) -> Option<&mut Ctr> {
        Some(self.records.as_deref_mut()?.settle())
    }

    /// Notes a trap or a trap return for the control transfer records, which
    /// has happened: the mode and pc are those after it.
    pub(crate) fn record(&mut self, source: u64, from: Mode, kind: Itype, cause: Option<Cause>) {
        let (target, to, now) = (self.pc, self.mode, self.cycles);
        if let Some(ctr) = self.settled() {
            ctr.record(&Transfer {
                source,
                target,
                kind,
                from: Some(from),
                to: Some(to),
                cause,
                time: Some(now),
                ..Transfer::default()
            });
        }
    }
}
