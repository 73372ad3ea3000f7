//! What is made of snapshots.

use super::overlap::Overlap;
use crate::args::{Ctr, CtrFormat};
use crate::diagnostic::{Code, Diagnostic, Failure, count};
use crate::settings::Program;
use crate::sink::Sink;
use crate::talk::Talk;
use hartrace_analyze::{
    AutoFdo, Blocks, BrStack, Branches, Fields, Folded, Places, Profgen, Sample, Segments, Table,
    mmap_events,
};
use hartrace_capture::records::{write_json, write_json_start};
use hartrace_ctr::{Control, Snapshot, dump};
use hartrace_flow::{Image, Transfer};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write as _;

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 16;

/// What is known of the addresses of a program.
pub(super) fn places(program: &Program) -> Places<'_> {
    let mut places = Places::new();
    for elf in &program.elf {
        // What has no symbols has no names.
        let _ = places.add_elf(&elf.bytes, elf.file.base);
    }
    places
}

/// A report in work.
pub(super) struct Report<'p, 'a> {
    args: &'p Ctr,
    sink: &'p Sink,
    image: Option<&'p Image>,
    places: &'p Places<'a>,
    kind: Kind<'p, 'a>,
    /// The transfers of the snapshot in work.
    transfers: Vec<Transfer>,
    /// Their entries.
    numbers: Vec<u16>,
    buffer: Vec<u8>,
    seen: u64,
    /// Snapshots in which records of an earlier time stand.
    left_over: u64,
    /// Records of all snapshots that were wanted.
    records: u64,
    overlap: Overlap,
    /// Names of addresses, for JSON.
    labels: Labels,
    failure: Option<Failure>,
}

/// Addresses with their names, if they have one.
type Labels = HashMap<u64, Option<String>>;

/// Names that are kept: those of a large program.
const MOST_LABELS: usize = 1 << 18;

enum Kind<'p, 'a> {
    Table(Table<'p, 'a>),
    Lines(BrStack<'p>),
    Profgen(Box<Profgen<'p>>),
    AutoFdo(Box<AutoFdo<'p>>),
    Folded(Box<Folded<'p, 'a>>),
    Blocks(Blocks),
    Branches(Branches),
    Json,
    Dump,
}

impl<'p, 'a> Report<'p, 'a> {
    pub(super) fn new(
        args: &'p Ctr,
        program: &Program,
        image: Option<&'p Image>,
        places: &'p [Places<'a>],
        sink: &'p Sink,
    ) -> Result<Report<'p, 'a>, Failure> {
        let Some(places) = places.first() else {
            return Err(Failure::Usage("no file is given"));
        };
        let mut buffer = Vec::new();
        let plain = BrStack::default();
        let eight = BrStack {
            fields: Fields::Eight,
            ..plain
        };
        let kind = match args.format {
            CtrFormat::Table => Kind::Table(Table::new(places)),
            CtrFormat::Brstack => Kind::Lines(plain),
            CtrFormat::Brstack8 => Kind::Lines(eight),
            CtrFormat::Brstacksym => Kind::Lines(eight),
            CtrFormat::Profgen => {
                mapped(program, &mut buffer);
                Kind::Profgen(Box::new(Profgen::new(image)))
            }
            CtrFormat::Autofdo => Kind::AutoFdo(Box::new(AutoFdo::new(segments(program)?, image))),
            CtrFormat::Folded => Kind::Folded(Box::new(Folded::new(places))),
            CtrFormat::Blocks => Kind::Blocks(Blocks::new()),
            CtrFormat::Branches => Kind::Branches(Branches::new()),
            CtrFormat::Json => {
                write_json_start(&mut buffer);
                Kind::Json
            }
            CtrFormat::Dump => {
                dump::write_start(&mut buffer);
                Kind::Dump
            }
        };
        Ok(Report {
            args,
            sink,
            image,
            places,
            kind,
            transfers: Vec::new(),
            numbers: Vec::new(),
            buffer,
            seen: 0,
            left_over: 0,
            records: 0,
            overlap: Overlap::default(),
            labels: Labels::default(),
            failure: None,
        })
    }

    /// The snapshots that follow are of a program with these names.
    pub(super) fn turn_to(&mut self, places: &'p Places<'a>) {
        self.places = places;
        self.overlap.turn();
        self.labels.clear();
        if let Kind::Table(table) = &mut self.kind {
            *table = Table::new(places);
        }
        if let Kind::Lines(stack) = &mut self.kind {
            let names = self.args.format == CtrFormat::Brstacksym;
            stack.names = names.then(|| places.names());
        }
    }

    /// Snapshots so far, those that were not wanted among them.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// What failed so far.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.sink.check(),
        }
    }

