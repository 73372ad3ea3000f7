//! One interface to logs of every kind: [`LogReader`] reads steps, [`LogScan`]
//! gives a summary, also of logs whose steps need a program that is not there.
//!
//! ```
//! use hartrace_capture::detect::Kind;
//! use hartrace_capture::log::{Damage, LogOptions, LogReader, LogSummary};
//!
//! let text = b"core   0: 3 0x80000000 (0x00010117) x2  0x80010000\nhello\n";
//! let mut reader = LogReader::new(Kind::SpikeLog, &LogOptions::default()).unwrap();
//! let (mut summary, mut damage) = (LogSummary::default(), Damage::default());
//! reader.feed(text, &mut summary, &mut |error| damage.add(error));
//! reader.finish(&mut summary, &mut |error| damage.add(error));
//! assert_eq!((summary.instructions, damage.lines), (1, 1));
//! ```

mod assume;
mod chosen;
mod clocked;
mod copy;
mod cycles;
mod file;
mod plain;
mod reading;
mod rows;
mod scan;
mod summary;
mod wave;

pub use assume::Assume;
pub use chosen::Chosen;
pub use clocked::Clocked;
pub use copy::{Copied, LogSource, Overseer};
pub use cycles::{CycleReader, Cycles};
pub use file::{LogFile, LogFileError};
pub use plain::Plain;
pub use reading::{LogGuess, Reading, chosen, head, plan_of, recognise_boot};
pub use rows::RowWriter;
pub use scan::{LogFacts, LogScan};
pub(crate) use summary::LineCount;
pub use summary::{Damage, Fit, LogSummary};

use self::wave::WaveSteps;
use crate::config::Config;
use crate::detect::Kind;
use crate::wave::{MapError, Plan, Shown, WavePort, WaveReader};
use hartrace_flow::erase::{self, Dyn, Erased};
use hartrace_flow::{Effects, HartId, Image, Observer, SpaceId, Step, Wants};
use hartrace_isa::Isa;
use hartrace_logs::{
    BlockSteps, Carries, Column, Columns, ColumnsError, EntryOptions, FormatReader, IngressColumns,
    IngressReader, IngressRow, Iretire, LineError, LineErrorKind, LogFormat, PcLines, PcReader,
    SpikeCsvReader, SpikeOptions, SpikeReader,
};
use std::fmt;
use std::sync::Arc;

/// What a reader may know besides the log.
#[derive(Clone, Debug, Default)]
pub struct LogOptions<'a> {
    /// The program.
    pub image: Option<&'a Image>,
    /// The instruction set; otherwise that of the image, or GC of the width
    /// the log shows.
    pub isa: Option<Isa>,
    /// What `iretire` counts in ingress rows.
    pub iretire: Iretire,
    /// Jumps that nothing explains stay jumps, in a log that records traps
    /// ([`SpikeOptions::plain_jumps`]).
    pub plain_jumps: bool,
    /// The columns of a log of any other form.
    pub columns: Option<Columns>,
    /// Where the port of a waveform is.
    pub wave: Option<Result<Arc<Plan>, MapError>>,
}

/// Why a log is not read as steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The file is no log.
    NotALog(Kind),
    /// A log without instructions needs the program.
    NeedsProgram(Kind),
    /// A log by columns needs to know them.
    NeedsColumns,
    /// Columns that cannot be.
    Columns(ColumnsError),
    /// A waveform whose port is not known.
    Wave(MapError),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::NotALog(kind) => write!(f, "this kind of file is not a log: {kind}"),
            LogError::NeedsProgram(kind) => {
                write!(f, "this kind of log needs its program: {kind}")
            }
            LogError::NeedsColumns => f.write_str("the columns of the log are not given"),
            LogError::Columns(error) => write!(f, "[log.columns]: {error}"),
            LogError::Wave(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LogError {}

/// Reads a log as steps. Feed it chunks of any size; memory does not grow with
/// the log.
pub struct LogReader<'a>(Steps<'a>);

