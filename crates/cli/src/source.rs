//! A trace or a log as a source of events, for every command that shows what a
//! program did.

use crate::args;
use crate::failure::Failure;
use crate::logs;
use crate::session::{Loaded, Session};
use crate::settings::Program;
use crate::talk::Talk;
use hartrace_analyze::{Functions, Places, RunCount, RunCounter, add_runs};
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::{self, Input};
use hartrace_capture::log::{ingress_layout, recognise_boot};
use hartrace_capture::shard::Part;
use hartrace_capture::trace::{Decoded, Trace, Transport, Watch};
use hartrace_flow::{Consumer, Event, HartId, Image, Interpolate, Kept, Run, StepEvents};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::file::{is_json_log, unknown_format};
use hartrace_print::diagnostic::trace::no_program;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::ops::ControlFlow;
use std::path::Path;

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
        let kind = detect(input.peek(HEAD)?);
        // Samples of pins may look like anything.
        let bare = args.transport.get() == Transport::default();
        let is_log = matches!(
            kind,
            Kind::SpikeLog | Kind::PcList | Kind::IngressCsv | Kind::SpikeCsv
        );
        if bare && kind == Kind::Unknown && is_json_log(input.peek(HEAD)?) {
            return Err(unknown_format(path, kind, input.peek(HEAD)?, command).into());
        }
        match bare && is_log {
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
        let head = input.peek(HEAD)?;
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
        let _ = functions.add_elf(&elf.bytes, elf.file.base);
    }
    functions
}

/// What is known of the addresses of a program.
pub(crate) fn places(program: &Program) -> Places<'_> {
    let mut places = Places::new();
    for elf in &program.elf {
        // What has no symbols has no names.
        let _ = places.add_elf(&elf.bytes, elf.file.base);
    }
    places
}

impl Source<'_> {
    /// Whether there may be timestamps.
    pub(crate) fn may_have_time(&mut self) -> Result<bool, Failure> {
        Ok(match &mut self.data {
            Data::Trace(trace) => trace.settings.has_time(),
            Data::Log(Kind::IngressCsv, input) => {
                let head = input.peek(HEAD)?;
                ingress_layout(head).0.is_some_and(|columns| columns.time)
            }
            Data::Log(..) => false,
        })
    }

    /// Gives all events of the hart `only`, or of all, to `out`. Where there are
    /// timestamps, every run gets a time ([`Interpolate`]).
    pub(crate) fn feed_timed<C: Consumer>(
        mut self,
        opened: (&Program, &Image, Isa),
        out: C,
        only: Option<u32>,
    ) -> Result<C, Failure> {
        if !self.may_have_time()? {
            return self.feed(opened, out, only);
        }
        let timed = Interpolate::new(opened.1, out);
        Ok(self.feed(opened, timed, only)?.finish().0)
    }

    /// Counts the runs of the hart `only`, or of all, on so many threads if that pays.
    pub(crate) fn count_runs(
        self,
        (program, image, isa): (&Program, &Image, Isa),
        threads: usize,
        only: Option<u32>,
    ) -> Result<Vec<RunCount>, Failure> {
        let Source { session, data } = self;
        let trace = match data {
            Data::Trace(trace) if trace.is_for_threads(threads) => trace,
            data => {
                let counter = RunCounter::new(image);
                let mut counter =
                    Source { session, data }.feed((program, image, isa), counter, only)?;
                return Ok(counter.take());
            }
        };
        let (mut all, mut decoded) = (Vec::new(), Decoded::default());
        let mut progress = session.progress(&trace.input);
        let part = |_| Watch::new(CountedPart(RunCounter::new(image)), only.map(HartId));
        // Sums do not depend on how the trace is divided.
        trace.decode_parts(image, threads, part, |part, done| {
            progress.reach(done);
            decoded.add(std::mem::take(&mut part.decoded));
            add_runs(&mut all, &part.inner.0.take());
            Ok::<(), Failure>(())
        })?;
        drop(progress);
        session.judge(&decoded, only)?;
        Ok(all)
    }

    /// Gives all events of the hart `only`, or of all, to `out`.
    pub(crate) fn feed<C: Consumer>(
        self,
        opened: (&Program, &Image, Isa),
        mut out: C,
        only: Option<u32>,
    ) -> Result<C, Failure> {
        self.feed_any(opened, &mut out, only)?;
        Ok(out)
    }

    /// As [`Source::feed`], compiled once.
    fn feed_any(
        self,
        (program, image, isa): (&Program, &Image, Isa),
        out: &mut dyn Consumer,
        only: Option<u32>,
    ) -> Result<(), Failure> {
        let session = self.session;
        match self.data {
            Data::Log(kind, mut input) => {
                let head = input.peek(HEAD)?;
                let reading = logs::reading(kind, head, program, Some(image), false, &session)?;
                let events = StepEvents::new(isa, out);
                let copied =
                    logs::copy(reading, input, events, (only, false), &session, || Ok(()))?;
                if !copied.traps && copied.chosen.fit().causeless > 0 {
                    session.talk.warning(&inferred_traps(session.path));
                }
                logs::judged(copied, None, &session)?;
                Ok(())
            }
            Data::Trace(trace) => {
                let mut watch = Watch::new(out, only.map(HartId));
                let mut progress = session.progress(&trace.input);
                trace.decode(image, &mut watch, |_, done| {
                    progress.reach(done);
                    Ok::<(), Failure>(())
                })?;
                drop(progress);
                session.judge(&watch.decoded, only)
            }
        }
    }
}

/// Counts the runs of a part of a trace.
struct CountedPart<'a>(RunCounter<'a>);

impl Consumer for CountedPart<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.0.event(hart, event)
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.0.runs(hart, runs)
    }

    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        self.0.kept_runs(hart, kept, runs)
    }

    fn keeps(&self) -> bool {
        self.0.keeps()
    }
}

impl Part for CountedPart<'_> {}

/// Traps that stand in no line of a log.
fn inferred_traps(path: &Path) -> Diagnostic {
    let message = format!("{} does not record traps", input::name(path));
    Diagnostic::new(Code::Assumed, message)
        .note("they are inferred from the control flow: some may appear as jumps")
        .help("use a trace, or a log that records them, such as from `spike -l --log-commits`")
}
