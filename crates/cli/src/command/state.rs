//! `hartrace state`: registers and memory at any instruction of a tandem trace,
//! and who wrote them.

use super::{configs, create, inputs, one_stdin, state_json, state_text};
use crate::args::{State, StateFormat};
use crate::diagnostic::{Code, Diagnostic, Failure, count};
use crate::progress::Progress;
use crate::settings::Program;
use crate::talk::Talk;
use crate::traces::{self, Named, Settings};
use hartrace_analyze::Names;
use hartrace_capture::detect::HEAD;
use hartrace_capture::input::{self, Contents, Input};
use hartrace_capture::output::Output;
use hartrace_capture::program::parse_address;
use hartrace_capture::quantity::parse_size;
use hartrace_capture::trace::{self, StreamPiece, Streams};
use hartrace_flow::elf_bias;
use hartrace_hart::Segment;
use hartrace_isa::{Isa, Xlen, decode};
use hartrace_tandem::history::{Byte, Origin, Recorder, State as At, Target};
use hartrace_tandem::{Config, History, Register};
use std::path::{Path, PathBuf};

/// The most memory that is shown at once.
const MOST: u64 = 1 << 20;

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

pub(super) fn run(args: &State, talk: &Talk) -> Result<(), Failure> {
    let settings = Settings::resolve(&args.trace, &args.program, talk)?;
    let mut output = {
        let files = inputs(&settings.config).chain([args.trace.as_path()]);
        one_stdin(files.clone().chain(configs(&args.program)))?;
        create(&args.output.output, files)?
    };
    let index = index_of(args)?;
    let input = settings.open(&args.trace, &args.transport, "state")?;
    let program = program(&settings, talk)?;
    let isa = program.as_ref().and_then(|p| p.isa).or(settings.isa());
    let xlen = isa.map(|isa| isa.xlen());
    let (trace_settings, mut input) = settings.of_trace(input, xlen, None, false, talk)?;
    let trace::Settings::Tandem(config) = trace_settings else {
        let message = format!("{} is not a tandem trace", input::name(&args.trace));
        return Err(Diagnostic::new(Code::NotATrace, message)
            .note("other traces tell where a hart went, not what was in its registers")
            .into());
    };
    let contained = Streams::parameters(input.peek(HEAD)?).is_some();
    let contents = input.contents(traces::MAX_WHOLE)?;
    let stream = match contained {
        true => Contents::Read(unpack(&contents, args)?),
        false => contents,
    };
    let history = history(&stream, *config, args.index, index.as_deref(), talk)?;
    if args.index && is_nothing_asked(args) {
        return Ok(());
    }
    let asked = Asked::new(program.as_ref(), &history, &stream, isa);
    let written = asked.answer(args, &mut output)?;
    written.map_err(|error| output.failed(error))?;
    warn(&history, args, talk);
    Ok(output.finish()?)
}

/// Without an instruction, and without anything to show of the last.
fn is_nothing_asked(args: &State) -> bool {
    let State { reg, mem, .. } = args;
    let shows = args.at.is_some() || args.all || !args.last_write.is_empty();
    !shows && reg.is_empty() && mem.is_empty()
}

/// What may make the answer less than it could be.
fn warn(history: &History, args: &State, talk: &Talk) {
    let problems = history.problems();
    if problems > 0 {
        let name = input::name(&args.trace);
        let message = format!("{name} has {}", count(problems, "problem"));
        let note = "behind each, what was told before is not known until it is told again";
        let help = "`hartrace dump` shows what is wrong";
        talk.warning(&Diagnostic::new(Code::Gaps, message).note(note).help(help));
    }
}

/// The program, if one is there.
fn program(settings: &Settings, talk: &Talk) -> Result<Option<Program>, Failure> {
    match settings.program() {
        Named::Nowhere => Ok(None),
        Named::ByFlag => settings.load(talk).map(Some),
        // Without the program that a sidecar names, there is less to tell.
        Named::InFile => match settings.load(talk) {
            Ok(program) => Ok(Some(program)),
            Err(Failure::Diagnostic(diagnostic)) if diagnostic.code == Code::CannotOpen => {
                talk.warning(&diagnostic);
                Ok(None)
            }
            Err(failure) => Err(failure),
        },
    }
}

