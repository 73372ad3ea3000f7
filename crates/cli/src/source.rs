//! A trace or a log as a source of events, for every command that shows what a
//! program did.

use crate::args;
use crate::failure::Failure;
use crate::logs;
use crate::session::{Loaded, Session};
use crate::settings::{Program, kind_of};
use crate::talk::Talk;
use hartrace_analyze::{Functions, PartCounter, Places, RunCount, Scopes};
use hartrace_capture::config::Config;
use hartrace_capture::detect::{HEAD, Kind};
use hartrace_capture::input::{self, Input};
use hartrace_capture::log::{Copied, has_time, head, recognise_boot};
use hartrace_capture::output::Output;
use hartrace_capture::source_text::SourceText;
use hartrace_capture::trace::{Census, Counting, Decoded, Growth, Replay, Trace, Transport};
use hartrace_flow::{
    Consumer, Context, Event, Gather, HartId, Image, Interpolate, Run, StepEvents,
};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::file::{is_json_log, unknown_format};
use hartrace_print::diagnostic::trace::{no_data_trace, no_program};
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A file, and the program it is of.
pub(crate) struct Opened<'a> {
    pub(crate) program: Program,
    pub(crate) image: Image,
    pub(crate) isa: Isa,
    pub(crate) source: Source<'a>,
}

/// The events of a file.
pub(crate) struct Source<'a> {
    session: Session<'a>,
    data: Data,
}

enum Data {
    Log(Kind, Input),
    Trace(Box<Trace>),
}

impl<'a> Opened<'a> {
    /// Opens a trace or a log for a command.
    pub(crate) fn open(
        path: &'a Path,
        args: &args::Traced,
        command: &str,
        talk: &'a Talk,
    ) -> Result<Opened<'a>, Failure> {
        let mut input = Input::open(path)?;
        let kind = kind_of(input.peek(HEAD)?, path, &args.program)?;
        // Samples of pins may look like anything.
        let bare = args.transport.get() == Transport::default();
        if bare && kind == Kind::Unknown && is_json_log(input.peek(HEAD)?) {
            return Err(unknown_format(path, kind, input.peek(HEAD)?, command).into());
        }
        match bare && kind.is_log() {
            true => Opened::log(path, (kind, input), args, talk),
            false => Opened::trace(path, input, args, command, talk),
        }
    }

    fn log(
        path: &'a Path,
        (kind, mut input): (Kind, Input),
        args: &args::Traced,
        talk: &'a Talk,
    ) -> Result<Opened<'a>, Failure> {
        let session = Session::of_log(path, &args.program, args.strict, talk)?;
        let mut program = session.load()?;
        let Some(mut image) = program.image()? else {
            return Err(no_program().into());
        };
        let head = head(kind, &mut input)?;
        recognise_boot(kind, head, &mut program, Some(&mut image));
        let data = Data::Log(kind, input);
        Ok(Opened {
            isa: program.isa.unwrap_or(Isa::RV64GC),
            program,
            image,
            source: Source { session, data },
        })
    }

    fn trace(
        path: &'a Path,
        input: Input,
        args: &args::Traced,
        command: &str,
        talk: &'a Talk,
    ) -> Result<Opened<'a>, Failure> {
        let session = Session::new(path, &args.program, args.strict, talk)?;
        let input = session.accept(input, &args.transport, command)?;
        let Loaded {
            program,
            isa,
            image,
            trace,
        } = session.loaded(input)?;
        let data = Data::Trace(Box::new(trace));
        Ok(Opened {
            program,
            image,
            isa,
            source: Source { session, data },
        })
    }
}

/// The functions of a program.
pub(crate) fn functions(program: &Program) -> Functions {
    let mut functions = Functions::new();
    for elf in &program.elf {
        // What has no symbols has no functions.
        let _ = functions.add_program(elf.symbols(), &elf.bytes, elf.bias());
    }
    let names = program.config.contexts.0.iter();
    let names = names.map(|(number, name)| (Context(*number), name.value.clone()));
    functions.name_contexts(names.collect());
    functions
}

