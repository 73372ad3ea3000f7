//! Prints the messages, packets or groups of a trace as JSON lines, as
//! `hartrace dump -f json` does.
//!
//! ```text
//! cargo run -p hartrace-print --example explain -- run.etrace
//! ```

use hartrace_capture::Recording;
use hartrace_capture::input::InputError;
use hartrace_isa::Isa;
use hartrace_print::dump::{Dump, DumpForm};
use std::error::Error;
use std::io::Write;
use std::path::Path;

/// Writes every piece of the trace; gives their number.
pub(crate) fn explain(trace: &Path, out: &mut impl Write) -> Result<u64, Box<dyn Error>> {
    let recording = Recording::open(trace)?;
    let isa = recording.program.isa.unwrap_or(Isa::RV64GC);
    let mut dump = Dump::new(recording.trace.format(), DumpForm::Json);
    dump.heading(out)?;
    let (mut count, mut written) = (0, Ok(()));
    recording.trace.explain(isa, dump.view(), |piece, bytes| {
        count += 1;
        if written.is_ok() {
            written = dump.piece(piece, bytes, out);
        }
        Ok::<(), InputError>(())
    })?;
    written?;
    Ok(count)
}

#[allow(dead_code)] // the tests call `explain`
fn main() -> Result<(), Box<dyn Error>> {
    let Some(trace) = std::env::args_os().nth(1) else {
        return Err("usage: explain TRACE".into());
    };
    explain(trace.as_ref(), &mut std::io::stdout().lock())?;
    Ok(())
}
