//! `hartrace verify`: a tandem trace against the built-in hart.

mod drive;
mod find;
mod json;
mod model;
mod place;
mod report;
mod text;

use super::{create, one_stdin};
use crate::args::{self, Mark, Verify};
use crate::diagnostic::{Code, Diagnostic, Failure};
use crate::settings::{self, Elf};
use crate::talk::{Talk, end_on_signal};
use crate::traces::Settings;
use drive::Drive;
use hartrace_analyze::Symbols;
use hartrace_capture::config::Config;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::{self, Address, Input};
use hartrace_capture::trace::{self, Format};
use hartrace_isa::Isa;
use hartrace_tandem::verify::Volatile;
use hartrace_tandem::{self as tandem, Verifier};
use place::Places;
use report::{Facts, Report};
use std::path::{Path, PathBuf};

pub(super) fn run(args: &Verify, talk: &Talk) -> Result<(), Failure> {
    let mut settings = resolve(args, talk)?;
    let output = {
        let files = files(args, &settings.config);
        one_stdin(files.clone())?;
        create(&args.output.output, files)?
    };
    let volatile = volatile(args)?;
    let elf = programs(&settings)?;
    let (hart, isa) = model::configure(&mut settings.config, &elf, &volatile, talk)?;
    let symbols = elf
        .first()
        .and_then(|elf| Symbols::from_elf(&elf.bytes).ok());
    let entry = super::run::entry(args.machine.entry.as_deref(), symbols.as_ref())?;
    let (machine, mut options) = model::build(&hart, &elf, entry)?;
    options.volatile = volatile;
    let (mut config, source) = open(args, &settings, isa, talk)?;
    absent(args, &mut config)?;
    let targets = [args.from.as_ref(), args.until.as_ref()];
    let bounds = bounds(targets, &source, &config, machine.pc(), symbols.as_ref())?;
    options.from = bounds[0].unwrap_or(0);
    options.until = bounds[1];
    let places = Places::new(&elf, isa);
    let facts = Facts {
        trace: &args.trace,
        config: &config,
        isa,
        places: &places,
    };
    let mut report = Report::new(args, facts);
    end_on_signal();
    let drive = Drive {
        verifier: Verifier::new(config.clone(), options, machine),
        report: &mut report,
        output,
        talk,
    };
    drive.run(source)
}

/// The settings in force: flags over configuration files over the sidecar.
fn resolve(args: &Verify, talk: &Talk) -> Result<Settings, Failure> {
    let typed = args::Program {
        elf: args.elf.clone(),
        isa: args.machine.isa.clone(),
        config: args.machine.config.clone(),
        ..args::Program::default()
    };
    let mut settings = Settings::resolve(&args.trace, &typed, talk)?;
    let flags = Config {
        hart: super::run::typed_hart(&args.machine),
        ..Config::default()
    };
    settings.config = flags.over(settings.config);
    Ok(settings)
}

/// Everything that is read.
fn files<'a>(args: &'a Verify, config: &'a Config) -> impl Iterator<Item = &'a Path> + Clone {
    let configs = args.machine.config.iter().map(PathBuf::as_path);
    super::inputs(config)
        .chain(configs)
        .chain([args.trace.as_path()])
}

/// Reads the programs, which must be those that were traced.
fn programs(settings: &Settings) -> Result<Vec<Elf>, Failure> {
    let elf = settings::files(&settings.config.program.elf, settings::read_elf)?;
    if let Some((Elf { file, .. }, base)) = elf.iter().find_map(|e| Some((e, e.file.base?))) {
        let message = format!("{} cannot run at {base:#x}", input::name(&file.file));
        return Err(Diagnostic::new(Code::BadFileSpec, message)
            .help("leave out the base: a program runs where it was linked to")
            .into());
    }
    settings.check(&elf)?;
    Ok(elf)
}

