//! Interruptions of the walk: traps, returns from them, signals, new contexts
//! and jumps in time.

use hartrace_flow::{Cause, Context, Mode, Observer, Signal, Step, Trap, TrapStep};

use super::asm;
use super::layout::Kind;
use super::program::Op;
use super::walk::{Driver, Frame, Surprise};

/// Whether a trap taken in one mode may be handled in another.
const fn may_trap(from: Mode, to: Mode) -> bool {
    match to {
        Mode::M => true,
        Mode::S => !matches!(from, Mode::M),
        Mode::VS => from.is_virtual(),
        _ => false,
    }
}

/// Whether a handler in one mode may return to another.
const fn may_return(from: Mode, to: Mode) -> bool {
    match from {
        Mode::M => true,
        Mode::S => !matches!(to, Mode::M),
        Mode::VS => to.is_virtual(),
        _ => false,
    }
}

impl Driver<'_> {
    /// Something from outside; gives the number of steps it made, 0 or 1.
    pub(super) fn surprise<O: Observer>(&mut self, out: &mut O) -> u32 {
        if self.halted {
            self.halted = false;
            self.time = self.time.wrapping_add(u64::from(self.spec.timed) * 1000);
            self.until = self.interval();
            return self.signal(Signal::Resumed, out);
        }
        let what = match self.forced.take() {
            Some(what) => what,
            None => self.choose_surprise(),
        };
        self.until = self.interval();
        match what {
            Surprise::Interrupt => self.interrupt(self.at, out),
            Surprise::Exception => self.exception(out),
            Surprise::Signal => {
                let signal = self.choose_signal();
                return self.signal(signal, out);
            }
            Surprise::Context => {
                self.context = self.new_context();
                return 0;
            }
            Surprise::Leap => {
                let leap = self.r.pick(&[100, 0x1_0000, 0x1_0000_0000]);
                let leap = leap * u64::from(self.spec.timed);
                self.time = self.time.wrapping_add(leap);
                return 0;
            }
        }
        1
    }

    fn choose_surprise(&mut self) -> Surprise {
        let s = &self.spec.surprises;
        let traps = self.spec.traps && self.frames.len() < s.nesting as usize;
        let traps = u32::from(traps);
        self.r.weighted(&[
            (s.interrupt * traps, Surprise::Interrupt),
            (s.exception * traps, Surprise::Exception),
            (s.signal, Surprise::Signal),
            (s.context, Surprise::Context),
            (s.leap, Surprise::Leap),
        ])
    }

    fn signal<O: Observer>(&mut self, signal: Signal, out: &mut O) -> u32 {
        self.tell(&Step::Signal(signal), out);
        1
    }

    fn choose_signal(&mut self) -> Signal {
        match self.r.below32(8) {
            0 | 1 => {
                self.halted = true;
                self.until = 0;
                Signal::Halted
            }
            2..=4 => {
                // Off is followed by on, with few exceptions.
                if self.r.chance(900) {
                    self.tracing = !self.tracing;
                }
                match self.tracing {
                    true => Signal::TraceOn,
                    false => Signal::TraceOff,
                }
            }
            5 => Signal::External(self.r.below32(16) as u8),
            _ => Signal::Notify,
        }
    }

    pub(super) fn new_context(&mut self) -> Context {
        let contexts = self.spec.contexts;
        let nth = self.r.below32(contexts.max(1));
        // Small numbers, one that fills its field, and with a hypervisor two
        // halves.
        let guest = self.r.below32(3) * u32::from(self.spec.modes == super::Modes::Hypervisor);
        match nth {
            0 => Context(0),
            1 => Context::new(u32::MAX, guest),
            _ => Context::new(nth * 0x101, guest),
        }
    }

    /// An interrupt before the op that comes next.
    pub(super) fn interrupt<O: Observer>(&mut self, resume: u32, out: &mut O) {
        let code = self.r.pick(&[1, 3, 5, 7, 9, 11, 2, 6, 10, 12, 13, 17, 43]);
        let tval = Some(0);
        self.trap(Cause::Interrupt(Some(code)), None, tval, resume, out);
    }

    /// An exception on the op that comes next, whatever it is.
    fn exception<O: Observer>(&mut self, out: &mut O) {
        let Some(&op) = self.program.ops.get(self.at as usize) else {
            return;
        };
        let code = self.r.pick(&[0, 1, 2, 2, 4, 5, 6, 7, 12, 13, 13, 15]);
        let fetch = matches!(code, 0 | 1 | 12);
        let tval = match code {
            2 => u64::from(op.bits),
            _ if fetch => op.pc,
            _ => self.r.draw(),
        };
        let tval = self.spec.xlen.wrap(tval);
        let bits = (!fetch).then_some(op.bits);
        // What a handler emulates it steps over; the rest is tried again.
        let over = op.kind == Kind::Seq && self.r.chance(500);
        let resume = self.at + u32::from(over);
        let cause = Cause::Exception(Some(code));
        self.trap(cause, bits, Some(tval), resume, out);
    }

    /// ecall, ebreak and c.ebreak.
    pub(super) fn environment<O: Observer>(&mut self, op: &Op, out: &mut O) {
        let (code, tval) = match (op.bits, self.mode) {
            (asm::ECALL, Mode::U | Mode::VU) => (8, 0),
            (asm::ECALL, Mode::S) => (9, 0),
            (asm::ECALL, Mode::VS) => (10, 0),
            (asm::ECALL, _) => (11, 0),
            _ => (3, op.pc),
        };
        let resume = self.at + 1;
        let cause = Cause::Exception(Some(code));
        self.trap(cause, Some(op.bits), Some(tval), resume, out);
    }

    fn trap<O: Observer>(
        &mut self,
        cause: Cause,
        bits: Option<u32>,
        tval: Option<u64>,
        resume: u32,
        out: &mut O,
    ) {
        let to = self.handler_mode();
        let (interrupt, code) = match cause {
            Cause::Interrupt(code) => (true, code.unwrap_or_default()),
            Cause::Exception(code) => (false, code.unwrap_or_default()),
            Cause::Unknown => (false, 0),
        };
        let handler = self.program.handler(to, interrupt, code, &mut self.r);
        self.pass_time();
        let step = TrapStep {
            trap: Trap {
                epc: Some(self.program.pc_of(self.at)),
                handler: Some(self.program.pc_of(handler)),
                cause,
                tval,
                pending: None,
            },
            bits,
            mode: self.mode,
            context: self.context,
            time: self.time,
        };
        self.tell(&Step::Trap(step), out);
        self.suspend(resume);
        self.mode = to;
        self.at = handler;
        self.landed = true;
        if self.r.chance(self.spec.surprises.back_to_back) {
            self.until = 0;
            self.forced = Some(self.r.pick(&[Surprise::Interrupt, Surprise::Exception]));
        }
    }

    fn handler_mode(&mut self) -> Mode {
        let from = self.mode;
        self.some_mode(|to| may_trap(from, to))
    }

    /// One of the hart's modes that fit; M when none does.
    fn some_mode(&mut self, fits: impl Fn(Mode) -> bool) -> Mode {
        let all = self.spec.modes.all().iter().copied();
        let fitting = all.filter(|&mode| fits(mode));
        let nth = self.r.below(fitting.clone().count() as u64) as usize;
        fitting.clone().nth(nth).unwrap_or_default()
    }

    /// mret, sret: back to what was interrupted, or to another task.
    pub(super) fn trap_return<O: Observer>(&mut self, op: &Op, out: &mut O) {
        let mut frame = match self.frames.pop() {
            Some(frame) => frame,
            None => self.new_task(),
        };
        // Only outermost: an interrupted handler needs the frames below it.
        if self.frames.is_empty() && self.r.chance(self.spec.surprises.switch_task) {
            let nth = self.r.below(self.parked.len() as u64) as usize;
            let from = self.mode;
            let other = self.parked.get_mut(nth);
            if let Some(other) = other.filter(|o| may_return(from, o.mode)) {
                std::mem::swap(&mut frame, other);
            }
        }
        self.go(op, frame.resume, out);
        // A pair that was interrupted still has its constant.
        self.landed = false;
        self.mode = frame.mode;
        self.context = frame.context;
        let handler_calls = std::mem::replace(&mut self.calls, frame.calls);
        self.recycle(handler_calls);
    }

    fn new_task(&mut self) -> Frame {
        let from = self.mode;
        Frame {
            resume: self.anywhere(),
            mode: self.some_mode(|to| may_return(from, to)),
            context: self.context,
            calls: Vec::new(),
        }
    }
}
