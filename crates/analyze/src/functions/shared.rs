//! Programs at the same addresses: those of different processes.
//!
//! Which of them a hart runs is decided by their content: where their code differs, what ran
//! equals that of one. Where it does not, the context goes on with the program it had.

use super::Range;
use hartrace_flow::elf::Elf;
use hartrace_flow::{Context, Image, Run, SpaceId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Programs at the same addresses at most; names of further ones are not used.
pub(super) const MOST: usize = 15;

/// Bytes of a run that are compared.
const COMPARED: usize = 64;

/// A program that has addresses of others.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Its functions, in order and without overlaps.
    pub(super) ranges: Vec<Range>,
    code: Code,
}

/// The code of a program, where it is loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct Code(Vec<(u64, Vec<u8>)>);

impl Code {
    /// That of an ELF file.
    pub(super) fn of(file: &[u8], bias: u64) -> Code {
        let loads = Elf::parse(file).and_then(|elf| elf.loads());
        let loads = loads.unwrap_or_default().into_iter();
        let code = loads.filter(|load| load.access.last() == Some(&true));
        let code = code.filter_map(|load| {
            let address = load.address.wrapping_add(bias);
            Some((address, load.data?.to_vec()))
        });
        Code(code.collect())
    }

    fn at(&self, address: u64) -> Option<&[u8]> {
        self.0.iter().find_map(|(start, bytes)| {
            let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(offset..).filter(|rest| !rest.is_empty())
        })
    }

    pub(super) fn has(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    /// Whether it has addresses of another.
    pub(super) fn overlaps(&self, other: &Code) -> bool {
        let ends = |(start, bytes): &(u64, Vec<u8>)| (*start, start + bytes.len() as u64);
        self.0.iter().map(ends).any(|(low, high)| {
            let others = other.0.iter().map(ends);
            others
                .into_iter()
                .any(|(start, end)| low < end && start < high)
        })
    }
}

/// All programs that share addresses, and where they run.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    /// The code of all programs that came first at their addresses.
    pub(super) first: Vec<Code>,
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
    pub(super) fn add(&mut self, ranges: Vec<Range>, code: Code) {
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
        let is = |code: &Code| code.at(run.start).is_some_and(|rest| rest.starts_with(ran));
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
