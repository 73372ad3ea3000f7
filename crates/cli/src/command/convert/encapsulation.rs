//! `hartrace convert --encapsulation`: the packets of an E-Trace in another encapsulation.

use crate::args::Convert;
use crate::failure::Failure;
use crate::session::Session;
use crate::trace_file::TraceFile;
use hartrace_capture::config::Config;
use hartrace_capture::input::{self, Input};
use hartrace_capture::trace::{Format, Known, reencapsulate, reencapsulated};
use hartrace_flow::HartId;
use hartrace_print::diagnostic::trace::not_reencapsulated;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::words::count;

pub(super) fn run(
    args: &Convert,
    (session, mut write): (&Session<'_>, Config),
    input: Input,
    form: &str,
) -> Result<(), Failure> {
    if args.to.format() != Format::Etrace {
        return Err(Failure::Usage("--encapsulation requires --to etrace"));
    }
    write.etrace.encapsulation.set_form(form, "--encapsulation");
    let refused = |error| not_reencapsulated(&args.trace, error);
    let trace = session.trace(input, Known::default())?;
    let new = reencapsulated(&trace.settings, &write).map_err(refused)?;
    let file = TraceFile::create(&args.output.output, session.inputs(), args.strict)?;
    let file = file.carried(&write, &new)?;
    // The programs that the sidecar names, as far as they are there.
    let elf = session.program()?.map(|program| program.elf);
    let encoder = file.encoder(&new);
    let put = Box::new(|bytes: &[u8]| file.sink.put(bytes));
    let only = args.hart.map(HartId);
    let copied = reencapsulate(trace.input, (&trace.settings, &encoder), only, put);
    let copied = copied.map_err(refused)?;
    if copied.lost > 0 {
        let name = input::name(&args.trace);
        let message = format!("{name} has {}", count(copied.lost, "gap"));
        let gaps = Diagnostic::new(Code::Gaps, message)
            .note("in the new trace, each is a support packet that reports lost packets");
        match args.strict {
            true => return Err(gaps.help("leave out --strict to continue anyway").into()),
            false => session.talk.warning(&gaps),
        }
    }
    let path = file.path().display().to_string();
    file.finish(&session.config, &new, &elf.unwrap_or_default())?;
    let packets = count(copied.packets, "packet");
    session.talk.summary(&format!("{path}: {packets}"));
    Ok(())
}