/// One reader at a time, so that their sizes do not matter.
#[allow(clippy::large_enum_variant)]
enum Steps<'a> {
    Pc(PcReader<'a>),
    Spike(SpikeReader<'a>),
    Ingress(IngressReader, BlockSteps<'a>),
    SpikeCsv(SpikeCsvReader),
    Format(FormatReader<'a>, Carries),
    Wave(WaveSteps<'a>),
}

impl<'a> LogReader<'a> {
    /// A reader for a log of this kind. Kinds that show one hart only call it
    /// hart 0.
    ///
    /// # Errors
    ///
    /// A kind that is no log, or one that cannot be read without an image.
    pub fn new(kind: Kind, options: &LogOptions<'a>) -> Result<LogReader<'a>, LogError> {
        let hart = HartId(0);
        let image = || options.image.ok_or(LogError::NeedsProgram(kind));
        Ok(LogReader(match kind {
            Kind::PcList => {
                let reader = PcReader::new(image()?);
                Steps::Pc(match options.isa {
                    Some(isa) => reader.in_pieces(isa),
                    None => reader,
                })
            }
            Kind::IngressCsv => Steps::Ingress(
                IngressReader::new(options.iretire),
                BlockSteps::new(image()?, SpaceId::FIRST, hart),
            ),
            Kind::SpikeLog => {
                let isa = options.isa;
                let spike = SpikeOptions {
                    isa,
                    plain_jumps: options.plain_jumps,
                    ..SpikeOptions::default()
                };
                let reader = SpikeReader::new(spike, options.image);
                Steps::Spike(match isa {
                    Some(isa) => reader.in_pieces(isa),
                    None => reader,
                })
            }
            Kind::SpikeCsv => {
                let isa = options.isa.or(options.image.and_then(Image::isa));
                Steps::SpikeCsv(SpikeCsvReader::new(isa.unwrap_or(Isa::RV64GC), hart))
            }
            Kind::Log(format) => {
                let carries = carries(format, options.columns.as_ref());
                let image = match carries.code {
                    true => options.image,
                    false => Some(image()?),
                };
                let entries = EntryOptions {
                    isa: options.isa,
                    plain_jumps: options.plain_jumps,
                    ..EntryOptions::default()
                };
                let reader = match (format, &options.columns) {
                    (LogFormat::Columns, Some(columns)) => {
                        FormatReader::of_columns(columns.clone(), entries, image)
                    }
                    (LogFormat::Columns, None) => return Err(LogError::NeedsColumns),
                    _ => FormatReader::new(format, entries, image),
                };
                Steps::Format(reader, carries)
            }
            Kind::Wave(_) => Steps::Wave(WaveSteps::new(kind, options)?),
            _ => return Err(LogError::NotALog(kind)),
        }))
    }

    /// Edges of the clock of a waveform so far; `None` of a log, which has lines.
    #[must_use]
    pub fn edges(&self) -> Option<u64> {
        match &self.0 {
            Steps::Wave(wave) => Some(wave.edges()),
            _ => None,
        }
    }

    /// The unit of times, as a power of ten of a second, if it is known.
    #[must_use]
    pub fn exponent(&self) -> Option<i8> {
        match &self.0 {
            Steps::Wave(wave) => Some(wave.exponent()),
            _ => None,
        }
    }

    /// Reads on.
    pub fn feed<O: Observer>(
        &mut self,
        chunk: &[u8],
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        self.part(Some(chunk), out, damaged);
    }

    /// The log has ended: gives the last steps and ends the observer.
    pub fn finish<O: Observer>(&mut self, out: &mut O, damaged: &mut impl FnMut(LineError)) {
        self.part(None, out, damaged);
    }

    fn part<O: Observer>(
        &mut self,
        chunk: Option<&[u8]>,
        out: &mut O,
        damaged: &mut dyn FnMut(LineError),
    ) {
        let steps = &mut self.0;
        let part = Part {
            steps,
            chunk,
            damaged,
        };
        erase::run(part, out);
    }

    /// Whether the steps' modes were in the log, as far as it was read.
    #[must_use]
    pub fn has_modes(&self) -> bool {
        match &self.0 {
            Steps::Pc(_) => false,
            Steps::Spike(reader) => reader.commits(),
            Steps::Format(_, carries) => carries.modes,
            // Those that it does not show are followed.
            Steps::Wave(_) => true,
            Steps::Ingress(..) | Steps::SpikeCsv(_) => true,
        }
    }

    /// Whether traps were in the log, as far as it was read. Otherwise they are
    /// guessed from where the hart went.
    #[must_use]
    pub fn has_traps(&self) -> bool {
        match &self.0 {
            Steps::Pc(_) => false,
            Steps::Spike(reader) => reader.has_traps(),
            Steps::Format(_, carries) => carries.traps,
            Steps::Wave(_) => true,
            Steps::Ingress(..) | Steps::SpikeCsv(_) => true,
        }
    }
}

/// What a log of a format records; one by columns, what its columns are.
#[must_use]
pub fn carries(format: LogFormat, columns: Option<&Columns>) -> Carries {
    match (format, columns) {
        (LogFormat::Columns, Some(columns)) => Carries {
            code: columns.has(Column::Insn),
            // Followed, where registers are known.
            modes: columns.has(Column::Mode) || columns.has(Column::Rd),
            effects: columns.has(Column::Rd) || columns.has(Column::MemAddr),
            traps: columns.has(Column::Trap) || columns.has(Column::Cause),
            time: columns.has(Column::Time),
        },
        _ => format.carries(),
    }
}

/// Whether there are times in the log that starts with `head`.
#[must_use]
pub fn has_time(kind: Kind, head: &[u8], config: &Config) -> bool {
    match kind {
        Kind::IngressCsv => ingress_layout(head).0.is_some_and(|columns| columns.time),
        Kind::Log(format) => {
            let columns = config.log.columns.columns().and_then(Result::ok);
            carries(format, columns.as_ref()).time
        }
        Kind::Wave(_) => true,
        _ => false,
    }
}

/// Whether there are the effects of instructions in the log that starts with `head`.
#[must_use]
pub fn has_effects(kind: Kind, head: &[u8], config: &Config) -> bool {
    match kind {
        Kind::SpikeLog => spike_parts(head).commits,
        Kind::Log(format) => {
            let columns = config.log.columns.columns().and_then(Result::ok);
            carries(format, columns.as_ref()).effects
        }
        Kind::Wave(_) => {
            let plan = plan_of(kind, head, config);
            matches!(plan, Some(Ok(plan)) if plan.port == WavePort::Rvfi)
        }
        _ => false,
    }
}

/// The next chunk of a log, or its end. Without type parameters: the readers
/// are compiled here, not again for every observer.
struct Part<'r, 'a, 'd> {
    steps: &'r mut Steps<'a>,
    /// `None` at the end of the log.
    chunk: Option<&'r [u8]>,
    damaged: &'r mut (dyn FnMut(LineError) + 'd),
}

impl Part<'_, '_, '_> {
    fn read_as<K: erase::Kind>(self, to: &mut Dyn<'_>) {
        let mut out = Erased::<K>::new(to);
        let out = &mut out;
        let damaged = &mut |error| (self.damaged)(error);
        match (self.steps, self.chunk) {
            (Steps::Pc(reader), Some(chunk)) => reader.feed(chunk, out, damaged),
            (Steps::Pc(reader), None) => reader.finish(out, damaged),
            (Steps::Spike(reader), Some(chunk)) => reader.feed(chunk, out, damaged),
            (Steps::Spike(reader), None) => reader.finish(out, damaged),
            (Steps::Ingress(reader, blocks), Some(chunk)) => {
                reader.feed_steps(chunk, blocks, out, damaged);
            }
            (Steps::Ingress(reader, blocks), None) => reader.finish_steps(blocks, out, damaged),
            (Steps::SpikeCsv(reader), Some(chunk)) => reader.feed(chunk, out, damaged),
            (Steps::SpikeCsv(reader), None) => reader.finish(out, damaged),
            (Steps::Format(reader, _), Some(chunk)) => reader.feed(chunk, out, damaged),
            (Steps::Format(reader, _), None) => reader.finish(out, damaged),
            (Steps::Wave(wave), chunk) => wave.part(chunk, out, damaged),
        }
    }
}

/// Logs have nothing smaller than steps.
impl erase::Source for Part<'_, '_, '_> {
    type Output = ();

    fn events(self, to: &mut Dyn<'_>) {
        self.steps(&mut Singly(to));
    }

    #[inline(never)]
    fn steps(self, to: &mut Dyn<'_>) {
        self.read_as::<erase::Steps>(to);
    }

    /// A log has single steps: accesses are among their effects.
    fn data(self, to: &mut Dyn<'_>) -> Self::Output {
        self.everything(to)
    }

    #[inline(never)]
    fn everything(self, to: &mut Dyn<'_>) {
        self.read_as::<erase::Everything>(to);
    }
}

/// Gives every instruction as a step to an observer that wants few of them, which
/// selects those from single steps only.
struct Singly<'s, 'o>(&'s mut Dyn<'o>);

impl Observer for Singly<'_, '_> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }
}

