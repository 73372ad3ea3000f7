//! What a verifier finds: text, and JSON lines of the schema `hartrace-verify`.
//!
//! A [`Report`] takes mismatches and damage from a [`Verifier`] as they are
//! found, and writes a summary at the end.
//!
//! [`Verifier`]: hartrace_tandem::Verifier

mod json;
mod place;
mod text;

use hartrace_capture::verify::{End, Moments};
use hartrace_isa::Isa;
use hartrace_logs::Moment;
use hartrace_tandem::verify::{Counters, Field, Mismatch, Reporter};
use hartrace_tandem::{Config, Problem};
use std::ops::ControlFlow;
use std::path::Path;

pub use place::Places;

/// What a report is about.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The name of the trace.
    pub trace: &'a Path,
    /// Its settings.
    pub config: &'a Config,
    /// The instruction set of the model.
    pub isa: Isa,
    /// What is known of addresses.
    pub places: &'a Places<'a>,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// JSON lines.
    Json,
}

/// Mismatches and damage, written as they come.
pub struct Report<'a> {
    facts: Facts<'a>,
    form: Form,
    /// Mismatches that are too many.
    limit: Option<u64>,
    resync: bool,
    /// What has not been written.
    text: String,
    /// Mismatches so far.
    mismatches: u64,
    /// Mismatches from the first on that all differ in the instruction.
    foreign: u64,
    /// Instruction of the first one.
    first: Option<u64>,
    /// What is wrong with the trace, the first of it.
    problem: Option<Problem>,
    problems: u64,
    /// Bytes after problems that could not be used.
    skipped: u64,
    /// When the groups were that are compared now.
    moments: Moments,
    /// When the first mismatch was.
    first_moment: Option<Moment>,
}

impl<'a> Report<'a> {
    /// A report that ends after `limit` mismatches, and at damage unless
    /// `resync` is set.
    #[must_use]
    pub fn new(form: Form, limit: Option<u64>, resync: bool, facts: Facts<'a>) -> Report<'a> {
        let text = match form {
            Form::Text => String::new(),
            Form::Json => json::header(&facts),
        };
        Report {
            facts,
            form,
            limit,
            resync,
            text,
            mismatches: 0,
            foreign: 0,
            first: None,
            problem: None,
            problems: 0,
            skipped: 0,
            moments: Moments::default(),
            first_moment: None,
        }
    }

    /// When the groups that are compared next were; a source without times leaves it empty.
    pub fn moments(&mut self) -> &mut Moments {
        &mut self.moments
    }

    /// When the first mismatch was, if the source has times.
    #[must_use]
    pub fn first_moment(&self) -> Option<Moment> {
        self.first_moment
    }

    /// What is to be written.
    #[must_use]
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// No more mismatches are wanted.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.mismatches >= limit)
    }

    /// Damage that is not passed over.
    #[must_use]
    pub(crate) fn is_stuck(&self) -> bool {
        self.problem.is_some() && !self.resync
    }

    /// What it is about.
    #[must_use]
    pub fn facts(&self) -> &Facts<'a> {
        &self.facts
    }

    /// The first damage.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        self.problem
    }

    /// How many places are damaged.
    #[must_use]
    pub fn problems(&self) -> u64 {
        self.problems
    }

    /// The instruction of the first mismatch.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// The trace is probably of another program: from the first mismatch on,
    /// the instructions themselves differ.
    #[must_use]
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign >= 3
    }

    /// Why the verifier has stopped, if the report asked it to or the last
    /// instruction was reached.
    #[must_use]
    pub fn why_stopped(&self) -> End {
        if self.is_stuck() {
            End::Stuck
        } else if self.is_full() {
            End::Full
        } else {
            End::Until
        }
    }

    /// Writes the summary.
    pub fn conclude(&mut self, counters: &Counters, end: End) {
        let outcome = Outcome {
            counters,
            end,
            problems: self.problems,
            skipped: self.skipped,
        };
        self.text += &match self.form {
            Form::Text => text::summary(&outcome),
            Form::Json => json::summary(&outcome),
        };
    }
}

/// What there is to say at the end.
struct Outcome<'a> {
    counters: &'a Counters,
    end: End,
    problems: u64,
    skipped: u64,
}

impl Outcome<'_> {
    /// In a word.
    fn verdict(&self) -> &'static str {
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
        if self.foreign == self.mismatches && fields.any(|field| field == Field::Insn) {
            self.foreign += 1;
        }
        self.mismatches += 1;
        let moment = self.moments.at(mismatch.group.at);
        if self.first.is_none() {
            (self.first, self.first_moment) = (Some(mismatch.insn), moment);
        }
        let number = self.mismatches;
        self.text += &match self.form {
            Form::Text => text::mismatch(&self.facts, number, moment, mismatch),
            Form::Json => json::mismatch(&self.facts, number, moment, mismatch),
        };
        match self.is_full() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn problem(&mut self, problem: &Problem) -> ControlFlow<()> {
        self.problems += 1;
        self.problem.get_or_insert(*problem);
        self.text += &match self.form {
            Form::Text => text::problem(problem),
            Form::Json => json::problem(problem),
        };
        match self.resync {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    fn resumed(&mut self, skipped: u64) {
        self.skipped += skipped;
        self.text += &match self.form {
            Form::Text => text::resumed(skipped),
            Form::Json => json::resumed(skipped),
        };
    }
}
