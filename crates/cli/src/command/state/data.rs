//! `hartrace state` of an E-Trace with data trace: memory, and its last writes.

use super::{bad_place, refused};
use crate::args::{Mark, State, StateFormat};
use crate::failure::Failure;
use crate::session::Session;
use crate::settings::{Program, names_of};
use hartrace_analyze::memory::{MemoryWatch, Until};
use hartrace_capture::history::memory_place;
use hartrace_capture::input;
use hartrace_capture::output::Output;
use hartrace_capture::trace::Trace;
use hartrace_flow::HartId;
use hartrace_print::diagnostic::trace::no_program;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::memory::Places;

/// Bytes of a place without a length.
const USUAL: u64 = 16;

pub(super) fn run(
    args: &State,
    session: &Session<'_>,
    program: Option<Program>,
    trace: Trace,
    mut output: Output,
) -> Result<(), Failure> {
    let asked: Vec<&String> = args.mem.iter().chain(&args.last_write).collect();
    let registers = !args.reg.is_empty() || args.all || args.index;
    if registers || asked.is_empty() {
        let message = format!(
            "{} has data trace, which reports memory accesses only",
            input::name(&args.trace)
        );
        return Err(Diagnostic::new(Code::NotATrace, message)
            .help("ask for memory with --mem PLACE or --last-write PLACE")
            .into());
    }
    let Some(program) = program else {
        return Err(no_program().into());
    };
    let Some(image) = program.image()? else {
        return Err(no_program().into());
    };
    let names = names_of(&program.elf);
    let mut places = Vec::new();
    for (text, written) in (args.mem.iter().map(|text| (text, false)))
        .chain(args.last_write.iter().map(|text| (text, true)))
    {
        let usual = if written { 1 } else { USUAL };
        let place = memory_place(text, usual, &|name: &str| names.address(name));
        places.push(place.map_err(|error| refused(error, 0))?);
    }
    let until = match args.at.as_ref().or(args.before.as_ref()) {
        None => Until::End,
        Some(Mark::Number(number)) => Until::Instruction(*number),
        Some(Mark::Symbol(name)) => match names.address(name) {
            Some(address) => Until::Address(address),
            None => return Err(bad_place(name, "a number or a symbol")),
        },
    };
    let mut found = MemoryWatch::new(&image, &places, until);
    let mut progress = session.progress(&trace.input);
    let only = args.hart.map(HartId);
    let decoded = trace.decode(&image, only, &mut found, |_, done| {
        progress.reach(done);
        Ok::<(), Failure>(())
    })?;
    drop(progress);
    let named = asked.iter().map(|text| text.as_str()).zip(found.places());
    let sizes = (found.instructions(), found.accesses());
    let places = Places::new(sizes, named, &names);
    let written = match args.format {
        StateFormat::Text => places.write_text(&mut output),
        StateFormat::Json => places.write_json(&mut output),
    };
    written.map_err(|error| output.failed(error))?;
    output.finish()?;
    session.judge(&decoded, args.hart)
}
