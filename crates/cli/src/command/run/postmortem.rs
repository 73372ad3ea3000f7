//! How a run that died came to its end. A plain run keeps no jumps: the program
//! runs again, and this time they are followed.

use super::drive::End;
use crate::settings::Elf;
use hartrace_analyze::{Backtrace, Follower, Functions, Grouping, LastJumps, Places};
use hartrace_flow::{HartId, Image, StepEvents, StepTransfers};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Program};
use hartrace_print::diagnostic::Diagnostic;
use std::time::Duration;

/// A run that took longer is not done again.
const LONGEST: Duration = Duration::from_secs(5);

/// The run that is done again.
pub(super) struct Postmortem<'a> {
    pub(super) hart: &'a Config,
    pub(super) program: Program,
    pub(super) entry: Option<u64>,
    pub(super) host: Host,
}

/// The end of a run.
pub(super) struct Found {
    jumps: LastJumps,
    calls: Backtrace,
}

impl Postmortem<'_> {
    /// Follows the run, which took `time` and ended in `died`. `None` if it takes
    /// too long, or goes another way: input and files are not there again.
    pub(super) fn examine(
        self,
        died: &Machine,
        end: End,
        time: Duration,
        elf: &Elf,
    ) -> Option<Found> {
        let End::Stop(stop) = end else { return None };
        if time > LONGEST {
            return None;
        }
        let mut machine = Machine::new(self.hart.clone(), self.host).ok()?;
        let isa = self.hart.validate().ok()?;
        machine.load(self.program, self.entry).ok()?;
        let image = Image::from_elf(&elf.bytes).unwrap_or_default();
        let mut functions = Functions::new();
        // What has no symbols has no functions.
        let _ = functions.add_elf(&elf.bytes, None);
        let follower = Follower::new(&image, functions, Grouping::default(), ());
        let jumps = StepTransfers::new(isa, LastJumps::default());
        let mut both = (jumps, StepEvents::new(isa, follower));
        if !machine.retrace(died, stop, &mut both) {
            return None;
        }
        let (jumps, events) = both;
        Some(Found {
            jumps: jumps.into_sink(),
            calls: events.into_inner().backtrace(HartId(0)),
        })
    }
}

/// Adds what was found to the reason why a run died.
pub(super) fn explain(
    died: Diagnostic,
    found: Option<Found>,
    machine: &Machine,
    elf: &Elf,
) -> Diagnostic {
    let mut places = Places::new();
    // What has no symbols has no names.
    let _ = places.add_elf(&elf.bytes, None);
    let Some(found) = found else {
        let ra = places.at(machine.x(1));
        return died
            .note(format!("ra is {ra}"))
            .help("--trace ctr=FILE keeps the last jumps, which `hartrace ctr FILE` shows");
    };
    let died = match found.jumps.text(&places) {
        Some(jumps) => died.note(jumps),
        None => died,
    };
    died.note(found.calls.text(machine.pc(), &places))
}
