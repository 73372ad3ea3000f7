//! `hartrace compare`: one run, traced with every option set of every format.

use crate::args::{self, Compare, CompareFormat, is_stdout};
use crate::failure::Failure;
use crate::files::{create, inputs, one_stdin};
use crate::logs::{self, mode_of};
use crate::machine;
use crate::progress::RunProgress;
use crate::session::Session;
use crate::settings::{Elf, add_boot_code, chosen, tell_program};
use crate::talk::{Talk, end_on_signal, interrupted};
use crate::trace_file;
use hartrace_analyze::Symbols;
use hartrace_capture::compare::{Compared, Feed, OutputModel, Plan};
use hartrace_capture::config::Config;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::{Input, is_stdin};
use hartrace_capture::log::{Assume, Clocked, Plain, Reading, has_time, head, recognise_boot};
use hartrace_capture::output::Output;
use hartrace_capture::program::Raw;
use hartrace_capture::shard::cores;
use hartrace_capture::trace::Format;
use hartrace_flow::{Image, Mode, Observer, SpaceId};
use hartrace_hart::host::Host;
use hartrace_hart::{Machine, Stop};
use hartrace_isa::Isa;
use hartrace_print::compare::{Form, Look, Report, differences};
use hartrace_print::diagnostic::hart::missing_extensions;
use hartrace_print::diagnostic::program::bad_image;
use hartrace_print::diagnostic::{Code, log, trace};
use hartrace_print::run::Ended;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// Instructions between two looks at the user and the clock.
const SLICE: u64 = 100_000;

pub(super) fn run(args: &Compare, talk: &Talk) -> Result<(), Failure> {
    match is_log(args)? {
        true => compare_log(args, talk),
        false => compare_run(args, talk),
    }
}

/// Whether the input is to be read as a log. What cannot be looked at first is one if
/// it comes with a program.
fn is_log(args: &Compare) -> Result<bool, Failure> {
    if is_stdin(&args.input) {
        return Ok(!args.elf.is_empty() || !args.raw.is_empty());
    }
    let mut input = Input::open(&args.input)?;
    Ok(detect(input.peek(HEAD)?) != Kind::Elf)
}

/// Runs the program once.
fn compare_run(args: &Compare, talk: &Talk) -> Result<(), Failure> {
    let program = !args.elf.is_empty() || !args.raw.is_empty();
    if program || args.mode.is_some() || args.hart.is_some() || args.strict {
        return Err(Failure::Usage(
            "-e, --raw, --mode, --hart and --strict are for logs, but the input is a program",
        ));
    }
    let path = args.input.as_path();
    let mut config = machine::settings(Some(path), &args.machine, args.max_insns, talk)?;
    let configs = args.machine.config.iter().map(PathBuf::as_path);
    one_stdin(configs.clone().chain([path]))?;
    let output = create(&args.output.output, configs.chain(inputs(&config)))?;
    let elf = machine::read(&config)?;
    let (hart, isa) = machine::configure(&mut config, &elf)?;
    tell_program(std::slice::from_ref(&elf), talk);
    let program = machine::program(&elf)?;
    let symbols = Symbols::from_elf(&elf.bytes).ok();
    let entry = machine::entry(&config.hart, symbols.as_ref())?;
    if let Some(missing) = missing_extensions(&elf, isa) {
        talk.warning(&missing);
    }
    let mut machine = machine::build(&hart, host(args))?;
    machine::load(&mut machine, &elf, &program, entry)?;
    let mut image = Image::new();
    image
        .add_elf(SpaceId::FIRST, &elf.bytes, elf.file.base, Some(isa))
        .map_err(|error| bad_image(&elf.file.file, &error))?;
    add_boot_code(&mut image, &config, isa);
    let model = args.output_model();
    let code = (std::slice::from_ref(&elf), &[][..]);
    let plan = plan(&config, isa, code, (&image, &model), talk)?;
    let limit = config.hart.max_insns.as_ref().map(|n| n.value);
    end_on_signal();
    let threads = args.threads.unwrap_or_else(cores);
    let (end, compared) = plan.run(threads, |feed| drive(&mut machine, limit, feed, talk))?;
    report(args, (&model, &compared, true), output)?;
    let facts = Ended {
        config: &hart,
        program: &program,
        symbols: symbols.as_ref(),
        first_trap: None,
        pc: machine.pc(),
        sp: machine.x(2),
    };
    let died = match end {
        None => Err(Failure::Reported(Code::Interrupted)),
        Some(stop) => facts.failure(stop).map_or(Ok(()), |died| Err(died.into())),
    };
    let checked = check(&compared);
    if let (Err(_), Err(Failure::Diagnostic(died))) = (&checked, &died) {
        // The traces decide how the command ends; why the program ended is reported too.
        talk.error(died);
    }
    checked.and(died)
}

/// The program sees its arguments and nothing else.
fn host(args: &Compare) -> Host {
    let name = args.input.as_os_str().as_encoded_bytes().to_vec();
    let words = args.args.iter();
    let words = words.map(|word| word.as_encoded_bytes().to_vec());
    Host::silent().with_arguments(std::iter::once(name).chain(words))
}