/// Reads those logs that need a program without it, into a summary: pcs or
/// blocks, no instructions.
pub(crate) struct RowReader(Rows);

#[allow(clippy::large_enum_variant)]
enum Rows {
    Pc(PcLines),
    Ingress(IngressReader),
    Wave(WaveReader),
}

impl RowReader {
    /// A reader for a log of this kind; `None` for other kinds.
    #[must_use]
    pub(crate) fn new(kind: Kind, options: &LogOptions<'_>) -> Option<RowReader> {
        match (kind, &options.wave) {
            (Kind::PcList, _) => Some(RowReader(Rows::Pc(PcLines::default()))),
            (Kind::IngressCsv, _) => {
                let rows = IngressReader::new(options.iretire);
                Some(RowReader(Rows::Ingress(rows)))
            }
            (Kind::Wave(_), Some(Ok(plan))) if plan.port != WavePort::Rvfi => {
                Some(RowReader(Rows::Wave(WaveReader::new(plan))))
            }
            _ => None,
        }
    }

    /// Edges of the clock of a waveform so far.
    pub(crate) fn edges(&self) -> Option<u64> {
        match &self.0 {
            Rows::Wave(reader) => Some(reader.edges()),
            _ => None,
        }
    }

    /// Reads on.
    pub(crate) fn feed(
        &mut self,
        chunk: &[u8],
        out: &mut LogSummary,
        damaged: &mut impl FnMut(LineError),
    ) {
        match &mut self.0 {
            Rows::Pc(lines) => lines.feed(chunk, &mut |pc| out.row(pc), damaged),
            Rows::Ingress(rows) => rows.feed(chunk, &mut |_, row| out.cycle(row), damaged),
            Rows::Wave(reader) => reader.feed(chunk, &mut |shown| row_of(shown, out, damaged)),
        }
    }

