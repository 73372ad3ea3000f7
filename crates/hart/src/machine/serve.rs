//! Devices and the world outside: what a guest sends, what is typed, and waiting
//! for it.

use std::time::{Duration, Instant};

use hartrace_flow::{Observer, Wants};

use crate::machine::outside::{Physical, Written};
use crate::machine::{Machine, Stop};

/// The longest wait for input before the caller can look at something else.
const PATIENCE: Duration = Duration::from_millis(50);

/// Nanoseconds in a tick of `mtime`.
const TICK: u64 = 100;

impl Machine {
    /// Lets devices work outside, and gives them what was typed.
    pub(crate) fn serve_devices<O: Observer>(&mut self, observer: &mut O) {
        if self.bus.devices.finish.is_some() {
            self.glance = self.instructions();
        }
        self.serve(false, observer);
    }

    /// The same; `idle` if all harts wait.
    fn serve<O: Observer>(&mut self, idle: bool, observer: &mut O) {
        if self.bus.devices.is_busy() || self.awaits_input() {
            let written = self.exchange(Written::new::<O>(), idle);
            if O::WANTS.contains(Wants::EVENTS) {
                self.tell_written(&written, observer);
            }
        }
    }

    /// Lets devices work, and gives what they have written to memory.
    fn exchange(&mut self, written: Written, idle: bool) -> Written {
        let mut memory = Physical {
            memory: &mut self.bus.memory,
            written,
        };
        self.bus.devices.serve(&mut memory, &mut self.host, idle);
        let written = memory.written;
        self.forget_stale();
        self.refresh_interrupts();
        written
    }

    /// Whether the guest waits for input that may come.
    pub(super) fn awaits_input(&self) -> bool {
        self.host.expects_input() && self.bus.devices.wants_input()
    }

    /// While a hart waits for an interrupt: gives it the input there is. If that arrives
    /// in its own time, time passes for the guest as it does outside.
    pub(super) fn await_input<O: Observer>(&mut self, observer: &mut O) -> Option<Stop> {
        if self.has_interrupt() || !self.awaits_input() {
            return None;
        }
        let idle = self.turns.all_wait();
        self.serve(idle, observer);
        if self.has_interrupt() || !self.host.is_live() || !idle {
            return None;
        }
        let cycle = TICK as f64 / self.config.cycles_per_tick as f64;
        let now = self.hart.cpu.cycles;
        let first = self.next_interrupt().into_iter().chain(self.turns.end());
        let left = first.min().map(|first| first.saturating_sub(now));
        let wait = left.map_or(PATIENCE, |left| {
            Duration::from_nanos((left as f64 * cycle) as u64).min(PATIENCE)
        });
        let begin = Instant::now();
        self.host.wait_for_input(wait);
        let elapsed = begin.elapsed();
        let passed = (elapsed.as_nanos() as f64 / cycle) as u64;
        let passed = left.map_or(passed, |left| passed.min(left));
        self.hart.cpu.retire(0, passed);
        self.serve(true, observer);
        self.refresh_interrupts();
        let over = self.has_interrupt() || left == Some(passed);
        self.waited += elapsed;
        if over && self.waited < PATIENCE {
            return None;
        }
        self.waited = Duration::ZERO;
        Some(Stop::Limit)
    }

    fn has_interrupt(&self) -> bool {
        self.hart.cpu.mip & self.hart.cpu.mie != 0
    }
}
