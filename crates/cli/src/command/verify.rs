//! `hartrace verify`: checks a tandem trace against the built-in hart.

mod drive;
mod source;

use crate::args::{self, Mark, Verify, VerifyFormat};
use crate::failure::Failure;
use crate::files::create;
use crate::machine;
use crate::session::Session;
use crate::settings::Elf;
use crate::talk::{Talk, end_on_signal};
use drive::Drive;
use hartrace_analyze::Symbols;
use hartrace_capture::config::{self, Config, Origin, Setting};
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::{self, Input};
use hartrace_capture::log::{LogOptions, LogReader, first_pc, head, ingress_layout, plan_of};
use hartrace_capture::program::read_named;
use hartrace_capture::trace::{self, Format, Known};
use hartrace_capture::verify::{
    self, Check, Choice, LogStream, Parameters, Register, Search, Verifier, Volatile, add_absent,
};
use hartrace_cosim::model;
use hartrace_flow::boot;
use hartrace_isa::{Isa, csr};
use hartrace_logs::{Column, Columns, LogFormat};
use hartrace_print::diagnostic::log::not_readable;
use hartrace_print::diagnostic::verify::{not_tandem, wrong_hart};
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::verify::{Facts, Form, Places, Report};
use source::Source;
use std::path::{Path, PathBuf};

pub(super) fn run(args: &Verify, talk: &Talk) -> Result<(), Failure> {
    let mut session = begin(args, talk)?;
    let configs = args.machine.config.iter().map(PathBuf::as_path);
    let output = create(&args.output.output, session.inputs().chain(configs))?;
    // The verdict does not depend on who reads the report.
    let output = output.outlive_reader(true);
    let volatile = volatile(args, &session.config)?;
    let elf = programs(&session)?;
    end_on_signal();
    let mut source = Source::open(&args.trace, &session.config, talk)?;
    adopt_log(&mut session.config, &mut source)?;
    let parameters = source.parameters(&args.trace)?;
    let contained = parameters.is_some();
    let log = matches!(source, Source::Log(..));
    if !contained && !log && args.hart.is_some_and(|hart| hart != 0) {
        return Err(Failure::Usage(
            "--hart selects a hart of a container, but this trace has one hart only",
        ));
    }
    adopt(&mut session.config, parameters.as_ref(), &args.trace);
    let (hart, isa) = model::configure(&mut session.config, &elf, &volatile, &mut |warning| {
        talk.warning(&warning);
    })?;
    let symbols = elf
        .first()
        .and_then(|elf| Symbols::from_elf(&elf.bytes).ok());
    let entry = machine::entry(&session.config.hart, symbols.as_ref())?;
    let (machine, mut options) = model::build(&hart, &elf, entry)?;
    options.volatile = volatile;
    let check_csrs = session.config.verify.check_csrs.as_ref();
    let check_csrs = check_csrs.is_some_and(|check| check.value);
    options.own_csrs = check_csrs;
    if let Source::Log(kind, input) = &mut source {
        let head = head(*kind, input)?;
        options.silent_traps = !verify::records_traps(*kind, head, &session.config);
    }
    let mut config = format(&session, &mut source, parameters, isa)?;
    absent(args, &session.config, &mut config)?;
    let search = Search {
        config: &config,
        start: machine.pc(),
        choice: Choice::new(args.hart, contained),
    };
    (options.from, options.until) = bounds(args, &source, search, symbols.as_ref())?;
    let mut places = Places::new(isa);
    elf.iter().for_each(|elf| places.add_elf(&elf.bytes));
    let facts = Facts {
        trace: &args.trace,
        config: &config,
        isa,
        places: &places,
    };
    let form = match args.format {
        VerifyFormat::Text => Form::Text,
        VerifyFormat::Json => Form::Json,
    };
    let limit = Some(args.max_mismatches).filter(|n| *n > 0);
    let mut report = Report::new(form, limit, args.resync, facts);
    let from = options.from;
    let verifier = Verifier::new(verified(&config, log), options, machine);
    let program = match log {
        true => Some(session.load()?),
        false => None,
    };
    let image = match &program {
        Some(program) => program.image()?,
        None => None,
    };
    let stream = match &mut source {
        Source::Log(kind, input) => {
            let options = LogOptions {
                image: image.as_ref(),
                isa: Some(isa),
                plain_jumps: true,
                ..log_options(*kind, head(*kind, input)?, &session)
            };
            let reader = LogReader::new(*kind, &options);
            let head = head(*kind, input)?;
            let reader = reader.map_err(|error| not_readable(&args.trace, head, error))?;
            let stream = stream_config(&config, *kind, options.columns.as_ref(), check_csrs);
            let stream = LogStream::new(reader, stream, args.hart);
            Some(stream.map_err(trace::SettingsError::from)?)
        }
        _ => None,
    };
    let drive = Drive {
        from,
        check: Check::new(verifier, Choice::new(args.hart, contained)),
        report: &mut report,
        lost: None,
        output,
        talk,
    };
    drive.run(source, stream)
}

