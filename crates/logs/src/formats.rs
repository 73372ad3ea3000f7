//! Formats of logs, each in a file of its own: what its lines mean as entries.

use alloc::boxed::Box;

use super::entry::{Entry, EntryOptions, EntrySteps, Out, parts};
use super::lines::{Line, Lines};
use super::scan::Fault;
use super::{LineError, LineErrorKind as Kind};
use hartrace_flow::{Image, Observer};
use hartrace_isa::Xlen;

mod columns;
mod gem5;
mod ibex;
mod qemu_blocks;
mod qemu_plugin;
mod renode;
mod renode_binary;
mod riscv_dv;
mod rocket;
mod rvvi;
mod sail;
mod tracerv;
mod whisper;
mod whisper_csv;

#[cfg(test)]
mod tests;

pub use columns::{Column, Columns, ColumnsError};

/// A format of log besides pc lists, Spike's log and ingress rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogFormat {
    /// The tracer of Ibex and of CV32E40P.
    Ibex,
    /// RVVI-TEXT.
    Rvvi,
    /// The Sail model.
    Sail,
    /// Rocket's verbose output.
    Rocket,
    /// QEMU's plugin `execlog`.
    QemuPlugin,
    /// QEMU's `-d exec,nochain`.
    QemuBlocks,
    /// Whisper's text.
    Whisper,
    /// Whisper's CSV.
    WhisperCsv,
    /// gem5's `Exec`.
    Gem5,
    /// Renode's execution tracer, as text.
    Renode,
    /// Renode's execution tracer, binary.
    RenodeBinary,
    /// The CSV of riscv-dv.
    RiscvDv,
    /// FireSim's TracerV, human-readable.
    Tracerv,
    /// Lines described by [`Columns`].
    Columns,
}

/// What a format records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carries {
    /// Instructions; otherwise the program is needed.
    pub code: bool,
    /// Privilege modes, or enough to follow them.
    pub modes: bool,
    /// Registers and memory that instructions write.
    pub effects: bool,
    /// Traps; otherwise they are found from where the hart goes.
    pub traps: bool,
    /// Times.
    pub time: bool,
}

impl LogFormat {
    /// All of them.
    pub const ALL: [LogFormat; 14] = [
        LogFormat::Ibex,
        LogFormat::Rvvi,
        LogFormat::Sail,
        LogFormat::Rocket,
        LogFormat::QemuPlugin,
        LogFormat::QemuBlocks,
        LogFormat::Whisper,
        LogFormat::WhisperCsv,
        LogFormat::Gem5,
        LogFormat::Renode,
        LogFormat::RenodeBinary,
        LogFormat::RiscvDv,
        LogFormat::Tracerv,
        LogFormat::Columns,
    ];

