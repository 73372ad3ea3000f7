//! Blocks that are more than instructions: starts and stops, triggers, loss.

use hartrace_flow::Ingress;

use super::Sink;
use super::hart::{Hart, Pending, State};
use crate::{Config, Ending, Evcode, Sync, TriggerAction, Version};

/// What the trigger inputs ask for.
#[derive(Clone, Copy, Debug, Default)]
struct Pulses {
    on: bool,
    off: bool,
    marker: Option<Sync>,
}

impl Pulses {
    fn of(config: &Config, b: &Ingress) -> Pulses {
        let mut pulses = Pulses::default();
        for (bit, action) in config.external.iter().enumerate() {
            if b.external >> bit & 1 == 0 {
                continue;
            }
            match action {
                TriggerAction::None => {}
                TriggerAction::On => pulses.on = true,
                TriggerAction::Off => pulses.off = true,
                TriggerAction::Notify => pulses.marker = Some(Sync::EXTERNAL_TRIGGER),
            }
        }
        if config.triggers {
            pulses.on |= b.trigger.on;
            pulses.off |= b.trigger.off;
            if b.trigger.notify {
                pulses.marker = Some(Sync::EVENT);
            }
        }
        pulses
    }
}

impl Hart {
    /// Any block at all.
    #[inline(never)]
    pub(super) fn any_block(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        if b.lost {
            self.lost(config, b.time);
        }
        if b.untraced {
            self.off(config, b.time, sink);
        }
        if b.reset {
            self.reset(sink);
        }
        self.time = b.time;
        let valid = b.iretire > 0 || b.itype.is_trap();
        // Blocks of a halted hart are the debugger's own.
        let asleep = (self.halted && b.halted) || (self.power_down && b.power_down);
        if valid && !asleep {
            self.valid(config, b, sink);
        } else {
            self.idle(config, b, sink);
        }
        self.halt(config, b.halted, b.time, sink);
        self.power(config, b.power_down, b.time, sink);
        self.settle(config);
    }

    /// A block with instructions or a trap.
    fn valid(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        let mut pulses = Pulses::of(config, b);
        self.enabled |= pulses.on;
        let filtered = self.filter.qualifies(b);
        if filtered.notify {
            pulses.marker = Some(Sync::EVENT);
        }
        if self.enabled && filtered.traced {
            if self.state == State::Running && self.out.is_dropping() && self.out.has_room(b.time) {
                self.state = State::Stopped;
            }
            if let (State::Running, Some(marker)) = (self.state, pulses.marker) {
                self.raise(marker);
            }
            if self.state == State::Running {
                self.arrive(config, b, sink);
            } else if !self.out.is_dropping() || self.out.has_room(b.time) {
                self.start(config, b, sink);
            } else {
                // Still no room; what is reported now is lost as well.
                self.forget();
                self.state = State::Running;
            }
            self.own(config, b, sink);
            self.count(config, b, sink);
        } else {
            self.untraced(config, b, sink);
        }
        // The block itself is the last one traced.
        self.enabled &= !pulses.off;
    }

    /// The trace continues with this block: what must be reported before it.
    fn arrive(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        let due = self.due;
        let back = self.pending == Pending::TrapReturn;
        if back && b.itype.is_trap() && b.iretire == 0 && config.version == Version::V1_0 {
            // A trap right after a trap return ("Corner Cases"): the return
            // as usual, a sync where it went, and a sync for the trap.
            self.resolve(config, b.iaddr, None, sink);
            let sync = due.unwrap_or(Sync::PERIODIC);
            self.sync_here(config, sync, b.iaddr, b.time, sink);
            self.raise(Sync::PERIODIC);
            return;
        }
        if self.resolve(config, b.iaddr, due, sink) {
            return;
        }
        // What became due just now, with that message, waits for the next block.
        if let Some(sync) = due
            && !(sync == Sync::PERIODIC && config.periodic.delayed)
        {
            self.sync_here(config, sync, b.iaddr, b.time, sink);
        }
    }

    /// A block that runs while tracing is off.
    fn untraced(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        match self.state {
            State::Running => {
                self.resolve(config, b.iaddr, None, sink);
                self.correlate(config, Evcode::DISABLED, b.time, sink);
            }
            // The trace starts disabled (table 26).
            State::Fresh => self.correlate(config, Evcode::DISABLED, b.time, sink),
            State::Disabled | State::Stopped => {}
        }
        self.state = State::Disabled;
        self.why = Sync::ENABLE;
        self.earlier += u64::from(b.iretire);
    }

    /// A block without instructions.
    fn idle(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        let pulses = Pulses::of(config, b);
        self.enabled |= pulses.on;
        if pulses.off {
            self.enabled = false;
            self.off(config, b.time, sink);
        }
        if let (State::Running, Some(marker)) = (self.state, pulses.marker) {
            self.raise(marker);
        }
    }

    /// Tracing ends after what was reported; where the hart goes is unknown.
    fn off(&mut self, config: &Config, time: u64, sink: &mut impl Sink) {
        if self.state == State::Running {
            self.correlate(config, Evcode::DISABLED, time, sink);
            self.state = State::Disabled;
            self.why = Sync::ENABLE;
        }
    }

    /// The level of `halted`.
    fn halt(&mut self, config: &Config, halted: bool, time: u64, sink: &mut impl Sink) {
        if halted && !self.halted {
            match self.state {
                State::Running | State::Disabled => {
                    self.correlate(config, Evcode::DEBUG, time, sink);
                    self.state = State::Stopped;
                }
                State::Fresh | State::Stopped => {}
            }
            if self.state != State::Fresh {
                self.why = Sync::DEBUG_EXIT;
            }
        }
        self.halted = halted;
    }

    /// The level of the power-down signal.
    fn power(&mut self, config: &Config, down: bool, time: u64, sink: &mut impl Sink) {
        if down && !self.power_down {
            if self.state == State::Running {
                self.correlate(config, Evcode::LOW_POWER, time, sink);
                self.state = State::Stopped;
            }
            if self.state == State::Stopped {
                self.why = Sync::POWER_UP;
            }
        }
        self.power_down = down;
    }

    /// The hart was reset; what ran before is reported with the sync message at
    /// the first instruction after it (table 25).
    fn reset(&mut self, sink: &mut impl Sink) {
        match self.state {
            State::Fresh => {}
            State::Running => {
                self.abandon(sink);
                self.raise(Sync::RESET);
            }
            State::Disabled | State::Stopped => self.why = Sync::RESET,
        }
    }

    /// Blocks are missing: everything unreported is lost with them.
    fn lost(&mut self, config: &Config, time: u64) {
        if self.state == State::Fresh {
            return;
        }
        self.out.lost_input(config.context, time);
        self.forget();
        if self.state == State::Running {
            self.state = State::Stopped;
        }
    }

    /// Nothing follows.
    pub(super) fn end(&mut self, config: &Config, sink: &mut impl Sink) {
        self.out.end();
        if self.out.has_loss() {
            // What came after the loss cannot be reported without a sync (7.4).
            self.out.report_loss(sink);
            self.forget();
        } else if self.state == State::Running {
            match config.ending {
                Ending::Reference => self.end_as_reference(config, sink),
                Ending::Correlation => {
                    let event = if self.enabled {
                        config.last_event
                    } else {
                        Evcode::DISABLED
                    };
                    self.correlate(config, event, self.time, sink);
                }
            }
        }
        self.state = State::Stopped;
        self.why = Sync::ENABLE;
        self.settle(config);
    }
}
