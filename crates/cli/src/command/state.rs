//! `hartrace state`: registers and memory at any instruction of a tandem trace,
//! and their last writes; memory of an E-Trace with data trace.

mod data;

use crate::args::{Mark, State, StateFormat};
use crate::failure::Failure;
use crate::files::create;
use crate::machine;
use crate::progress::Progress;
use crate::session::Session;
use crate::settings::{Program, names_of};
use crate::talk::Talk;
use hartrace_analyze::Names;
use hartrace_capture::history::{self, AskError, Asked, Config, History, Loaded};
use hartrace_capture::input::{self, Contents};
use hartrace_capture::output::Output;
use hartrace_capture::trace::{self, Known, MAX_WHOLE};
use hartrace_capture::verify::{Choice, Search};
use hartrace_flow::elf_bias;
use hartrace_isa::{Isa, Style};
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::state::{self, Terms};
use hartrace_print::words::count;
use std::path::{Path, PathBuf};

pub(super) fn run(args: &State, talk: &Talk) -> Result<(), Failure> {
    let session = Session::new(&args.trace, &args.program, false, talk)?;
    let mut output = session.output(&args.output.output)?;
    let index = index_of(args)?;
    let input = session.open(&args.transport, "state")?;
    let program = session.program()?;
    let isa = program.as_ref().and_then(|p| p.isa).or(session.isa());
    let known = Known {
        xlen: isa.map(|isa| isa.xlen()),
        image: None,
    };
    let trace = session.trace(input, known)?;
    let contained = trace.is_contained();
    if trace.settings.has_data() {
        let trace = match &args.data {
            None => trace,
            Some(data) => trace.with_data(session.open_data(data)?)?,
        };
        return data::run(args, &session, program, trace, output);
    }
    let trace::Settings::Tandem(config) = trace.settings else {
        let message = format!("{} is not a tandem trace", input::name(&args.trace));
        return Err(Diagnostic::new(Code::NotATrace, message)
            .note("other trace formats record control flow, and E-Trace with data trace memory accesses")
            .into());
    };
    let contents = trace.input.contents(MAX_WHOLE)?;
    let stream = match contained {
        true => Contents::Read(unpack(&contents, args)?),
        false => contents,
    };
    let history = history_of(&stream, *config, args.index, index.as_deref(), talk)?;
    if args.index && is_nothing_asked(args) {
        return Ok(());
    }
    let names = program
        .as_ref()
        .map(|p| names_of(&p.elf))
        .unwrap_or_default();
    let asked = Asked {
        history: &history,
        stream: &stream,
        loaded: program.as_ref().map(loaded).unwrap_or_default(),
    };
    let mark = args.at.as_ref().or(args.before.as_ref());
    let insn = match mark {
        None => history.instructions(),
        Some(Mark::Number(number)) => *number,
        Some(Mark::Symbol(name)) => {
            let entry = program.as_ref().and_then(|p| p.elf.first());
            let start = entry.map_or(0, |elf| elf.info.entry);
            reached(&args.trace, name, &names, &asked, start)?
        }
    };
    let written = answer(args, insn, &asked, &names, isa, &mut output)?;
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
        let note = "after each problem, all values are unknown until the trace reports them again";
        let help = "`hartrace dump` shows the problems";
        talk.warning(&Diagnostic::new(Code::Gaps, message).note(note).help(help));
    }
}