    /// The word by which it is chosen.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            LogFormat::Ibex => "ibex",
            LogFormat::Rvvi => "rvvi",
            LogFormat::Sail => "sail",
            LogFormat::Rocket => "rocket",
            LogFormat::QemuPlugin => "qemu-execlog",
            LogFormat::QemuBlocks => "qemu-exec",
            LogFormat::Whisper => "whisper",
            LogFormat::WhisperCsv => "whisper-csv",
            LogFormat::Gem5 => "gem5",
            LogFormat::Renode => "renode",
            LogFormat::RenodeBinary => "renode-binary",
            LogFormat::RiscvDv => "riscv-dv",
            LogFormat::Tracerv => "tracerv",
            LogFormat::Columns => "columns",
        }
    }

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LogFormat::Ibex => "Ibex or CV32E40P trace",
            LogFormat::Rvvi => "RVVI-TEXT",
            LogFormat::Sail => "Sail log",
            LogFormat::Rocket => "Rocket verbose log",
            LogFormat::QemuPlugin => "QEMU execlog",
            LogFormat::QemuBlocks => "QEMU exec log",
            LogFormat::Whisper => "Whisper log",
            LogFormat::WhisperCsv => "Whisper CSV",
            LogFormat::Gem5 => "gem5 Exec log",
            LogFormat::Renode => "Renode trace",
            LogFormat::RenodeBinary => "Renode binary trace",
            LogFormat::RiscvDv => "riscv-dv CSV",
            LogFormat::Tracerv => "TracerV log",
            LogFormat::Columns => "log by columns",
        }
    }

    /// What it records. A log by columns may record all of it.
    #[must_use]
    pub const fn carries(self) -> Carries {
        let all = Carries {
            code: true,
            modes: true,
            effects: true,
            traps: true,
            time: true,
        };
        match self {
            LogFormat::Ibex | LogFormat::Rocket | LogFormat::Columns => all,
            LogFormat::Rvvi | LogFormat::Sail | LogFormat::Whisper | LogFormat::WhisperCsv => {
                Carries { time: false, ..all }
            }
            LogFormat::RiscvDv => Carries {
                time: false,
                traps: false,
                ..all
            },
            LogFormat::QemuPlugin | LogFormat::Renode | LogFormat::RenodeBinary => Carries {
                code: true,
                modes: false,
                effects: false,
                traps: false,
                time: false,
            },
            LogFormat::QemuBlocks => Carries {
                code: false,
                modes: true,
                effects: false,
                traps: true,
                time: false,
            },
            LogFormat::Gem5 | LogFormat::Tracerv => Carries {
                code: false,
                modes: false,
                effects: false,
                traps: false,
                time: true,
            },
        }
    }

    /// The width of the hart whose log starts with `head`, where the log shows it: by the
    /// digits of a pc.
    #[must_use]
    pub fn xlen(self, head: &[u8]) -> Option<Xlen> {
        let mut lines = head.split(|&b| b == b'\n');
        let by_digits = |digits: usize| match digits {
            1..=8 => Xlen::Rv32,
            _ => Xlen::Rv64,
        };
        let after = |line: &[u8], mark: &[u8]| {
            let at = line.windows(mark.len()).position(|w| w == mark)?;
            let digits = line.get(at + mark.len()..)?.iter();
            Some(digits.take_while(|b| b.is_ascii_hexdigit()).count())
        };
        match self {
            LogFormat::Ibex => Some(Xlen::Rv32),
            LogFormat::Rvvi => lines.find_map(|line| {
                let width = |digits: &[u8]| after(line, digits).map(|_| ());
                let narrow = width(b"XLEN 32").map(|()| Xlen::Rv32);
                narrow.or(width(b"XLEN 64").map(|()| Xlen::Rv64))
            }),
            LogFormat::Sail => lines.find_map(|line| after(line, b"]: 0x")).map(by_digits),
            LogFormat::Rocket => lines.find_map(|line| after(line, b"pc=[")).map(by_digits),
            LogFormat::Whisper => {
                let pc = |line: &[u8]| {
                    line.split(u8::is_ascii_whitespace)
                        .filter(|w| !w.is_empty())
                        .nth(3)
                        .map(<[u8]>::len)
                };
                lines
                    .find(|line| whisper::is_line(line))
                    .and_then(pc)
                    .map(by_digits)
            }
            LogFormat::RenodeBinary => head.get(8).map(|&bytes| by_digits(2 * usize::from(bytes))),
            LogFormat::QemuBlocks => Some(Xlen::Rv64),
            _ => None,
        }
    }

    /// Which of them a text is that starts with `head`; `None` if none, or one that is
    /// not recognised by itself.
    #[must_use]
    pub fn detect(head: &[u8]) -> Option<LogFormat> {
        if head.starts_with(renode_binary::MAGIC) {
            return Some(LogFormat::RenodeBinary);
        }
        let forms: [(LogFormat, IsLine); 11] = [
            (LogFormat::Ibex, ibex::is_line),
            (LogFormat::Rvvi, rvvi::is_line),
            (LogFormat::Sail, sail::is_line),
            (LogFormat::Rocket, rocket::is_line),
            (LogFormat::QemuPlugin, qemu_plugin::is_line),
            (LogFormat::QemuBlocks, qemu_blocks::is_line),
            (LogFormat::Whisper, whisper::is_line),
            (LogFormat::WhisperCsv, whisper_csv::is_line),
            (LogFormat::Gem5, gem5::is_line),
            (LogFormat::RiscvDv, riscv_dv::is_line),
            (LogFormat::Tracerv, tracerv::is_line),
        ];
        // Simulators and programs talk before the first line of a log. Renode's lines
        // are so short that there have to be no others.
        let lines = || head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
        let found = lines().find_map(|line| forms.iter().find(|form| form.1(line)));
        found.map(|form| form.0).or_else(|| {
            let mut lines = lines().filter(|line| !line.is_empty());
            let first = lines.next()?;
            renode::is_line(first).then_some(LogFormat::Renode)
        })
    }
}

/// Whether a line is one of a format.
type IsLine = fn(&[u8]) -> bool;

/// The grammar of a format: what a line adds to the entries.
trait Grammar {
    /// Reads a line.
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault>;

    /// The log has ended, or a line could not be read: nothing more comes for the entry
    /// that is open.
    fn close(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let _ = to;
        Ok(())
    }
}

/// Where a grammar puts what it reads.
struct Entries<'e, 'a, 'o, 'd> {
    /// The entry that is being filled.
    entry: &'e mut Entry,
    steps: &'e mut EntrySteps<'a>,
    out: &'e mut Out<'o, 'd>,
}

impl Entries<'_, '_, '_, '_> {
    /// Starts an entry.
    fn begin(&mut self, pc: u64, bits: Option<u32>) -> &mut Entry {
        self.entry.clear();
        (self.entry.pc, self.entry.bits) = (pc, bits);
        self.entry
    }

    /// Gives the entry.
    fn give(&mut self) -> Result<(), Fault> {
        let taken = self.steps.take(self.entry, self.out);
        taken.map_err(|kind| (kind, 0))
    }
}

/// Reads a log of a [`LogFormat`] as steps ([`EntrySteps`]).
pub struct FormatReader<'a> {
    lines: Lines,
    format: LogFormat,
    form: Form,
    entry: Entry,
    steps: EntrySteps<'a>,
}

