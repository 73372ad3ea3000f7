//! `hartrace run`: runs a program on the built-in hart.

mod drive;
mod guest;
mod postmortem;
mod recorded;
mod streams;
mod traced;

use crate::args::{FilesSpec, LogSpec, Run, RunLog, is_stdout};
use crate::failure::Failure;
use crate::files::{create, inputs, one_stdin};
use crate::machine;
use crate::progress::RunProgress;
use crate::settings::tell_program;
use crate::sink::Sink;
use crate::talk::{Talk, end_on_signal};
use crate::terminal::Terminal;
use drive::{Drive, End};
use guest::Guest;
use hartrace_analyze::Symbols;
use hartrace_capture::config::{Config, Contexts, Hart, Ingress, Setting};
use hartrace_capture::log::RowWriter;
use hartrace_capture::sidecar::path_for;
use hartrace_capture::trace::{Format, TraceWriter};
use hartrace_flow::{DataPort, Effects, HartId, Many, Observer, Step, Wants};
use hartrace_hart::host::{Files, Host};
use hartrace_hart::{Machine, Stop};
use hartrace_isa::Isa;
use hartrace_logs::{IngressColumns, PcWriter, SpikeWriter};
use hartrace_print::JsonSteps;
use hartrace_print::diagnostic::hart::missing_extensions;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::run::Ended;
use hartrace_print::summary::run_speed;
use postmortem::Postmortem;
use recorded::{Looks, Recorded};
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use streams::{Fate, ProgramInput, ProgramOutput};
use traced::Traced;

/// The settings in force, as far as they do not depend on the program.
fn settings(args: &Run, talk: &Talk) -> Result<Config, Failure> {
    let program = args.program.as_deref();
    let mut config = machine::settings(program, &args.machine, args.max_insns, talk)?;
    let harts = Hart {
        harts: args.harts.harts.map(|n| Setting::flag(n, "--harts")),
        quantum: args.harts.quantum.map(|n| Setting::flag(n, "--quantum")),
        seed: args.harts.seed.map(|n| Setting::flag(n, "--seed")),
        ..Hart::default()
    };
    config = Config {
        hart: harts,
        ..Config::default()
    }
    .over(config);
    config.make_room_for_harts();
    let several = config.hart.harts.as_ref().is_some_and(|n| n.value > 1);
    let tandem = args.streams().any(|(format, _)| format == Format::Tandem);
    if several && tandem && !args.container.container {
        return Err(Failure::Usage(
            "a tandem trace of several harts requires --container",
        ));
    }
    if !several && (args.harts.seed.is_some() || args.harts.quantum.is_some()) {
        return Err(Failure::Usage(
            "--quantum and --seed require several harts: --harts N",
        ));
    }
    if args.data().next().is_some() {
        config.etrace.data.enabled = Some(Setting::flag(true, "--trace etrace-data"));
    }
    Ok(config)
}

/// The settings of a run, and where they come from.
pub(super) fn show(args: &Run, talk: &Talk) -> Result<(), Failure> {
    check_usage(args)?;
    let mut config = settings(args, talk)?;
    one_stdin(files(args, &config))?;
    let output = create(Path::new("-"), [])?;
    let guest = Guest::read(args, &config)?;
    let (_, isa) = guest.configure(args, &mut config, &[])?;
    for (format, _) in args.streams() {
        let settings = format.settings(&config, isa.xlen())?;
        settings.complete(&mut config);
        // Each encoder has a port of its own; this is that of the last one.
        config.ingress = settings.port(config.ingress);
    }
    if args.records().next().is_some() {
        config.ctr = config.ctr.completed(isa.xlen())?;
    }
    let text = config.to_toml(true);
    output.write_with(|out| out.write_all(text.as_bytes()))?;
    Ok(())
}

