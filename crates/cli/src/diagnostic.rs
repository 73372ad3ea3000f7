//! Errors and warnings, each with a stable code.

pub(crate) use hartrace_print::words::count;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet, normalize_untrusted_str};
use hartrace_capture::config::{ConfigError, CtrError, LoadError, Problem};
use hartrace_capture::detect::{self, Kind};
use hartrace_capture::elf_info::ElfError;
use hartrace_capture::input::{self, InputError, InputProblem};
use hartrace_capture::output::{OutputError, OutputProblem};
use hartrace_capture::trace::SettingsError;
use hartrace_flow::ImageError;
use std::path::{Path, PathBuf};

/// How a command ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader closed the output.
    ClosedPipe,
    /// Everything has been reported on stderr already; its first code.
    Reported(Code),
    /// Flags that do not go together.
    Usage(&'static str),
    /// A diagnostic to print.
    Diagnostic(Box<Diagnostic>),
}

/// An error or warning with a stable code.
#[derive(Debug)]
pub(crate) struct Diagnostic {
    pub(crate) code: Code,
    /// The code of the protocol, in place of ours.
    named: Option<&'static str>,
    /// What happened, and to what.
    message: String,
    /// The place in a text, if there is one.
    place: Option<Place>,
    /// Why, probably.
    notes: Vec<String>,
    /// What to change.
    help: Option<String>,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    text: String,
    error: ConfigError,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $text:literal exit $exit:literal,)+) => {
        /// The codes; docs/diagnostics.md has a section for each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($(#[$doc])* $variant,)+ }

        impl Code {
            #[cfg(test)]
            const ALL: &[Code] = &[$(Code::$variant),+];

            /// `HT0001` and so on; never given to anything else.
            pub(crate) const fn text(self) -> &'static str {
                match self { $(Code::$variant => $text),+ }
            }

            /// The exit code of the process.
            pub(crate) const fn exit(self) -> u8 {
                match self { $(Code::$variant => $exit),+ }
            }
        }
    };
}

