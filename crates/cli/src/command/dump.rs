//! `hartrace dump`: the messages of a trace.

use super::dump_etrace;
use super::dump_json::JsonPieces;
use super::dump_tandem;
use super::{configs, create, inputs, one_stdin};
use crate::args::{Dump, DumpFormat};
use crate::diagnostic::Failure;
use crate::talk::Talk;
use crate::traces::{Named, Settings};
use hartrace_capture::detect::HEAD;
use hartrace_capture::input::{Input, InputError};
use hartrace_capture::output::{Output, OutputError};
use hartrace_capture::trace::{self, Streams, pieces};
use hartrace_ntrace::{
    self as ntrace, Body, Btype, Evcode, Field, Follower, Framer, Layout, Message, Piece, Process,
    Sync, Tcode, explain,
};
use std::fmt::Write as _;
use std::io::{self, Write};

pub(super) fn run(args: &Dump, talk: &Talk) -> Result<(), Failure> {
    if args.bytes && args.format != DumpFormat::Text {
        return Err(Failure::Usage("--bytes goes with -f text"));
    }
    let settings = Settings::resolve(&args.trace, &args.program, talk)?;
    let mut output = {
        let files = inputs(&settings.config).chain([args.trace.as_path()]);
        one_stdin(files.clone().chain(configs(&args.program)))?;
        create(&args.output.output, files)?
    };
    let input = settings.open(&args.trace, &args.transport, "dump")?;
    // The program that a sidecar names is not needed.
    let program = match settings.program() {
        Named::ByFlag => Some(settings.load(talk)?),
        _ => None,
    };
    let image = match &program {
        Some(program) => program.image()?,
        None => None,
    };
    let isa = program.and_then(|program| program.isa);
    let isa = isa.or_else(|| settings.isa());
    let xlen = isa.map(|isa| isa.xlen());
    let (settings, input) = settings.of_trace(input, xlen, image.as_ref(), false, talk)?;
    let general = settings.general_isa();
    match settings {
        trace::Settings::Ntrace(_) | trace::Settings::Tandem(_)
            if args.format == DumpFormat::Csv =>
        {
            return Err(Failure::Usage("-f csv goes with E-Trace"));
        }
        trace::Settings::Ntrace(config) => messages(args, input, &config, &mut output)?,
        trace::Settings::Etrace(config) => {
            let shape = dump_etrace::Shape {
                format: args.format,
                bytes: args.bytes,
            };
            dump_etrace::run(input, &config, &shape, &mut output, talk)?;
        }
        trace::Settings::Tandem(config) => {
            let mut input = input;
            let shape = dump_tandem::Shape {
                format: args.format,
                bytes: args.bytes,
                isa: isa.unwrap_or(general),
                harts: Streams::parameters(input.peek(HEAD)?).is_some(),
            };
            dump_tandem::run(input, &config, &shape, &mut output)?;
        }
    }
    Ok(output.finish()?)
}

/// The messages of N-Trace.
fn messages(
    args: &Dump,
    input: Input,
    config: &ntrace::Config,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut shown = Shown {
        layout: config.layout(),
        follower: Follower::new(),
    };
    let mut json = JsonPieces::new();
    if args.format == DumpFormat::Json {
        json.header(output).map_err(|e| output.failed(e))?;
    } else if args.bytes {
        let heading = "offset    byte  MDO     MSEO  decoded";
        writeln!(output, "{heading}").map_err(|e| output.failed(e))?;
    }
    pieces::<Framer, _>(input, |at, bytes, piece| {
        let written = match args.format {
            DumpFormat::Json => json.piece(at, bytes, piece, &mut shown, output),
            DumpFormat::Text if args.bytes => shown.table(at, bytes, piece, output),
            DumpFormat::Text | DumpFormat::Csv => shown.line(at, bytes, piece, output),
        };
        written.map_err(|error| Stop::Output(output.failed(error)))
    })?;
    Ok(())
}

/// Why the trace is not read to its end.
pub(super) enum Stop {
    Input(InputError),
    Output(OutputError),
}

impl From<InputError> for Stop {
    fn from(error: InputError) -> Stop {
        Stop::Input(error)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        match stop {
            Stop::Input(error) => error.into(),
            Stop::Output(error) => error.into(),
        }
    }
}

/// What is needed to show a message.
pub(super) struct Shown {
    pub(super) layout: Layout,
    follower: Follower,
}