/// What comes from the trace.
fn volatile(args: &Verify) -> Result<Volatile, Failure> {
    let mut volatile = match args.no_default_volatile {
        true => Volatile::nothing(),
        false => model::default_volatile(),
    };
    for text in &args.volatile {
        let bad = |error| {
            Diagnostic::new(Code::BadState, format!("--volatile: {error}"))
                .help("a CSR without a name is written as its number, 0x7c0")
        };
        volatile.add(text).map_err(bad)?;
    }
    Ok(volatile)
}

/// Adds what the trace does not tell.
fn absent(args: &Verify, config: &mut tandem::Config) -> Result<(), Failure> {
    for name in &args.absent {
        let bad = |error| {
            Diagnostic::new(Code::BadState, format!("--absent: {error}"))
                .help("a CSR without a name is written as its number, 0x7c0")
        };
        config.absent.add(name.trim()).map_err(bad)?;
    }
    Ok(())
}

/// Where the trace comes from.
enum Source {
    File(Input),
    /// Nobody knows when it comes, and it cannot be read twice.
    Live(Input),
}

/// Opens the trace, and finds out how it is read.
fn open(
    args: &Verify,
    settings: &Settings,
    isa: Isa,
    talk: &Talk,
) -> Result<(tandem::Config, Source), Failure> {
    let path = args.trace.as_path();
    let live = match Address::parse(path) {
        Some(address) => Some(Input::connect(path, &address)?),
        None => Some(Input::open(path)?).filter(|input| !input.is_file()),
    };
    if let Some(input) = live {
        if let Some(place) = input.place() {
            talk.summary(&format!("waiting for a trace at {place}"));
        }
        let config = settings.config.tandem.settings(isa);
        let config = config.map_err(trace::SettingsError::from)?;
        return Ok((config, Source::Live(input)));
    }
    let kind = detect(Input::open(path)?.peek(HEAD)?);
    if !matches!(kind, Kind::Tandem | Kind::Unknown | Kind::Empty)
        && !settings.is_said(Format::Tandem)
    {
        return Err(not_tandem(
            path,
            &format!("it looks like this kind of file: {kind}"),
        ));
    }
    let input = settings.open(path, &args::Transport::default(), "verify")?;
    let (found, input) = settings.of_trace(input, Some(isa.xlen()), None, false, talk)?;
    match found {
        trace::Settings::Tandem(config) => Ok((*config, Source::File(input))),
        other => Err(not_tandem(
            path,
            &format!("it is of this format: {}", other.format()),
        )),
    }
}

fn not_tandem(path: &Path, note: &str) -> Failure {
    let message = format!("{} is not a tandem trace", input::name(path));
    Diagnostic::new(Code::NotTandem, message)
        .note(note)
        .help("`hartrace run --trace tandem=FILE` and `hartrace encode --to tandem` make some")
        .into()
}

/// The instructions where to begin and to end.
fn bounds(
    marks: [Option<&Mark>; 2],
    source: &Source,
    config: &tandem::Config,
    start: u64,
    symbols: Option<&Symbols>,
) -> Result<[Option<u64>; 2], Failure> {
    let mut numbers = [None; 2];
    let mut searched = [None; 2];
    for ((mark, number), at) in marks.into_iter().zip(&mut numbers).zip(&mut searched) {
        match mark {
            None => {}
            Some(Mark::Number(n)) => *number = Some(*n),
            Some(Mark::Symbol(name)) => *at = Some(find::address(name, symbols)?),
        }
    }
    if searched == [None; 2] {
        return Ok(numbers);
    }
    let Source::File(input) = source else {
        return Err(Failure::Usage(
            "a symbol in --from or --until is looked for in a file; give a number",
        ));
    };
    let found = find::first(input.path(), config, start, searched)?;
    for ((number, at), found) in numbers.iter_mut().zip(searched).zip(found) {
        if at.is_some() {
            // Never there is behind the end.
            *number = Some(found.unwrap_or(u64::MAX));
        }
    }
    Ok(numbers)
}