    /// The log has ended.
    pub(crate) fn finish(&mut self, out: &mut LogSummary, damaged: &mut impl FnMut(LineError)) {
        match &mut self.0 {
            Rows::Pc(lines) => lines.finish(&mut |pc| out.row(pc), damaged),
            Rows::Ingress(rows) => rows.finish(&mut |_, row| out.cycle(row), damaged),
            Rows::Wave(reader) => reader.finish(&mut |shown| row_of(shown, out, damaged)),
        }
    }
}

/// What a port shows as a row of a summary.
fn row_of(shown: Shown<'_>, out: &mut LogSummary, damaged: &mut impl FnMut(LineError)) {
    match shown {
        Shown::Blocks(blocks) => out.cycle(IngressRow::Blocks(blocks)),
        Shown::Lost => out.cycle(IngressRow::Lost),
        Shown::Damaged(error) => damaged(error),
        Shown::Entry(_) => {}
    }
}

/// The columns of the ingress rows that start with `head`, and what `iretire`
/// seems to count in them.
#[must_use]
pub fn ingress_layout(head: &[u8]) -> (Option<IngressColumns>, Iretire) {
    let mut reader = IngressReader::new(Iretire::Instructions);
    let mut counted = Iretire::Instructions;
    let mut damaged = |error: LineError| {
        if error.kind == LineErrorKind::Value("iretire") {
            counted = Iretire::Halfwords;
        }
    };
    reader.feed(head, &mut |_, _: IngressRow<'_>| {}, &mut damaged);
    (reader.columns(), counted)
}

/// The address of the first instruction in the log that starts with `head`;
/// `None` where there is none, or for a file that is no log.
#[must_use]
pub fn first_pc(kind: Kind, head: &[u8]) -> Option<u64> {
    let mut first = None;
    let mut see = |pc: u64| {
        first.get_or_insert(pc);
    };
    match kind {
        Kind::PcList => PcLines::default().feed(head, &mut see, &mut |_| {}),
        // A core has code of its own.
        Kind::Wave(_) => {}
        Kind::IngressCsv => {
            let (_, counted) = ingress_layout(head);
            let row = &mut |_: u64, row: IngressRow<'_>| {
                if let IngressRow::Blocks([block, ..]) = row {
                    see(block.iaddr);
                }
            };
            IngressReader::new(counted).feed(head, row, &mut |_| {});
        }
        _ => {
            // A log without instructions says where they are missing.
            let mut missing = None;
            let mut damaged = |error: LineError| {
                if let LineErrorKind::MissingCode(pc) = error.kind {
                    missing.get_or_insert(pc);
                }
            };
            let nothing = Image::new();
            let options = LogOptions {
                image: Some(&nothing),
                ..LogOptions::default()
            };
            let mut reader = LogReader::new(kind, &options).ok()?;
            reader.feed(head, &mut First(&mut see), &mut damaged);
            reader.finish(&mut First(&mut see), &mut damaged);
            first = first.or(missing);
        }
    }
    first
}

