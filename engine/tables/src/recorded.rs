//! What a user opens: a trace, or a log.

use crate::error::Error;
use crate::source::Opened;
use hartrace_capture::digest::Digest;
use hartrace_capture::log::{LogFile, LogFileError};
use hartrace_capture::trace::{Decoded, Explained, Format, Replay};
use hartrace_flow::{Consumer, HartId};
use hartrace_print::diagnostic::{Diagnostic, log};
use std::ops::ControlFlow;
use std::path::Path;

/// A trace or a log, to be read several times.
pub enum Recorded {
    /// A trace.
    Trace(Replay),
    /// A log, which is read from its start.
    Log(LogFile),
}

impl Recorded {
    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Recorded::Trace(replay) => replay.size(),
            Recorded::Log(log) => log.size(),
        }
    }

    /// Whether it may have times.
    #[must_use]
    pub fn has_time(&self) -> bool {
        match self {
            Recorded::Trace(replay) => replay.settings().has_time(),
            Recorded::Log(log) => log.has_time(),
        }
    }

    /// Whether it may have data accesses.
    pub(crate) fn may_have_accesses(&self) -> bool {
        match self {
            Recorded::Trace(replay) => {
                let settings = replay.settings();
                settings.has_data() || settings.format() == Format::Tandem
            }
            Recorded::Log(_) => true,
        }
    }

    /// The word for its format: ntrace, etrace, tandem, or that of a log.
    #[must_use]
    pub fn format(&self) -> &'static str {
        match self {
            Recorded::Trace(replay) => replay.settings().format().name(),
            Recorded::Log(log) => log.kind().word(),
        }
    }

    /// The format of a trace.
    #[must_use]
    pub fn trace_format(&self) -> Option<Format> {
        match self {
            Recorded::Trace(replay) => Some(replay.settings().format()),
            Recorded::Log(_) => None,
        }
    }

    /// What tells it apart: its bytes and how they are read.
    pub(crate) fn identity(&self) -> String {
        match self {
            Recorded::Trace(replay) => format!("{} {:?}", replay.fingerprint(), replay.settings()),
            // A log that cannot be read is like no other.
            Recorded::Log(log) => {
                let digest = log.fingerprint().unwrap_or(Digest::of(b""));
                format!("{digest} {:?}", log.kind())
            }
        }
    }
}

impl Opened {
    /// Gives all events of the hart `only`, or of all, to `out`, until it breaks. Damage is part
    /// of them.
    ///
    /// # Errors
    ///
    /// A failing read; settings that contradict each other; a log of which no line can be read.
    pub fn events(
        &self,
        only: Option<HartId>,
        out: &mut dyn Consumer,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Decoded, Error> {
        let log = match &self.replay {
            Recorded::Trace(replay) => {
                let decoded = replay.part(&self.image, only, (None, None), out);
                return Ok(decoded.map_err(Diagnostic::from)?);
            }
            Recorded::Log(log) => log,
        };
        let code = (&self.program, &self.image);
        let read = log.events(code, only, out, progress);
        let (decoded, whole) = read.map_err(|error| unreadable(&self.path, error))?;
        let nothing = whole.filter(|log| log.chosen.harts().is_empty());
        let damage = nothing
            .map(|copied| log::judge_damage(&self.path, &copied.damage, copied.lines, true, false));
        match damage.and_then(|findings| findings.error) {
            Some(error) => Err(error.into()),
            None => Ok(decoded),
        }
    }

    /// Gives every message, packet or group of a trace to `take`, until it breaks. A log has
    /// none.
    pub fn explain(&self, take: &mut dyn FnMut(&Explained) -> ControlFlow<()>) {
        if let Recorded::Trace(replay) = &self.replay {
            replay.messages(self.isa, take);
        }
    }
}

/// Why a log cannot be read.
pub(crate) fn unreadable(path: &Path, error: LogFileError) -> Diagnostic {
    match error {
        LogFileError::Input(error) => error.into(),
        LogFileError::Log(error) => log::not_readable(path, &[], error),
    }
}
