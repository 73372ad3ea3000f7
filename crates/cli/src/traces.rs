//! Diagnostics about traces: why one cannot be read, what was guessed, what is
//! damaged.

use crate::diagnostic::{Code, Diagnostic, Failure, count, unknown_format};
use crate::talk::Talk;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::{self, Input};
use hartrace_capture::trace::{
    ContainerFault, Decoded, Format, Guess, Hint, Refusal, TableDamage, TraceError, TransportError,
    Warned, likely_cause,
};
use hartrace_flow::{Gap, HartId, Reason, Warning, boot};
use std::path::Path;

/// Rows of a table that cannot be read; another code if it is all of them.
pub(crate) fn damaged_rows(path: &Path, damage: &TableDamage) -> Diagnostic {
    let name = input::name(path);
    let rows = count(damage.rows, "row");
    let message = format!("{name}: {} of {rows} cannot be read", damage.bad);
    let mut diagnostic = Diagnostic::new(Code::DamagedLines, message);
    for row in &damage.first {
        diagnostic = diagnostic.note(row.to_string());
    }
    let more = damage.bad - damage.first.len() as u64;
    if more > 0 {
        diagnostic = diagnostic.note(format!("and {more} more"));
    }
    diagnostic = diagnostic.help(
        "check that the widths in section [etrace] are those of the \
        encoder",
    );
    match damage.bad == damage.rows {
        true => diagnostic.with_code(Code::NothingRead),
        false => diagnostic,
    }
}

/// A file that is not read as a trace.
pub(crate) fn refused(path: &Path, refusal: Refusal, command: &str) -> Failure {
    match refusal {
        Refusal::Pins => Failure::Usage("--pib is for N-Trace only"),
        Refusal::Unreadable(kind, head) => unknown_format(path, kind, &head, command).into(),
        Refusal::NotATrace(kind) => not_a_trace(path, kind),
        Refusal::Transport(TransportError::Input(error)) => error.into(),
        Refusal::Transport(TransportError::Ram(error)) => {
            let name = input::name(path);
            let message = format!("{name} does not match the buffer given with --ram: {error}");
            Diagnostic::new(Code::NotATrace, message)
                .help("dump the buffer from START to LIMIT, both included")
                .into()
        }
    }
}

/// A trace that cannot be read.
pub(crate) fn bad_trace(path: &Path, error: TraceError) -> Failure {
    match error {
        TraceError::Input(error) => error.into(),
        TraceError::Settings(error) => error.into(),
        TraceError::NotRecognised(what) => not_recognised(path, what).into(),
        TraceError::Container(fault) => bad_container(path, fault).into(),
    }
}

/// A file whose format is not given and is not recognised.
fn not_recognised(path: &Path, what: &str) -> Diagnostic {
    let name = input::name(path);
    Diagnostic::new(
        Code::UnknownFormat,
        format!("{name} does not look like {what}"),
    )
    .note("it has no sidecar, and no configuration gives its format")
    .note("for a memory dump or a probe capture, use --ram, --pib or --order")
    .help("describe it in section [ntrace], [etrace] or [tandem] of a configuration: -c FILE")
}

/// A container of which nothing can be read.
pub(crate) fn bad_container(path: &Path, fault: ContainerFault) -> Diagnostic {
    let name = input::name(path);
    let message = format!("{name} is an unreadable container: {}", fault.text());
    Diagnostic::new(Code::NotATrace, message)
        .named(fault.code())
        .help(
            "the trace cannot be read without the parameters of its container; copy or write \
            the file again",
        )
}

/// Settings that were guessed, and how to give them.
pub(crate) fn guessed(path: &Path, format: Format, guess: &Guess) -> Diagnostic {
    let name = input::name(path);
    let message = format!(
        "{name} has no sidecar; guessing the settings of {}",
        guess.of
    );
    let mut diagnostic = Diagnostic::new(Code::Guessed, message).note(&guess.text);
    if !guess.also.is_empty() {
        let others = guess.also.join(", and ");
        diagnostic = diagnostic.note(format!("these fit as well: {others}"));
    }
    for hint in &guess.hints {
        diagnostic = diagnostic.note(match hint {
            Hint::Program => "give the program (-e) to choose between them",
            Hint::Width => "give --isa or the program (-e) to choose between them",
            Hint::AssumedWidth => {
                "64-bit addresses are assumed; give --isa rv32gc or the program (-e) for others"
            }
        });
    }
    let section = format.name();
    diagnostic.help(format!(
        "give the settings in section [{section}] of a configuration: -c FILE"
    ))
}

