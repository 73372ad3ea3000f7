//! Messages on stderr.

use crate::args::{TalkArgs, When};
use crate::diagnostic::{Code, Diagnostic};
use annotate_snippets::Level;
use anstream::ColorChoice;
use hartrace_capture::output::abandon_all;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// How to talk to the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Talk {
    quiet: bool,
    verbose: bool,
    progress: When,
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
        }
    }

    /// Why the command failed.
    pub(crate) fn error(&self, diagnostic: &Diagnostic) {
        say(&diagnostic.render(Level::ERROR));
    }

    /// Something that may make the result wrong.
    pub(crate) fn warning(&self, diagnostic: &Diagnostic) {
        if !self.quiet {
            say(&diagnostic.render(Level::WARNING));
        }
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
            say(&text.escape_debug().to_string());
        }
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

fn say(text: &str) {
    // With stderr gone there is nobody to tell.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Makes Ctrl-C and the like remove unfinished files before the process ends.
/// A signal that is ignored, as under nohup, stays ignored.
pub(crate) fn clean_up_on_signal() {
    let cleaned = ctrlc::try_set_handler(clean_up);
    // Without the handler, a file under a temporary name may stay behind.
    drop(cleaned);
}

fn clean_up() {
    abandon_all();
    let diagnostic = Diagnostic::new(
        Code::Interrupted,
        "interrupted; the unfinished output was removed",
    );
    say(&diagnostic.render(Level::ERROR));
    std::process::exit(i32::from(Code::Interrupted.exit()));
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes the first Ctrl-C a wish that [`interrupted`] tells, for a command
/// that can end in good order; the second one is as everywhere.
pub(crate) fn end_on_signal() {
    let kept = ctrlc::try_set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            clean_up();
        }
    });
    // Without the handler, the signal ends the process.
    drop(kept);
}

/// Whether the user wants an end.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
