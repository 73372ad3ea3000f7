//! `hartrace dump`: prints the messages of a trace.

use crate::args::{Dump, DumpFormat};
use crate::failure::Failure;
use crate::session::Session;
use crate::talk::Talk;
use hartrace_capture::input;
use hartrace_capture::output::Output;
use hartrace_capture::trace::{Trace, Warned};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::trace::warning;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::dump::{self, DumpForm};
use hartrace_print::words::count;
use std::io::Write as _;

pub(super) fn run(args: &Dump, talk: &Talk) -> Result<(), Failure> {
    if args.bytes && args.format != DumpFormat::Text {
        return Err(Failure::Usage("--bytes requires -f text"));
    }
    let session = Session::new(&args.trace, &args.program, false, talk)?;
    let mut output = session.output(&args.output.output)?;
    let input = session.open(&args.transport, "dump")?;
    let mut code = session.typed_code()?;
    code.isa = code.isa.or_else(|| session.isa());
    let trace = session.trace(input, code.known())?;
    let isa = code.isa.unwrap_or(trace.settings.general_isa());
    let form = match args.format {
        DumpFormat::Text if args.bytes => DumpForm::Bytes,
        DumpFormat::Text => DumpForm::Text,
        DumpFormat::Json => DumpForm::Json,
        DumpFormat::Csv => {
            table(args, trace, &mut output, talk)?;
            return Ok(output.finish()?);
        }
    };
    let warnings = pieces(trace, form, isa, &mut output)?;
    let name = input::name(&args.trace);
    for warned in &warnings {
        talk.warning(&warning(&name, warned));
    }
    Ok(output.finish()?)
}

fn pieces(
    trace: Trace,
    form: DumpForm,
    isa: Isa,
    output: &mut Output,
) -> Result<Vec<Warned>, Failure> {
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
        return Err(Failure::Usage("-f csv is for E-Trace only"));
    }
    let left_out = trace.rows(|row| -> Result<(), Failure> {
        let written = output.write_all(row.as_bytes());
        written.map_err(|error| output.failed(error).into())
    })?;
    if left_out > 0 {
        let name = input::name(&args.trace);
        let pieces = count(left_out, "piece");
        let message = format!("{name} has {pieces} that the table cannot show");
        let warning = Diagnostic::new(Code::Gaps, message);
        talk.warning(&warning.help("use -f text or json to see them"));
    }
    Ok(())
}
