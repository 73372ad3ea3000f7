//! `hartrace encode`: a log as a trace.

use super::log::{mode_of, tells_modes, which_hart};
use super::log_write::Chosen;
use super::trace_write::{self, TraceFile};
use super::{configs, inputs, one_stdin, trace_fit};
use crate::args::Encode;
use crate::diagnostic::Failure;
use crate::logs::{self, Verdict};
use crate::progress::Progress;
use crate::settings;
use crate::talk::Talk;
use hartrace_capture::detect::{HEAD, detect};
use hartrace_capture::input::Input;
use hartrace_capture::log::{Assume, Damage, LineCount, LogOptions, LogReader};
use hartrace_flow::{HartId, Mode, Observer};
use hartrace_isa::Isa;

pub(super) fn run(args: &Encode, talk: &Talk) -> Result<(), Failure> {
    let (config, sidecar) = settings::resolve_beside(&args.input, &args.program, talk)?;
    let file = {
        let files = inputs(&config).chain([args.input.as_path()]);
        one_stdin(files.clone().chain(configs(&args.program)))?;
        TraceFile::create(&args.output.output, files)?
    };
    let mut program = settings::load(config, talk)?;
    if let Some(sidecar) = &sidecar {
        program.check_against(sidecar)?;
    }
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
    let settings = args.to.format().settings(&program.config, isa.xlen())?;
    let code = (program.elf.as_slice(), program.raw.as_slice());
    trace_fit::check(&settings, &program.config.ingress, isa, code, talk)?;
    let told = tells_modes(kind, &options, head);
    let reader = LogReader::new(kind, &options).map_err(not_readable)?;
    let check = image.as_ref().filter(|_| args.check);
    if args.check && check.is_none() {
        return Err(crate::traces::no_program());
    }
    let writer = trace_write::writer(&program.config, &settings, isa, check, &file.sink)?;
    let single = !settings.has_sources();
    let written = match args.mode {
        mode if !told => {
            let mode = mode.map_or(Mode::M, mode_of);
            let writer = Assume::new(writer, mode);
            copy(args, reader, input, &file, single, writer, talk)?.into_inner()
        }
        _ => copy(args, reader, input, &file, single, writer, talk)?,
    }
    .written();
    file.finish(&program.config, &settings, &program.elf)?;
    let left = trace_write::leaves_out(&program.config, &settings);
    let format = settings.format();
    trace_write::report(&args.output.output, format, &written, left, talk)
}

/// Reads all of the input. Gives the writer back.
fn copy<O: Observer>(
    args: &Encode,
    mut reader: LogReader<'_>,
    input: Input,
    file: &TraceFile,
    single: bool,
    writer: O,
    talk: &Talk,
) -> Result<O, Failure> {
    let path = &args.input;
    let mut chosen = Chosen::new(writer, args.hart.map(HartId), single);
    let (mut damage, mut lines) = (Damage::default(), LineCount::default());
    let mut progress = Progress::new(talk, input.size());
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
            Verdict::Warning(diagnostic) => talk.warning(&diagnostic),
            Verdict::Clean => {}
        }
    }
    Ok(chosen.into_inner())
}