/// The instruction set of a container, unless another is given.
fn adopt(config: &mut Config, parameters: Option<&Parameters>, path: &Path) {
    if let Some(value) = parameters.and_then(|p| p.isa.clone()) {
        config.program.isa.get_or_insert(Setting {
            value,
            origin: Origin::File {
                path: path.into(),
                line: 1,
            },
        });
    }
}

/// The settings in force: flags over configuration files over the sidecar.
fn begin<'a>(args: &'a Verify, talk: &'a Talk) -> Result<Session<'a>, Failure> {
    let typed = args::Program {
        elf: args.elf.clone(),
        isa: args.machine.isa.clone(),
        config: args.machine.config.clone(),
        ..args::Program::default()
    };
    let mut session = Session::new(&args.trace, &typed, false, talk)?;
    let flags = Config {
        hart: machine::typed_hart(&args.machine),
        ..Config::default()
    };
    session.config = flags.over(session.config);
    Ok(session)
}

/// Reads the programs, which must be those that were traced.
fn programs(session: &Session<'_>) -> Result<Vec<Elf>, Failure> {
    let elf = read_named(&session.config.program.elf, Elf::read)?;
    if let Some((Elf { file, .. }, base)) = elf.iter().find_map(|e| Some((e, e.file.base?))) {
        let message = format!("{} cannot run at {base:#x}", input::name(&file.file));
        return Err(Diagnostic::new(Code::BadFileSpec, message)
            .help("leave out the base: a program runs at the address it was linked for")
            .into());
    }
    session.check(&elf)?;
    Ok(elf)
}

/// What comes from the trace.
fn volatile(args: &Verify, config: &Config) -> Result<Volatile, Failure> {
    let mut volatile = match args.no_default_volatile {
        true => Volatile::nothing(),
        false => model::volatile(config),
    };
    for text in &args.volatile {
        let bad = |error| {
            Diagnostic::new(Code::BadState, format!("--volatile: {error}"))
                .help("write a CSR without a name as a number, such as 0x7c0")
        };
        volatile.add(text).map_err(bad)?;
    }
    if args.hart.is_some_and(|hart| hart != 0) {
        // The built-in hart is hart 0.
        volatile.add_bits(Register::csr(csr::MHARTID), u64::MAX);
    }
    Ok(volatile)
}

/// What the verifier expects of the stream. A log may leave out a trap, which is then seen
/// by its handler alone, and with it what the trap has written.
fn verified(config: &verify::Config, log: bool) -> verify::Config {
    let mut config = config.clone();
    if log {
        // It is the name of elements.
        let _ = config.absent.add("trap.csr");
    }
    config
}

/// How a log becomes a stream: with whatever it has of CSRs, if they are checked.
fn stream_config(
    config: &verify::Config,
    kind: Kind,
    columns: Option<&Columns>,
    check_csrs: bool,
) -> verify::Config {
    let mut config = config.clone();
    if check_csrs {
        config.absent.registers = Default::default();
        config.absent.in_traps = Default::default();
        if !records_tval(kind, columns) {
            // They are names of elements.
            let _ = config.absent.add("trap.mtval");
            let _ = config.absent.add("trap.stval");
        }
    }
    config
}

/// Whether a trap without a value is one that writes zero; in other logs it is not known.
fn records_tval(kind: Kind, columns: Option<&Columns>) -> bool {
    match kind {
        Kind::SpikeLog | Kind::Log(LogFormat::Rvvi | LogFormat::Sail) => true,
        Kind::Log(LogFormat::Columns) => columns.is_some_and(|columns| columns.has(Column::Tval)),
        _ => false,
    }
}

/// Adds the state that the trace does not record.
fn absent(args: &Verify, settings: &Config, config: &mut verify::Config) -> Result<(), Failure> {
    model::add_absent(settings, config);
    for name in &args.absent {
        let bad = |error| {
            Diagnostic::new(Code::BadState, format!("--absent: {error}"))
                .help("write a CSR without a name as a number, such as 0x7c0")
        };
        config.absent.add(name.trim()).map_err(bad)?;
    }
    Ok(())
}

/// A log that starts in Spike's boot code is of its machine.
fn adopt_log(config: &mut Config, source: &mut Source) -> Result<(), Failure> {
    if let Source::Log(kind, input) = source
        && first_pc(*kind, input.peek(HEAD)?) == Some(boot::ROM)
        && *kind != Kind::Log(LogFormat::QemuBlocks)
    {
        let spike = || Setting::default(config::Machine::Spike);
        config.hart.machine.get_or_insert_with(spike);
    }
    Ok(())
}

