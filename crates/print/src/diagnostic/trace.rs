//! Diagnostics about traces: why one cannot be read, what was guessed, what is
//! damaged.

use super::missing_code::whose;
use super::{Code, Diagnostic, Findings, unknown_format};
use crate::words::count;
use hartrace_capture::RecordingError;
use hartrace_capture::compare::PlanError;
use hartrace_capture::config::FilterError;
use hartrace_capture::detect::Kind;
use hartrace_capture::input;
use hartrace_capture::trace::{
    ContainerFault, DataGaps, DecodeError, Decoded, Format, Guess, Hint, Misfit,
    ReencapsulateError, Refusal, Settings, SettingsError, TableDamage, TraceError, TransportError,
    UnknownField, Warned, WriteError, Written, likely_cause,
};
use hartrace_flow::{Assumed, DataGap, Difference, Gap, HartId, Ownership, Reason, Warning, boot};
use std::path::Path;

/// Rows of a table that cannot be read; another code if it is all of them.
#[must_use]
pub fn damaged_rows(path: &Path, damage: &TableDamage) -> Diagnostic {
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
    match damage.is_all() {
        true => diagnostic.with_code(Code::NothingRead),
        false => diagnostic,
    }
}

/// A file that is not read as a trace; `command` was to read it.
#[must_use]
pub fn refused(path: &Path, refusal: Refusal, command: &str) -> Diagnostic {
    match refusal {
        Refusal::Pins => Diagnostic::new(Code::NotATrace, "--pib is for N-Trace and E-Trace only"),
        Refusal::Unreadable(kind, head) => unknown_format(path, kind, &head, command),
        Refusal::NotATrace(kind) => not_a_trace(path, kind),
        Refusal::Transport(TransportError::Input(error)) => error.into(),
        Refusal::Transport(TransportError::Ram(error)) => {
            let name = input::name(path);
            let message = format!("{name} does not match the registers of the buffer: {error}");
            Diagnostic::new(Code::NotATrace, message)
                .help("dump the buffer from START to LIMIT, both included")
        }
        Refusal::Transport(error) => bad_transport(&error),
    }
}

/// Settings in `[transport]` that a trace cannot have.
#[must_use]
pub fn bad_transport(error: &TransportError) -> Diagnostic {
    Diagnostic::new(
        Code::Contradiction,
        format!("invalid settings in [transport]: {error}"),
    )
}

/// Packets that cannot be written in another encapsulation.
#[must_use]
pub fn not_reencapsulated(path: &Path, error: ReencapsulateError) -> Diagnostic {
    let message = format!("{} cannot be converted: {error}", input::name(path));
    match error {
        ReencapsulateError::Input(error) => error.into(),
        ReencapsulateError::Settings(error) => error.into(),
        ReencapsulateError::Format => Diagnostic::new(Code::NotATrace, message)
            .help("leave out --encapsulation to decode the trace and encode it again"),
        ReencapsulateError::Harts(..) => Diagnostic::new(Code::WhichHart, message)
            .help("choose one of them with --hart N, or set src_bits in [etrace.encapsulation]"),
        ReencapsulateError::Data => Diagnostic::new(Code::Contradiction, message)
            .help("set type_bits in [etrace.encapsulation], or choose another form"),
        ReencapsulateError::TooLong(_) => {
            Diagnostic::new(Code::Contradiction, message).help("choose another form")
        }
    }
}

