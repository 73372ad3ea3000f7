//! Reports on control transfer records: tables, the formats of profilers, JSON
//! lines and dumps.
//!
//! ```
//! use hartrace_analyze::Places;
//! use hartrace_ctr::Snapshot;
//! use hartrace_print::records::{Form, Report};
//!
//! let places = Places::new();
//! let mut out = Vec::new();
//! let mut report = Report::new(Form::Table, None, &places, &mut out);
//! report.snapshot(&Snapshot::default()).unwrap();
//! report.finish().unwrap();
//! assert!(out.starts_with(b"snapshot 0: hart 0"));
//! ```

use crate::words::count;
use hartrace_analyze::{
    AutoFdo, Blocks, BrStack, Branches, Fields, Folded, Places, Profgen, Sample, SampleProfile,
    Scopes, Segments, Table, mmap_events,
};
use hartrace_capture::records::{write_json, write_json_start};
use hartrace_ctr::overlap::Overlap;
use hartrace_ctr::{Control, Snapshot, dump};
use hartrace_flow::{Image, Transfer};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Write};

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 16;

/// Names that are kept: those of a large program.
const MOST_LABELS: usize = 1 << 18;

/// What is made of snapshots.
#[derive(Debug)]
pub enum Form {
    /// A table for people.
    Table,
    /// `perf script -F brstack`.
    BrStack,
    /// The same with eight fields for each branch.
    BrStack8,
    /// `perf script -F brstacksym`.
    BrStackSym,
    /// For llvm-profgen, of programs with these segments and names.
    Profgen(Vec<(Segments, String)>),
    /// For AutoFDO, of a program with these segments.
    AutoFdo(Box<Segments>),
    /// An LLVM sample profile, of a program with these functions.
    Llvm(Vec<Scopes>),
    /// Call stacks for flame graphs.
    Folded,
    /// Cycles by block, the first so many.
    Blocks(Option<usize>),
    /// Counts by branch, the first so many.
    Branches(Option<usize>),
    /// JSON lines.
    Json {
        /// The snapshots were taken at times between two timestamps.
        interpolated: bool,
    },
    /// A dump.
    Dump,
}

/// Why a report cannot be made.
#[derive(Debug)]
pub enum ReportError {
    /// A snapshot does not hold all transfers: these fields leave some out.
    LeftOut {
        /// The number of the snapshot.
        number: u64,
        /// The names of the fields.
        fields: Vec<&'static str>,
    },
    /// A snapshot holds no call stack.
    NoStack {
        /// The number of the snapshot.
        number: u64,
    },
    /// No snapshot holds a call stack.
    NoStacks,
    /// Nothing was recorded in so many snapshots; the report is empty.
    NoRecords(u64),
    /// A failing write.
    Write(io::Error),
}

/// What is doubtful about a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Snapshots that hold records of the one before, and snapshots.
    pub overlap: Option<(u64, u64)>,
    /// Paths from one record to the next that are impossible.
    pub odd: u64,
    /// Call stacks.
    pub stacks: u64,
    /// Those that may lack their outermost calls.
    pub cut: u64,
    /// Those with a call that does not come from the last callee.
    pub moved: u64,
}

/// A report in work.
pub struct Report<'p, 'a, W> {
    out: W,
    image: Option<&'p Image>,
    places: &'p Places<'a>,
    kind: Kind<'p, 'a>,
    /// The snapshot that is wanted, if not all are.
    only: Option<u64>,
    /// The transfers of the snapshot in work.
    transfers: Vec<Transfer>,
    /// Their entries.
    numbers: Vec<u16>,
    buffer: Vec<u8>,
    seen: u64,
    /// Snapshots with records of an earlier time.
    left_over: u64,
    /// Records of all snapshots that were wanted.
    records: u64,
    overlap: Overlap,
    /// Names of addresses, for JSON.
    labels: HashMap<u64, Option<String>>,
}