/// The text of source files: in the folders that were given, and around the programs.
pub(crate) fn source_text<'p>(
    args: &args::Sources,
    programs: impl IntoIterator<Item = &'p Program>,
) -> SourceText {
    let files = programs.into_iter().flat_map(|program| &program.elf);
    let files = files.map(|elf| elf.file.file.as_path());
    SourceText::new(args.source_dir.clone(), files)
}

/// What is known of the addresses of a program.
pub(crate) fn places(program: &Program) -> Places<'_> {
    let mut places = Places::new();
    for elf in &program.elf {
        // What has no symbols has no names.
        let _ = places.add_program((elf.symbols(), &elf.bytes), elf.lines(), elf.bias());
    }
    places
}

/// The functions and lines of a program, as profiles for LLVM name them.
pub(crate) fn scopes(program: &Program) -> Result<Vec<Scopes>, Failure> {
    let elf = program.elf.iter();
    let scopes = elf.filter_map(|elf| Scopes::from_elf(&elf.bytes, elf.file.base));
    let scopes: Vec<Scopes> = scopes.collect();
    match scopes.is_empty() {
        false => Ok(scopes),
        true => {
            let message = "the program has no debugging information";
            Err(Diagnostic::new(Code::NoLines, message)
                .note("a profile for LLVM has functions and their lines")
                .help("compile the program with -g, or give the ELF file with -e")
                .into())
        }
    }
}

impl<'a> Source<'a> {
    /// Whether there may be timestamps.
    pub(crate) fn may_have_time(&mut self) -> Result<bool, Failure> {
        Ok(match &mut self.data {
            Data::Trace(trace) => trace.settings.has_time(),
            Data::Log(kind, input) => has_time(*kind, input.peek(HEAD)?, &self.session.config),
        })
    }

    /// The format and its version, or the kind of log.
    pub(crate) fn format(&self) -> String {
        match &self.data {
            Data::Trace(trace) => format!("{} {}", trace.format(), trace.settings.version()),
            Data::Log(kind, _) => kind.to_string(),
        }
    }

    /// Whether the settings of a trace were guessed.
    pub(crate) fn is_guessed(&self) -> bool {
        match &self.data {
            Data::Trace(trace) => trace.guess.is_some(),
            Data::Log(..) => false,
        }
    }

    /// The size of the file, if it is known.
    pub(crate) fn size(&self) -> Option<u64> {
        match &self.data {
            Data::Trace(trace) => trace.input.size(),
            Data::Log(_, input) => input.size(),
        }
    }