/// Where the index of the trace is; of a container one for each hart that is
/// asked for by number.
fn index_of(args: &State) -> Result<Option<PathBuf>, Failure> {
    if input::is_stdin(&args.trace) || args.transport.get() != trace::Transport::default() {
        return match args.index {
            true => Err(Failure::Usage(
                "--index goes with a trace in a file, as it is",
            )),
            false => Ok(None),
        };
    }
    let mut name = args.trace.clone().into_os_string();
    if let Some(hart) = args.hart {
        name.push(format!(".{hart}"));
    }
    name.push(".index");
    Ok(Some(name.into()))
}

/// The stream of one hart in a container.
fn unpack(contents: &[u8], args: &State) -> Result<Vec<u8>, Failure> {
    let mut streams = Streams::default();
    let mut harts = Vec::new();
    let mut bytes = Vec::new();
    let mut take = |piece: StreamPiece<'_>| {
        match piece {
            StreamPiece::Bytes(hart, piece) => {
                if !harts.contains(&hart.0) {
                    harts.push(hart.0);
                }
                if args.hart.is_none_or(|wanted| wanted == hart.0) {
                    bytes.extend_from_slice(piece);
                }
            }
            // No opcode, so that the reader sees that something is missing.
            StreamPiece::Lost(_) => bytes.push(0xff),
        }
        Ok::<(), Failure>(())
    };
    for chunk in contents.chunks(CHUNK) {
        streams.feed(chunk, &mut take)?;
    }
    streams.finish(&mut take)?;
    let several = harts.len() > 1 && args.hart.is_none();
    if several || args.hart.is_some_and(|hart| !harts.contains(&hart)) {
        harts.sort_unstable();
        let list: Vec<String> = harts.iter().map(u32::to_string).collect();
        let name = input::name(&args.trace);
        let message = format!("{name} has the harts {}", list.join(", "));
        return Err(Diagnostic::new(Code::WhichHart, message)
            .help("choose one of them with --hart N")
            .into());
    }
    Ok(bytes)
}

/// The history of a stream: from its index, or from the stream itself.
fn history(
    stream: &[u8],
    config: Config,
    write: bool,
    index: Option<&Path>,
    talk: &Talk,
) -> Result<History, Failure> {
    if let Some(path) = index.filter(|path| !write && path.exists()) {
        let read = Input::open(path).and_then(|input| input.contents(traces::MAX_WHOLE));
        let read = read.map_err(|error| error.to_string());
        let found = read.and_then(|bytes| {
            History::from_bytes(&bytes, config.clone(), stream).map_err(|error| error.to_string())
        });
        match found {
            Ok(history) => return Ok(history),
            Err(why) => {
                let message = format!("{} is not used: {why}", input::name(path));
                let help = "--index writes it anew";
                talk.warning(&Diagnostic::new(Code::StaleIndex, message).help(help));
            }
        }
    }
    let mut recorder = Recorder::new(config);
    let mut progress = Progress::new(talk, Some(stream.len() as u64));
    for chunk in stream.chunks(CHUNK) {
        recorder.feed(chunk);
        progress.advance(chunk.len());
    }
    drop(progress);
    let history = recorder.finish();
    if let Some(path) = index.filter(|_| write) {
        let bytes = history.to_bytes(stream);
        create(path, [])?.write_with(|out| out.write_all(&bytes))?;
        let insns = count(history.instructions(), "instruction");
        talk.summary(&format!("{}: {insns}", path.display()));
    }
    Ok(history)
}

/// What questions are answered with.
pub(super) struct Asked<'a> {
    pub(super) history: &'a History,
    stream: &'a [u8],
    names: Names,
    /// Memory as the program has it.
    loaded: Vec<Segment>,
    style: hartrace_isa::Style,
}

/// A register, or what stands beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Register(Register),
    Pc,
    Mode,
    Mtime,
}

