//! `hartrace dump`: the messages of a trace.

use super::{configs, create, inputs, one_stdin};
use crate::args::{Dump, DumpFormat};
use crate::diagnostic::{Code, Diagnostic, Failure, count};
use crate::talk::Talk;
use crate::traces::{Named, Settings};
use hartrace_capture::input;
use hartrace_capture::output::Output;
use hartrace_capture::trace::{Known, Trace};
use hartrace_isa::Isa;
use hartrace_print::dump::{self, DumpForm};
use std::io::Write as _;

pub(super) fn run(args: &Dump, talk: &Talk) -> Result<(), Failure> {
    if args.bytes && args.format != DumpFormat::Text {
        return Err(Failure::Usage("--bytes goes with -f text"));
    }
    let settings = Settings::resolve(&args.trace, &args.program, talk)?;
    let mut output = {
        let files = inputs(&settings.config).chain([args.trace.as_path()]);
        one_stdin(files.clone().chain(configs(&args.program)))?;
        create(&args.output.output, files)?
    };
    let input = settings.open(&args.trace, &args.transport, "dump")?;
    // The program that a sidecar names is not needed.
    let program = match settings.program() {
        Named::ByFlag => Some(settings.load(talk)?),
        _ => None,
    };
    let image = match &program {
        Some(program) => program.image()?,
        None => None,
    };
    let isa = program.and_then(|program| program.isa);
    let isa = isa.or_else(|| settings.isa());
    let known = Known {
        xlen: isa.map(|isa| isa.xlen()),
        image: image.as_ref(),
    };
    let trace = settings.trace(input, known, false, talk)?;
    let isa = isa.unwrap_or(trace.settings.general_isa());
    let form = match args.format {
        DumpFormat::Text if args.bytes => DumpForm::Bytes,
        DumpFormat::Text => DumpForm::Text,
        DumpFormat::Json => DumpForm::Json,
        DumpFormat::Csv => {
            table(args, trace, &mut output, talk)?;
            return Ok(output.finish()?);
        }
    };
    pieces(trace, form, isa, &mut output)?;
    Ok(output.finish()?)
}

fn pieces(trace: Trace, form: DumpForm, isa: Isa, output: &mut Output) -> Result<(), Failure> {
    let mut dump = dump::Dump::new(trace.format(), form);
    dump.heading(output).map_err(|e| output.failed(e))?;
    trace.explain(isa, dump.view(), |piece, bytes| {
        let written = dump.piece(piece, bytes, output);
        written.map_err(|error| output.failed(error).into())
    })
}

/// Rows as the reference models write them.
fn table(args: &Dump, trace: Trace, output: &mut Output, talk: &Talk) -> Result<(), Failure> {
    if !trace.format().has_table() {
        return Err(Failure::Usage("-f csv goes with E-Trace"));
    }
    let left_out = trace.rows(|row| -> Result<(), Failure> {
        let written = output.write_all(row.as_bytes());
        written.map_err(|error| output.failed(error).into())
    })?;
    if left_out > 0 {
        let name = input::name(&args.trace);
        let pieces = count(left_out, "piece");
        let message = format!("{name} has {pieces} that no row can show");
        let warning = Diagnostic::new(Code::Gaps, message);
        talk.warning(&warning.help("leave out -f csv to see them"));
    }
    Ok(())
}