/// A trace that cannot be read.
#[must_use]
pub fn bad_trace(path: &Path, error: TraceError) -> Diagnostic {
    match error {
        TraceError::Input(error) => error.into(),
        TraceError::Settings(error) => error.into(),
        TraceError::NotRecognised(what) => not_recognised(path, what),
        TraceError::Container(fault) => bad_container(path, fault),
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
#[must_use]
pub fn bad_container(path: &Path, fault: ContainerFault) -> Diagnostic {
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
#[must_use]
pub fn guessed(path: &Path, format: Format, guess: &Guess) -> Diagnostic {
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

fn not_a_trace(path: &Path, kind: Kind) -> Diagnostic {
    let name = input::name(path);
    let diagnostic = Diagnostic::new(Code::NotATrace, format!("{name} is not a trace"))
        .note(format!("detected kind of file: {kind}"));
    match kind {
        Kind::Elf => diagnostic.help("give the program with -e, and the trace as TRACE"),
        Kind::CodeHistory => diagnostic.help("give the trace; its code history with --code"),
        Kind::Config | Kind::Sidecar => diagnostic.help("give settings with -c"),
        Kind::CtrDump | Kind::CtrJson => diagnostic.help("use `hartrace ctr` to read it"),
        _ => diagnostic.help("use `hartrace encode` to make a trace from a log"),
    }
}

/// No program is named.
#[must_use]
pub fn no_program() -> Diagnostic {
    Diagnostic::new(Code::NoProgram, "no program is given")
        .note("a trace records control flow; the instructions are in the program")
        .help(
            "give the program with -e, --raw FILE@BASE, or a configuration with a [program] \
            section",
        )
}

/// Data packets were given for a trace whose settings have no data trace.
#[must_use]
pub fn no_data_trace(path: &Path) -> Diagnostic {
    let message = format!("{} has no data trace", input::name(path));
    Diagnostic::new(Code::Contradiction, message)
        .help("leave out --data, or describe the data trace in section [etrace.data]")
}

/// What is wrong with a trace that was decoded; `only` is the hart that was
/// asked for, `other` the format that the file looks like instead
/// ([`Decoded::other_format`]).
#[must_use]
pub fn judge(
    decoded: &Decoded,
    only: Option<HartId>,
    (path, other): (&Path, Option<Format>),
    strict: bool,
) -> Findings {
    let name = input::name(path);
    let mut findings = Findings::default();
    let other_program = decoded.instructions > 0 && decoded.doubts_program();
    let gaps = decoded.first.iter().zip(&decoded.first_owners);
    findings.warnings = gaps
        .filter(|_| !other_program)
        .map(|(gap, owner)| gap_diagnostic(&name, gap, owner))
        .chain(decoded.data_gaps.iter().map(|gaps| data_gaps(&name, gaps)))
        .chain(decoded.warnings.iter().map(|w| warning(&name, w)))
        .collect();
    let missing = only.filter(|only| !decoded.harts.contains(only));
    if let Some(only) = missing.filter(|_| !decoded.harts.is_empty()) {
        let list: Vec<String> = decoded.harts.iter().map(|h| h.0.to_string()).collect();
        let message = format!("{name} has no messages of hart {}", only.0);
        findings.error = Some(
            Diagnostic::new(Code::WhichHart, message)
                .note(format!("harts in the trace: {}", list.join(", ")))
                .help("choose one of them with --hart N"),
        );
        return findings;
    }
    if decoded.instructions == 0 {
        findings.error = Some(nothing(decoded, path, other));
        return findings;
    }
    if other_program {
        findings.add(wrong_program(decoded, path), strict);
        return findings;
    }
    findings.warnings.extend(
        decoded
            .first_unconfirmed
            .map(|_| unconfirmed(decoded, &name)),
    );
    let data_gaps = decoded.data_gap_count();
    let message = match (decoded.gaps, data_gaps) {
        (gaps, 0) => format!("{name} has {}", count(gaps, "gap")),
        (0, gaps) => format!("{name} has {} in its data trace", count(gaps, "gap")),
        (gaps, more) => format!(
            "{name} has {}, and {more} in its data trace",
            count(gaps, "gap")
        ),
    };
    let diagnostic = Diagnostic::new(Code::Gaps, message);
    let more = decoded.gaps - decoded.first.len() as u64;
    match decoded.gaps + data_gaps {
        0 if strict && decoded.unconfirmed > 0 => {
            findings.error = findings.warnings.pop();
        }
        0 => findings.error = doubt(&decoded.warnings, path, strict),
        _ if strict => {
            findings.error = Some(diagnostic.help("leave out --strict to continue anyway"));
        }
        _ if more > 0 => {
            let note = format!("{more} of them are not shown");
            findings.warnings.push(diagnostic.note(note));
        }
        _ => {}
    }
    findings
}

/// Instructions decoded with code that may have been another one.
fn unconfirmed(decoded: &Decoded, name: &str) -> Diagnostic {
    let insns = count(decoded.unconfirmed, "instruction");
    let message = format!("{name}: {insns} unconfirmed, decoded with code that may have changed");
    let diagnostic = Diagnostic::new(Code::Unconfirmed, message);
    match decoded.first_unconfirmed {
        Some(first) => diagnostic.note(format!(
            "the first code in doubt is at {:#x}",
            first.address
        )),
        None => diagnostic,
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
            let (at, reason) = (gap.at, gap.reason);
            diagnostic.note(format!("first at byte {at:#x}: {reason}"))
        }
    };
    diagnostic.help(
        "give the program that was traced, at its load address: -e FILE[@BASE]; if it is the \
         right one, check the settings of the encoder",
    )
}

/// What else a reader should know of a trace that is not decoded.
#[must_use]
pub fn judge_warnings(warnings: &[Warned], path: &Path, strict: bool) -> Findings {
    let name = input::name(path);
    Findings {
        warnings: warnings.iter().map(|w| warning(&name, w)).collect(),
        error: doubt(warnings, path, strict),
    }
}

/// With `--strict`, whether something may be missing.
fn doubt(warnings: &[Warned], path: &Path, strict: bool) -> Option<Diagnostic> {
    let is_loss = |warned: &Warned| warned.first.is_loss;
    (strict && warnings.iter().any(is_loss)).then(|| {
        let message = format!("{} may be incomplete", input::name(path));
        Diagnostic::new(Code::Doubtful, message)
            .note("the warnings above say what may be missing")
            .help("without --strict, the rest is used")
    })
}

/// Gaps of data trace of one kind, under the code of the protocol.
fn data_gaps(name: &str, gaps: &DataGaps) -> Diagnostic {
    let DataGap { at, reason } = gaps.first;
    repeated((name, at), reason, gaps.count, Code::Gaps)
        .note("the instruction trace is not affected")
}

/// What a reader should know of, under the code of the protocol.
#[must_use]
pub fn warning(name: &str, warned: &Warned) -> Diagnostic {
    let Warning { at, reason, .. } = warned.first;
    repeated((name, at), reason, warned.count, Code::Doubtful)
}

/// Something in a file that was found so many times, first at this byte.
fn repeated((name, at): (&str, u64), reason: Reason, times: u64, code: Code) -> Diagnostic {
    let message = message((name, at), reason);
    let mut diagnostic = Diagnostic::new(code, message).named(reason.code);
    if times > 1 {
        diagnostic = diagnostic.note(format!("there are {times} of them; this is the first"));
    }
    match likely_cause(reason.code) {
        Some(text) => diagnostic.note(text),
        None => diagnostic,
    }
}

/// What is wrong at a byte of a file. The code is given elsewhere.
fn message((name, at): (&str, u64), reason: Reason) -> String {
    let value = reason.shown_value();
    let value = value.map_or(String::new(), |value| format!(" ({value:#x})"));
    format!("{name}, byte {at:#x}: {}{value}", reason.text)
}

/// Nothing could be decoded, and why, probably.
fn nothing(decoded: &Decoded, path: &Path, other: Option<Format>) -> Diagnostic {
    let name = input::name(path);
    let message = format!("{name} could not be decoded");
    let diagnostic = Diagnostic::new(Code::NotSynchronised, message);
    if let Some(other) = other {
        let section = other.name();
        return diagnostic
            .note(format!("it looks like {other}"))
            .help(format!("give its settings in section [{section}]: -c FILE"));
    }
    if decoded.first.iter().any(|gap| gap.reason.code == "ET0206") {
        return diagnostic
            .note("the encoder used a mode that cannot be decoded: see the gaps above")
            .help("trace without that mode, or check the order of ioptions in [etrace]");
    }
    diagnostic
        .note("no full address was found, or none inside the program")
        .note("a short excerpt may contain none; synchronise more often to get more")
        .help("check the program and the encoder settings")
}

fn gap_diagnostic(name: &str, gap: &Gap, owner: &Ownership) -> Diagnostic {
    let reason = gap.reason;
    let message = message((name, gap.at), reason);
    let mut diagnostic = Diagnostic::new(Code::Gaps, message).named(reason.code);
    if gap.bytes > 0 {
        diagnostic = diagnostic.note(format!("{} skipped", count(gap.bytes, "byte")));
    }
    if gap.unconfirmed > 0 {
        let insns = count(gap.unconfirmed, "instruction");
        diagnostic = diagnostic.note(format!("the last {insns} before the gap are unconfirmed"));
    }
    let is_missing = matches!(reason.code, "NT0302" | "ET0301");
    if is_missing && boot::RANGE.contains(&reason.value) {
        let text = "this is Spike's boot code: set machine = \"spike\" in [hart] of a \
            configuration";
        return diagnostic.note(text);
    }
    let whose = whose(reason.value, owner);
    if is_missing && !whose.is_empty() {
        diagnostic = diagnostic.note(whose);
    }
    match likely_cause(reason.code) {
        Some(text) => diagnostic.note(text),
        None => diagnostic,
    }
}

impl From<DecodeError> for Diagnostic {
    fn from(error: DecodeError) -> Diagnostic {
        match error {
            DecodeError::Input(error) => error.into(),
            DecodeError::Settings(error) => error.into(),
        }
    }
}

/// Why a trace cannot be opened or written in the short way; `command` is for messages.
#[must_use]
pub fn recording(error: RecordingError, command: &str) -> Diagnostic {
    match error {
        RecordingError::Config(error) => error.into(),
        RecordingError::Program(error) => error.into(),
        RecordingError::NoProgram => no_program(),
        RecordingError::Refused(path, refusal) => refused(&path, refusal, command),
        RecordingError::Trace(path, error) => bad_trace(&path, error),
        RecordingError::Misfit(found) => misfit(Code::Contradiction, found),
        RecordingError::Write(error) => error.into(),
        RecordingError::Transport(error) => bad_transport(&error),
        RecordingError::Output(error) => error.into(),
        RecordingError::NoFormat(_) => Diagnostic::new(Code::BadFileSpec, error.to_string()),
        other => Diagnostic::new(Code::Contradiction, other.to_string()),
    }
}

impl From<SettingsError> for Diagnostic {
    fn from(error: SettingsError) -> Diagnostic {
        let section = error.format().name();
        let message = format!("invalid settings in [{section}]: {error}");
        Diagnostic::new(Code::Contradiction, message)
            .help("change one of the settings named in the message")
    }
}

impl From<WriteError> for Diagnostic {
    fn from(error: WriteError) -> Diagnostic {
        match error {
            WriteError::Settings(error) => error.into(),
            WriteError::Parameters(error) => {
                let message =
                    format!("the settings in [tandem] cannot be stored in a container: {error}");
                Diagnostic::new(Code::Contradiction, message)
                    .help("list classes of registers in `absent` instead of single ones")
            }
        }
    }
}

impl From<PlanError> for Diagnostic {
    fn from(error: PlanError) -> Diagnostic {
        match error {
            PlanError::Write(error) => error.into(),
            PlanError::Options(error) => {
                Diagnostic::new(Code::ConfigValue, format!("an option set: {error}"))
            }
        }
    }
}

/// Settings with which a decoder could not follow the program, or not wholly.
#[must_use]
pub fn misfit(code: Code, misfit: Misfit) -> Diagnostic {
    let diagnostic = Diagnostic::new(code, misfit.message).help(misfit.help);
    match misfit.note {
        Some(note) => diagnostic.note(note),
        None => diagnostic,
    }
}

/// A name in `--ignore` that no field has.
#[must_use]
pub fn unknown_field(error: &UnknownField) -> Diagnostic {
    let UnknownField {
        name,
        format,
        known,
        nearest,
    } = error;
    let message = format!("--ignore: {format} has no field `{name}`");
    let diagnostic = Diagnostic::new(Code::BadState, message);
    if known.is_empty() {
        return diagnostic.note("its groups have items, which are always compared");
    }
    let diagnostic = diagnostic.note(format!("its fields are {}", known.join(", ")));
    match nearest {
        Some(nearest) => diagnostic.help(format!("did you mean `{nearest}`?")),
        None => diagnostic.help("`hartrace dump` shows the fields of each message"),
    }
}

/// Filters that cannot be used; `near` are symbols whose names are similar to an
/// unknown one.
#[must_use]
pub fn bad_filter(error: &FilterError, near: &[String]) -> Diagnostic {
    if let FilterError::Unknown(_) = error {
        let message = format!("the settings in [filter] name a symbol: {error}");
        let diagnostic = Diagnostic::new(Code::BadPlace, message);
        return match near {
            [] => diagnostic.help("`hartrace disasm` shows the symbols"),
            near => diagnostic.help(format!("did you mean `{}`?", near.join("`, `"))),
        };
    }
    let message = format!("invalid settings in [filter]: {error}");
    Diagnostic::new(Code::Contradiction, message).help("use fewer or larger ranges")
}

/// A trace that differs from the run when it is decoded, if that was checked;
/// `leaves_out` is what its settings omit.
#[must_use]
pub fn difference(written: &Written, leaves_out: Option<&str>) -> Option<Diagnostic> {
    let Some(Err(difference)) = &written.check else {
        return None;
    };
    let message = format!("the decoded trace differs from the run: {difference}");
    let diagnostic = Diagnostic::new(Code::Difference, message);
    Some(match leaves_out {
        Some(what) => diagnostic.note(format!("these settings omit parts of the run: {what}")),
        None if difference.is_about_a_trap() => diagnostic,
        None => diagnostic.note(
            "if the program modifies its own code, the ELF file does not match \
                what was executed",
        ),
    })
}

/// The same of a trace with a code history: the check, which decodes with the files of the
/// program, goes no further than these.
#[must_use]
pub fn unchecked(path: &Path, difference: &Difference) -> Diagnostic {
    let (name, after) = (input::name(path), count(difference.after, "instruction"));
    let message = format!(
        "{name} is checked up to {after} of hart {}",
        difference.hart.0
    );
    Diagnostic::new(Code::Unchecked, message)
        .note(format!(
            "then code ran that is not in the files of the program, or that has changed: {difference}"
        ))
        .note("the code history, which has this code, is complete only when the run ends")
        .help("write --log pc=FILE too, and compare it with `hartrace decode TRACE -f pc`")
}

/// Causes that are written and the old trace does not record; an error with
/// `--strict`.
#[must_use]
pub fn unknown_causes(old: &Path, new: &Settings, assumed: &Assumed) -> Option<Diagnostic> {
    let causes = match new.format() {
        // It only has to know an exception from an interrupt.
        Format::Ntrace => assumed.kinds,
        _ => assumed.causes,
    };
    let instead = new.instead_of_cause().filter(|_| causes > 0)?;
    let name = input::name(old);
    let traps = count(causes, "trap");
    let message = format!("{name} does not record the cause of {traps}");
    let note = match new.format() {
        Format::Ntrace => format!("{instead} is written for each of them"),
        _ => "code 0 is written for each of them, for an ecall that of its mode".to_owned(),
    };
    Some(
        Diagnostic::new(Code::UnknownCauses, message)
            .note(note)
            .help("do not rely on the causes in the new trace"),
    )
}

/// What is in the new trace and was not in the old one, and the other way
/// round.
#[must_use]
pub fn stand_ins(old: &Path, new: Format, assumed: &Assumed) -> Vec<Diagnostic> {
    let name = input::name(old);
    let mut told = Vec::new();
    let Assumed {
        modes,
        values,
        unplaced,
        ..
    } = *assumed;
    // N-Trace has no fields for causes and values, and reports a mode only with a
    // context.
    if new != Format::Ntrace && (modes || values > 0) {
        let message = format!("{name} does not record everything that {new} contains");
        let mut diagnostic = Diagnostic::new(Code::Assumed, message);
        if modes {
            diagnostic = diagnostic.note("modes: M is assumed where the mode is unknown");
        }
        if values > 0 {
            let traps = count(values, "trap");
            diagnostic = diagnostic.note(format!("trap values of {traps}: written as 0"));
        }
        told.push(diagnostic.help("do not rely on these values in the new trace"));
    }
    if unplaced > 0 {
        let traps = count(unplaced, "trap");
        let message = format!("{name} does not record where {traps} occurred");
        let text = "the new trace has a loss at each, because the target of the jump before it is \
             unknown";
        told.push(Diagnostic::new(Code::Assumed, message).note(text));
    }
    told
}
