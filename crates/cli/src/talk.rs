//! Messages on stderr.

use crate::args::{TalkArgs, When};
use crate::failure::Failure;
use anstream::ColorChoice;
use hartrace_capture::config::Config;
use hartrace_capture::output::abandon_all;
use hartrace_print::diagnostic::{Code, Diagnostic, Findings, Severity};
use hartrace_print::words::printable;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

/// How to talk to the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Talk {
    quiet: bool,
    verbose: bool,
    progress: When,
    begin: Instant,
}

impl Talk {
    pub(crate) fn new(args: &TalkArgs) -> Talk {
        let choice = match args.color {
            When::Auto => ColorChoice::Auto,
            When::Always => ColorChoice::Always,
            When::Never => ColorChoice::Never,
        };
        choice.write_global();
        Talk {
            quiet: args.quiet,
            verbose: args.verbose,
            progress: args.progress,
            begin: Instant::now(),
        }
    }

    /// Says nothing: for a file that is read again.
    pub(crate) const fn silent(self) -> Talk {
        Talk {
            quiet: true,
            verbose: false,
            progress: When::Never,
            ..self
        }
    }

    /// Why the command failed.
    pub(crate) fn error(&self, diagnostic: &Diagnostic) {
        say(&diagnostic.render(Severity::Error));
        if std::io::stderr().is_terminal() && !self.quiet {
            let code = diagnostic.shown_code();
            say(&format!(
                "For more information, run `hartrace explain {code}`."
            ));
        }
    }

    /// Something that may make the result wrong.
    pub(crate) fn warning(&self, diagnostic: &Diagnostic) {
        if !self.quiet {
            say(&diagnostic.render(Severity::Warning));
        }
    }

    /// Everything that was found; the error among it ends the command.
    pub(crate) fn report(&self, findings: Findings) -> Result<(), Failure> {
        findings.warnings.iter().for_each(|w| self.warning(w));
        findings.error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// How it went, in a line.
    pub(crate) fn summary(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    /// What is of interest to those who ask.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            say(&printable(text));
        }
    }

    /// A part of the work that is done, with the time since the start.
    pub(crate) fn phase(&self, done: &str) {
        if self.verbose {
            let seconds = self.begin.elapsed().as_secs_f64();
            self.detail(&format!("[{seconds:.3} s] {done}"));
        }
    }

    /// The settings that are not defaults, each with where it comes from.
    pub(crate) fn settings(&self, config: &Config) {
        if self.verbose {
            let text = config.to_toml(true);
            let said = said_settings(&text);
            match said.is_empty() {
                true => self.detail("settings: all are defaults"),
                false => said.iter().for_each(|line| self.detail(line)),
            }
        }
    }

    /// Whether text on stdout has colours.
    pub(crate) fn colours_stdout(&self) -> bool {
        anstream::AutoStream::choice(&std::io::stdout()) != ColorChoice::Never
    }

    /// Whether to show progress, and whether stderr can redraw a line.
    pub(crate) fn progress(&self) -> Option<bool> {
        let terminal = std::io::stderr().is_terminal();
        match self.progress {
            When::Always => Some(terminal),
            When::Auto if terminal && !self.quiet => Some(true),
            _ => None,
        }
    }
}

/// The lines of a configuration that are not defaults, with their sections.
fn said_settings(text: &str) -> Vec<String> {
    let mut section = "";
    let mut said = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            section = line.split_whitespace().next().unwrap_or_default();
        } else if let Some((setting, origin)) = line.rsplit_once(" # ")
            && origin != "default"
        {
            let setting = setting.trim_end();
            said.push(format!("setting: {section} {setting}, from {origin}"));
        }
    }
    said
}

fn say(text: &str) {
    // If stderr is closed, the message cannot be reported.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Makes Ctrl-C and the like remove unfinished files before the process ends.
/// A signal that is ignored, as under nohup or in the background of a script,
/// stays ignored; the others still clean up.
pub(crate) fn clean_up_on_signal() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut cleaned = ctrlc::try_set_handler(on_signal);
        if cleaned.is_err() && block_ignored() {
            cleaned = ctrlc::set_handler(on_signal);
        }
        // Without the handler, a temporary file may be left over.
        drop(cleaned);
    });
}

/// Blocks the signals that are ignored, in this thread and those it starts: the
/// handler is for all of them or for none. Whether that could be done.
#[cfg(target_os = "linux")]
fn block_ignored() -> bool {
    use nix::sys::signal::{SigSet, Signal};
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return false;
    };
    let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let Some(ignored) = ignored.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()) else {
        return false;
    };
    let mut blocked = SigSet::empty();
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
        // Bit 0 is signal 1.
        if ignored >> (signal as u32 - 1) & 1 != 0 {
            blocked.add(signal);
        }
    }
    blocked.thread_block().is_ok()
}

/// It is unknown which signals are ignored.
#[cfg(not(target_os = "linux"))]
const fn block_ignored() -> bool {
    false
}

/// Whether the command ends in good order when it is asked to.
static PATIENT: AtomicBool = AtomicBool::new(false);

/// When it was asked.
static INTERRUPTED: OnceLock<Instant> = OnceLock::new();

/// Signals that come so close together are one wish: `timeout` and some shells
/// send two.
const ONE_WISH: Duration = Duration::from_millis(300);

/// A pager shows the output, and deals with Ctrl-C itself.
static PAGED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C a matter of the pager that shows the output.
pub(crate) fn leave_signals_to_pager() {
    PAGED.store(true, Ordering::Relaxed);
    clean_up_on_signal();
}

fn on_signal() {
    if PAGED.load(Ordering::Relaxed) {
        return;
    }
    let patient = PATIENT.load(Ordering::Relaxed);
    let first = INTERRUPTED.get_or_init(Instant::now);
    if !patient || first.elapsed() > ONE_WISH {
        clean_up();
    }
}

fn clean_up() {
    abandon_all();
    crate::terminal::restore();
    let diagnostic = Diagnostic::new(
        Code::Interrupted,
        "interrupted; the unfinished output was removed",
    );
    say(&diagnostic.render(Severity::Error));
    std::process::exit(i32::from(Code::Interrupted.exit()));
}

/// Makes the next Ctrl-C a request that [`interrupted`] reports, for a command that
/// ends in good order then; the one after it is as everywhere.
pub(crate) fn end_on_signal() {
    PATIENT.store(true, Ordering::Relaxed);
    clean_up_on_signal();
}

/// Whether the user wants an end.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.get().is_some()
}
