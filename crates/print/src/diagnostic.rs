//! Diagnostics: what went wrong or is doubtful, why, and what to do about it,
//! each with a stable code.
//!
//! The errors of the other crates become diagnostics by `From`, or by the
//! functions of the submodules where more has to be known than the error says.
//! The help names flags and commands of `hartrace`; the codes are explained in
//! docs/diagnostics.md ([`crate::manual`]).
//!
//! ```
//! use hartrace_capture::input::Input;
//! use hartrace_print::diagnostic::{Code, Diagnostic, Severity};
//!
//! let error = Input::open("no/such/file".as_ref()).err().unwrap();
//! let diagnostic = Diagnostic::from(error);
//! assert_eq!(diagnostic.code, Code::CannotOpen);
//! assert_eq!(diagnostic.code.exit(), 1);
//! assert!(diagnostic.render(Severity::Error).contains("HT0001"));
//! ```

mod code;
pub mod doubt;
pub mod file;
pub mod hart;
pub mod log;
mod missing_code;
pub mod program;
pub mod records;
pub mod trace;
pub mod verify;

pub use code::Code;
pub use file::{is_json_log, unknown_format};

use annotate_snippets::{
    Annotation, AnnotationKind, Level, Renderer, Snippet, normalize_untrusted_str,
};
use std::ops::Range;
use std::path::PathBuf;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// There is no result.
    Error,
    /// The result may be wrong.
    Warning,
}

/// An error or warning with a stable code.
#[derive(Debug)]
pub struct Diagnostic {
    /// The code, which also determines the exit code of a command.
    pub code: Code,
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

/// A place in a text.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    text: String,
    span: Range<usize>,
}

impl Diagnostic {
    /// What happened, and to what.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            named: None,
            message: message.into(),
            place: None,
            notes: Vec::new(),
            help: None,
        }
    }

    /// Adds why, probably.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Says what to change; replaces an earlier help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The same under another code.
    #[must_use]
    pub fn with_code(mut self, code: Code) -> Diagnostic {
        self.code = code;
        self
    }

    /// The same with a protocol's own code in front, such as `NT0301`.
    #[must_use]
    pub fn named(mut self, code: &'static str) -> Diagnostic {
        self.named = Some(code);
        self
    }

    /// The code that is printed.
    #[must_use]
    pub fn shown_code(&self) -> &'static str {
        self.named.unwrap_or(self.code.text())
    }

    /// What happened, and to what.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Why, probably.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What to change.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The text for a terminal, with escape sequences for colour.
    #[must_use]
    pub fn render(&self, severity: Severity) -> String {
        self.rendered(severity, &Renderer::styled())
    }

    /// The same without escape sequences.
    #[must_use]
    pub fn plain(&self, severity: Severity) -> String {
        self.rendered(severity, &Renderer::plain())
    }

    fn rendered(&self, severity: Severity, renderer: &Renderer) -> String {
        let level = match severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(self.message.as_str());
        let mut group = title.id(self.shown_code()).elements(self.snippet());
        let clean = |text: &str| normalize_untrusted_str(text);
        for note in &self.notes {
            group = group.element(Level::NOTE.message(clean(note)));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(clean(help)));
        }
        renderer.render(&[group])
    }

    fn snippet(&self) -> Option<Snippet<'_, Annotation<'_>>> {
        let place = self.place.as_ref()?;
        let mark = AnnotationKind::Primary.span(place.span.clone());
        let path = place.path.display().to_string();
        let source = Snippet::source(place.text.as_str()).path(path);
        Some(source.annotation(mark))
    }
}

/// What was found wrong with a file, in the order in which it is reported.
#[derive(Debug, Default)]
pub struct Findings {
    /// What may make the result wrong.
    pub warnings: Vec<Diagnostic>,
    /// Why there is no result.
    pub error: Option<Diagnostic>,
}

impl Findings {
    /// One finding: an error if reading is `strict`, otherwise a warning.
    fn new(strict: bool, diagnostic: Diagnostic) -> Findings {
        let mut findings = Findings::default();
        findings.add(diagnostic, strict);
        findings
    }

    /// Adds an error if reading is `strict`, otherwise a warning.
    fn add(&mut self, diagnostic: Diagnostic, strict: bool) {
        match strict {
            true => self.error = Some(diagnostic),
            false => self.warnings.push(diagnostic),
        }
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
        let text = diagnostic.help("e\x07f").render(Severity::Error);
        assert!(
            !text.contains("\x1b[2J") && !text.contains('\x07'),
            "{text:?}"
        );
    }
}