pub(super) fn run(args: &Run, talk: &Talk) -> Result<(), Failure> {
    check_usage(args)?;
    let mut config = settings(args, talk)?;
    one_stdin(files(args, &config))?;
    let mut guest = Guest::read(args, &config)?;
    let disks = guest::disks(args)?;
    let (hart, isa) = guest.configure(args, &mut config, &disks)?;
    guest.place(&hart, &mut config)?;
    tell_program(&guest.elf, talk);
    talk.detail(&format!("machine: {}, {isa}", ranges(&hart)));
    let symbols = guest.elf.first();
    let symbols = symbols.and_then(|elf| Symbols::from_elf(&elf.bytes).ok());
    let entry = machine::entry(&config.hart, symbols.as_ref())?;
    for elf in &guest.elf {
        if let Some(missing) = missing_extensions(elf, isa) {
            talk.warning(&missing);
        }
    }
    let (fate, progress) = (
        Fate::default(),
        RunProgress::new(talk, config.hart.max_insns.as_ref().map(|n| n.value)),
    );
    let terminal = terminal(&guest);
    let host = host(args, &guest, &fate, &progress)?.with_disks(disks);
    let mut machine = machine::build(&hart, host)?;
    guest.load(&mut machine, entry)?;
    let traced = Traced::new(args, &config, &guest, isa, talk)?;
    let recorded = Recorded::new(args, &config)?;
    let own = machine.ctr().is_some();
    if !own && let Some(ctr) = recorded.beside(&config, isa.xlen())? {
        machine.record_beside(ctr);
    }
    let logs = sinks(args, &config)?;
    let mut writers = traced.writers(&config, isa, &guest.elf)?;
    let sinks = logs.iter().chain(traced.sinks());
    let sinks: Vec<&Sink> = sinks.chain(recorded.sinks()).collect();
    end_on_signal();
    let mut drive = Drive {
        machine: &mut machine,
        limit: config.hart.max_insns.as_ref().map(|n| n.value),
        sinks: &sinks,
        output: &fate,
        progress: &progress,
        looks: recorded.looks(args.every),
    };
    let begin = Instant::now();
    let end = observe(&mut drive, args, isa, &config.ingress, &mut writers)?;
    // A limit may end a run that would not have gone on.
    let end = match (end, drive.machine.trap_loop()) {
        (End::Stop(Stop::Limit), Some(stop)) => End::Stop(stop),
        _ => end,
    };
    let time = begin.elapsed();
    drop(terminal);
    talk.phase("program ended");
    let first_trap = drive.machine.first_trap();
    let written = writers.into_iter().map(TraceWriter::done).collect();
    let tallies = drive.looks.take().map(Looks::tallies).unwrap_or_default();
    drop(drive);
    finish(logs)?;
    config.contexts = config.contexts.over(names(&machine));
    let traced = traced.finish(&config, &guest.elf, written)?;
    let recorded = recorded.finish(&config, &guest.elf, isa, own, tallies)?;
    let facts = Ended {
        config: &hart,
        program: guest.program(),
        symbols: symbols.as_ref(),
        first_trap,
        pc: machine.pc(),
        sp: machine.x(2),
    };
    report(&mut machine, &facts, end, time, talk);
    if !guest.is_system() {
        tell_cannot_end(&facts, end, talk);
    }
    recorded.report(talk);
    if own && args.records().next().is_some() {
        tell_without_effect(&config, talk);
    }
    let checked = traced.report(talk);
    let verdict = verdict(&facts, end);
    let verdict = match (verdict, guest.elf.first()) {
        (Err(Failure::Diagnostic(died)), Some(elf))
            if died.code.exit() == Code::ProgramFailed.exit() && !guest.is_system() =>
        {
            let again = Postmortem {
                hart: &hart,
                program: guest.program().clone(),
                entry,
                host: quiet_host(args, &guest),
            };
            let found = again.examine(&machine, end, time, elf);
            Err(postmortem::explain(*died, found, &machine, elf).into())
        }
        (verdict, _) => verdict,
    };
    if let (Err(_), Err(Failure::Diagnostic(died))) = (&checked, &verdict) {
        // The trace decides how the command ends; the reason why the program ended is reported too.
        talk.error(died);
    }
    checked.and(verdict)
}