/// A byte of memory and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Trace(u8),
    Program(u8),
    Unknown,
}

/// Some memory.
pub(super) struct Block {
    pub(super) addr: u64,
    pub(super) bytes: Vec<Source>,
}

/// An answer to --at.
pub(super) struct Shown<'a> {
    pub(super) insn: u64,
    pub(super) state: At,
    /// Registers that were asked for by name, with their names.
    pub(super) registers: Vec<(&'a str, Place)>,
    pub(super) memory: Vec<Block>,
}

/// An answer to --last-write.
pub(super) struct Written<'a> {
    pub(super) name: &'a str,
    pub(super) before: u64,
    pub(super) target: Target,
    pub(super) origin: Origin,
}

impl<'a> Asked<'a> {
    fn new(
        program: Option<&Program>,
        history: &'a History,
        stream: &'a [u8],
        isa: Option<Isa>,
    ) -> Asked<'a> {
        let mut names = Names::new();
        let mut memory = Vec::new();
        if let Some(program) = program {
            for elf in &program.elf {
                // What has no symbols has no names.
                let _ = names.add_elf(&elf.bytes, elf.file.base);
            }
            memory = loaded(program);
        }
        let isa = isa.unwrap_or(match history.config().xlen {
            Xlen::Rv32 => Isa::RV32GC,
            Xlen::Rv64 => Isa::RV64GC,
        });
        Asked {
            history,
            stream,
            names,
            loaded: memory,
            style: hartrace_isa::Style::new(isa),
        }
    }

    fn answer(&self, args: &State, output: &mut Output) -> Result<std::io::Result<()>, Failure> {
        let end = self.history.instructions();
        if args.last_write.is_empty() {
            let shown = self.show(args, args.at.unwrap_or(end))?;
            return Ok(match args.format {
                StateFormat::Text => state_text::state(self, &shown, args.all, output),
                StateFormat::Json => state_json::state(self, &shown, args.all, output),
            });
        }
        let mut all = Vec::new();
        for name in &args.last_write {
            all.push(self.find(name, args.before.unwrap_or(end))?);
        }
        Ok(match args.format {
            StateFormat::Text => state_text::writes(self, &all, output),
            StateFormat::Json => state_json::writes(self, &all, output),
        })
    }

    fn show<'n>(&self, args: &'n State, insn: u64) -> Result<Shown<'n>, Failure> {
        let mut registers = Vec::new();
        for name in &args.reg {
            let named = named(name).ok_or_else(|| bad_place(name, "a register"))?;
            registers.push((name.as_str(), named));
        }
        let mut places = Vec::new();
        for text in &args.mem {
            places.push(self.place(text, 16)?);
        }
        let state = self.history.at(self.stream, insn);
        let state = state.ok_or_else(|| self.beyond(insn))?;
        let memory = places
            .iter()
            .map(|&(addr, len)| self.block(insn, addr, len));
        Ok(Shown {
            insn,
            state,
            registers,
            memory: memory.collect(),
        })
    }

    fn find<'n>(&self, name: &'n str, before: u64) -> Result<Written<'n>, Failure> {
        let target = match named(name) {
            Some(Place::Register(register)) => Target::Register(register),
            Some(Place::Pc) => Target::Pc,
            Some(Place::Mode) => Target::Mode,
            _ => {
                let (addr, len) = self.place(name, 1)?;
                Target::Memory { addr, len }
            }
        };
        let origin = self.history.last_write(self.stream, target, before);
        Ok(Written {
            name,
            before,
            target,
            origin: origin.ok_or_else(|| self.beyond(before))?,
        })
    }

    /// `ADDRESS`, `SYMBOL` or `SYMBOL+OFFSET`, and `:LENGTH`.
    fn place(&self, text: &str, usual: u64) -> Result<(u64, u64), Failure> {
        let bad = || bad_place(text, "a place in memory");
        let number = |text: &str| parse_address(text).filter(|_| !text.is_empty());
        let one = |text: &str| number(text).or_else(|| self.names.address(text));
        let (place, len) = match text.rsplit_once(':') {
            // A symbol may have colons of its own.
            Some((place, len)) if self.names.address(text).is_none() => {
                (place, parse_size(len).ok_or_else(bad)?)
            }
            _ => (text, usual),
        };
        let addr = one(place).or_else(|| {
            let (base, offset) = place.rsplit_once('+')?;
            Some(one(base)?.wrapping_add(number(offset)?))
        });
        match addr {
            Some(addr) if (1..=MOST).contains(&len) => Ok((addr, len)),
            _ => Err(bad()),
        }
    }

    fn block(&self, insn: u64, addr: u64, len: u64) -> Block {
        let told = self.history.memory(self.stream, insn, addr, len as usize);
        let source = |(i, byte): (usize, Byte)| match byte {
            Byte::Told(byte) => Source::Trace(byte),
            Byte::Untold => self
                .in_program(addr.wrapping_add(i as u64))
                .map_or(Source::Unknown, Source::Program),
            Byte::Lost => Source::Unknown,
        };
        let bytes = told.unwrap_or_default().into_iter().enumerate();
        Block {
            addr,
            bytes: bytes.map(source).collect(),
        }
    }

    fn in_program(&self, addr: u64) -> Option<u8> {
        self.loaded.iter().rev().find_map(|segment| {
            let at = addr.checked_sub(segment.addr)?;
            let byte = usize::try_from(at).ok().and_then(|at| segment.data.get(at));
            // What the file lacks is zero.
            byte.copied().or((at < segment.size).then_some(0))
        })
    }

    /// The name of a place and how far behind it is, or nothing.
    pub(super) fn label(&self, addr: u64) -> String {
        self.names.label(addr).to_string()
    }

    /// An instruction as text.
    pub(super) fn text(&self, bits: u32, pc: Option<u64>) -> String {
        let inst = decode(bits, self.style.isa);
        let text = match pc {
            Some(pc) => inst.text(pc, &self.style).to_string(),
            None => inst
                .text(0, &self.style)
                .resolve(&hartrace_isa::Relative)
                .to_string(),
        };
        text.replace('\t', " ")
    }

    /// Digits of a register.
    pub(super) fn digits(&self) -> usize {
        self.history.config().xlen.bits() as usize / 4
    }

    fn beyond(&self, insn: u64) -> Failure {
        let all = count(self.history.instructions(), "instruction");
        let message = format!("there is no instruction {insn}: the trace has {all}");
        Diagnostic::new(Code::BeyondEnd, message)
            .note("they are counted from 0; that number is the state at the end")
            .into()
    }
}

