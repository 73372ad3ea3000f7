//! Decodes a trace and counts the instructions of each function.
//!
//! ```text
//! cargo run -p hartrace-print --example functions -- run.ntrace
//! ```
//!
//! The trace may have any format. Its sidecar names the program.

use hartrace_analyze::Names;
use hartrace_capture::Recording;
use hartrace_flow::{Consumer, Event, HartId};
use std::collections::HashMap;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;

/// Instructions by the first address of the run they are in. Runs repeat, so
/// names are looked up once, at the end.
#[derive(Default)]
struct Runs {
    insns: HashMap<u64, u64>,
    gaps: u64,
}

impl Consumer for Runs {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => *self.insns.entry(run.start).or_default() += u64::from(run.insns),
            Event::Gap(_) => self.gaps += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Names of functions, with their instructions.
type Functions = Vec<(String, u64)>;

/// Functions, the largest first, and how often trace was lost.
pub(crate) fn functions(trace: &Path) -> Result<(Functions, u64), Box<dyn Error>> {
    let recording = Recording::open(trace)?;
    let mut names = Names::new();
    for elf in &recording.program.elf {
        names.add_elf(&elf.bytes, elf.file.base)?;
    }
    let mut runs = Runs::default();
    recording.decode(&mut runs)?;

    let mut functions: HashMap<String, u64> = HashMap::new();
    for (start, insns) in runs.insns {
        let name = names.function(start).map_or("?", |(name, _)| name);
        *functions.entry(name.to_owned()).or_default() += insns;
    }
    let mut functions: Functions = functions.into_iter().collect();
    functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok((functions, runs.gaps))
}

#[allow(dead_code, clippy::print_stdout)] // the tests call `functions`
fn main() -> Result<(), Box<dyn Error>> {
    let Some(trace) = std::env::args_os().nth(1) else {
        return Err("usage: functions TRACE".into());
    };
    let (functions, gaps) = functions(trace.as_ref())?;
    for (name, insns) in functions.iter().take(20) {
        println!("{insns:>12}  {name}");
    }
    if gaps > 0 {
        println!("{gaps} gaps: some instructions are missing");
    }
    Ok(())
}
