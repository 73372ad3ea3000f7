//! One-line summaries: what was written, and how fast.

use crate::words::{count, counted};
use hartrace_capture::records::RecordsWritten;
use hartrace_capture::trace::{Format, Written};
use std::path::Path;
use std::time::Duration;

/// The code history of a trace.
#[must_use]
pub fn code_written(path: &Path, bytes: u64) -> String {
    let bytes = count(bytes, "byte");
    format!("{}: {bytes}, the code that ran", path.display())
}

/// How large a trace became, and what its check compared: not the causes of the
/// `causeless` traps, which are unknown.
#[must_use]
pub fn trace_written(path: &Path, format: Format, written: &Written, causeless: u64) -> String {
    if written.blocks > 0 {
        return format!(
            "{}: {}, {}, {}",
            path.display(),
            count(written.blocks, "block"),
            count(written.messages, format.unit()),
            count(written.bytes, "byte"),
        );
    }
    let traced = written.passed.unwrap_or(written.instructions);
    let bits = written.bytes as f64 * 8.0 / traced.max(1) as f64;
    let all = count(written.instructions, "instruction");
    let mut text = format!(
        "{}: {}, {}, {}, {bits:.3} bits/instruction",
        path.display(),
        match written.passed {
            None => all,
            Some(traced) => format!("{traced} of {all} traced"),
        },
        count(written.messages, format.unit()),
        count(written.bytes, "byte"),
    );
    if let Some(container) = written.container {
        text += &format!(", {} in the container", count(container, "byte"));
    }
    let Some(Ok(checked)) = &written.check else {
        return text;
    };
    text += &format!(
        "; decoded and equal: {}, {}",
        count(checked.insns, "instruction"),
        count(checked.traps, "trap")
    );
    if checked.accesses > 0 {
        let plural = if checked.accesses == 1 { "" } else { "es" };
        text += &format!(", {} data access{plural}", checked.accesses);
    }
    if causeless > 0 {
        let causes = count(causeless, "trap cause");
        text += &format!(" ({causes} unknown, not compared)");
    }
    if checked.lost > 0 {
        let lost = count(checked.lost, "instruction");
        text += &format!(" ({lost} at losses not compared)");
    }
    // E-Trace does not count the rounds of a loop without a branch.
    let compared = checked.insns + checked.lost;
    match traced.saturating_sub(compared) {
        0 => {}
        rounds => text += &format!(" (and {rounds} more in loops without a branch)"),
    }
    text
}

/// What is in a file of control transfer records; the hart's own ones, or those
/// recorded beside it.
#[must_use]
pub fn records_written(path: &Path, own: bool, tally: &RecordsWritten) -> String {
    let snapshots = count(tally.snapshots, "snapshot");
    let records = count(tally.records, "record");
    let whose = match own {
        true => "the hart's own records",
        false => "records of the recorder set in [ctr]",
    };
    let mut text = format!("{}: {snapshots}, {records}; {whose}", path.display());
    if let Some((version, depth, control)) = tally.last {
        text += &format!(": CTR {version}, depth {depth}, {control}");
    }
    if own && tally.records == 0 {
        text += "; the program did not enable recording";
    }
    text
}

/// `1 000 123 456 instructions, 1 402 000 000 cycles in 2.31 s (433 M/s)`.
#[must_use]
pub fn run_speed(instructions: u64, cycles: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let rate = instructions as f64 / 1e6 / seconds.max(1e-6);
    let digits = if rate < 10.0 { 1 } else { 0 };
    format!(
        "{}, {} in {seconds:.2} s ({rate:.digits$} M/s)",
        counted(instructions, "instruction"),
        counted(cycles, "cycle")
    )
}

/// `12 345 groups in 0.01 s (12 M/s)`.
#[must_use]
pub fn verify_speed(groups: u64, time: Duration) -> String {
    let (text, seconds) = (counted(groups, "group"), time.as_secs_f64());
    format!("{text} in {seconds:.2} s ({})", rate(groups, time))
}

/// `12.3 M/s`.
#[must_use]
pub fn rate(number: u64, time: Duration) -> String {
    let rate = number as f64 / 1e6 / time.as_secs_f64().max(1e-6);
    format!("{rate:.1} M/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            run_speed(1_000_123_456, 1_402_000_000, Duration::from_millis(2310)),
            "1 000 123 456 instructions, 1 402 000 000 cycles in 2.31 s (433 M/s)"
        );
        assert_eq!(
            run_speed(3_000_000, 1, Duration::from_secs(2)),
            "3 000 000 instructions, 1 cycle in 2.00 s (1.5 M/s)"
        );
    }
}
