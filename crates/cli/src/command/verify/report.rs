//! What the verifier tells, on its way to whoever reads it.

use super::drive::End;
use super::json;
use super::place::Places;
use super::text;
use crate::args::{Verify, VerifyFormat};
use hartrace_isa::Isa;
use hartrace_tandem::verify::{Counters, Field, Mismatch, Reporter};
use hartrace_tandem::{Config, Problem};
use std::ops::ControlFlow;
use std::path::Path;

/// What a report is about.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) trace: &'a Path,
    pub(super) config: &'a Config,
    pub(super) isa: Isa,
    pub(super) places: &'a Places<'a>,
}

/// Writes down what it is told.
pub(super) struct Report<'a> {
    facts: Facts<'a>,
    format: VerifyFormat,
    /// Mismatches that are too many.
    limit: Option<u64>,
    resync: bool,
    /// What has not been written.
    text: String,
    /// Mismatches told.
    told: u64,
    /// Mismatches from the first on that all differ in the instruction.
    foreign: u64,
    /// Instruction of the first one.
    first: Option<u64>,
    /// What is wrong with the trace, the first of it.
    problem: Option<Problem>,
    problems: u64,
    /// Bytes behind problems that could not be used.
    skipped: u64,
}

impl<'a> Report<'a> {
    pub(super) fn new(args: &Verify, facts: Facts<'a>) -> Report<'a> {
        let text = match args.format {
            VerifyFormat::Text => String::new(),
            VerifyFormat::Json => json::header(&facts),
        };
        Report {
            facts,
            format: args.format,
            limit: Some(args.max_mismatches).filter(|n| *n > 0),
            resync: args.resync,
            text,
            told: 0,
            foreign: 0,
            first: None,
            problem: None,
            problems: 0,
            skipped: 0,
        }
    }

    /// What is to be written.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// No more mismatches are wanted.
    pub(super) fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.told >= limit)
    }

    /// Damage that is not passed over.
    pub(super) fn is_stuck(&self) -> bool {
        self.problem.is_some() && !self.resync
    }

    pub(super) fn facts(&self) -> &Facts<'a> {
        &self.facts
    }

    pub(super) fn problem(&self) -> Option<Problem> {
        self.problem
    }

    pub(super) fn problems(&self) -> u64 {
        self.problems
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.first
    }

    /// The trace is probably of another program: from the first mismatch on,
    /// the instructions themselves differ.
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign >= 3
    }

    /// How it all went.
    pub(super) fn conclude(&mut self, counters: &Counters, end: End) {
        let outcome = Outcome {
            counters,
            end,
            problems: self.problems,
            skipped: self.skipped,
        };
        self.text += &match self.format {
            VerifyFormat::Text => text::summary(&outcome),
            VerifyFormat::Json => json::summary(&outcome),
        };
    }
}

/// What there is to say at the end.
pub(super) struct Outcome<'a> {
    pub(super) counters: &'a Counters,
    pub(super) end: End,
    pub(super) problems: u64,
    pub(super) skipped: u64,
}

impl Outcome<'_> {
    /// In a word.
    pub(super) fn verdict(&self) -> &'static str {
        match self.end {
            _ if self.counters.mismatches > 0 => "mismatch",
            _ if self.problems > 0 => "damaged",
            End::Interrupted | End::Lost => "interrupted",
            _ => "clean",
        }
    }
}

impl Reporter for Report<'_> {
    fn mismatch(&mut self, mismatch: &Mismatch<'_>) -> ControlFlow<()> {
        let mut fields = mismatch.differences.iter().map(|d| d.field);
        if self.foreign == self.told && fields.any(|field| field == Field::Insn) {
            self.foreign += 1;
        }
        self.told += 1;
        self.first.get_or_insert(mismatch.insn);
        self.text += &match self.format {
            VerifyFormat::Text => text::mismatch(&self.facts, self.told, mismatch),
            VerifyFormat::Json => json::mismatch(&self.facts, self.told, mismatch),
        };
        match self.is_full() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn problem(&mut self, problem: &Problem) -> ControlFlow<()> {
        self.problems += 1;
        self.problem.get_or_insert(*problem);
        self.text += &match self.format {
            VerifyFormat::Text => text::problem(problem),
            VerifyFormat::Json => json::problem(problem),
        };
        match self.resync {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    fn resumed(&mut self, skipped: u64) {
        self.skipped += skipped;
        self.text += &match self.format {
            VerifyFormat::Text => text::resumed(skipped),
            VerifyFormat::Json => json::resumed(skipped),
        };
    }
}
