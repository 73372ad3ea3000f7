//! The common frame of every command that reads a trace or a log.
//!
//! In this order: [`Session::new`] resolves the settings and checks that
//! standard input is used once, [`Session::output`] creates the output,
//! [`Session::open`] opens the input, [`Session::code`] reads the program, and
//! [`Session::trace`] determines how to read the trace; [`Session::loaded`]
//! does the last two at once. At the end [`Session::judge`] reports what was
//! lost, and [`Session::finish`] keeps or discards the output.

use crate::args;
use crate::failure::Failure;
use crate::files::{configs, create, inputs, one_stdin};
use crate::progress::Progress;
use crate::settings::{self, Elf, Program};
use crate::talk::Talk;
use hartrace_capture::config::{Config, Origin};
use hartrace_capture::input::{self, Input};
use hartrace_capture::output::Output;
use hartrace_capture::sidecar;
use hartrace_capture::trace::{Decoded, Format, Known, Refusal, Trace, transport};
use hartrace_flow::{HartId, Image};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::{Code as DiagnosticCode, Diagnostic, trace};
use std::path::{Path, PathBuf};

/// The reading of one file, or of several with the same flags.
pub(crate) struct Session<'a> {
    /// The settings in force, from the sidecar, configuration files and flags.
    pub(crate) config: Config,
    pub(crate) talk: &'a Talk,
    pub(crate) path: &'a Path,
    pub(crate) strict: bool,
    sidecar: Option<Config>,
    /// Files that are read after the first.
    others: &'a [PathBuf],
}

/// A program that may be there.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) isa: Option<Isa>,
    pub(crate) image: Option<Image>,
}

impl Code {
    /// That of a program, if there is one.
    pub(crate) fn of(program: Option<&Program>) -> Result<Code, Failure> {
        match program {
            Some(program) => Ok(Code {
                isa: program.isa,
                image: program.image()?,
            }),
            None => Ok(Code::default()),
        }
    }

    /// What a trace is guessed from.
    pub(crate) fn known(&self) -> Known<'_> {
        Known {
            xlen: self.isa.map(|isa| isa.xlen()),
            image: self.image.as_ref(),
        }
    }
}

/// A trace and its program.
pub(crate) struct Loaded {
    pub(crate) program: Program,
    pub(crate) isa: Isa,
    pub(crate) image: Image,
    pub(crate) trace: Trace,
}

/// Where a program is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Nowhere,
    ByFlag,
    InFile,
}

