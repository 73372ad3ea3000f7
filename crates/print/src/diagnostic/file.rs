//! Diagnostics about files: input, output, configurations, unknown formats.

use super::{Code, Diagnostic, Place, log, program, trace};
use hartrace_capture::config::{ConfigError, CtrError, LoadError, ParameterError, Problem};
use hartrace_capture::detect::{self, Kind};
use hartrace_capture::input::{self, InputError, InputProblem};
use hartrace_capture::output::{OutputError, OutputProblem};
use hartrace_capture::survey::{SurveyError, SurveyRemark};
use std::path::Path;

impl From<InputError> for Diagnostic {
    fn from(error: InputError) -> Diagnostic {
        let message = error.to_string();
        match error.problem {
            InputProblem::Open(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let help = "check the name; relative names start at the current directory";
                Diagnostic::new(Code::CannotOpen, message).help(help)
            }
            InputProblem::Open(_) => Diagnostic::new(Code::CannotOpen, message),
            InputProblem::Directory => {
                Diagnostic::new(Code::IsDirectory, message).help("give a file instead")
            }
            InputProblem::Read { .. } => Diagnostic::new(Code::CannotRead, message),
            InputProblem::TooLarge { .. } => Diagnostic::new(Code::TooLarge, message).note(
                "this kind of file is read as a whole; this is probably another kind of \
                    file",
            ),
        }
    }
}

impl From<OutputError> for Diagnostic {
    fn from(error: OutputError) -> Diagnostic {
        let message = error.to_string();
        let code = match error.problem {
            OutputProblem::Write(_) => Code::CannotWrite,
            _ => Code::CannotCreate,
        };
        let diagnostic = Diagnostic::new(code, message);
        match error.problem {
            OutputProblem::Directory => diagnostic.help("give a file name"),
            OutputProblem::NotEmpty => diagnostic.help("give a name that does not exist yet"),
            OutputProblem::NoFolder(_) => {
                diagnostic.help("create the directory first, or choose another name")
            }
            OutputProblem::Open(_) => diagnostic.help("choose a location you can write to"),
            OutputProblem::Write(e) if e.kind() == std::io::ErrorKind::StorageFull => {
                diagnostic.help("free some space, or write to another location")
            }
            OutputProblem::Write(_) => diagnostic,
        }
    }
}

impl From<LoadError> for Diagnostic {
    fn from(error: LoadError) -> Diagnostic {
        let (path, text, error) = match error {
            LoadError::Input(error) => return error.into(),
            LoadError::Config { path, text, error } => (path, text, error),
        };
        let (code, help) = match &error.problem {
            Problem::NotText | Problem::Syntax(_) => (Code::ConfigSyntax, None),
            Problem::UnknownSection { .. } | Problem::UnknownKey { .. } => (
                Code::ConfigUnknown,
                Some("`hartrace config show` lists all settings"),
            ),
            Problem::NotASection(_) => (
                Code::ConfigUnknown,
                Some("put settings in a section such as [program]"),
            ),
            Problem::Missing { .. } | Problem::Value { .. } | Problem::Invalid(_) => {
                (Code::ConfigValue, None)
            }
        };
        let mut diagnostic = Diagnostic::new(code, error.to_string());
        diagnostic.help = help.map(str::to_owned);
        diagnostic.place = Some(Place {
            path,
            text,
            span: error.span,
        });
        diagnostic
    }
}

impl From<ParameterError> for Diagnostic {
    fn from(error: ParameterError) -> Diagnostic {
        let message = format!("invalid settings in [etrace]: {error}");
        Diagnostic::new(Code::Contradiction, message)
            .help("change one of the settings named in the message")
    }
}

/// Values of the discovery registers that mean nothing.
#[must_use]
pub fn bad_registers(error: &ConfigError) -> Diagnostic {
    Diagnostic::new(Code::ConfigValue, format!("--registers: {error}")).help(
        "the fields are those of E-Trace 9.2; for others, give an IP-XACT file that describes them",
    )
}

/// Settings that a form of configuration has no place for.
#[must_use]
pub fn no_place(form: &str, settings: &[String]) -> Diagnostic {
    let names = settings.join("`, `");
    let message = format!("{form} has no place for `{names}`: left out");
    Diagnostic::new(Code::NoPlace, message).help("keep them with --to toml or --to scf")
}

impl From<CtrError> for Diagnostic {
    fn from(error: CtrError) -> Diagnostic {
        let message = format!("invalid settings in [ctr]: {error}");
        Diagnostic::new(Code::Contradiction, message)
            .help("change one of the settings named in the message")
    }
}

/// A file about which no facts can be given.
#[must_use]
pub fn no_facts(path: &Path, error: SurveyError) -> Diagnostic {
    match error {
        SurveyError::Input(error) => error.into(),
        SurveyError::Unknown(kind, head) => unknown_format(path, kind, &head, "info"),
        SurveyError::Elf(bytes, error) => program::bad_elf(path, &bytes, &error),
        SurveyError::Code(error) => program::bad_code_history(path, &error),
        SurveyError::Config(error) => error.into(),
        SurveyError::Log(error) => log::not_readable(path, &[], error),
        SurveyError::Trace(error) => trace::bad_trace(path, error),
        SurveyError::Table(damage) => trace::damaged_rows(path, &damage),
    }
}

/// What makes the facts about a file less certain.
#[must_use]
pub fn remark(path: &Path, remark: &SurveyRemark) -> Diagnostic {
    match remark {
        SurveyRemark::Log(guess) => log::guessed(*guess),
        SurveyRemark::Trace(format, guess) => trace::guessed(path, *format, guess),
        SurveyRemark::Table(damage) => trace::damaged_rows(path, damage),
    }
}

/// Whether a file that starts with `head` is a log as JSON lines.
#[must_use]
pub fn is_json_log(head: &[u8]) -> bool {
    head.starts_with(br#"{"type":"header","schema":"hartrace-log""#)
}

/// A file of no kind we know, which starts with `head`; `command` was to read
/// it.
#[must_use]
pub fn unknown_format(path: &Path, kind: Kind, head: &[u8], command: &str) -> Diagnostic {
    let name = input::name(path);
    if let Some(program) = detect::unpacker(head) {
        let from = match input::is_stdin(path) {
            true => String::new(),
            false => format!(" {}", path.display()),
        };
        let help = format!("`{program} -dc{from} | hartrace {command} -`");
        return Diagnostic::new(Code::UnknownFormat, format!("{name} is compressed")).help(help);
    }
    if kind == Kind::Empty {
        return Diagnostic::new(Code::UnknownFormat, format!("{name} is empty"))
            .note("the command that should have written it may have failed");
    }
    if is_json_log(head) {
        let message = format!("{name} is a JSON log, which hartrace does not read");
        return Diagnostic::new(Code::UnknownFormat, message)
            .note("JSON logs are written for other programs; see docs/json.md")
            .help("write the log as pc, spike, spike-traps or ingress");
    }
    Diagnostic::new(Code::UnknownFormat, format!("{name} has an unknown format")).note(
        "known formats: ELF files, N-Trace and E-Trace with their sidecars, tandem traces, \
         control transfer records, Spike logs and CSV, pc lists, ingress CSV and configuration \
         files",
    )
}