    /// The settings that a trace is read by, as pairs of names and values.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let Data::Trace(trace) = &self.data else {
            return Vec::new();
        };
        let mut config = Config::default();
        trace.settings.complete(&mut config);
        let text = config.to_toml(false);
        let pairs = text.lines().filter_map(|line| line.split_once(" = "));
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// A trace to be decoded several times, with its session; a log as it is.
    pub(crate) fn replay(self) -> Result<Result<(Replay, Session<'a>), Source<'a>>, Failure> {
        let Source { session, data } = self;
        Ok(match data {
            Data::Trace(trace) => Ok((trace.replay()?, session)),
            data @ Data::Log(..) => Err(Source { session, data }),
        })
    }

    /// The output of the command.
    pub(crate) fn output(&self, path: &Path) -> Result<Output, Failure> {
        self.session.output(path)
    }

    /// Joins data packets that are in a file of their own.
    pub(crate) fn with_data(self, data: &Path) -> Result<Source<'a>, Failure> {
        let Source { session, data: of } = self;
        match of {
            Data::Trace(trace) if trace.can_join() => {
                let input = session.open_data(data)?;
                Ok(Source {
                    session,
                    data: Data::Trace(Box::new(trace.with_data(input)?)),
                })
            }
            _ => Err(no_data_trace(session.path).into()),
        }
    }

    /// Whether there may be several harts. A log may have them too, but does not say
    /// so before the second one comes.
    pub(crate) fn has_harts(&self) -> bool {
        match &self.data {
            Data::Trace(trace) => trace.has_sources(),
            Data::Log(..) => false,
        }
    }

    /// Gives all events of the hart `only`, or of all, to `out`. Where there are
    /// timestamps, every run gets a time ([`Interpolate`]).
    pub(crate) fn feed_timed(
        mut self,
        opened: (&Program, &Image, Isa),
        out: &mut dyn Consumer,
        only: Option<u32>,
    ) -> Result<(), Failure> {
        let ever = || Ok(());
        if !self.may_have_time()? {
            return self.feed(opened, out, only, ever);
        }
        let mut timed = Interpolate::new(opened.1, out);
        self.feed(opened, &mut timed, only, ever)?;
        timed.finish();
        Ok(())
    }

    /// Counts the runs of the hart `only`, or of all, on so many threads if that pays.
    pub(crate) fn count_runs(
        self,
        opened: (&Program, &Image, Isa),
        threads: usize,
        only: Option<u32>,
    ) -> Result<Vec<RunCount>, Failure> {
        let all = Mutex::new(Vec::new());
        let part = |_| -> Box<dyn Gather + '_> { Box::new(PartCounter::new(opened.1, &all)) };
        let how = How {
            only,
            single: false,
            progress: true,
            census: false,
            check: &|| Ok(()),
        };
        self.read_parts(opened, threads, &how, &part)?.report()?;
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives all events of the hart `only`, or of all, to `out`. `check` is called now
    /// and then, and an error of it ends the reading.
    pub(crate) fn feed(
        self,
        opened: (&Program, &Image, Isa),
        out: &mut dyn Consumer,
        only: Option<u32>,
        check: impl Fn() -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let how = How {
            only,
            single: false,
            progress: true,
            census: false,
            check: &check,
        };
        self.read(opened, out, &how)?.report()
    }

    /// Gives events to `out` until it breaks. What was wrong with the file is reported
    /// later.
    pub(crate) fn read(
        self,
        (program, image, isa): (&Program, &Image, Isa),
        out: &mut dyn Consumer,
        how: &How<'_>,
    ) -> Result<Verdict<'a>, Failure> {
        let Source { session, data } = self;
        let mut counted = None;
        let found = match data {
            Data::Log(kind, mut input) => {
                let head = head(kind, &mut input)?;
                let reading = logs::reading(kind, head, program, Some(image), false, &session)?;
                let ended = Cell::new(false);
                let events = StepEvents::new(isa, UntilBreak { out, ended: &ended });
                let check = || match ended.get() {
                    true => Err(Failure::ClosedPipe),
                    false => (how.check)(),
                };
                let harts = (how.only, how.single);
                match logs::copy(reading, input, events, harts, &session, check) {
                    // Of a part there is no verdict.
                    Err(_) if ended.get() => None,
                    copied => Some(Found::Log(Box::new(copied?.seen_by(())))),
                }
            }
            Data::Trace(trace) => {
                let mut progress = how.progress.then(|| session.progress(&trace.input));
                let mut counting = how.census.then(|| Counting::new(&trace.settings));
                let mut growth = Growth::default();
                let (out, grows) = ((out, counting.as_mut()), how.census);
                let only = how.only.map(HartId);
                let decoded = trace.decode_counting(image, only, out, |decoded, done| {
                    if let Some(progress) = &mut progress {
                        progress.reach(done);
                    }
                    if grows {
                        growth.add(decoded.instructions, done);
                    }
                    (how.check)()
                });
                counted = counting.map(|counting| (counting.finish(), growth));
                Some(Found::Trace(Box::new(decoded?)))
            }
        };
        Ok(Verdict {
            session,
            found,
            counted,
            only: how.only,
        })
    }

    /// Gives events to parts, on so many threads if that pays: see
    /// [`Trace::decode_parts`]. A part that is alone is told so, and given at the end.
    pub(crate) fn read_parts<'p>(
        self,
        opened: (&Program, &Image, Isa),
        threads: usize,
        how: &How<'_>,
        part: &(dyn Fn(bool) -> Box<dyn Gather + 'p> + Sync),
    ) -> Result<Verdict<'a>, Failure> {
        let Source { session, data } = self;
        let only = how.only;
        let trace = match data {
            Data::Trace(trace) if trace.is_for_threads(threads) => trace,
            data => {
                let mut alone = part(true);
                let source = Source { session, data };
                let verdict = source.read(opened, &mut alone, how)?;
                // Nothing is left to end.
                let _ = alone.give();
                (how.check)()?;
                return Ok(verdict);
            }
        };
        let mut progress = session.progress(&trace.input);
        let threads = (threads, only.map(HartId));
        let decoded = trace.decode_parts(opened.1, threads, &|| part(false), |done| {
            progress.reach(done);
            (how.check)()
        })?;
        drop(progress);
        Ok(Verdict {
            session,
            found: Some(Found::Trace(Box::new(decoded))),
            counted: None,
            only,
        })
    }
}