/// How a log is read, by the settings.
fn log_options(kind: Kind, head: &[u8], session: &Session<'_>) -> LogOptions<'static> {
    let ingress = &session.config.ingress;
    LogOptions {
        iretire: match kind {
            Kind::IngressCsv => ingress_layout(head).1,
            _ => ingress.iretire(),
        },
        columns: session.config.log.columns.columns().and_then(Result::ok),
        wave: plan_of(kind, head, &session.config),
        ..LogOptions::default()
    }
}

/// Finds out how the trace is read.
fn format(
    session: &Session<'_>,
    source: &mut Source,
    parameters: Option<Parameters>,
    isa: Isa,
) -> Result<verify::Config, Failure> {
    let path = session.path;
    if let Source::Live(..) = source {
        // What has come so far is too little to guess from.
        let config = session.config.tandem.settings(isa);
        let mut config = config.map_err(trace::SettingsError::from)?;
        if let Some(parameters) = parameters {
            trace::adopt(&mut config, parameters);
        }
        return Ok(config);
    }
    if let Source::Log(kind, input) = source {
        let config = session.config.tandem.settings(isa);
        let mut config = config.map_err(trace::SettingsError::from)?;
        let head = head(*kind, input)?;
        add_absent(*kind, head, &session.config, &mut config.absent);
        return Ok(config);
    }
    let kind = detect(Input::open(path)?.peek(HEAD)?);
    let tandem = matches!(
        kind,
        Kind::Tandem | Kind::TandemContainer | Kind::Unknown | Kind::Empty
    );
    if !tandem && Format::said(&session.config) != Some(Format::Tandem) {
        let note = format!("detected kind of file: {kind}");
        return Err(not_tandem(path, &note).into());
    }
    let input = session.open(&args::Transport::default(), "verify")?;
    let known = Known {
        xlen: Some(isa.xlen()),
        image: None,
    };
    match session.trace(input, known)?.settings {
        trace::Settings::Tandem(config) => Ok(*config),
        other => {
            let note = format!("its format is {}", other.format());
            Err(not_tandem(path, &note).into())
        }
    }
}

/// The instructions where to begin and to end.
fn bounds(
    args: &Verify,
    source: &Source,
    search: Search<'_>,
    symbols: Option<&Symbols>,
) -> Result<(u64, Option<u64>), Failure> {
    let marks = [&args.from, &args.until];
    let mut numbers = [None; 2];
    let mut searched = [None; 2];
    for ((mark, number), at) in marks.into_iter().zip(&mut numbers).zip(&mut searched) {
        match mark {
            None => {}
            Some(Mark::Number(n)) => *number = Some(*n),
            Some(Mark::Symbol(name)) => *at = Some(address(name, symbols)?),
        }
    }
    if searched != [None; 2] {
        if !matches!(source, Source::File(_)) {
            return Err(Failure::Usage(
                "a symbol in --from or --until requires a trace file; give a number instead",
            ));
        }
        let bytes = Input::open(&args.trace)?.contents(u64::MAX)?;
        let found = search.first(&bytes, searched);
        let found = found.map_err(|wrong| wrong_hart(&args.trace, &wrong))?;
        if let ([Some(_), _], [None, _], Some(Mark::Symbol(name))) = (searched, found, &args.from) {
            let name_of_trace = input::name(&args.trace);
            let message = format!("{name_of_trace} never reaches `{name}`");
            return Err(Diagnostic::new(Code::BeyondEnd, message)
                .note("verification starts at --from, so nothing would be verified")
                .into());
        }
        for ((number, at), found) in numbers.iter_mut().zip(searched).zip(found) {
            if at.is_some() {
                // An address that is never reached is past the end.
                *number = Some(found.unwrap_or(u64::MAX));
            }
        }
    }
    let [from, until] = numbers;
    let from = from.unwrap_or(0);
    if until.is_some_and(|until| from >= until) {
        return Err(Failure::Usage(
            "--from is not before --until: nothing would be verified",
        ));
    }
    Ok((from, until))
}

/// Where a symbol is.
fn address(name: &str, symbols: Option<&Symbols>) -> Result<u64, Failure> {
    let found = symbols.and_then(|symbols| symbols.iter().find(|(_, n)| *n == name));
    found.map(|(address, _)| address).ok_or_else(|| {
        let message = format!("`{name}` is neither a number nor a symbol of the program");
        Diagnostic::new(Code::BadEntry, message)
            .help(
                "write the number of an instruction, or a symbol; `hartrace disasm` lists the \
                symbols",
            )
            .into()
    })
}
