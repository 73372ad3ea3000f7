//! `hartrace encode`: encodes a log as a trace.

use crate::args::Encode;
use crate::failure::Failure;
use crate::logs::{self, mode_of};
use crate::session::Session;
use crate::settings::chosen;
use crate::talk::Talk;
use crate::trace_file::{self, TraceFile};
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::Input;
use hartrace_capture::log::{
    self as capture_log, Assume, CycleReader, Plain, Reading, has_time, recognise_boot,
};
use hartrace_capture::shard::cores;
use hartrace_capture::trace::{TraceWriter, WriteOptions, Written};
use hartrace_flow::{Image, Mode, Observer};
use hartrace_print::diagnostic::{Code, log, trace};

pub(super) fn run(args: &Encode, talk: &Talk) -> Result<(), Failure> {
    let session = Session::of_log(&args.input, &args.program, args.strict, talk)?;
    let file = TraceFile::create(
        &args.output.output,
        session.inputs(),
        args.check || args.strict,
    )?;
    let mut program = session.load()?;
    let mut input = Input::open(&args.input)?;
    let kind = chosen(detect(input.peek(HEAD)?), &session.config);
    let head = capture_log::head(kind, &mut input)?;
    let timed = has_time(kind, head, &session.config);
    let mut image = program.image()?;
    recognise_boot(kind, head, &mut program, image.as_mut());
    // A verifier is to see jumps as they are.
    let tandem = args.to.format().has_code();
    // Rows of an ingress port go to the encoder as they are. A check compares instructions.
    let rows = match tandem || args.check {
        true => None,
        false => logs::cycles(kind, head, &program, &session),
    };
    let (steps, isa) = match rows {
        Some((cycles, isa)) => (Steps::Cycles(Box::new(cycles)), isa),
        None => {
            let image = image.as_ref();
            let reading = logs::reading(kind, head, &program, image, tandem, &session)?;
            let isa = reading.isa;
            (Steps::Log(Box::new(reading)), isa)
        }
    };
    let mut settings = args.to.format().settings(&program.config, isa.xlen())?;
    let file = file.carried(&program.config, &settings)?;
    let encoder = file.encoder(&settings);
    let code = (program.elf.as_slice(), program.raw.as_slice());
    trace_file::fit(&settings, &program.config, isa, code, talk)?;
    if tandem {
        logs::need_effects(&args.input, kind, head, &program.config)?;
    } else if args.load || args.container.container {
        return Err(Failure::Usage("--load and --container require --to tandem"));
    }
    let load = match args.load {
        true => trace_file::loaded(&program.elf, &program.raw)?,
        false => Vec::new(),
    };
    // The instructions are in a tandem trace.
    let nothing = Image::new();
    let image = image.as_ref().or(Some(&nothing).filter(|_| tandem));
    let check = image.filter(|_| args.check);
    if args.check && check.is_none() {
        return Err(trace::no_program().into());
    }
    let options = WriteOptions {
        check,
        beside: cores() > 1,
        code: false,
        load,
        container: args.container.get(),
        // Such a log does not record what traps do to the status.
        absent: &["trap.mstatus", "trap.sstatus"],
    };
    let single = !encoder.has_sources() && options.container.is_none();
    let writer = trace_file::writer(
        &program.config,
        &encoder,
        (isa, &program.elf),
        (&file.sink, None),
        options,
    )?;
    let copy = Copy {
        input,
        which: (args.hart, single),
        file: &file,
        session: &session,
        kind,
        tandem,
        // A tandem trace keeps such a jump as it is.
        instead: settings.instead_of_cause().filter(|_| !tandem),
    };
    let modes = match &steps {
        Steps::Cycles(_) => true,
        Steps::Log(reading) => reading.modes,
    };
    let unknown = args.mode.is_none() && !modes;
    let assumed = log::assumed(&args.input, unknown, timed, &settings);
    let reading = match steps {
        Steps::Log(reading) => *reading,
        Steps::Cycles(cycles) => {
            let done = copy.cycles(*cycles, writer)?;
            if let Some(assumed) = assumed {
                talk.warning(&assumed);
            }
            file.finish(&program.config, &settings, &program.elf)?;
            let (format, left) = (settings.format(), settings.leaves_out());
            return trace_file::report(&args.output.output, format, (&done, 0), left, talk);
        }
    };
    let (writer, causeless) = match args.mode {
        _ if tandem => copy.run(reading, writer)?,
        mode if !reading.modes => {
            let mode = mode.map_or(Mode::M, mode_of);
            let writer = Assume::new(Plain(writer), mode);
            let (writer, causeless) = copy.run(reading, writer)?;
            (writer.into_inner().0, causeless)
        }
        _ => {
            let (writer, causeless) = copy.run(reading, Plain(writer))?;
            (writer.0, causeless)
        }
    };
    let done = writer.done();
    if let Some(assumed) = assumed.filter(|_| !tandem) {
        talk.warning(&assumed);
    }
    settings.add_absent(&done.absent);
    file.finish(&program.config, &settings, &program.elf)?;
    let left = settings.leaves_out();
    let format = settings.format();
    trace_file::report(&args.output.output, format, (&done, causeless), left, talk)
}

/// What is encoded.
enum Steps<'a> {
    Log(Box<Reading<'a>>),
    /// Cycles of an ingress port.
    Cycles(Box<CycleReader>),
}

/// A log on its way into a trace.
struct Copy<'a> {
    input: Input,
    /// The hart that was asked for, and whether there is room for one only.
    which: (Option<u32>, bool),
    file: &'a TraceFile,
    session: &'a Session<'a>,
    kind: Kind,
    /// The trace records what instructions changed.
    tandem: bool,
    /// What the trace has for a trap whose cause is not known.
    instead: Option<&'static str>,
}

impl Copy<'_> {
    /// Gives all cycles of the input to an encoder.
    fn cycles(self, cycles: CycleReader, mut writer: TraceWriter<'_>) -> Result<Written, Failure> {
        let check = || self.file.sink.check();
        logs::copy_cycles(
            cycles,
            self.input,
            &mut writer,
            self.which,
            self.session,
            check,
        )?;
        Ok(writer.done())
    }

    /// Reads all of the input. Gives the writer back, and how many traps have no
    /// known cause.
    fn run<O: Observer>(self, reading: Reading<'_>, writer: O) -> Result<(O, u64), Failure> {
        let check = || self.file.sink.check();
        let copied = logs::copy(reading, self.input, writer, self.which, self.session, check)?;
        let (fit, recorded) = (copied.chosen.fit(), copied.traps);
        let writer = logs::judged(copied, self.instead, self.session)?;
        // Of a list of pcs, the causes are all that is reported.
        let may_record = matches!(self.kind, Kind::SpikeLog | Kind::Log(_));
        let inferred = may_record && fit.traps > 0;
        if !recorded && (self.tandem || inferred) {
            let diagnostic = log::inferred_traps(self.session.path, self.kind);
            if !self.tandem && self.session.strict && self.instead.is_some() {
                return Err(diagnostic.with_code(Code::UnknownCauses).into());
            }
            self.session.talk.warning(&diagnostic);
        }
        Ok((writer, fit.causeless))
    }
}