enum Form {
    Text(Box<dyn Grammar>),
    Binary(renode_binary::Reader),
}

impl<'a> FormatReader<'a> {
    /// A reader, with the program's image if there is one. Without one, formats that
    /// have no instructions give only errors ([`Carries::code`]).
    #[must_use]
    pub fn new(
        format: LogFormat,
        options: EntryOptions,
        image: Option<&'a Image>,
    ) -> FormatReader<'a> {
        let form = match format {
            LogFormat::Ibex => Form::Text(Box::new(ibex::Ibex)),
            LogFormat::Rvvi => Form::Text(Box::new(rvvi::Rvvi::default())),
            LogFormat::Sail => Form::Text(Box::new(sail::Sail::default())),
            LogFormat::Rocket => Form::Text(Box::new(rocket::Rocket)),
            LogFormat::QemuPlugin => Form::Text(Box::new(qemu_plugin::Plugin)),
            LogFormat::QemuBlocks => Form::Text(Box::new(qemu_blocks::Blocks::default())),
            LogFormat::Whisper => Form::Text(Box::new(whisper::Whisper::default())),
            LogFormat::WhisperCsv => Form::Text(Box::new(whisper_csv::WhisperCsv)),
            LogFormat::Gem5 => Form::Text(Box::new(gem5::Gem5::default())),
            LogFormat::Renode => Form::Text(Box::new(renode::Renode::default())),
            LogFormat::RenodeBinary => Form::Binary(renode_binary::Reader::default()),
            LogFormat::RiscvDv => Form::Text(Box::new(riscv_dv::RiscvDv::default())),
            LogFormat::Tracerv => Form::Text(Box::new(tracerv::Tracerv)),
            LogFormat::Columns => Form::Text(Box::new(columns::Reader::default())),
        };
        let mut steps = EntrySteps::new(options, image);
        steps.records_traps(format.carries().traps);
        FormatReader {
            lines: Lines::default(),
            format,
            form,
            entry: Entry::default(),
            steps,
        }
    }

    /// A reader of lines described by columns.
    #[must_use]
    pub fn of_columns(
        columns: Columns,
        options: EntryOptions,
        image: Option<&'a Image>,
    ) -> FormatReader<'a> {
        let mut reader = FormatReader::new(LogFormat::Columns, options, image);
        let traps = columns.has(Column::Trap) || columns.has(Column::Cause);
        reader.steps.records_traps(traps);
        reader.form = Form::Text(Box::new(columns::Reader::new(columns)));
        reader
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// Reads on.
    pub fn feed<O: Observer>(
        &mut self,
        chunk: &[u8],
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let parts = parts::<O>();
        self.read(chunk, &mut Out { to: out, parts }, damaged);
    }

    /// The log has ended: gives the last step of each hart and ends the
    /// observer.
    pub fn finish<O: Observer>(&mut self, out: &mut O, damaged: &mut impl FnMut(LineError)) {
        let parts = parts::<O>();
        self.end(&mut Out { to: out, parts }, damaged);
        out.finish();
    }

    fn read(&mut self, chunk: &[u8], out: &mut Out<'_, '_>, damaged: &mut dyn FnMut(LineError)) {
        let FormatReader {
            lines,
            form,
            entry,
            steps,
            ..
        } = self;
        let to = &mut Entries { entry, steps, out };
        match form {
            Form::Text(grammar) => {
                lines.feed(chunk, |n, line| {
                    read(&mut **grammar, (n, line), to, damaged)
                });
            }
            Form::Binary(reader) => reader.feed(chunk, to, damaged),
        }
    }

    fn end(&mut self, out: &mut Out<'_, '_>, damaged: &mut dyn FnMut(LineError)) {
        let FormatReader {
            lines,
            form,
            entry,
            steps,
            ..
        } = self;
        let to = &mut Entries { entry, steps, out };
        match form {
            Form::Text(grammar) => {
                let mut last = 0;
                lines.finish(|n, line| {
                    last = n;
                    read(&mut **grammar, (n, line), to, damaged);
                });
                if let Err((kind, at)) = grammar.close(to) {
                    damaged(LineError::new(last.max(1), b"", at, kind));
                }
            }
            Form::Binary(reader) => reader.finish(to, damaged),
        }
        self.steps.end(out);
    }
}

/// Reads a line; one that cannot be read is reported and a loss.
fn read(
    grammar: &mut dyn Grammar,
    (number, line): (u64, Line<'_>),
    to: &mut Entries<'_, '_, '_, '_>,
    damaged: &mut dyn FnMut(LineError),
) {
    let error = match line {
        Ok(line) => match grammar.line(line, to) {
            Ok(()) => return,
            Err((kind, at)) => LineError::new(number, line, at, kind),
        },
        Err(error) => error,
    };
    damaged(error);
    if !matches!(error.kind, Kind::CodeDiffers(_)) {
        // What it says of the entry before does not matter any more.
        let _ = grammar.close(to);
        to.steps.lose(None, to.out);
    }
}
