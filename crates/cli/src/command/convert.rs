//! `hartrace convert`: converts a trace to another format.

mod encapsulation;
mod tandem;

use crate::args::Convert;
use crate::failure::Failure;
use crate::logs::which_hart;
use crate::session::{Loaded, Session};
use crate::settings;
use crate::talk::Talk;
use crate::trace_file::{self, TraceFile};
use hartrace_capture::config::TransportSection;
use hartrace_capture::shard::cores;
use hartrace_capture::trace::{Decoded, Trace, TraceWriter, WriteOptions};
use hartrace_flow::{Assumed, HartId, Image, Replay};
use hartrace_print::diagnostic::trace::{stand_ins, unknown_causes};

pub(super) fn run(args: &Convert, talk: &Talk) -> Result<(), Failure> {
    // What is typed is about the new trace. Only where nothing lies beside the
    // old one it is about that too.
    let mut session = Session::new(&args.trace, &args.program, args.strict, talk)?;
    // The transport in a configuration is that of the new trace. That of the old one is in
    // its sidecar, or typed.
    session.config.transport = match session.sidecar() {
        Some(sidecar) => sidecar.transport.clone(),
        None => TransportSection::default(),
    };
    session.recall();
    let write = settings::resolve(&[], &args.program, talk)?;
    let contains = args.to.format().has_containers();
    if !contains && args.container.container {
        return Err(Failure::Usage("--container requires --to tandem"));
    }
    let mut input = session.open(&args.transport, "convert")?;
    let mut is_same = || {
        let old = session.format(&mut input);
        old.is_ok_and(|old| old == args.to.format())
    };
    if contains && is_same() {
        return tandem::run(args, &session, input);
    }
    if let Some(form) = &args.encapsulation {
        return encapsulation::run(args, (&session, write), input, form);
    }
    let file = TraceFile::create(
        &args.output.output,
        session.inputs(),
        args.check || args.strict,
    )?;
    let Loaded {
        program,
        isa,
        image,
        trace,
    } = session.loaded(input)?;
    let mut new = args.to.format().settings(&write, isa.xlen())?;
    let file = file.carried(&write, &new)?;
    let encoder = file.encoder(&new);
    let code = (program.elf.as_slice(), program.raw.as_slice());
    trace_file::fit(&new, &write, isa, code, talk)?;
    let check = Some(&image).filter(|_| args.check);
    let job = Job {
        args,
        session: &session,
        image: &image,
        single: !encoder.has_sources() && !args.container.container,
    };
    let options = WriteOptions {
        check,
        beside: cores() > 1,
        container: args.container.get(),
        absent: NO_EFFECTS,
        ..WriteOptions::default()
    };
    let writer = trace_file::writer(
        &write,
        &encoder,
        (isa, &program.elf),
        (&file.sink, None),
        options,
    )?;
    let (writer, decoded, assumed) = job.run(trace, &file, writer)?;
    let done = writer.done();
    // A trace converted from another is partial: it has no effects.
    new.add_absent(&done.absent);
    new.add_absent(NO_EFFECTS);
    new.add_absent(assumed.modes.then_some("priv"));
    session.judge(&decoded, args.hart)?;
    for diagnostic in stand_ins(&args.trace, new.format(), &assumed) {
        talk.warning(&diagnostic);
    }
    if let Some(diagnostic) = unknown_causes(&args.trace, &new, &assumed) {
        match args.strict {
            true => return Err(diagnostic.into()),
            false => talk.warning(&diagnostic),
        }
    }
    file.finish(&program.config, &new, &program.elf)?;
    let left = new.leaves_out();
    let written = (&done, assumed.causes);
    trace_file::report(&args.output.output, new.format(), written, left, talk)
}

/// What no other trace format records.
const NO_EFFECTS: &[&str] = &["gpr", "fpr", "csr", "store"];

struct Job<'a> {
    args: &'a Convert,
    session: &'a Session<'a>,
    image: &'a Image,
    /// The new trace has room for one hart.
    single: bool,
}

impl Job<'_> {
    /// Decodes all of the input. Gives the writer back, what was decoded, and
    /// what was not in it.
    fn run<'w>(
        &self,
        trace: Trace,
        file: &TraceFile,
        mut writer: TraceWriter<'w>,
    ) -> Result<(TraceWriter<'w>, Decoded, Assumed), Failure> {
        let Job { args, image, .. } = *self;
        let mut replay = Replay::new(image, &mut writer);
        let mut progress = self.session.progress(&trace.input);
        let single = self.single && args.hart.is_none();
        let only = args.hart.map(HartId);
        let decoded = trace.decode(image, only, &mut replay, |decoded, done| {
            progress.reach(done);
            let harts = &decoded.harts;
            which_hart(&args.trace, harts, single && harts.len() > 1)?;
            file.sink.check()
        })?;
        let assumed = replay.assumed();
        replay.finish();
        Ok((writer, decoded, assumed))
    }
}
