//! Diagnostics about logs.

use super::{Code, Diagnostic, Findings, unknown_format};
use crate::info::line_note;
use crate::words::count;
use hartrace_capture::config::Config;
use hartrace_capture::detect::Kind;
use hartrace_capture::input;
use hartrace_capture::log::{Damage, Fit, LogError, LogGuess, has_effects};
use hartrace_capture::trace::Settings;
use hartrace_capture::wave::{MapError, WavePort};
use hartrace_flow::HartId;
use std::path::Path;

/// Names of signals that are listed.
const LISTED: usize = 12;

/// Something that was guessed about a log.
#[must_use]
pub fn guessed(guess: LogGuess) -> Diagnostic {
    Diagnostic::new(Code::Guessed, guess.to_string()).help(match guess {
        LogGuess::Isa(_) => "give the instruction set with --isa",
        LogGuess::Halfwords => "set retirement = \"block\" in section [ingress] of a configuration",
    })
}

/// A file that is not read as steps.
#[must_use]
pub fn not_readable(path: &Path, head: &[u8], error: LogError) -> Diagnostic {
    let name = input::name(path);
    match error {
        LogError::NotALog(kind @ (Kind::Empty | Kind::Unknown)) => {
            unknown_format(path, kind, head, "log")
        }
        LogError::NotALog(kind) => {
            let diagnostic = Diagnostic::new(Code::NotALog, format!("{name} is not a log"))
                .note(format!("detected kind of file: {kind}"));
            match kind {
                Kind::Elf => diagnostic.help("give the program with -e, and the log as INPUT"),
                _ => diagnostic.help("give the log of a simulator as INPUT"),
            }
        }
        LogError::NeedsColumns | LogError::Columns(_) => {
            let message = format!("{name} cannot be read by columns: {error}");
            Diagnostic::new(Code::NotALog, message).help(
                "describe its lines in section [log.columns] of a configuration (docs/logs.md)",
            )
        }
        LogError::Wave(error) => no_port(&name, error),
        LogError::NeedsProgram(kind) => Diagnostic::new(Code::NoProgram, "no program is given")
            .note(format!("{name} has addresses but no instructions: {kind}"))
            .help(
                "give the program with -e, --raw FILE@BASE, or a configuration with a \
                    [program] section",
            ),
    }
}

/// A waveform whose port is not known.
fn no_port(name: &str, error: MapError) -> Diagnostic {
    let message = format!("{name} cannot be read: {error}");
    let listed = |diagnostic: Diagnostic, names: &[String]| {
        let shown = names.iter().take(LISTED);
        let diagnostic = shown.fold(diagnostic, |d, name| d.note(name.clone()));
        match names.len().saturating_sub(LISTED) {
            0 => diagnostic,
            more => diagnostic.note(format!("and {more} more")),
        }
    };
    match error {
        MapError::Wave(_) => Diagnostic::new(Code::BadWave, message),
        MapError::NoPort(_) => Diagnostic::new(Code::NoPort, message)
            .note("RVFI, the E-Trace ingress port and that of CVA6 are found by their names")
            .help("name the signals in section [wave] of a configuration (docs/waveforms.md)"),
        MapError::Several(ports) => {
            let port = |(port, name): &(WavePort, String)| format!("{}: {name}", port.name());
            let names: Vec<String> = ports.iter().map(port).collect();
            listed(Diagnostic::new(Code::NoPort, message), &names).help(
                "choose one with scope, prefix or port in section [wave] of a configuration, or \
                 with --log-format",
            )
        }
        MapError::Ambiguous(_, names) => listed(Diagnostic::new(Code::NoPort, message), &names)
            .help("give the full name, with all scopes"),
        MapError::Clock(names) => {
            let diagnostic = listed(Diagnostic::new(Code::NoPort, message), &names);
            diagnostic.help("give its name as clock in section [wave] of a configuration")
        }
        MapError::ResetLevel(_) => Diagnostic::new(Code::NoPort, message)
            .help("set reset_active to \"low\" or \"high\" in section [wave] of a configuration"),
        MapError::NoSignal(..) | MapError::Missing(..) | MapError::Width(..) => {
            Diagnostic::new(Code::NoPort, message)
                .help("check section [wave] of the configuration (docs/waveforms.md)")
        }
    }
}

/// A log without register and memory writes, which starts with `head`; `None` if it
/// has them.
#[must_use]
pub fn no_effects(path: &Path, kind: Kind, head: &[u8], config: &Config) -> Option<Diagnostic> {
    if has_effects(kind, head, config) {
        return None;
    }
    let note = match kind {
        Kind::SpikeLog => "it was written by `spike -l` without `--log-commits`".to_owned(),
        kind => format!("kind of log: {kind}"),
    };
    let message = format!(
        "{} does not record register and memory writes",
        input::name(path)
    );
    Some(
        Diagnostic::new(Code::NoEffects, message)
            .note(note)
            .help("write the log with `spike -l --log-commits`, or use `hartrace run`"),
    )
}

/// Damaged lines are an error with `--strict`, or when there is nothing else.
#[must_use]
pub fn judge_damage(
    path: &Path,
    damage: &Damage,
    lines: u64,
    nothing: bool,
    strict: bool,
) -> Findings {
    if damage.lines == 0 {
        return Findings::default();
    }
    let diagnostic = damaged(path, damage, lines);
    Findings::new(
        nothing || strict,
        match (nothing, strict) {
            (true, _) => diagnostic
                .with_code(Code::NothingRead)
                .help("check the program and the kind of log"),
            (false, true) => diagnostic
                .help("remove the lines that are not part of the log, or leave out --strict"),
            (false, false) => diagnostic,
        },
    )
}