/// Runs the machine to its end; `None` if the user wants no more.
fn drive(machine: &mut Machine, limit: Option<u64>, feed: &mut Feed, talk: &Talk) -> Option<Stop> {
    let progress = RunProgress::new(talk, limit);
    let end = loop {
        let left = limit.map_or(u64::MAX, |limit| {
            limit.saturating_sub(machine.instructions())
        });
        let stop = machine.run(left.min(SLICE), &mut *feed);
        if stop != Stop::Limit || left <= SLICE {
            // A limit may end a run that would not have gone on.
            let looped = machine.trap_loop().filter(|_| stop == Stop::Limit);
            break Some(looped.unwrap_or(stop));
        }
        if interrupted() {
            break None;
        }
        progress.at(machine.instructions());
    };
    feed.finish();
    progress.give_way();
    end
}

/// Reads the log once.
fn compare_log(args: &Compare, talk: &Talk) -> Result<(), Failure> {
    if args.max_insns.is_some() || !args.args.is_empty() {
        return Err(Failure::Usage(
            "--max-insns and ARGS are for programs, but the input is a log",
        ));
    }
    let typed = args::Program {
        elf: args.elf.clone(),
        raw: args.raw.clone(),
        code: Vec::new(),
        isa: args.machine.isa.clone(),
        config: args.machine.config.clone(),
        ..args::Program::default()
    };
    let session = Session::of_log(&args.input, &typed, args.strict, talk)?;
    let output = session.output(&args.output.output)?;
    let mut program = session.load()?;
    let mut input = Input::open(&args.input)?;
    let kind = chosen(detect(input.peek(HEAD)?), &session.config);
    let head = head(kind, &mut input)?;
    let timed = has_time(kind, head, &session.config);
    let mut image = program.image()?;
    recognise_boot(kind, head, &mut program, image.as_mut());
    let reading = logs::reading(kind, head, &program, image.as_ref(), false, &session)?;
    let image = image.as_ref().ok_or_else(trace::no_program)?;
    let model = args.output_model();
    let code = (program.elf.as_slice(), program.raw.as_slice());
    let plan = plan(&program.config, reading.isa, code, (image, &model), talk)?;
    if !reading.modes && args.mode.is_none() {
        talk.warning(&log::assumed_mode(&args.input));
    }
    let copy = Copy {
        input,
        hart: args.hart,
        mode: (!reading.modes).then(|| args.mode.map_or(Mode::M, mode_of)),
        kind,
        session: &session,
    };
    let threads = args.threads.unwrap_or_else(cores);
    let (copied, compared) = plan.run(threads, |feed| match timed {
        true => copy.with_mode(reading, feed),
        false => copy.with_mode(reading, Clocked::new(feed)),
    })?;
    copied?;
    report(args, (&model, &compared, timed), output)?;
    check(&compared)
}

/// A log on its way to the encoders.
struct Copy<'a> {
    input: Input,
    hart: Option<u32>,
    /// The mode of a log without modes.
    mode: Option<Mode>,
    kind: Kind,
    session: &'a Session<'a>,
}

impl Copy<'_> {
    fn with_mode(self, reading: Reading<'_>, out: impl Observer) -> Result<(), Failure> {
        match self.mode {
            Some(mode) => self.run(reading, Assume::new(Plain(out), mode)),
            None => self.run(reading, Plain(out)),
        }
    }

    /// Reads all of the input, and reports what is wrong with it.
    fn run(self, reading: Reading<'_>, out: impl Observer) -> Result<(), Failure> {
        let which = (self.hart, true);
        let copied = logs::copy(reading, self.input, out, which, self.session, || Ok(()))?;
        let (fit, recorded) = (copied.chosen.fit(), copied.traps);
        // Sizes depend little on a cause.
        logs::judged(copied, None, self.session)?;
        let may_record = matches!(self.kind, Kind::SpikeLog | Kind::Log(_));
        if !recorded && may_record && fit.traps > 0 {
            let talk = self.session.talk;
            talk.warning(&log::inferred_traps(self.session.path, self.kind));
        }
        Ok(())
    }
}

/// What is compared: settings that do not suit the program are refused.
fn plan<'a>(
    config: &Config,
    isa: Isa,
    code: (&[Elf], &[Raw]),
    (image, model): (&'a Image, &OutputModel),
    talk: &Talk,
) -> Result<Plan<'a>, Failure> {
    for format in [Format::Ntrace, Format::Etrace] {
        let settings = format.settings(config, isa.xlen())?;
        trace_file::fit(&settings, config, isa, code, talk)?;
    }
    let filter = trace_file::filter(config, isa, code.0)?;
    Ok(Plan::new(config, isa, filter, image, model.clone())?)
}

/// Writes the tables.
fn report(
    args: &Compare,
    (model, compared, timed): (&OutputModel, &Compared, bool),
    output: Output,
) -> Result<(), Failure> {
    let form = match args.format {
        CompareFormat::Text => Form::Text,
        CompareFormat::Json => Form::Json,
        CompareFormat::Csv => Form::Csv,
        CompareFormat::Md => Form::Markdown,
    };
    let file = args.input.file_name().unwrap_or(args.input.as_os_str());
    let report = Report {
        file: file.to_string_lossy().into_owned(),
        timed,
        output: model,
        compared,
    };
    let look = look(&args.output.output);
    output.write_with(|out| report.write(form, look, &mut &mut *out))?;
    Ok(())
}

/// What the place of the output can show.
fn look(path: &Path) -> Look {
    let stdout = std::io::stdout();
    if !is_stdout(path) || !stdout.is_terminal() {
        return Look::default();
    }
    Look {
        columns: terminal_size::terminal_size().map(|(width, _)| width.0.into()),
        color: anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never,
    }
}

/// Whether all traces say what was run.
fn check(compared: &Compared) -> Result<(), Failure> {
    differences(compared).map_or(Ok(()), |found| Err(found.into()))
}