impl<'a> Session<'a> {
    /// Begins to read a trace.
    pub(crate) fn new(
        path: &'a Path,
        typed: &args::Program,
        strict: bool,
        talk: &'a Talk,
    ) -> Result<Session<'a>, Failure> {
        let resolved = settings::resolve_beside(path, typed, talk)?;
        if let Some(format) = resolved.0.trace.as_ref().map(|t| &t.format)
            && Format::from_name(&format.value).is_none()
        {
            let name = input::name(path);
            let message = format!("{name} is not a trace: its format is `{}`", format.value);
            return Err(Diagnostic::new(DiagnosticCode::NotATrace, message)
                .note(format!("the format comes from {}", format.origin))
                .into());
        }
        Session::begin(resolved, (path, &[]), typed, strict, talk)
    }

    /// Begins to read a log.
    pub(crate) fn of_log(
        path: &'a Path,
        typed: &args::Program,
        strict: bool,
        talk: &'a Talk,
    ) -> Result<Session<'a>, Failure> {
        let resolved = settings::resolve_beside(path, typed, talk)?;
        Session::begin(resolved, (path, &[]), typed, strict, talk)
    }

    /// Begins to read files of any kind; with the sidecar of the first, if
    /// `beside`.
    pub(crate) fn of_files(
        files: &'a [PathBuf],
        beside: bool,
        typed: &args::Program,
        strict: bool,
        talk: &'a Talk,
    ) -> Result<Session<'a>, Failure> {
        let Some((path, others)) = files.split_first() else {
            return Err(Failure::Usage("no file is given"));
        };
        let resolved = match beside {
            true => settings::resolve_beside(path, typed, talk)?,
            false => (settings::resolve(&[], typed, talk)?, None),
        };
        Session::begin(resolved, (path, others), typed, strict, talk)
    }

    fn begin(
        (config, sidecar): (Config, Option<Config>),
        (path, others): (&'a Path, &'a [PathBuf]),
        typed: &args::Program,
        strict: bool,
        talk: &'a Talk,
    ) -> Result<Session<'a>, Failure> {
        let session = Session {
            config,
            talk,
            path,
            strict,
            sidecar,
            others,
        };
        one_stdin(session.inputs().chain(configs(typed)))?;
        Ok(session)
    }

    /// What lies beside the trace.
    pub(crate) fn sidecar(&self) -> Option<&Config> {
        self.sidecar.as_ref()
    }

    /// Everything that is read, but for configurations.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Path> + Clone {
        let files = inputs(&self.config).chain([self.path]);
        files.chain(self.others.iter().map(PathBuf::as_path))
    }

    /// Creates an output, which must not be an input. With `--strict` the whole
    /// input is judged, also when the reader of the output has gone.
    pub(crate) fn output(&self, path: &Path) -> Result<Output, Failure> {
        let output = create(path, self.inputs())?;
        Ok(output.outlive_reader(self.strict))
    }

    /// Opens the trace. What is clearly something else is refused.
    pub(crate) fn open(
        &self,
        transport: &args::Transport,
        command: &str,
    ) -> Result<Input, Failure> {
        self.accept(Input::open(self.path)?, transport, command)
    }

    /// The same of one that is open.
    pub(crate) fn accept(
        &self,
        input: Input,
        transport: &args::Transport,
        command: &str,
    ) -> Result<Input, Failure> {
        let accepted = Trace::accept(input, &transport.get(), &self.config);
        accepted.map_err(|refusal| match refusal {
            Refusal::Pins => Failure::Usage("--pib is for N-Trace and E-Trace only"),
            refusal => trace::refused(self.path, refusal, command).into(),
        })
    }

    /// Opens a file with data packets of the trace. It has the transport that its own
    /// sidecar names, or else that of the trace.
    pub(crate) fn open_data(&self, path: &Path) -> Result<Input, Failure> {
        let own = sidecar::find(path)?;
        let config = own.as_ref().unwrap_or(&self.config);
        let transport = config.transport.transport();
        let opened = transport::unwrap(&transport, Input::open(path)?, &self.config);
        opened.map_err(|error| trace::refused(path, Refusal::Transport(error), "decode").into())
    }

    /// The format of the trace.
    pub(crate) fn format(&self, input: &mut Input) -> Result<Format, Failure> {
        Format::of(input, &self.config).map_err(|error| trace::bad_trace(self.path, error).into())
    }

    /// The instruction set without reading the program.
    pub(crate) fn isa(&self) -> Option<Isa> {
        let isa = self.config.program.isa.as_ref()?;
        Isa::parse_lenient(&isa.value).ok()
    }

    /// Whether a program is named, and only by the sidecar.
    fn named(&self) -> Named {
        let program = &self.config.program;
        let elf = program.elf.as_ref().map(|s| &s.origin);
        let raw = program.raw.as_ref().map(|s| &s.origin);
        let code = program.code.as_ref().map(|s| &s.origin);
        match elf.or(raw).or(code) {
            None => Named::Nowhere,
            Some(Origin::Flag(_)) => Named::ByFlag,
            Some(_) => Named::InFile,
        }
    }

    /// The program that was typed: one that only the sidecar names is not
    /// needed.
    pub(crate) fn typed_code(&self) -> Result<Code, Failure> {
        match self.named() {
            Named::ByFlag => self.code(),
            Named::InFile | Named::Nowhere => Ok(Code::default()),
        }
    }

    /// The program. Without the one that a sidecar names there is less to say.
    pub(crate) fn code(&self) -> Result<Code, Failure> {
        Code::of(self.program()?.as_ref())
    }

    /// The same, as it was read.
    pub(crate) fn program(&self) -> Result<Option<Program>, Failure> {
        let named = self.named();
        if named == Named::Nowhere {
            return Ok(None);
        }
        match self.load() {
            Ok(program) => Ok(Some(program)),
            Err(Failure::Diagnostic(diagnostic))
                if named == Named::InFile && diagnostic.code == DiagnosticCode::CannotOpen =>
            {
                self.talk.warning(&diagnostic);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Reads the program, which must be the one in the sidecar.
    pub(crate) fn load(&self) -> Result<Program, Failure> {
        let program = settings::load(self.config.clone(), self.talk)?;
        self.check(&program.elf)?;
        Ok(program)
    }

    /// Whether programs are those in the sidecar.
    pub(crate) fn check(&self, elf: &[Elf]) -> Result<(), Failure> {
        match &self.sidecar {
            Some(sidecar) => Ok(settings::check_against(elf, sidecar)?),
            None => Ok(()),
        }
    }

    /// The trace, with what was guessed and what is damaged reported.
    pub(crate) fn trace(&self, input: Input, known: Known<'_>) -> Result<Trace, Failure> {
        let trace = Trace::open(input, &self.config, known);
        let trace = trace.map_err(|error| trace::bad_trace(self.path, error))?;
        let (format, version) = (trace.format(), trace.settings.version());
        let how = match &trace.guess {
            Some(_) => "guessed",
            None => "known",
        };
        self.talk
            .phase(&format!("trace: {format} {version}, settings {how}"));
        if let Some(guess) = &trace.guess {
            let guessed = trace::guessed(self.path, trace.format(), guess);
            self.talk.warning(&guessed);
        }
        let (trace, damage) = trace.read_table()?;
        match damage.map(|damage| trace::damaged_rows(self.path, &damage)) {
            None => Ok(trace),
            Some(damage) if damage.code == DiagnosticCode::NothingRead => Err(damage.into()),
            Some(damage) if self.strict => {
                Err(damage.help("leave out --strict to continue anyway").into())
            }
            Some(damage) => {
                self.talk.warning(&damage);
                Ok(trace)
            }
        }
    }

    /// The trace with its program. Without a program the trace itself has to
    /// hold the code.
    pub(crate) fn loaded(&self, mut input: Input) -> Result<Loaded, Failure> {
        if self.named() == Named::Nowhere {
            if !self.format(&mut input)?.has_code() {
                return Err(trace::no_program().into());
            }
            let trace = self.trace(input, Known::default())?;
            let isa = self.isa().unwrap_or(trace.settings.general_isa());
            let (image, trace) = trace.code(isa)?;
            return Ok(Loaded {
                program: settings::load(self.config.clone(), self.talk)?,
                isa,
                image,
                trace,
            });
        }
        let program = self.load()?;
        let isa = program.isa.unwrap_or(Isa::RV64GC);
        let Some(image) = program.image()? else {
            return Err(trace::no_program().into());
        };
        let known = Known {
            xlen: Some(isa.xlen()),
            image: Some(&image),
        };
        let trace = self.trace(input, known)?;
        if trace.guess.is_none() {
            let fit = trace.settings.fit_decoder(isa);
            fit.map_err(|error| trace::misfit(DiagnosticCode::Contradiction, error))?;
        }
        Ok(Loaded {
            program,
            isa,
            image,
            trace,
        })
    }

    /// From now on reads by the settings the trace was recorded with: what the sidecar
    /// says of the format, whatever was typed.
    pub(crate) fn recall(&mut self) {
        if let Some(sidecar) = &self.sidecar
            && Format::from_sections(sidecar).is_some()
        {
            self.config.replace_formats(sidecar);
        }
    }

    /// How far the reading of an input is.
    pub(crate) fn progress(&self, input: &Input) -> Progress {
        Progress::new(self.talk, input.size())
    }

    /// Reports what was lost, and what it means for the command.
    pub(crate) fn judge(&self, decoded: &Decoded, only: Option<u32>) -> Result<(), Failure> {
        let file = (self.path, decoded.other_format(self.path));
        let findings = trace::judge(decoded, only.map(HartId), file, self.strict);
        self.talk.report(findings)
    }

    /// Keeps the output, unless the input was bad: a file would pass for a good
    /// one, while a stream has been read already.
    pub(crate) fn finish(output: Output, verdict: Result<(), Failure>) -> Result<(), Failure> {
        let kept = match verdict.is_ok() || !output.is_file() {
            true => output.finish().map_err(Failure::from),
            false => Ok(()),
        };
        verdict.and(kept)
    }
}
