//! Messages on stderr, and the end on Ctrl-C.

use hartrace_print::diagnostic::{Code, Diagnostic, Severity};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user wants an end.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C and the like a request that [`interrupted`] reports.
pub fn end_on_signal() {
    // Without the handler, an unfinished folder may be left over.
    let _ = ctrlc::try_set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
}

/// Whether the user wants an end.
#[must_use]
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Why a command failed, and its exit code.
#[must_use]
pub fn failed(diagnostic: &Diagnostic) -> ExitCode {
    say(&diagnostic.render(Severity::Error));
    ExitCode::from(diagnostic.code.exit())
}

/// That the user ended the command.
#[must_use]
pub fn ended() -> ExitCode {
    let message = "interrupted; the unfinished output was removed";
    failed(&Diagnostic::new(Code::Interrupted, message))
}

/// Something that may make the result wrong.
pub fn warning(diagnostic: &Diagnostic) {
    say(&diagnostic.render(Severity::Warning));
}

/// A line.
pub fn say(text: &str) {
    // If stderr is closed, the message cannot be reported.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// A line that the next one replaces, on a terminal.
pub fn progress(text: &str) {
    let mut out = std::io::stderr().lock();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
    }
}
