//! `hartrace encode`: a log as a trace.

use super::trace_write::{self, Plain, TraceFile};
use crate::args::Encode;
use crate::diagnostic::{Code, Diagnostic, Failure};
use crate::logs::{self, Verdict, mode_of, which_hart};
use crate::session::Session;
use crate::talk::Talk;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::{self, Input};
use hartrace_capture::log::{
    Assume, Chosen, Damage, LineCount, LogOptions, LogReader, SpikeParts, spike_parts, tells_modes,
};
use hartrace_capture::trace::WriteOptions;
use hartrace_flow::{HartId, Image, Mode, Observer};
use hartrace_isa::Isa;
use std::path::Path;

pub(super) fn run(args: &Encode, talk: &Talk) -> Result<(), Failure> {
    let session = Session::of_log(&args.input, &args.program, args.strict, talk)?;
    let file = TraceFile::create(&args.output.output, session.inputs())?;
    let mut program = session.settings.load(talk)?;
    let mut input = Input::open(&args.input)?;
    let head = input.peek(HEAD)?;
    let kind = detect(head);
    let mut image = program.image()?;
    logs::recognise_boot(kind, head, &mut program, image.as_mut());
    let not_readable = |error| logs::not_readable(&args.input, head, error);
    let options = LogOptions {
        image: image.as_ref(),
        ..LogOptions::default()
    };
    // Refused before anything is guessed about it.
    LogReader::new(kind, &options).map_err(not_readable)?;
    let options = logs::options(kind, head, &program, image.as_ref(), talk);
    let isa = options.isa.unwrap_or(Isa::RV64GC);
    let mut settings = args.to.format().settings(&program.config, isa.xlen())?;
    let code = (program.elf.as_slice(), program.raw.as_slice());
    trace_write::fit(&settings, &program.config, isa, code, talk)?;
    let told = tells_modes(kind, &options, head);
    let tandem = settings.format().has_code();
    if tandem {
        tells_effects(&args.input, kind, head, talk)?;
    } else if args.load || args.container.container {
        return Err(Failure::Usage("--load and --container go with --to tandem"));
    }
    let load = match args.load {
        true => trace_write::loaded(&program.elf, &program.raw)?,
        false => Vec::new(),
    };
    let options = LogOptions {
        // A verifier is to see them.
        plain_jumps: tandem,
        ..options
    };
    let reader = LogReader::new(kind, &options).map_err(not_readable)?;
    // The instructions are in a tandem trace.
    let nothing = Image::new();
    let image = image.as_ref().or(Some(&nothing).filter(|_| tandem));
    let check = image.filter(|_| args.check);
    if args.check && check.is_none() {
        return Err(crate::traces::no_program());
    }
    let options = WriteOptions {
        check,
        load,
        container: args.container.get(),
        // Such a log does not tell what traps do to the status.
        absent: &["trap.mstatus", "trap.sstatus"],
    };
    let single = !settings.has_sources() && options.container.is_none();
    let writer = trace_write::writer(&program.config, &settings, isa, &file.sink, options)?;
    let done = match args.mode {
        _ if tandem => copy(args, reader, input, &file, single, writer, &session)?,
        mode if !told => {
            let mode = mode.map_or(Mode::M, mode_of);
            let writer = Assume::new(Plain(writer), mode);
            let writer = copy(args, reader, input, &file, single, writer, &session)?;
            writer.into_inner().0
        }
        _ => copy(args, reader, input, &file, single, Plain(writer), &session)?.0,
    }
    .done();
    settings.add_absent(&done.absent);
    file.finish(&program.config, &settings, &program.elf)?;
    let left = settings.leaves_out(&program.config);
    let format = settings.format();
    trace_write::report(&args.output.output, format, &done, left, talk)
}

/// Refuses what does not tell what instructions changed, and says what else is
/// missing.
fn tells_effects(path: &Path, kind: Kind, head: &[u8], talk: &Talk) -> Result<(), Failure> {
    let name = input::name(path);
    let message = format!("{name} does not tell what instructions changed");
    let refuse = |note: String| {
        Diagnostic::new(Code::NoEffects, &*message)
            .note(note)
            .help("a log of `spike -l --log-commits` does; so does `hartrace run --trace tandem=FILE`")
            .into()
    };
    if kind != Kind::SpikeLog {
        return Err(refuse(format!("it is a log of this kind: {kind}")));
    }
    let SpikeParts { listing, commits } = spike_parts(head);
    if !commits {
        return Err(refuse("it was written by `spike -l` alone".to_owned()));
    }
    if !listing {
        let message = format!("{name} does not tell of traps: it was written without `-l`");
        let warning = Diagnostic::new(Code::Assumed, message)
            .note("a trap shows as a jump; its cause, its value and the instruction are unknown")
            .note("behind an indirect jump it does not show at all")
            .help("write the log with `spike -l --log-commits`");
        talk.warning(&warning);
    }
    Ok(())
}

/// Reads all of the input. Gives the writer back.
fn copy<O: Observer>(
    args: &Encode,
    mut reader: LogReader<'_>,
    input: Input,
    file: &TraceFile,
    single: bool,
    writer: O,
    session: &Session<'_>,
) -> Result<O, Failure> {
    let path = &args.input;
    let mut chosen = Chosen::new(writer, args.hart.map(HartId), single);
    let (mut damage, mut lines) = (Damage::default(), LineCount::default());
    let mut progress = session.progress(&input);
    input.chunks(|chunk| {
        reader.feed(chunk, &mut chosen, &mut |error| damage.add(error));
        lines.feed(chunk);
        progress.advance(chunk.len());
        file.sink.check()?;
        which_hart(path, chosen.harts(), chosen.clash())
    })?;
    reader.finish(&mut chosen, &mut |error| damage.add(error));
    drop(progress);
    file.sink.check()?;
    let nothing = chosen.harts().is_empty();
    if !nothing || damage.lines == 0 {
        which_hart(path, chosen.harts(), chosen.clash() || chosen.missing())?;
    }
    // The wrong program is a reason for damage, not the other way round.
    let fit = logs::judge_fit(path, chosen.fit(), args.strict);
    let damaged = logs::judge(path, &damage, lines.count(), nothing, args.strict);
    for verdict in [fit, damaged] {
        match verdict {
            Verdict::Error(diagnostic) => return Err(diagnostic.into()),
            Verdict::Warning(diagnostic) => session.talk.warning(&diagnostic),
            Verdict::Clean => {}
        }
    }
    Ok(chosen.into_inner())
}