/// Shows the address of every instruction.
struct First<'f>(&'f mut dyn FnMut(u64));

impl Observer for First<'_> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        if let Step::Insn(insn) = step {
            (self.0)(insn.pc);
        }
    }
}

/// Whether modes and effects are in the log that starts with `head`.
#[must_use]
pub(crate) fn has_modes(kind: Kind, options: &LogOptions<'_>, head: &[u8]) -> bool {
    LogReader::new(kind, options).is_ok_and(|mut probe| {
        probe.feed(head, &mut LogSummary::default(), &mut |_| {});
        probe.has_modes()
    })
}

/// GC of the width of the addresses in the Spike log that starts with `head`.
#[must_use]
pub(crate) fn spike_isa(head: &[u8]) -> Isa {
    let pc = |line: &[u8]| {
        let rest = match line.strip_prefix(b"core") {
            Some(line) => line.split_at_checked(5)?.1,
            None => Some(line).filter(|line| line.first().is_some_and(u8::is_ascii_digit))?,
        };
        let at = rest.windows(2).position(|w| w == b"0x")?;
        let digits = rest.get(at + 2..)?.iter();
        Some(digits.take_while(|b| b.is_ascii_hexdigit()).count())
    };
    let narrow = head.split(|&b| b == b'\n').find_map(pc) == Some(8);
    if narrow { Isa::RV32GC } else { Isa::RV64GC }
}

/// Which of its logs Spike wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpikeParts {
    /// `-l`: every instruction before it is done, and traps.
    pub listing: bool,
    /// `--log-commits`: what instructions changed.
    pub commits: bool,
}

/// Which parts the Spike log has that starts with `head`.
#[must_use]
pub fn spike_parts(head: &[u8]) -> SpikeParts {
    let mut parts = SpikeParts::default();
    for line in head.split(|&b| b == b'\n') {
        let Some(rest) = line.strip_prefix(b"core") else {
            // A commit, or a trap, of a core.
            parts.commits |= matches!(line, [b'0'..=b'9', b' ', ..]);
            parts.listing |= line.windows(11).any(|w| w == b" exception ");
            continue;
        };
        let mut words = rest.split(|&b| b == b':').skip(1);
        let mut words = words.next().unwrap_or_default().split(|&b| b == b' ');
        match words.find(|word| !word.is_empty()) {
            Some([b'0'..=b'3']) => parts.commits = true,
            Some(word) if word.starts_with(b"0x") => parts.listing = true,
            Some(b"exception") => parts.listing = true,
            _ => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests;
