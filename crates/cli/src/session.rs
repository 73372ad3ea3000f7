//! What every command that reads a trace or a log does around its own work.
//!
//! In this order: [`Session::new`] resolves the settings and checks that
//! standard input is used once, [`Session::output`] creates the output,
//! [`Session::open`] opens the input, [`Session::code`] reads the program, and
//! [`Session::trace`] finds out how the trace is read. At the end
//! [`Session::finish`] keeps or discards the output.

use crate::args;
use crate::diagnostic::{self, Failure};
use crate::files::{configs, create, inputs, one_stdin};
use crate::progress::Progress;
use crate::settings::Program;
use crate::talk::Talk;
use crate::traces::{Loaded, Named, Settings};
use hartrace_capture::input::Input;
use hartrace_capture::output::Output;
use hartrace_capture::trace::{Known, Trace};
use hartrace_flow::Image;
use hartrace_isa::Isa;
use std::path::Path;

/// The reading of one file.
pub(crate) struct Session<'a> {
    /// The settings in force.
    pub(crate) settings: Settings,
    pub(crate) talk: &'a Talk,
    path: &'a Path,
    strict: bool,
}

/// A program that may be there.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) isa: Option<Isa>,
    pub(crate) image: Option<Image>,
}

impl Code {
    /// What a trace is guessed from.
    pub(crate) fn known(&self) -> Known<'_> {
        Known {
            xlen: self.isa.map(|isa| isa.xlen()),
            image: self.image.as_ref(),
        }
    }
}

impl<'a> Session<'a> {
    /// Begins to read a trace.
    pub(crate) fn new(
        path: &'a Path,
        typed: &args::Program,
        strict: bool,
        talk: &'a Talk,
    ) -> Result<Session<'a>, Failure> {
        let settings = Settings::resolve(path, typed, talk)?;
        Session::begin(settings, path, typed, strict, talk)
    }

    /// Begins to read a log.
    pub(crate) fn of_log(
        path: &'a Path,
        typed: &args::Program,
        strict: bool,
        talk: &'a Talk,
    ) -> Result<Session<'a>, Failure> {
        let settings = Settings::of_log(path, typed, talk)?;
        Session::begin(settings, path, typed, strict, talk)
    }

    fn begin(
        settings: Settings,
        path: &'a Path,
        typed: &args::Program,
        strict: bool,
        talk: &'a Talk,
    ) -> Result<Session<'a>, Failure> {
        let session = Session {
            settings,
            talk,
            path,
            strict,
        };
        one_stdin(session.inputs().chain(configs(typed)))?;
        Ok(session)
    }

    /// Everything that is read, but for configurations.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Path> + Clone {
        inputs(&self.settings.config).chain([self.path])
    }

    /// Creates an output, which must not be an input.
    pub(crate) fn output(&self, path: &Path) -> Result<Output, Failure> {
        create(path, self.inputs())
    }

    /// Opens the trace. What is clearly something else is refused.
    pub(crate) fn open(
        &self,
        transport: &args::Transport,
        command: &str,
    ) -> Result<Input, Failure> {
        self.settings.open(self.path, transport, command)
    }

    /// The program that was typed: one that only the sidecar names is not
    /// needed.
    pub(crate) fn typed_code(&self) -> Result<Code, Failure> {
        match self.settings.program() {
            Named::ByFlag => self.code(),
            Named::InFile | Named::Nowhere => Ok(Code::default()),
        }
    }

    /// The program. Without the one that a sidecar names there is less to say.
    pub(crate) fn code(&self) -> Result<Code, Failure> {
        match self.program()? {
            Some(program) => Ok(Code {
                isa: program.isa,
                image: program.image()?,
            }),
            None => Ok(Code::default()),
        }
    }

    /// The same, as it was read.
    pub(crate) fn program(&self) -> Result<Option<Program>, Failure> {
        let named = self.settings.program();
        if named == Named::Nowhere {
            return Ok(None);
        }
        match self.settings.load(self.talk) {
            Ok(program) => Ok(Some(program)),
            Err(Failure::Diagnostic(diagnostic))
                if named == Named::InFile && diagnostic.code == diagnostic::Code::CannotOpen =>
            {
                self.talk.warning(&diagnostic);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// The trace, with what was guessed and what is damaged reported.
    pub(crate) fn trace(&self, input: Input, known: Known<'_>) -> Result<Trace, Failure> {
        self.settings.trace(input, known, self.strict, self.talk)
    }

    /// The trace with the program it is of, by the settings it was recorded
    /// with.
    pub(crate) fn recorded(&self, input: Input) -> Result<Loaded, Failure> {
        let settings = self.settings.as_recorded();
        settings.with_program(input, self.strict, self.talk)
    }

    /// How far the reading of an input is.
    pub(crate) fn progress(&self, input: &Input) -> Progress {
        Progress::new(self.talk, input.size())
    }

    /// Keeps the output, unless the input was bad: a file would pass for a good
    /// one, while a stream has been read already.
    pub(crate) fn finish(output: Output, verdict: Result<(), Failure>) -> Result<(), Failure> {
        if verdict.is_ok() || !output.is_file() {
            output.finish()?;
        }
        verdict
    }
}