codes! {
    /// An input cannot be opened.
    CannotOpen "HT0001" exit 1,
    /// An input is a directory.
    IsDirectory "HT0002" exit 1,
    /// Reading failed.
    CannotRead "HT0003" exit 1,
    /// An input is larger than what is read at once.
    TooLarge "HT0004" exit 1,
    /// An output cannot be opened.
    CannotCreate "HT0005" exit 1,
    /// Writing failed.
    CannotWrite "HT0006" exit 1,
    /// The output would replace an input.
    OutputIsInput "HT0007" exit 2,
    /// Ended by a signal, unfinished output removed.
    Interrupted "HT0008" exit 1,
    /// Not an ELF file.
    NotElf "HT0101" exit 5,
    /// An ELF file for another machine.
    WrongMachine "HT0102" exit 5,
    /// A big-endian ELF file.
    BigEndian "HT0103" exit 5,
    /// An ELF file that is cut off or contradicts itself.
    DamagedElf "HT0104" exit 1,
    /// An unknown kind of file.
    UnknownFormat "HT0105" exit 5,
    /// Lines of a log that cannot be read; an error with --strict.
    DamagedLines "HT0106" exit 3,
    /// An ELF file in which nothing is loaded.
    NotLinked "HT0107" exit 5,
    /// Some other kind of file where a log is wanted.
    NotALog "HT0108" exit 5,
    /// A log of which no line could be read.
    NothingRead "HT0109" exit 5,
    /// A log that does not match its program; an error with --strict.
    DoubtfulProgram "HT0110" exit 3,
    /// A trace with gaps; an error with --strict.
    Gaps "HT0111" exit 3,
    /// A trace of which nothing could be decoded.
    NotSynchronised "HT0112" exit 5,
    /// Some other kind of file where a trace is wanted.
    NotATrace "HT0113" exit 5,
    /// A log without the register and memory writes that a tandem trace needs.
    NoEffects "HT0114" exit 1,
    /// Bytes of a tandem trace that cannot be read.
    DamagedTrace "HT0115" exit 3,
    /// Something else where a tandem trace is wanted.
    NotTandem "HT0116" exit 5,
    /// Snapshots of control transfer records that cannot be read; an error with
    /// --strict.
    DamagedRecords "HT0117" exit 3,
    /// Records without the data that a report needs.
    UnfitRecords "HT0118" exit 1,
    /// A trace of which parts may be missing; an error with --strict.
    Doubtful "HT0119" exit 3,
    /// Traps whose cause a log or trace does not record; an error with --strict.
    UnknownCauses "HT0120" exit 3,
    /// Something that needs times, of a trace without timestamps.
    NoTime "HT0121" exit 1,
    /// Traces of different programs where they are added up.
    DifferentPrograms "HT0122" exit 1,
    /// A file about source lines, of a program without line tables.
    NoLines "HT0123" exit 1,
    /// A configuration file is not TOML.
    ConfigSyntax "HT0201" exit 1,
    /// An unknown key or section.
    ConfigUnknown "HT0202" exit 1,
    /// A value its key does not take, or one that is missing.
    ConfigValue "HT0204" exit 1,
    /// An ELF file differs from what a configuration or sidecar says.
    WrongProgram "HT0205" exit 1,
    /// Settings that contradict each other.
    Contradiction "HT0206" exit 1,
    /// An ISA string that cannot be read.
    BadIsa "HT0301" exit 2,
    /// A FILE@BASE that cannot be read.
    BadFileSpec "HT0302" exit 2,
    /// Register widths that contradict each other.
    WidthMismatch "HT0303" exit 2,
    /// No program was given.
    NoProgram "HT0304" exit 2,
    /// A log of several harts, or without the one that was chosen.
    WhichHart "HT0305" exit 2,
    /// An instruction set with extensions that the hart does not have.
    UnsupportedIsa "HT0306" exit 2,
    /// Memory that cannot be laid out.
    BadMemory "HT0307" exit 2,
    /// An entry that is neither an address nor a symbol.
    BadEntry "HT0308" exit 2,
    /// Neither a register nor an address nor a symbol.
    BadPlace "HT0309" exit 2,
    /// A trace with fewer instructions.
    BeyondEnd "HT0310" exit 2,
    /// An unknown name of state.
    BadState "HT0311" exit 2,
    /// Something was guessed (a note, not an error).
    Guessed "HT0401" exit 0,
    /// Values were written that the source does not record (a warning).
    Assumed "HT0402" exit 0,
    /// A doubtful load base (a warning).
    DoubtfulBase "HT0403" exit 0,
    /// The instruction set has instructions that are not decoded (a warning).
    NotDecoded "HT0404" exit 0,
    /// A program that cannot end a run (a warning).
    CannotEnd "HT0405" exit 0,
    /// The host refused a request of the program (a warning).
    Refused "HT0406" exit 0,
    /// A program built for extensions that the hart does not have (a warning).
    MissingExtension "HT0407" exit 0,
    /// Settings with which a trace omits information (a warning).
    CutShort "HT0408" exit 0,
    /// An index that does not fit its trace (a warning).
    StaleIndex "HT0409" exit 0,
    /// Groups of a tandem trace that could not be checked (a warning).
    Unchecked "HT0410" exit 0,
    /// Records that do not follow each other (a warning).
    OddRecords "HT0411" exit 0,
    /// A dump without snapshots (a warning).
    NoSnapshots "HT0412" exit 0,
    /// The program reported failure.
    ProgramFailed "HT0501" exit 10,
    /// The hart traps forever.
    TrapLoop "HT0502" exit 10,
    /// The hart waits forever.
    Asleep "HT0503" exit 10,
    /// A program outside memory.
    OutsideMemory "HT0504" exit 1,
    /// An entry outside memory.
    EntryOutside "HT0505" exit 1,
    /// A program for an operating system.
    NotBareMetal "HT0506" exit 5,
    /// More memory than the host has.
    HostMemory "HT0507" exit 1,
    /// The decoded trace differs from the run.
    Difference "HT0601" exit 4,
    /// A trace and the built-in hart differ.
    Mismatch "HT0602" exit 4,
    /// Less of the program ran than was demanded.
    LowCoverage "HT0603" exit 4,
    /// Two runs differ.
    RunsDiffer "HT0604" exit 4,
}