/// The names of contexts that the run has shown.
fn names(machine: &Machine) -> Contexts {
    let names = machine.context_names().map(|(context, name)| {
        let name = Setting::default(name.to_owned());
        (context.0, name)
    });
    Contexts(names.collect())
}

/// Where the machine has memory.
fn ranges(hart: &hartrace_hart::Config) -> String {
    let one = |region: &hartrace_hart::Region| format!("{:#x}:{:#x}", region.base, region.size);
    let memory: Vec<String> = hart.memory.iter().map(one).collect();
    format!("memory {}", memory.join(" "))
}

/// Settings of `[ctr]` that a hart with records of its own does not look at.
fn tell_without_effect(config: &Config, talk: &Talk) {
    let keys: Vec<String> = config.ctr.beside_only().map(|k| format!("`{k}`")).collect();
    if !keys.is_empty() {
        let keys = keys.join(", ");
        let why = "the program configures the hart's own recorder";
        talk.summary(&format!("note: {keys} in [ctr] have no effect: {why}"));
    }
}

/// The terminal in the hands of a system, if stdin is one.
fn terminal(guest: &Guest) -> Option<Terminal> {
    let taken = guest.is_system() && std::io::stdin().is_terminal();
    taken.then(Terminal::enter).flatten()
}

/// Flags that do not go together.
fn check_usage(args: &Run) -> Result<(), Failure> {
    check_system(args)?;
    let tandem = args.streams().any(|(format, _)| format == Format::Tandem);
    if !tandem && (args.load || args.container.container) {
        return Err(Failure::Usage(
            "--load and --container require --trace tandem=FILE",
        ));
    }
    let kinds = || args.log.iter().map(|log| log.kind);
    if args.with_trapped && !kinds().any(|kind| kind == RunLog::Pc) {
        return Err(Failure::Usage("--with-trapped requires --log pc=FILE"));
    }
    if args.check && args.streams().next().is_none() {
        return Err(Failure::Usage(
            "--check requires --trace ntrace=FILE, etrace=FILE or tandem=FILE",
        ));
    }
    if args.every.is_some() && args.records().next().is_none() {
        return Err(Failure::Usage("--every requires --trace ctr=FILE"));
    }
    let etraces = args
        .streams()
        .filter(|(format, _)| *format == Format::Etrace);
    let (etraces, data) = (etraces.count(), args.data().count());
    if data > 0 && (data, etraces) != (1, 1) {
        return Err(Failure::Usage(
            "--trace etrace-data=FILE requires one --trace etrace=FILE",
        ));
    }
    let is_file = |name: &PathBuf| !matches!(name.to_str(), Some("-" | "/dev/null"));
    let traces = args.trace.iter().map(|trace| target(&trace.file));
    let sidecars = traces.filter(is_file).map(|trace| path_for(&trace));
    let mut names: Vec<PathBuf> = args.written().map(target).collect();
    names.extend(sidecars.map(|sidecar| target(&sidecar)));
    names.retain(|name| name.as_os_str() != "/dev/null");
    names.sort();
    if names
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a == b))
    {
        return Err(Failure::Usage(
            "two logs or traces have the same file name, or one has the name of another's sidecar",
        ));
    }
    Ok(())
}

/// What describes a system does so alone.
fn check_system(args: &Run) -> Result<(), Failure> {
    let system = &args.system;
    if system.is_given() {
        if args.program.is_some() {
            return Err(Failure::Usage(
                "PROG cannot be given with --bios or --kernel: they are what runs",
            ));
        }
        if args.machine.entry.is_some() {
            return Err(Failure::Usage(
                "--entry cannot be given with --bios or --kernel, which have entry points",
            ));
        }
    }
    if system.kernel.is_none() && (system.initrd.is_some() || system.append.is_some()) {
        return Err(Failure::Usage("--initrd and --append require --kernel"));
    }
    if !system.is_given() && system.dtb.is_some() {
        return Err(Failure::Usage("--dtb requires --bios or --kernel"));
    }
    Ok(())
}