/// A log that goes where its program does not lead; an error with `--strict`.
#[must_use]
pub fn judge_fit(path: &Path, fit: Fit, strict: bool) -> Findings {
    if !fit.is_doubtful() {
        return Findings::default();
    }
    let name = input::name(path);
    let message = format!("{name} does not match this program");
    let diagnostic = Diagnostic::new(Code::DoubtfulProgram, message)
        .note(format!(
            "{} of {} steps are traps of unknown cause",
            fit.unexplained, fit.steps
        ))
        .help("check the ELF file and its load base");
    Findings::new(strict, diagnostic)
}

/// Traps whose cause the log does not record; an error with `--strict`. `instead`
/// is what the output has for one; `None` if the output has no causes, or says
/// which are unknown.
#[must_use]
pub fn judge_causes(path: &Path, fit: Fit, instead: Option<&str>, strict: bool) -> Findings {
    let (Some(instead), Some(first)) = (instead, fit.first) else {
        return Findings::default();
    };
    let name = input::name(path);
    let traps = count(fit.causeless, "trap");
    let message = format!("{name} does not record the cause of {traps}");
    let mut diagnostic = Diagnostic::new(Code::UnknownCauses, message);
    if let (Some(epc), Some(handler)) = (first.trap.epc, first.trap.handler) {
        diagnostic = diagnostic.note(format!(
            "first, at step {}: no jump leads to {handler:#x}; {epc:#x} was expected",
            first.step
        ));
    }
    let diagnostic = diagnostic
        .note(format!("{instead} is written for each of them"))
        .help(
            "use a log that records traps: `spike -l --log-commits`, `run --log spike-traps=FILE`",
        );
    Findings::new(strict, diagnostic)
}

/// Lines that could not be read, as an error or a warning.
fn damaged(path: &Path, damage: &Damage, lines: u64) -> Diagnostic {
    let name = input::name(path);
    // A waveform has no lines.
    let timed = damage.first.iter().any(|error| error.time.is_some());
    let message = match timed {
        true => {
            let faults = count(damage.lines, "fault");
            format!("{name}: {faults} in {}", count(lines, "clock edge"))
        }
        false => {
            let lines = count(lines, "line");
            format!("{name}: {} of {lines} cannot be read", damage.lines)
        }
    };
    let mut diagnostic = Diagnostic::new(Code::DamagedLines, message);
    for error in &damage.first {
        diagnostic = diagnostic.note(line_note(error));
    }
    if damage.more() > 0 {
        diagnostic = diagnostic.note(format!("and {} more", damage.more()));
    }
    diagnostic
}

/// A file with these harts, where it is not clear which one to read.
#[must_use]
pub fn which_hart(path: &Path, harts: &[HartId]) -> Diagnostic {
    let list: Vec<String> = harts.iter().map(|h| h.0.to_string()).collect();
    let name = input::name(path);
    let message = match list.as_slice() {
        [] => format!("{name} has no steps of that hart"),
        [one] => format!("{name} has only hart {one}"),
        more => format!("{name} has several harts: {}", more.join(", ")),
    };
    Diagnostic::new(Code::WhichHart, message).help("choose one of them with --hart N")
}

/// A log that does not record traps.
#[must_use]
pub fn inferred_traps(path: &Path, kind: Kind) -> Diagnostic {
    let name = input::name(path);
    let message = match kind {
        Kind::SpikeLog => format!("{name} does not record traps: it was written without `-l`"),
        _ => format!("{name} does not record traps: {kind}"),
    };
    let diagnostic = Diagnostic::new(Code::Assumed, message)
        .note("traps are inferred from jumps; their cause, value and instruction are unknown")
        .note("a trap right after an indirect jump cannot be detected");
    match kind {
        Kind::SpikeLog => diagnostic.help("write the log with `spike -l --log-commits`"),
        _ => diagnostic.help("docs/logs.md says what each format records"),
    }
}

/// What a trace with these settings contains and the log does not: modes, if
/// `mode` has to be assumed, and times, if it is not `timed`.
#[must_use]
pub fn assumed(path: &Path, mode: bool, timed: bool, settings: &Settings) -> Option<Diagnostic> {
    let name = input::name(path);
    let mut missing = Vec::new();
    if mode && settings.has_modes() {
        missing.push("modes; mode M is assumed");
    }
    if !timed && settings.has_time() {
        missing.push("times; time 0 is written");
    }
    let (first, rest) = missing.split_first()?;
    let message = format!("{name} does not record {first}");
    let mut diagnostic = Diagnostic::new(Code::Assumed, message);
    for what in rest {
        diagnostic = diagnostic.note(format!("it does not record {what}"));
    }
    Some(match mode {
        true => diagnostic.help("set the mode with --mode u, s or m"),
        false => diagnostic,
    })
}

/// A log without modes.
#[must_use]
pub fn assumed_mode(path: &Path) -> Diagnostic {
    let name = input::name(path);
    let message = format!("{name} does not record modes; mode M is assumed");
    Diagnostic::new(Code::Assumed, message).help("set the mode with --mode u, s or m")
}
