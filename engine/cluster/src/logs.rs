//! What the libraries of the cluster report, on stderr.

use hartrace_export::talk::say;
use log::{LevelFilter, Log, Metadata, Record};

struct Stderr;

/// Prints warnings, and with `verbose` what happens.
pub(crate) fn print(verbose: bool) {
    let level = match verbose {
        true => LevelFilter::Info,
        false => LevelFilter::Warn,
    };
    log::set_max_level(level);
    // There is no other logger in this process.
    let _ = log::set_logger(&Stderr);
}

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = record.level().as_str().to_lowercase();
            say(&format!("{level}: {}", record.args()));
        }
    }

    fn flush(&self) {}
}