/// The file that a log goes to, however its name is written.
fn target(file: &Path) -> PathBuf {
    if is_stdout(file) {
        return PathBuf::from("-");
    }
    let new = || {
        let folder = file.parent().filter(|path| !path.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        Some(folder.join(file.file_name()?))
    };
    let known = fs::canonicalize(file).ok().or_else(new);
    known.unwrap_or_else(|| file.to_owned())
}

/// Everything that is read before the run.
fn files<'a>(args: &'a Run, config: &'a Config) -> impl Iterator<Item = &'a Path> + Clone {
    let program = config.program.elf.iter().flat_map(|elf| &elf.value);
    let configs = args.machine.config.iter().map(PathBuf::as_path);
    let program = program.filter(|_| !args.system.is_given());
    let program = program.map(|elf| elf.file.as_path());
    program.chain(configs).chain(args.system.files())
}

/// The world as the program sees it.
fn host(args: &Run, guest: &Guest, fate: &Fate, progress: &RunProgress) -> Result<Host, Failure> {
    let stdout = match args.written().any(is_stdout) {
        true => ProgramOutput::stderr(fate, progress),
        false => ProgramOutput::stdout(fate, progress),
    };
    let stderr = ProgramOutput::stderr(fate, progress);
    let (files, folder) = match &args.files {
        FilesSpec::None => (Files::None, Path::new("")),
        FilesSpec::ReadOnly(folder) => (Files::ReadOnly(folder.clone()), folder.as_path()),
        FilesSpec::ReadWrite(folder) => (Files::ReadWrite(folder.clone()), folder.as_path()),
    };
    let input = match guest.is_system() && std::io::stdin().is_terminal() {
        true => ProgramInput::keys(),
        false => ProgramInput::new(),
    };
    let host = Host::new(
        Box::new(std::io::empty()),
        Box::new(stdout),
        Box::new(stderr),
    );
    as_typed(host.with_input(Box::new(input)), args, guest)
        .with_files(files)
        .map_err(|error| {
            let message = format!("cannot open the directory `{}`: {error}", folder.display());
            Diagnostic::new(Code::CannotOpen, message)
                .help("give an existing directory: --files ro:DIR")
                .into()
        })
}

/// The world outside, as the program sees it.
fn as_typed(host: Host, args: &Run, guest: &Guest) -> Host {
    let name = guest.name().as_os_str().as_encoded_bytes().to_vec();
    let words = args
        .args
        .iter()
        .map(|word| word.as_encoded_bytes().to_vec());
    // What is written down does not depend on who watches.
    let terminal = args.written().next().is_none() && std::io::stdout().is_terminal();
    host.with_arguments(std::iter::once(name).chain(words))
        .with_terminal(terminal)
}

/// The same world without files, input or anything that is heard of it.
fn quiet_host(args: &Run, guest: &Guest) -> Host {
    as_typed(Host::silent(), args, guest)
}

/// Opens the logs, in their order.
fn sinks(args: &Run, config: &Config) -> Result<Vec<Sink>, Failure> {
    let one = |log: &LogSpec| {
        let read = files(args, config).chain(inputs(config));
        create(&log.file, read).map(Sink::new)
    };
    args.log.iter().map(one).collect()
}

/// Nothing is written down.
struct NoObserver;

impl Observer for NoObserver {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
}

/// Runs the machine with the logs and traces that are asked for. One of pcs,
/// rows or messages does not pay for the effects that the others record.
fn observe(
    drive: &mut Drive<'_>,
    args: &Run,
    isa: Isa,
    ingress: &Ingress,
    writers: &mut [TraceWriter<'_>],
) -> Result<End, Failure> {
    let sinks = drive.sinks;
    let several = drive.machine.config().harts > 1;
    match (args.log.as_slice(), sinks, writers) {
        ([], _, []) => drive.run(Wants::NOTHING, &mut NoObserver),
        ([], _, [writer]) => drive.run(writer.wants(), writer.observer()),
        ([one], [sink], []) if one.kind == RunLog::Pc => {
            drive.run(Wants::STEPS, &mut pcs(args, isa, sink))
        }
        ([one], [sink], [])
            if one.kind == RunLog::Ingress && ingress.port(isa).data == DataPort::None =>
        {
            drive.run(Wants::STEPS, &mut rows((ingress, isa), several, sink))
        }
        (logs, sinks, writers) => {
            let mut many = Many::new();
            for (log, &sink) in logs.iter().zip(sinks) {
                let put = |bytes: &[u8]| sink.put(bytes);
                match log.kind {
                    RunLog::Pc => many.push(pcs(args, isa, sink)),
                    RunLog::Spike => many.push(SpikeWriter::new(isa, put)),
                    RunLog::SpikeTraps => many.push(SpikeWriter::new(isa, put).with_traps()),
                    RunLog::Ingress => {
                        let data = ingress.port(isa).data != DataPort::None;
                        let wants = match data {
                            true => Wants::STEPS.with(Wants::DATA),
                            false => Wants::STEPS,
                        };
                        many.push_wanting(wants, rows((ingress, isa), several, sink));
                    }
                    RunLog::Json => many.push(JsonSteps::new(isa, true, sink)),
                }
            }
            for writer in writers {
                many.push_wanting(writer.wants(), writer);
            }
            drive.run(many.wants(), &mut many)
        }
    }
}

fn pcs<'s>(args: &Run, isa: Isa, sink: &'s Sink) -> PcWriter<'s> {
    let writer = PcWriter::new(isa.xlen(), |bytes: &[u8]| sink.put(bytes));
    match args.with_trapped {
        true => writer.listing_traps(),
        false => writer,
    }
}