fn not_a_trace(path: &Path, kind: Kind) -> Failure {
    let name = input::name(path);
    let diagnostic = Diagnostic::new(Code::NotATrace, format!("{name} is not a trace"))
        .note(format!("detected kind of file: {kind}"));
    match kind {
        Kind::Elf => diagnostic.help("give the program with -e, and the trace as TRACE"),
        Kind::Config | Kind::Sidecar => diagnostic.help("give settings with -c"),
        Kind::CtrDump | Kind::CtrJson => diagnostic.help("use `hartrace ctr` to read it"),
        _ => diagnostic.help("use `hartrace encode` to make a trace from a log"),
    }
    .into()
}

/// No program is named.
pub(crate) fn no_program() -> Failure {
    Diagnostic::new(Code::NoProgram, "no program is given")
        .note("a trace records control flow; the instructions are in the program")
        .help(
            "give the program with -e, --raw FILE@BASE, or a configuration with a [program] \
            section",
        )
        .into()
}

/// Reports the gaps, and what they mean for the command; `only` is the hart that
/// was asked for.
pub(crate) fn judge(
    decoded: &Decoded,
    only: Option<HartId>,
    path: &Path,
    strict: bool,
    talk: &Talk,
) -> Result<(), Failure> {
    let name = input::name(path);
    let other_program = decoded.instructions > 0 && decoded.doubts_program();
    for gap in decoded.first.iter().filter(|_| !other_program) {
        talk.warning(&gap_diagnostic(&name, gap));
    }
    for warned in &decoded.warnings {
        talk.warning(&warning(&name, warned));
    }
    let more = decoded.gaps - decoded.first.len() as u64;
    let missing = only.filter(|only| !decoded.harts.contains(only));
    if let Some(only) = missing.filter(|_| !decoded.harts.is_empty()) {
        let list: Vec<String> = decoded.harts.iter().map(|h| h.0.to_string()).collect();
        let message = format!("{name} has no messages of hart {}", only.0);
        return Err(Diagnostic::new(Code::WhichHart, message)
            .note(format!("harts in the trace: {}", list.join(", ")))
            .help("choose one of them with --hart N")
            .into());
    }
    if decoded.instructions == 0 {
        return Err(nothing(decoded, path).into());
    }
    if other_program {
        let diagnostic = wrong_program(decoded, path);
        return match strict {
            true => Err(diagnostic.into()),
            false => {
                talk.warning(&diagnostic);
                Ok(())
            }
        };
    }
    let message = format!("{name} has {}", count(decoded.gaps, "gap"));
    let diagnostic = Diagnostic::new(Code::Gaps, message);
    match decoded.gaps {
        0 => doubt(&decoded.warnings, path, strict),
        _ if strict => Err(diagnostic
            .help("leave out --strict to continue anyway")
            .into()),
        _ if more > 0 => {
            talk.warning(&diagnostic.note(format!("{more} of them are not shown")));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A trace that contradicts the program almost at once.
fn wrong_program(decoded: &Decoded, path: &Path) -> Diagnostic {
    let name = input::name(path);
    let insns = count(decoded.instructions, "instruction");
    let gaps = count(decoded.gaps, "gap");
    let lost = count(decoded.lost, "byte");
    let message = format!("{name} is probably a trace of another program: it contradicts the code");
    let diagnostic = Diagnostic::new(Code::DoubtfulProgram, message)
        .note(format!("{insns} decoded, {gaps}, {lost} skipped"));
    let diagnostic = match decoded.first.first() {
        None => diagnostic,
        Some(gap) => {
            let Reason { code, text, value } = gap.reason;
            let at = gap.at;
            diagnostic.note(format!(
                "first at byte {at:#x}: {code}: {text} ({value:#x})"
            ))
        }
    };
    diagnostic.help(
        "give the program that was traced, at its load address: -e FILE[@BASE]; if it is the \
         right one, check the settings of the encoder",
    )
}

/// Reports what else a reader should know of a trace that is not decoded.
pub(crate) fn judge_warnings(
    warnings: &[Warned],
    path: &Path,
    strict: bool,
    talk: &Talk,
) -> Result<(), Failure> {
    let name = input::name(path);
    for warned in warnings {
        talk.warning(&warning(&name, warned));
    }
    doubt(warnings, path, strict)
}

/// With `--strict`, whether something may be missing.
fn doubt(warnings: &[Warned], path: &Path, strict: bool) -> Result<(), Failure> {
    let is_loss = |warned: &Warned| warned.first.is_loss;
    match strict && warnings.iter().any(is_loss) {
        false => Ok(()),
        true => {
            let message = format!("{} may be incomplete", input::name(path));
            Err(Diagnostic::new(Code::Doubtful, message)
                .note("the warnings above say what may be missing")
                .help("without --strict, the rest is used")
                .into())
        }
    }
}

/// What a reader should know of, under the code of the protocol.
pub(crate) fn warning(name: &str, warned: &Warned) -> Diagnostic {
    let Warning { at, reason, .. } = warned.first;
    let mut message = format!("{name}, byte {at:#x}: {}", reason.text);
    if reason.value != 0 {
        message += &format!(" ({:#x})", reason.value);
    }
    let mut diagnostic = Diagnostic::new(Code::Doubtful, message).named(reason.code);
    if warned.count > 1 {
        diagnostic = diagnostic.note(format!(
            "there are {} of them; this is the first",
            warned.count
        ));
    }
    match likely_cause(reason.code) {
        Some(text) => diagnostic.note(text),
        None => diagnostic,
    }
}

/// Nothing could be decoded, and why, probably.
fn nothing(decoded: &Decoded, path: &Path) -> Diagnostic {
    let name = input::name(path);
    let message = format!("{name} could not be decoded");
    let diagnostic = Diagnostic::new(Code::NotSynchronised, message);
    let codes = || decoded.first.iter().map(|gap| gap.reason.code);
    if let Some((other, section)) = codes().next().and_then(|code| other_format(path, code)) {
        return diagnostic
            .note(format!("it looks like {other}"))
            .help(format!("give its settings in section [{section}]: -c FILE"));
    }
    if codes().any(|code| code == "ET0206") {
        return diagnostic
            .note("the encoder used a mode that cannot be decoded: see the gaps above")
            .help("trace without that mode, or check the order of ioptions in [etrace]");
    }
    diagnostic
        .note("no full address was found, or none inside the program")
        .note("a short excerpt may contain none; synchronise more often to get more")
        .help("check the program and the encoder settings")
}

/// What a file looks like that was read as something else, and the section with
/// its settings; `code` is of a gap in it.
fn other_format(path: &Path, code: &str) -> Option<(Format, &'static str)> {
    if input::is_stdin(path) {
        return None; // it has been read
    }
    let mut input = Input::open(path).ok()?;
    let looks = Format::from_kind(detect(input.peek(HEAD).ok()?))?;
    let was = Format::from_fault(code);
    (Some(looks) != was).then_some((looks, looks.name()))
}

fn gap_diagnostic(name: &str, gap: &Gap) -> Diagnostic {
    let reason = gap.reason;
    let message = format!(
        "{name}, byte {:#x}: {} ({:#x})",
        gap.at, reason.text, reason.value
    );
    let mut diagnostic = Diagnostic::new(Code::Gaps, message).named(reason.code);
    if gap.bytes > 0 {
        diagnostic = diagnostic.note(format!("{} skipped", count(gap.bytes, "byte")));
    }
    if gap.unconfirmed > 0 {
        let insns = count(gap.unconfirmed, "instruction");
        diagnostic = diagnostic.note(format!("the last {insns} before the gap are unconfirmed"));
    }
    let boot = boot::RANGE;
    if matches!(reason.code, "NT0302" | "ET0301") && boot.contains(&reason.value) {
        let text = "this is Spike's boot code: set machine = \"spike\" in [hart] of a \
            configuration";
        return diagnostic.note(text);
    }
    match likely_cause(reason.code) {
        Some(text) => diagnostic.note(text),
        None => diagnostic,
    }
}