/// Where the index of the trace is; of a container one for each hart that is
/// asked for by number.
fn index_of(args: &State) -> Result<Option<PathBuf>, Failure> {
    if input::is_stdin(&args.trace) || args.transport.get() != trace::Transport::default() {
        return match args.index {
            true => Err(Failure::Usage(
                "--index requires a trace file, without --ram, --pib or --order",
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
    history::unpack(contents, args.hart).map_err(|harts| {
        let list: Vec<String> = harts.iter().map(u32::to_string).collect();
        let name = input::name(&args.trace);
        let message = format!("{name} has several harts: {}", list.join(", "));
        Diagnostic::new(Code::WhichHart, message)
            .help("choose one of them with --hart N")
            .into()
    })
}

/// The history of a stream: from its index, or from the stream itself.
fn history_of(
    stream: &[u8],
    config: Config,
    write: bool,
    index: Option<&Path>,
    talk: &Talk,
) -> Result<History, Failure> {
    if let Some(path) = index.filter(|path| !write && path.exists()) {
        match history::read_index(path, MAX_WHOLE, config.clone(), stream) {
            Ok(history) => return Ok(history),
            Err(why) => {
                let message = format!("{} is not used: {why}", input::name(path));
                let help = "write a new one with --index";
                talk.warning(&Diagnostic::new(Code::StaleIndex, message).help(help));
            }
        }
    }
    let mut progress = Progress::new(talk, Some(stream.len() as u64));
    let history = history::record(stream, config, |used| progress.advance(used));
    drop(progress);
    if let Some(path) = index.filter(|_| write) {
        let bytes = history.to_bytes(stream);
        create(path, [])?.write_with(|out| out.write_all(&bytes))?;
        let insns = count(history.instructions(), "instruction");
        talk.summary(&format!("{}: {insns}", path.display()));
    }
    Ok(history)
}

/// Answers what was asked.
fn answer(
    args: &State,
    insn: u64,
    asked: &Asked<'_>,
    names: &Names,
    isa: Option<Isa>,
    output: &mut Output,
) -> Result<std::io::Result<()>, Failure> {
    let config = asked.history.config();
    let style = Style::new(isa.unwrap_or(Isa::general(config.xlen)));
    let terms = Terms {
        config,
        names,
        style: &style,
    };
    let end = asked.history.instructions();
    let symbol = |name: &str| names.address(name);
    let refuse = |error| refused(error, end);
    if args.last_write.is_empty() {
        let shown = asked.show(insn, &args.reg, &args.mem, &symbol);
        let shown = shown.map_err(refuse)?;
        let state = state::State::new(&shown, args.all, terms);
        return Ok(match args.format {
            StateFormat::Text => state.write_text(output),
            StateFormat::Json => state.write_json(output),
        });
    }
    let mut all = Vec::new();
    for name in &args.last_write {
        let written = asked.last_write(name, insn, &symbol);
        all.push(written.map_err(refuse)?);
    }
    let writes = state::Writes::new(end, &all, terms);
    Ok(match args.format {
        StateFormat::Text => writes.write_text(output),
        StateFormat::Json => writes.write_json(output),
    })
}

/// The number of the first instruction at a symbol, of a hart that starts at
/// `start`.
fn reached(
    path: &Path,
    name: &str,
    names: &Names,
    asked: &Asked<'_>,
    start: u64,
) -> Result<u64, Failure> {
    let Some(address) = names.address(name) else {
        return Err(bad_place(name, "a number or a symbol"));
    };
    let search = Search {
        config: asked.history.config(),
        start,
        choice: Choice::new(None, false),
    };
    let found = search.first(asked.stream, [Some(address), None]);
    found.ok().and_then(|[first, _]| first).ok_or_else(|| {
        let message = format!("{} never reaches `{name}`", input::name(path));
        Diagnostic::new(Code::BeyondEnd, message)
            .help("give the number of an instruction, or another symbol")
            .into()
    })
}

/// Why there is no answer, in a trace of so many instructions.
fn refused(error: AskError, instructions: u64) -> Failure {
    match error {
        AskError::NotARegister(name) => bad_place(&name, "a register"),
        AskError::NotAPlace(text) => bad_place(&text, "a memory location"),
        AskError::Beyond(insn) => {
            let all = count(instructions, "instruction");
            let message = format!("there is no instruction {insn}: the trace has {all}");
            Diagnostic::new(Code::BeyondEnd, message)
                .note(format!(
                    "instructions are numbered from 0; --at {instructions} is the state at the end"
                ))
                .into()
        }
    }
}

/// Memory as a loader leaves it. A program that is no bare-metal one has its
/// names only.
fn loaded(program: &Program) -> Vec<Loaded> {
    let mut all = Vec::new();
    for elf in &program.elf {
        let base = elf.file.base;
        let bias = base.map_or(0, |base| elf_bias(&elf.bytes, base).unwrap_or(base));
        let segments = machine::program(elf).map_or(Vec::new(), |p| p.segments);
        all.extend(segments.into_iter().map(|segment| Loaded {
            addr: segment.addr.wrapping_add(bias),
            size: segment.size,
            data: segment.data,
        }));
    }
    all.extend(program.raw.iter().map(|raw| Loaded {
        addr: raw.file.base,
        size: raw.bytes.len() as u64,
        data: raw.bytes.clone(),
    }));
    all
}

fn bad_place(text: &str, what: &str) -> Failure {
    let message = format!("`{text}` is not {what}");
    Diagnostic::new(Code::BadPlace, message)
        .note("registers: a0, x10, fa0, mstatus; memory: 0x80001000, main, table+0x10:32")
        .help("give the program with -e to use its symbols")
        .into()
}
