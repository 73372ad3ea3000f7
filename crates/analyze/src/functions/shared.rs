//! Programs at the same addresses: those of different processes.
//!
//! Which of them a hart runs is decided by their content: where their code differs, what ran
//! equals that of one. Where it does not, the context goes on with the program it had.

use super::Range;
use crate::program_code::{COMPARED, ProgramCode};
use hartrace_flow::{Context, Image, Run, SpaceId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Programs at the same addresses at most; names of further ones are not used.
pub(super) const MOST: usize = 15;

/// A program that has addresses of others.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Its functions, in order and without overlaps.
    pub(super) ranges: Vec<Range>,
    code: ProgramCode,
}

/// All programs that share addresses, and where they run.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    /// The code of all programs that came first at their addresses.
    pub(super) first: Vec<ProgramCode>,
    /// The others, which are numbered from 1.
    pub(super) others: Vec<Program>,
    /// The number of the program that runs; 0: the first ones.
    pub(super) number: u8,
    context: Option<Context>,
    /// The program of each context that has one of [`Shared::others`].
    decided: BTreeMap<Option<Context>, u8>,
    /// Programs that a run may be of: a bit for each number.
    known: FxHashMap<(SpaceId, u64, u32), u16>,
}

impl Shared {
    /// Another program with its functions.
    pub(super) fn add(&mut self, ranges: Vec<Range>, code: ProgramCode) {
        if self.others.len() < MOST {
            self.others.push(Program { ranges, code });
        }
    }

    /// What follows runs in this context.
    pub(super) fn enter(&mut self, context: Option<Context>) {
        if context != self.context {
            self.context = context;
            self.number = self.decided.get(&context).copied().unwrap_or(0);
        }
    }

    /// Decides which program a run is of.
    pub(super) fn look(&mut self, image: &Image, space: SpaceId, run: &Run) {
        let key = (space, run.start, run.insns);
        let possible = match self.known.get(&key) {
            Some(possible) => *possible,
            None => {
                let possible = self.possible(image, space, run);
                self.known.insert(key, possible);
                possible
            }
        };
        if possible != 0 && possible >> self.number & 1 == 0 {
            self.number = possible.trailing_zeros() as u8;
            self.decided.insert(self.context, self.number);
        }
    }

    fn possible(&self, image: &Image, space: SpaceId, run: &Run) -> u16 {
        let mut bytes = [0; COMPARED];
        let length = run.end.wrapping_sub(run.start).min(COMPARED as u64) as usize;
        let Some(ran) = bytes.get_mut(..length) else {
            return 0;
        };
        if image.read(space, run.start, ran) != length {
            return 0;
        }
        let is = |code: &ProgramCode| code.is(run.start, ran);
        // Where only one program is, there is nothing to decide.
        if !self.others.iter().any(|other| other.code.has(run.start)) {
            return 0;
        }
        let first = u16::from(self.first.iter().any(is));
        let others = self.others.iter().zip(1..);
        others.fold(first, |all, (other, number)| {
            all | u16::from(is(&other.code)) << number
        })
    }

    /// The functions of the program that runs, if it has this address.
    pub(super) fn ranges(&self, address: u64) -> Option<&[Range]> {
        let other = self.others.get(usize::from(self.number).checked_sub(1)?)?;
        other.code.has(address).then_some(&other.ranges)
    }
}