impl Shown {
    /// The full address and time of a message; nothing of what cannot be read.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> (Option<u64>, Option<u64>) {
        match Message::read(bytes, &self.layout) {
            Ok(message) => self.follower.message(&message),
            Err(_) => {
                self.follower.lost();
                (None, None)
            }
        }
    }

    /// One line per piece.
    fn line(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &Piece<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match piece {
            Piece::Idle(count) => writeln!(out, "{at:08x}  (idle) {count}"),
            Piece::Bad(fault, count) => {
                self.follower.lost();
                let text = bad(fault.code(), fault.text(), bytes, *count);
                writeln!(out, "{at:08x}  {text}")
            }
            Piece::Message(_) => {
                let (fields, fault) = explain(bytes, &self.layout);
                let (address, time) = self.follow(bytes);
                let mut line = format!("{at:08x}  ");
                let tcode = fields.first().map_or(Tcode(0), tcode);
                if self.layout.src_bits > 0 {
                    let src = fields.iter().find(|f| f.name == "SRC");
                    let _ = write!(line, "{:<4} ", src.map_or(0, |f| f.value));
                }
                let _ = write!(line, "{tcode}");
                for field in fields.iter().filter(|f| !matches!(f.name, "TCODE" | "SRC")) {
                    let _ = write!(line, " {}={:#x}", field.name, field.value);
                }
                if let Some(meaning) = meaning(bytes, &self.layout) {
                    let _ = write!(line, " ({meaning})");
                }
                if let Some(address) = address {
                    let _ = write!(line, " -> {address:#x}");
                }
                if let Some(time) = time {
                    let _ = write!(line, " at {time}");
                }
                if let Some(fault) = fault {
                    let text = bad(fault.code(), fault.text(), bytes, bytes.len() as u64);
                    let _ = write!(line, "  {text}");
                }
                writeln!(out, "{line}")
            }
        }
    }

    /// One line per byte, as in table 6 of the specification.
    fn table(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &Piece<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (fields, fault) = match piece {
            Piece::Message(_) => explain(bytes, &self.layout),
            Piece::Idle(_) => (Vec::new(), None),
            Piece::Bad(fault, _) => (Vec::new(), Some(*fault)),
        };
        let last = bytes.len().saturating_sub(1);
        for (i, byte) in bytes.iter().enumerate() {
            let mut told: Vec<String> = match piece {
                Piece::Idle(_) => vec!["Idle".to_owned()],
                _ => {
                    let here = fields.iter().filter(|f| f.last_byte() == i);
                    here.map(field_text).collect()
                }
            };
            if let Some(fault) = fault.filter(|_| i == last) {
                told.push(format!("{}: {}", fault.code(), fault.text()));
            }
            let (mdo, mseo) = (byte >> 2, byte & 3);
            let line = format!(
                "{:08x}  0x{byte:02X}  {mdo:06b}  {mseo:02b}    {}",
                at + i as u64,
                told.join(", ")
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        match piece {
            Piece::Bad(_, count) if *count > bytes.len() as u64 => {
                writeln!(out, "... {count} bytes")
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn tcode(field: &Field) -> Tcode {
    Tcode(field.value as u8)
}

/// `TCODE[6]=28 - IndirectBranchHist`, `ICNT[10]=0x7D`.
fn field_text(field: &Field) -> String {
    let Field {
        name, bits, value, ..
    } = field;
    match *name {
        "TCODE" => format!("TCODE[{bits}]={value} - {}", tcode(field)),
        _ => format!("{name}[{bits}]=0x{value:X}"),
    }
}

/// Bytes that are no message: the first of them, and how many there are.
pub(super) fn bad(code: &str, what: &str, bytes: &[u8], count: u64) -> String {
    let mut text = format!("(bad) {code}: {what}:");
    for byte in bytes.iter().take(16) {
        let _ = write!(text, " {byte:02x}");
    }
    if count > 16 {
        let _ = write!(text, " ... {count} bytes");
    }
    text
}

/// What the codes in a message mean.
fn meaning(bytes: &[u8], layout: &Layout) -> Option<String> {
    let message = Message::read(bytes, layout).ok()?;
    let sync = |sync: Sync| sync.name().to_owned();
    let btype = |btype| match btype {
        Btype::Indirect => None,
        Btype::Trap => Some("trap".to_owned()),
        Btype::Exception => Some("exception".to_owned()),
        Btype::Interrupt => Some("interrupt".to_owned()),
    };
    match message.body {
        Body::Ownership { process } => Some(ownership(process)),
        Body::ProgTraceSync { sync: s, .. } | Body::DirectBranchSync { sync: s, .. } => {
            Some(sync(s))
        }
        Body::IndirectBranchSync {
            sync: s, btype: b, ..
        }
        | Body::IndirectBranchHistSync {
            sync: s, btype: b, ..
        } => Some(match btype(b) {
            Some(trap) => format!("{}, {trap}", s.name()),
            None => sync(s),
        }),
        Body::IndirectBranch { btype: b, .. } | Body::IndirectBranchHist { btype: b, .. } => {
            btype(b)
        }
        Body::IcntFull { .. } => Some("I-CNT".to_owned()),
        Body::HistFull { .. } => Some("HIST".to_owned()),
        Body::HistRepeat { .. } => Some("HIST, repeated".to_owned()),
        Body::ProgTraceCorrelation { evcode, .. } => Some(Evcode::name(evcode).to_owned()),
        _ => None,
    }
}

fn ownership(process: u64) -> String {
    use hartrace_ntrace::Owner;
    match Process::from_field(process) {
        Err(fault) => fault.text().to_owned(),
        Ok(Process { mode, owner }) => match owner {
            Owner::Mode => format!("mode {}", mode.name()),
            Owner::Scontext(c) => format!("mode {}, scontext {c:#x}", mode.name()),
            Owner::Hcontext(c) => format!("mode {}, hcontext {c:#x}", mode.name()),
        },
    }
}