/// How a file is read.
pub(crate) struct How<'h> {
    /// Only this hart.
    pub(crate) only: Option<u32>,
    /// What takes the events has no room for several harts of a log.
    pub(crate) single: bool,
    /// Whether progress is shown.
    pub(crate) progress: bool,
    /// Whether the messages of a trace are counted.
    pub(crate) census: bool,
    /// Called now and then; an error ends the reading.
    pub(crate) check: &'h (dyn Fn() -> Result<(), Failure> + Sync),
}

/// What was wrong with a file.
pub(crate) struct Verdict<'a> {
    session: Session<'a>,
    found: Option<Found>,
    counted: Option<(Census, Growth)>,
    only: Option<u32>,
}

enum Found {
    Log(Box<Copied<()>>),
    Trace(Box<Decoded>),
}

impl Verdict<'_> {
    /// The messages of a trace, and how it grew, if they were counted.
    pub(crate) fn take_counted(&mut self) -> Option<(Census, Growth)> {
        self.counted.take()
    }

    /// How a trace was decoded.
    pub(crate) const fn decoded(&self) -> Option<&Decoded> {
        match &self.found {
            Some(Found::Trace(decoded)) => Some(decoded),
            _ => None,
        }
    }

    /// Reports it.
    pub(crate) fn report(self) -> Result<(), Failure> {
        let session = self.session;
        match self.found {
            None => Ok(()),
            Some(Found::Trace(decoded)) => session.judge(&decoded, self.only),
            Some(Found::Log(copied)) => {
                if !copied.traps && copied.chosen.fit().causeless > 0 {
                    session.talk.warning(&inferred_traps(session.path));
                }
                logs::judged(*copied, None, &session)
            }
        }
    }
}

/// Notes that a consumer of the events of a log breaks: it wants no more.
struct UntilBreak<'o> {
    out: &'o mut dyn Consumer,
    ended: &'o Cell<bool>,
}

impl UntilBreak<'_> {
    #[inline]
    fn note(&self, flow: ControlFlow<()>) -> ControlFlow<()> {
        if flow.is_break() {
            self.ended.set(true);
        }
        flow
    }
}

impl Consumer for UntilBreak<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        let flow = self.out.event(hart, event);
        self.note(flow)
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        let flow = self.out.runs(hart, runs);
        self.note(flow)
    }
}

/// Traps that stand in no line of a log.
fn inferred_traps(path: &Path) -> Diagnostic {
    let message = format!("{} does not record traps", input::name(path));
    Diagnostic::new(Code::Assumed, message)
        .note("they are inferred from the control flow: some may appear as jumps")
        .help("use a trace, or a log that records them, such as from `spike -l --log-commits`")
}
