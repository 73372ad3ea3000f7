//! The data accesses that the steps of one hart imply.

use alloc::collections::VecDeque;

use crate::{DataAccess, Effects, Part, Reported};

/// Accesses of steps that no event has covered yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Accesses {
    /// With the number of the instruction.
    waiting: VecDeque<(u64, DataAccess)>,
    /// Instructions that were steps.
    steps: u64,
    /// Instructions before the last run.
    before: u64,
    /// Instructions up to its end.
    done: u64,
    /// Steps are missing: accesses before a loss may be missing too.
    lossy: bool,
}

impl Accesses {
    /// The accesses of the next instruction, as the trace reports them.
    pub(super) fn push(&mut self, effects: &Effects, reported: &Reported) {
        let number = self.steps;
        self.steps += 1;
        let all = effects.accesses.iter().chain(&effects.csr_access);
        for (access, has_address) in all.filter_map(|access| reported.view(access)) {
            let data = DataAccess {
                insn: None,
                access,
                has_address,
                part: Part::Whole,
            };
            self.waiting.push_back((number, data));
        }
    }

    /// Steps are missing here.
    pub(super) fn lose(&mut self) {
        self.lossy = true;
    }

    /// Instructions that were not compared.
    pub(super) fn pass(&mut self, insns: u64) {
        self.done += insns;
        if insns > 0 {
            while self.waiting.front().is_some_and(|w| w.0 < self.done) {
                self.waiting.pop_front();
            }
        }
    }

    /// Iterations of a loop that the trace does not report.
    pub(super) fn skip(&mut self, insns: u64) {
        self.done += insns;
    }

    /// A run was equal.
    pub(super) fn run(&mut self, insns: u32) {
        self.before = self.done;
        self.done += u64::from(insns);
    }

    /// Takes an access; what was expected instead otherwise.
    pub(super) fn take(&mut self, actual: &DataAccess) -> Result<(), Option<DataAccess>> {
        let Some(&(number, expected)) = self.waiting.front() else {
            return Err(None);
        };
        let same = actual
            .insn
            .is_none_or(|i| self.before + u64::from(i) == number)
            && expected.access == actual.access
            && expected.has_address == actual.has_address;
        if !same {
            return Err(Some(expected));
        }
        self.waiting.pop_front();
        Ok(())
    }

    /// What is left that a decoder had to give.
    pub(super) fn rest(&self) -> Option<DataAccess> {
        let (_, first) = self.waiting.front().filter(|_| !self.lossy)?;
        Some(*first)
    }
}
