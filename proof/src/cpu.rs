//! CPU time of processes, as Linux reports it.

use std::time::{Duration, Instant};

/// Times of this process in the fields after its name, in units that are 1/100 s on every
/// Linux.
struct Times {
    user: u64,
    system: u64,
    /// User time of all processes that this one has waited for.
    children: u64,
}

/// `None` where the system does not report it.
fn times() -> Option<Times> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the process, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse().ok();
    Some(Times {
        user: next()?,
        system: next()?,
        children: next()?,
    })
}

/// User CPU seconds of all processes that this one has waited for; `None` where
/// the system does not report them.
pub(crate) fn children() -> Option<f64> {
    times().map(|times| times.children as f64 / 100.0)
}

/// Measures how long this process works, other processes left out.
pub(crate) struct Stopwatch {
    start: Instant,
    worked: Option<u64>,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        let worked = worked();
        let start = Instant::now();
        Stopwatch { start, worked }
    }

    /// The CPU time since then, where the system reports it and it is less than the time that
    /// passed: on a busy machine, a process waits for its turn.
    pub(crate) fn took(&self) -> Duration {
        let passed = self.start.elapsed();
        // Shorter than what can be told from the CPU time.
        if passed < Duration::from_millis(100) {
            return passed;
        }
        let cpu = worked().zip(self.worked).map(|(now, then)| now - then);
        // One unit may have begun before.
        let cpu = cpu.map(|units| Duration::from_millis(10 * (units + 1)));
        cpu.map_or(passed, |cpu| passed.min(cpu))
    }
}

/// CPU time of this process.
fn worked() -> Option<u64> {
    times().map(|times| times.user + times.system)
}