/// Memory as a loader leaves it. A program that is no bare-metal one has its
/// names only.
fn loaded(program: &Program) -> Vec<Segment> {
    let mut all = Vec::new();
    for elf in &program.elf {
        let base = elf.file.base;
        let bias = base.map_or(0, |base| elf_bias(&elf.bytes, base).unwrap_or(base));
        let segments = super::run::program(elf).map_or(Vec::new(), |p| p.segments);
        all.extend(segments.into_iter().map(|segment| Segment {
            addr: segment.addr.wrapping_add(bias),
            ..segment
        }));
    }
    all.extend(program.raw.iter().map(|raw| Segment {
        addr: raw.file.base,
        size: raw.bytes.len() as u64,
        data: raw.bytes.clone(),
    }));
    all
}

fn named(name: &str) -> Option<Place> {
    Some(match name {
        "pc" => Place::Pc,
        "priv" | "mode" => Place::Mode,
        "mtime" => Place::Mtime,
        // Addresses look like numbers of CSRs.
        _ if name.starts_with("0x") => return None,
        _ => Place::Register(Register::from_name(name)?),
    })
}

fn bad_place(text: &str, what: &str) -> Failure {
    let message = format!("`{text}` is not {what}");
    Diagnostic::new(Code::BadPlace, message)
        .note("registers are called a0, x10, fa0, mstatus; places 0x80001000, main, table+0x10:32")
        .help("symbols need the program: -e ELF")
        .into()
}
