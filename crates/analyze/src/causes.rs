//! Names of traps.

use hartrace_flow::{Cause, exception_name, interrupt_name};

/// What a trap is called: `illegal instruction`, `machine timer interrupt`.
#[must_use]
pub fn cause_name(cause: Cause) -> String {
    match cause {
        Cause::Exception(Some(code)) => {
            exception_name(code).map_or_else(|| format!("exception {code}"), str::to_owned)
        }
        Cause::Interrupt(Some(code)) => {
            interrupt_name(code).map_or_else(|| format!("interrupt {code}"), str::to_owned)
        }
        Cause::Exception(None) => "exception".to_owned(),
        Cause::Interrupt(None) => "interrupt".to_owned(),
        Cause::Unknown => "trap".to_owned(),
    }
}