impl Diagnostic {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            named: None,
            message: message.into(),
            place: None,
            notes: Vec::new(),
            help: None,
        }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The same under another code.
    pub(crate) fn with_code(mut self, code: Code) -> Diagnostic {
        self.code = code;
        self
    }

    /// The same with a protocol's own code in front, such as `NT0301`.
    pub(crate) fn named(mut self, code: &'static str) -> Diagnostic {
        self.named = Some(code);
        self
    }

    /// The code that is printed.
    pub(crate) fn shown_code(&self) -> &'static str {
        self.named.unwrap_or(self.code.text())
    }

    /// The text for a terminal, with escape sequences for colour.
    pub(crate) fn render(&self, level: Level<'_>) -> String {
        let title = level.primary_title(self.message.as_str());
        let mut group = title.id(self.shown_code()).elements(self.snippet());
        let clean = |text: &str| normalize_untrusted_str(text);
        for note in &self.notes {
            group = group.element(Level::NOTE.message(clean(note)));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(clean(help)));
        }
        Renderer::styled().render(&[group])
    }

    fn snippet(&self) -> Option<Snippet<'_, annotate_snippets::Annotation<'_>>> {
        let place = self.place.as_ref()?;
        let span = place.error.span.clone();
        let mark = AnnotationKind::Primary.span(span);
        let path = place.path.display().to_string();
        let source = Snippet::source(place.text.as_str()).path(path);
        Some(source.annotation(mark))
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Failure {
        Failure::Diagnostic(Box::new(diagnostic))
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Failure {
        Diagnostic::from(error).into()
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Failure {
        if error.is_closed_pipe() {
            return Failure::ClosedPipe;
        }
        Diagnostic::from(error).into()
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Failure {
        Diagnostic::from(error).into()
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

impl From<CtrError> for Failure {
    fn from(error: CtrError) -> Failure {
        let message = format!("invalid settings in [ctr]: {error}");
        Diagnostic::new(Code::Contradiction, message)
            .help("change one of the settings named in the message")
            .into()
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        Diagnostic::from(error).into()
    }
}

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
            Problem::Missing { .. } | Problem::Value { .. } => (Code::ConfigValue, None),
        };
        let mut diagnostic = Diagnostic::new(code, error.to_string());
        diagnostic.help = help.map(str::to_owned);
        diagnostic.place = Some(Place { path, text, error });
        diagnostic
    }
}

/// An ELF file that cannot be used. `bytes` are its content, to say what it is
/// instead.
pub(crate) fn bad_elf(path: &Path, bytes: &[u8], error: &ElfError) -> Diagnostic {
    let name = input::name(path);
    let head = bytes.get(..detect::HEAD).unwrap_or(bytes);
    if let Some(program) = detect::unpacker(head) {
        return Diagnostic::new(Code::NotElf, format!("{name} is compressed"))
            .help(format!("unpack it first: `{program} -d FILE`"));
    }
    match error {
        ElfError::NotElf => match detect::detect(head) {
            Kind::Empty => Diagnostic::new(Code::NotElf, format!("{name} is empty"))
                .note("the command that should have written it may have failed"),
            Kind::Unknown => Diagnostic::new(Code::NotElf, format!("{name} is not an ELF file"))
                .help(
                    "give the linked program; disasm and log take raw binaries with --raw \
                     FILE@BASE",
                ),
            kind => Diagnostic::new(Code::NotElf, format!("{name} is not an ELF file"))
                .note(format!("detected kind of file: {kind}"))
                .help("give the program with -e or as an argument"),
        },
        ElfError::BigEndian => Diagnostic::new(Code::BigEndian, format!("{name} is {error}"))
            .note("only little-endian RISC-V programs are supported"),
        ElfError::Machine(_) => Diagnostic::new(Code::WrongMachine, format!("{name} is {error}"))
            .help("give the program built for the RISC-V target"),
        ElfError::Truncated | ElfError::Class(_) => {
            damaged_elf(path, &error.to_string()).note(cut_off(bytes))
        }
        ElfError::Damaged { part, reason } => {
            damaged_elf(path, &format!("{part} {reason}")).note(cut_off(bytes))
        }
    }
}

fn cut_off(bytes: &[u8]) -> String {
    let size = count(bytes.len() as u64, "byte");
    format!("the file has {size}; it may be truncated")
}

/// An ELF file that contradicts itself.
pub(crate) fn damaged_elf(path: &Path, what: &str) -> Diagnostic {
    let name = input::name(path);
    Diagnostic::new(Code::DamagedElf, format!("{name} is damaged: {what}"))
        .help("copy or build the file again")
}

/// Whether a file that starts with `head` is a log as JSON lines.
pub(crate) fn is_json_log(head: &[u8]) -> bool {
    head.starts_with(br#"{"type":"header","schema":"hartrace-log""#)
}

/// A file of no kind we know, which starts with `head`; `command` was to read
/// it.
pub(crate) fn unknown_format(path: &Path, kind: Kind, head: &[u8], command: &str) -> Diagnostic {
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

/// An ELF file that is no image of a program.
pub(crate) fn bad_image(path: &Path, error: &ImageError) -> Diagnostic {
    let name = input::name(path);
    match error {
        ImageError::NoCode => Diagnostic::new(Code::NotLinked, format!("{name} is {error}"))
            .help("give the linked program"),
        ImageError::Damaged(part) => damaged_elf(path, &format!("its {part} is unreadable")),
        _ => damaged_elf(path, &error.to_string()),
    }
}

/// An ISA string that cannot be read.
pub(crate) fn bad_isa(text: &str, error: &hartrace_isa::IsaError<'_>) -> Diagnostic {
    let message = format!("--isa `{text}`: {error}");
    let diagnostic = Diagnostic::new(Code::BadIsa, message);
    match hartrace_capture::isa_hint::nearest(text) {
        Some(nearest) => diagnostic.help(format!("did you mean --isa {nearest}?")),
        None => diagnostic.help("write an ISA string such as rv64gc or rv32imac_zicsr_zba"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn documentation() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnostics.md");
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn every_code_has_its_section_and_no_section_is_left_over() {
        let text = documentation();
        let documented: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("## HT"))
            .filter_map(|rest| rest.get(..4))
            .collect();
        let used: Vec<&str> = Code::ALL
            .iter()
            .filter_map(|code| code.text().strip_prefix("HT"))
            .collect();
        assert_eq!(used, documented);
        let unique: BTreeSet<&str> = used.iter().copied().collect();
        assert_eq!(unique.len(), used.len());
    }

    #[test]
    fn every_fault_of_a_protocol_has_its_section() {
        let text = documentation();
        let ntrace = hartrace_ntrace::Fault::ALL.iter().map(|f| f.code());
        let etrace = hartrace_etrace::Fault::ALL.iter().map(|f| f.code());
        let tandem = hartrace_tandem::Fault::ALL.iter().map(|f| f.code());
        let ctr = hartrace_ctr::Fault::ALL.iter().map(|f| f.code());
        let used: Vec<&str> = ntrace.chain(etrace).chain(tandem).chain(ctr).collect();
        let documented: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .filter(|heading| !heading.starts_with("HT"))
            .filter_map(|heading| heading.get(..6))
            .collect();
        assert_eq!(used, documented);
        for code in used {
            let section = text.split("\n## ").find(|s| s.starts_with(code));
            for part in ["**Cause.**", "**Remedy.**"] {
                assert!(section.unwrap().contains(part), "{code}: {part}");
            }
        }
    }

    #[test]
    fn the_documented_exit_code_is_the_real_one() {
        let text = documentation();
        for code in Code::ALL {
            let section = text.split("\n## ").find(|s| s.starts_with(code.text()));
            let exit = format!("Exit code {}.", code.exit());
            assert!(section.unwrap().contains(&exit), "{}: {exit}", code.text());
            for part in ["**Cause.**", "**Remedy.**"] {
                assert!(section.unwrap().contains(part), "{}: {part}", code.text());
            }
        }
    }

    #[test]
    fn escape_sequences_in_names_do_not_reach_the_terminal() {
        let diagnostic = Diagnostic::new(Code::CannotOpen, "a\x1b[2Jb").note("c\x1b[2Jd");
        let text = diagnostic.help("e\x07f").render(Level::ERROR);
        assert!(
            !text.contains("\x1b[2J") && !text.contains('\x07'),
            "{text:?}"
        );
    }
}
