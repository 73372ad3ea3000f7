//! `hartrace convert`: a trace as one of another format.

use super::log::which_hart;
use super::trace_write::{self, TraceFile, Writer};
use super::{configs, inputs, one_stdin, trace_fit};
use crate::args::Convert;
use crate::diagnostic::Failure;
use crate::progress::Progress;
use crate::settings;
use crate::talk::Talk;
use crate::traces::{self, Named, Report, Settings, Watch};
use hartrace_capture::input::Input;
use hartrace_capture::trace;
use hartrace_flow::{Image, Replay};
use hartrace_isa::Isa;

pub(super) fn run(args: &Convert, talk: &Talk) -> Result<(), Failure> {
    // What is typed is about the new trace. Only where nothing lies beside the
    // old one it is about that too.
    let read = Settings::resolve(&args.trace, &args.program, talk)?;
    let write = settings::resolve(&[], &args.program, talk)?;
    let file = {
        let files = inputs(&read.config).chain([args.trace.as_path()]);
        one_stdin(files.clone().chain(configs(&args.program)))?;
        TraceFile::create(&args.output.output, files)?
    };
    let input = read.open(&args.trace, &args.transport, "convert")?;
    if read.program() == Named::Nowhere {
        return Err(traces::no_program());
    }
    let program = read.load(talk)?;
    let isa = program.isa.unwrap_or(Isa::RV64GC);
    let Some(image) = program.image()? else {
        return Err(traces::no_program());
    };
    let old = read.as_recorded();
    let (old, input) = old.of_trace(input, Some(isa.xlen()), Some(&image), talk)?;
    let new = args.to.format().settings(&write, isa.xlen())?;
    let code = (program.elf.as_slice(), program.raw.as_slice());
    trace_fit::check(&new, &write.ingress, isa, code, talk)?;
    let check = Some(&image).filter(|_| args.check);
    let job = Job {
        args,
        talk,
        image: &image,
        settings: old,
        single: !new.has_sources(),
    };
    let writer = trace_write::writer(&write, &new, isa, check, &file.sink)?;
    let (writer, report) = job.run(input, &file, writer)?;
    let written = writer.written();
    report.judge(&args.trace, args.strict, talk)?;
    file.finish(&program.config, &new, &program.elf)?;
    let left = trace_write::leaves_out(&write, &new);
    trace_write::report(&args.output.output, new.format(), &written, left, talk)
}

struct Job<'a> {
    args: &'a Convert,
    talk: &'a Talk,
    image: &'a Image,
    /// Of the trace that is read.
    settings: trace::Settings,
    /// The new trace has room for one hart.
    single: bool,
}

impl Job<'_> {
    /// Decodes all of the input. Gives the writer back, and what was decoded.
    fn run<'w>(
        &self,
        input: Input,
        file: &TraceFile,
        writer: Writer<'w>,
    ) -> Result<(Writer<'w>, Report), Failure> {
        let Job { args, image, .. } = *self;
        let replay = Replay::new(image, writer);
        let mut watch = Watch::new(replay, args.hart);
        let mut progress = Progress::new(self.talk, input.size());
        let single = self.single && args.hart.is_none();
        trace::decode(input, &self.settings, image, &mut watch, |watch, used| {
            progress.advance(used);
            let harts = &watch.report.harts;
            which_hart(&args.trace, harts, single && harts.len() > 1)?;
            file.sink.check()
        })?;
        let Watch { inner, report, .. } = watch;
        Ok((inner.finish(), report))
    }
}