/// Rows; of `several` harts, with their numbers.
fn rows<'s>((ingress, isa): (&Ingress, Isa), several: bool, sink: &'s Sink) -> impl Observer + 's {
    let port = ingress.port(isa);
    let columns = IngressColumns {
        time: true,
        pending: true,
        hart: several,
        ..IngressColumns::with_sideband()
    };
    let put = |rows: Result<&[u8], _>| sink.put_rows(rows);
    RowWriter::new(port, columns, ingress.iretire(), put)
}

/// Gives the logs their names. A reader that went away has what it wanted.
fn finish(sinks: Vec<Sink>) -> Result<(), Failure> {
    for sink in sinks {
        match sink.finish() {
            Ok(()) | Err(Failure::ClosedPipe) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// How it went, and what the program asked for in vain.
fn report(
    machine: &mut Machine,
    facts: &Ended<'_>,
    end: End,
    time: std::time::Duration,
    talk: &Talk,
) {
    let speed = run_speed(machine.instructions(), machine.cycles(), time);
    let how = match end {
        End::Stop(stop) => facts.words(stop),
        End::Interrupted => format!("interrupted at {}", facts.place(facts.pc)),
        End::Left => format!("ended with Ctrl-A X at {}", facts.place(facts.pc)),
        End::Unread => "stopped early: the reader closed the output".to_owned(),
    };
    talk.summary(&format!("{speed}; {how}"));
    for note in machine.host().take_notes() {
        talk.warning(&Diagnostic::new(Code::Refused, note.to_string()));
    }
}

/// Says so if a program could not have ended by itself.
fn tell_cannot_end(facts: &Ended<'_>, end: End, talk: &Talk) {
    if let End::Stop(stop) = end
        && let Some(hint) = facts.cannot_end(stop)
    {
        talk.warning(&hint);
    }
}

/// What the end means for the command.
fn verdict(facts: &Ended<'_>, end: End) -> Result<(), Failure> {
    match end {
        End::Stop(stop) => facts.failure(stop).map_or(Ok(()), |died| Err(died.into())),
        End::Interrupted => Err(Failure::Reported(Code::Interrupted)),
        End::Left => Ok(()),
        End::Unread => Err(Failure::ClosedPipe),
    }
}