enum Kind<'p, 'a> {
    Table(Table<'p, 'a>),
    Lines { stack: BrStack<'p>, names: bool },
    Profgen(Box<Profgen<'p>>),
    AutoFdo(Box<AutoFdo<'p>>),
    Llvm(Box<AutoFdo<'p>>, Vec<Scopes>),
    Folded(Box<Folded<'p, 'a>>),
    Blocks(Blocks, Option<usize>),
    Branches(Branches, Option<usize>),
    Json,
    Dump,
}

impl Kind<'_, '_> {
    /// Whether transfers are summed up.
    const fn is_count(&self) -> bool {
        matches!(
            self,
            Kind::Profgen(_)
                | Kind::AutoFdo(_)
                | Kind::Llvm(..)
                | Kind::Blocks(..)
                | Kind::Branches(..)
        )
    }

    /// Whether everything between two records must be known.
    const fn needs_all(&self) -> bool {
        use Kind::{AutoFdo, Blocks, Llvm, Profgen};
        matches!(self, Profgen(_) | AutoFdo(_) | Llvm(..) | Blocks(..))
    }
}

impl<'p, 'a, W: Write> Report<'p, 'a, W> {
    /// A report on the snapshots of a program with this code and these names.
    #[must_use]
    pub fn new(
        form: Form,
        image: Option<&'p Image>,
        places: &'p Places<'a>,
        out: W,
    ) -> Report<'p, 'a, W> {
        let mut buffer = Vec::new();
        let plain = BrStack::default();
        let eight = BrStack {
            fields: Fields::Eight,
            ..plain
        };
        let lines = |stack, names| Kind::Lines { stack, names };
        let kind = match form {
            Form::Table => Kind::Table(Table::new(places)),
            Form::BrStack => lines(plain, false),
            Form::BrStack8 => lines(eight, false),
            Form::BrStackSym => lines(eight, true),
            Form::Profgen(programs) => {
                for (segments, name) in &programs {
                    mmap_events(segments, name, &mut buffer);
                }
                Kind::Profgen(Box::new(Profgen::new(image)))
            }
            Form::AutoFdo(segments) => Kind::AutoFdo(Box::new(AutoFdo::new(*segments, image))),
            Form::Llvm(scopes) => {
                let counts = AutoFdo::new(Segments::default(), image);
                Kind::Llvm(Box::new(counts), scopes)
            }
            Form::Folded => Kind::Folded(Box::new(Folded::new(places))),
            Form::Blocks(top) => Kind::Blocks(Blocks::new(), top),
            Form::Branches(top) => Kind::Branches(Branches::new(), top),
            Form::Json { interpolated } => {
                write_json_start(interpolated, &mut buffer);
                Kind::Json
            }
            Form::Dump => {
                dump::write_start(&mut buffer);
                Kind::Dump
            }
        };
        let mut report = Report {
            out,
            image,
            places,
            kind,
            only: None,
            transfers: Vec::new(),
            numbers: Vec::new(),
            buffer,
            seen: 0,
            left_over: 0,
            records: 0,
            overlap: Overlap::default(),
            labels: HashMap::new(),
        };
        report.turn_to(places);
        report
    }

    /// A report on one snapshot, counted from 0.
    #[must_use]
    pub fn only(mut self, number: Option<u64>) -> Report<'p, 'a, W> {
        self.only = number;
        self
    }

    /// The snapshots that follow are from another file, of a program with these
    /// names.
    pub fn turn_to(&mut self, places: &'p Places<'a>) {
        self.places = places;
        self.overlap.turn();
        self.labels.clear();
        match &mut self.kind {
            Kind::Table(table) => *table = Table::new(places),
            Kind::Lines { stack, names } => stack.names = names.then(|| places.names()),
            _ => {}
        }
    }

    /// Snapshots so far, those that were not wanted among them.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// Takes a snapshot in.
    ///
    /// # Errors
    ///
    /// A snapshot that the report cannot be made of, and a failing write.
    pub fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), ReportError> {
        let number = self.seen;
        self.seen += 1;
        if self.only.is_some_and(|k| k != number) {
            return Ok(());
        }
        if matches!(self.kind, Kind::Folded(_)) && is_left_over(snapshot) {
            self.left_over += 1;
            return Ok(());
        }
        self.check(snapshot, number)?;
        self.transfers.clear();
        self.numbers.clear();
        for (number, record) in (0..).zip(&snapshot.entries) {
            if let Some(transfer) = record.transfer() {
                self.transfers.push(transfer);
                self.numbers.push(number);
            }
        }
        self.records += self.transfers.len() as u64;
        if self.kind.is_count() {
            self.overlap.add(snapshot);
        }
        self.add(snapshot, number);
        match self.buffer.len() >= BUFFER {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Whether the report can be made of a snapshot.
    fn check(&self, snapshot: &Snapshot, number: u64) -> Result<(), ReportError> {
        if snapshot.records().next().is_none() {
            return Ok(());
        }
        let left_out = snapshot.left_out();
        if self.kind.needs_all() && left_out != Control::NONE {
            let fields = left_out.names(snapshot.version).collect();
            return Err(ReportError::LeftOut { number, fields });
        }
        if matches!(self.kind, Kind::Folded(_)) && !snapshot.is_stack() {
            return Err(ReportError::NoStack { number });
        }
        Ok(())
    }

    fn add(&mut self, snapshot: &Snapshot, number: u64) {
        let sample = Sample {
            pc: snapshot.pc,
            transfers: &self.transfers,
            numbers: &self.numbers,
            cut: snapshot.is_cut(),
            not_taken: snapshot.records_not_taken(),
            all_modes: snapshot.fields().has(Control::MODES),
        };
        let out = &mut self.buffer;
        match &mut self.kind {
            Kind::Table(lines) => {
                if number > 0 && self.only.is_none() {
                    out.push(b'\n');
                }
                title(snapshot, number, &sample, self.places, out);
                // Writing to memory does not fail.
                let _ = lines.write(&sample, snapshot.is_stack(), out);
            }
            Kind::Lines { stack, .. } => stack.line(&sample, out),
            Kind::Profgen(lines) => lines.lines(&sample, out),
            Kind::AutoFdo(counts) | Kind::Llvm(counts, _) => counts.add(&sample),
            Kind::Folded(stacks) => stacks.add(&sample),
            Kind::Blocks(blocks, _) => blocks.add(&sample),
            Kind::Branches(branches, _) => branches.add(&sample),
            Kind::Json => {
                if self.labels.len() > MOST_LABELS {
                    self.labels.clear();
                }
                let names = self.places.names();
                let known = RefCell::new(&mut self.labels);
                let label = |address| {
                    let look = || Some(names.label(address).to_string()).filter(|l| !l.is_empty());
                    let mut known = known.borrow_mut();
                    known.entry(address).or_insert_with(look).clone()
                };
                write_json(snapshot, &label, out);
            }
            Kind::Dump => dump::write_snapshot(snapshot, out),
        }
    }

    fn flush(&mut self) -> Result<(), ReportError> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(ReportError::Write)
    }

    /// Writes what was gathered; what is doubtful about it.
    ///
    /// # Errors
    ///
    /// Snapshots without anything to report, and a failing write.
    pub fn finish(mut self) -> Result<Doubts, ReportError> {
        let whole = self.kind.needs_all() || matches!(self.kind, Kind::Folded(_));
        if whole && self.records == 0 && self.left_over == 0 {
            return Err(ReportError::NoRecords(self.seen));
        }
        let mut doubts = Doubts {
            overlap: self.overlap.found(),
            ..Doubts::default()
        };
        let out = &mut self.buffer;
        // Writing to memory does not fail.
        match &self.kind {
            Kind::Profgen(lines) => doubts.odd = lines.bogus(),
            Kind::AutoFdo(counts) => {
                let _ = counts.write(out);
                doubts.odd = counts.bogus();
            }
            Kind::Llvm(counts, scopes) => {
                if let Some(image) = self.image {
                    let _ = SampleProfile::new(counts.counts(), image, scopes).write(out);
                }
                doubts.odd = counts.bogus();
            }
            Kind::Folded(stacks) => {
                let _ = stacks.write(out);
                (doubts.stacks, doubts.cut) = stacks.samples();
                doubts.moved = stacks.moved();
                if doubts.stacks == 0 && self.left_over > 0 {
                    return Err(ReportError::NoStacks);
                }
            }
            Kind::Blocks(blocks, top) => {
                let (rows, bogus) = blocks.rows(self.image);
                let _ = Blocks::write(&rows, *top, self.places, out);
                doubts.odd = bogus;
            }
            Kind::Branches(branches, top) => {
                let _ = branches.write(*top, self.places, out);
            }
            Kind::Table(_) | Kind::Lines { .. } | Kind::Json | Kind::Dump => {}
        }
        self.flush()?;
        Ok(doubts)
    }
}

/// Whether recording is off, so that the calls are not those of the moment.
fn is_left_over(snapshot: &Snapshot) -> bool {
    let guest = Control::from_bits(snapshot.version, snapshot.guest_control);
    let enabled = snapshot.fields().with(guest).and(Control::MODES);
    enabled == Control::NONE && snapshot.records().next().is_some()
}

/// What a snapshot is, for people.
fn title(s: &Snapshot, number: u64, sample: &Sample<'_>, places: &Places<'_>, out: &mut Vec<u8>) {
    let mut title = format!("snapshot {number}: hart {}", s.hart.0);
    if let Some(insns) = s.instructions {
        title += &format!(", instruction {insns}");
    }
    if let Some(cycles) = s.cycles {
        title += &format!(", cycle {cycles}");
    }
    if let Some(mode) = s.mode {
        title += &format!(", mode {}", mode.name());
    }
    if let Some(pc) = s.pc {
        title += &format!(", at {}", places.at(pc));
    }
    let fields: Vec<&str> = s.fields().names(s.version).collect();
    let fields = match fields.as_slice() {
        [] => "nothing enabled".to_owned(),
        fields => fields.join(" "),
    };
    let frozen = if s.is_frozen() { ", frozen" } else { "" };
    let records = count(sample.transfers.len() as u64, "record");
    // Writing to memory does not fail.
    let _ = writeln!(
        out,
        "{title}\nCTR {}, depth {}, {fields}{frozen}: {records}",
        s.version, s.depth
    );
}
