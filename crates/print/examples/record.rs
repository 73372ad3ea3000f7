//! Runs a program on the built-in hart and writes what it did as a trace.
//!
//! ```text
//! cargo run -p hartrace-print --example record -- prog.elf run.ntrace
//! ```
//!
//! The ending of the name chooses the format: `.ntrace`, `.etrace` or
//! `.tandem`. A sidecar `run.ntrace.toml` is written with it.

use hartrace_capture::Recorder;
use hartrace_capture::config::Config;
use hartrace_flow::Observer as _;
use hartrace_hart::host::Host;
use hartrace_hart::{Machine, Platform, Program};
use std::error::Error;
use std::path::Path;

/// Traces a run of at most a million instructions; gives their number and the
/// size of the trace.
pub(crate) fn record(elf: &Path, trace: &Path) -> Result<(u64, u64), Box<dyn Error>> {
    let program = Program::from_elf(&std::fs::read(elf)?)?;
    let config = hartrace_hart::Config::new(Platform::Virt, program.xlen);
    let mut machine = Machine::new(config, Host::silent())?;
    machine.load(program, None)?;

    let mut recorder = Recorder::create(trace, elf, Config::default())?;
    machine.run(1_000_000, &mut recorder);
    recorder.finish();
    let written = recorder.close()?;
    Ok((written.instructions, written.bytes))
}

#[allow(dead_code, clippy::print_stdout)] // the tests call `record`
fn main() -> Result<(), Box<dyn Error>> {
    let mut names = std::env::args_os().skip(1);
    let (Some(elf), Some(trace)) = (names.next(), names.next()) else {
        return Err("usage: record PROGRAM.elf TRACE".into());
    };
    let (instructions, bytes) = record(elf.as_ref(), trace.as_ref())?;
    println!("{instructions} instructions, {bytes} bytes");
    Ok(())
}