    /// Takes a snapshot in.
    pub(super) fn snapshot(&mut self, snapshot: &Snapshot) {
        let number = self.seen;
        self.seen += 1;
        if self.failure.is_some() || self.args.sample.is_some_and(|k| k != number) {
            return;
        }
        if self.args.format == CtrFormat::Folded && is_left_over(snapshot) {
            self.left_over += 1;
            return;
        }
        if let Some(diagnostic) = unfit(self.args.format, snapshot, number) {
            self.failure = Some(diagnostic.into());
            return;
        }
        self.transfers.clear();
        self.numbers.clear();
        for (number, record) in (0..).zip(&snapshot.entries) {
            if let Some(transfer) = record.transfer() {
                self.transfers.push(transfer);
                self.numbers.push(number);
            }
        }
        self.records += self.transfers.len() as u64;
        if is_count(self.args.format) {
            self.overlap.add(snapshot);
        }
        let sample = Sample {
            pc: snapshot.pc,
            transfers: &self.transfers,
            numbers: &self.numbers,
            cut: snapshot.is_cut(),
            not_taken: snapshot.records_not_taken(),
        };
        let out = &mut self.buffer;
        match &mut self.kind {
            Kind::Table(lines) => {
                if number > 0 && self.args.sample.is_none() {
                    out.push(b'\n');
                }
                title(snapshot, number, &sample, self.places, out);
                // Writing to memory does not fail.
                let _ = lines.write(&sample, snapshot.is_stack(), out);
            }
            Kind::Lines(stack) => stack.line(&sample, out),
            Kind::Profgen(lines) => lines.lines(&sample, out),
            Kind::AutoFdo(counts) => counts.add(&sample),
            Kind::Folded(stacks) => stacks.add(&sample),
            Kind::Blocks(blocks) => blocks.add(&sample),
            Kind::Branches(branches) => branches.add(&sample),
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
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.sink.put(&self.buffer);
        self.buffer.clear();
    }

    /// Writes what was gathered, and tells what is doubtful about it.
    pub(super) fn finish(mut self, talk: &Talk) -> Result<(), Failure> {
        let top = self.args.top;
        let whole = is_count(self.args.format) && self.args.format != CtrFormat::Branches;
        let whole = whole || self.args.format == CtrFormat::Folded;
        if whole && self.records == 0 && self.left_over == 0 {
            talk.warning(&no_records(self.seen));
            return self.check();
        }
        if let Some((repeat, all)) = self.overlap.found() {
            talk.warning(&overlapping(repeat, all));
        }
        let out = &mut self.buffer;
        // Writing to memory does not fail.
        match &self.kind {
            Kind::Profgen(lines) => warn_of_odd(lines.bogus(), talk),
            Kind::AutoFdo(counts) => {
                let _ = counts.write(out);
                warn_of_odd(counts.bogus(), talk);
            }
            Kind::Folded(stacks) => {
                let _ = stacks.write(out);
                let (all, cut) = stacks.samples();
                if all == 0 && self.left_over > 0 {
                    return Err(no_stack("no snapshot holds a call stack").into());
                }
                if cut > 0 {
                    talk.warning(&cut_stacks(all, cut));
                }
                if stacks.moved() > 0 {
                    talk.warning(&moved_stacks(all, stacks.moved()));
                }
            }
            Kind::Blocks(blocks) => {
                let (rows, bogus) = blocks.rows(self.image);
                let _ = Blocks::write(&rows, top, self.places, out);
                warn_of_odd(bogus, talk);
            }
            Kind::Branches(branches) => {
                let _ = branches.write(top, self.places, out);
            }
            Kind::Table(_) | Kind::Lines(_) | Kind::Json | Kind::Dump => {}
        }
        self.flush();
        self.check()
    }
}

/// Where the code of each program is.
fn mapped(program: &Program, out: &mut Vec<u8>) {
    for elf in &program.elf {
        if let Ok(segments) = Segments::from_elf(&elf.bytes, elf.file.base) {
            mmap_events(&segments, &elf.file.file.display(), out);
        }
    }
}

/// The program whose counts are made.
fn segments(program: &Program) -> Result<Segments, Failure> {
    let found = program
        .elf
        .first()
        .map(|elf| Segments::from_elf(&elf.bytes, elf.file.base));
    match found {
        Some(Ok(segments)) => Ok(segments),
        _ => Err(Diagnostic::new(Code::NoProgram, "no program is given")
            .note("AutoFDO names code by its place in the file of the program")
            .help("name the ELF file with -e")
            .into()),
    }
}

/// Why a report cannot be made of a snapshot.
fn unfit(format: CtrFormat, snapshot: &Snapshot, number: u64) -> Option<Diagnostic> {
    use CtrFormat::{Autofdo, Blocks, Folded, Profgen};
    let left_out = snapshot.left_out();
    let whole = matches!(format, Autofdo | Blocks | Profgen);
    snapshot.records().next()?;
    if whole && left_out != Control::NONE {
        let fields: Vec<&str> = left_out.names(snapshot.version).collect();
        let message = format!("snapshot {number} does not hold all that was taken");
        return Some(
            Diagnostic::new(Code::UnfitRecords, message)
                .note(format!("these fields are set: {}", fields.join(" ")))
                .note("the way from one record to the next may lead through others")
                .help("record without filters and RAS emulation; -f table, brstack and branches take any records"),
        );
    }
    if format == Folded && !snapshot.is_stack() {
        return Some(no_stack(&format!("snapshot {number} holds no call stack")));
    }
    None
}

/// Whether recording is off, so that the calls are not those of the moment.
fn is_left_over(snapshot: &Snapshot) -> bool {
    let guest = Control::from_bits(snapshot.version, snapshot.guest_control);
    let enabled = snapshot.fields().with(guest).and(Control::MODES);
    enabled == Control::NONE && snapshot.records().next().is_some()
}

fn no_stack(message: &str) -> Diagnostic {
    Diagnostic::new(Code::UnfitRecords, message)
        .note("calls that have not returned are what RAS emulation records: RASEMU is not set")
        .help("record with control = [\"M\", \"S\", \"U\", \"RASEMU\"] in section [ctr], as configs/ctr/call-stacks.toml")
}

fn warn_of_odd(ways: u64, talk: &Talk) {
    if ways > 0 {
        let are = if ways == 1 { "is" } else { "are" };
        let ways = count(ways, "way");
        let message = format!("{ways} from one record to the next cannot be, and {are} left out");
        talk.warning(
            &Diagnostic::new(Code::OddRecords, message)
                .note("backwards, through a jump, or further than a mebibyte")
                .help("is it the right program? were only some modes recorded, so that the way leads through others?"),
        );
    }
}

fn cut_stacks(all: u64, cut: u64) -> Diagnostic {
    let stacks = count(all, "stack");
    let message = format!("{cut} of {stacks} may lack their outermost calls");
    Diagnostic::new(Code::OddRecords, message)
        .note("more calls than entries, or returns from calls before recording began: WRPTR does not tell which")
        .note("these stacks begin with [cut]")
        .help("choose a greater depth in section [ctr], or record from the start")
}

fn moved_stacks(all: u64, moved: u64) -> Diagnostic {
    let stacks = count(all, "stack");
    let message = format!("in {moved} of {stacks} a call does not come from the last callee");
    Diagnostic::new(Code::OddRecords, message)
        .note("after a tail call both are in the stack; after longjmp, or on another stack, callees are that have long been left")
        .help("-f table says which calls these are")
}

fn no_records(snapshots: u64) -> Diagnostic {
    let message = match snapshots {
        0 => "no records: there is no snapshot".to_owned(),
        1 => "no records: the snapshot is empty".to_owned(),
        n => format!("no records: {n} snapshots, all of them empty"),
    };
    Diagnostic::new(Code::OddRecords, message)
        .note("nothing was recorded, so there is nothing to report")
        .help("is the mode enabled that the program runs in, by the program or by control in section [ctr]?")
}

fn overlapping(repeat: u64, all: u64) -> Diagnostic {
    let snapshots = count(all, "snapshot");
    let message = format!("{repeat} of {snapshots} hold records of the one before");
    Diagnostic::new(Code::OddRecords, message)
        .note("these transfers are counted several times")
        .help("take fewer: --ctr-every or --every above the instructions that fill the entries")
}

/// Whether a report sums up transfers.
const fn is_count(format: CtrFormat) -> bool {
    use CtrFormat::{Autofdo, Blocks, Branches, Profgen};
    matches!(format, Autofdo | Blocks | Branches | Profgen)
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
