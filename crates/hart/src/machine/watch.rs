//! Instruction by instruction, where triggers may match.

use hartrace_flow::{
    AccessKind, Cause, Few, HartId, Mode, Observer, RegId, Signal, Step, Touch, Wants,
};
use hartrace_isa::{Inst, Op, Reg, decode, length};

use crate::cpu::{Cpu, Exception, cause};
use crate::machine::{Machine, Stop};
use crate::triggers::{Circumstances, Fired, Looked, Touched};
use crate::width::Width;

/// The registers of `cm.push` and its family, in the order of their lists.
const SAVED: [u8; 13] = [1, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

/// An instruction that is being watched.
pub(crate) struct Watched {
    pc: u64,
    insn: Option<(u32, u8)>,
    accesses: Accesses,
    now: Circumstances,
    /// Instructions retired before it.
    retired: u64,
}

type Accesses = Few<Touched, 16>;

impl Machine {
    /// Executes one instruction, with a look at what it does.
    pub(super) fn step_watched<W: Width, O: Observer>(&mut self, observer: &mut O) -> Option<Stop> {
        let watched = match self.before_step(observer) {
            Ok(watched) => watched,
            Err(stop) => return stop,
        };
        let stop = self.execute::<W, O>(&mut 1, observer);
        self.after_step(Some(watched), observer).or(stop)
    }

    /// Lets triggers fire that match the instruction at pc before it retires. `Err` if a
    /// breakpoint was taken instead of it, with a stop if that happens for ever.
    pub(crate) fn before_step<O: Observer>(
        &mut self,
        observer: &mut O,
    ) -> Result<Watched, Option<Stop>> {
        let cpu = &mut self.hart.cpu;
        let (pc, mode) = (cpu.pc, cpu.mode);
        let now = cpu.circumstances(mode, mode);
        let mut watched = Watched {
            pc,
            insn: None,
            accesses: Accesses::default(),
            now,
            retired: cpu.retired,
        };
        let mut fired = cpu.triggers.begin(&now);
        if fired.breakpoint.is_none() {
            fired = fired.and(self.look(&watched, false));
        }
        if fired.breakpoint.is_none()
            && let Some(bits) = self.instruction()
        {
            watched.insn = Some((bits, length(bits as u16)));
            fired = fired.and(self.look(&watched, false));
            if fired.breakpoint.is_none() {
                watched.accesses = accesses(&self.hart.cpu, bits);
                fired = fired.and(self.look(&watched, false));
            }
        }
        self.tell_fired(&fired, observer);
        let Some(tval) = fired.breakpoint else {
            return Ok(watched);
        };
        let stop = self.breakpoint(tval, observer);
        self.hart.cpu.triggers.end();
        Err(stop)
    }

    /// Lets triggers fire that match when the instruction has retired, and counts it.
    pub(super) fn after_step<O: Observer>(
        &mut self,
        watched: Option<Watched>,
        observer: &mut O,
    ) -> Option<Stop> {
        let fired = self.finish_step(watched);
        self.tell_fired(&fired, observer);
        self.breakpoint(fired.breakpoint?, observer)
    }

    /// The same without consequences: what has fired.
    pub(crate) fn finish_step(&mut self, watched: Option<Watched>) -> Fired {
        let mut fired = Fired::default();
        if let Some(mut watched) = watched
            && self.hart.cpu.retired > watched.retired
        {
            let before = watched.accesses;
            watched.accesses.clear();
            for access in before.iter() {
                let loaded = access
                    .to
                    .map(|reg| value(&self.hart.cpu, reg, access.bytes));
                let _ = watched.accesses.push(Touched { loaded, ..*access });
            }
            fired = self.look(&watched, true);
        }
        self.hart.cpu.triggers.end();
        fired
    }

    fn look(&mut self, watched: &Watched, retired: bool) -> Fired {
        let looked = Looked {
            pc: watched.pc,
            insn: watched.insn,
            accesses: &watched.accesses,
            retired,
        };
        self.hart.cpu.triggers.look(&looked, &watched.now)
    }

    /// The instruction at pc, if it can be fetched.
    fn instruction(&mut self) -> Option<u32> {
        let pc = self.hart.cpu.pc;
        let low = self.code_at(pc)?;
        if length(low) == 2 {
            return Some(low.into());
        }
        let next = self.hart.cpu.xlen().wrap(pc.wrapping_add(2));
        let high = self.code_at(next)?;
        Some(u32::from(low) | u32::from(high) << 16)
    }

    /// Takes the exception of a trigger. Other triggers do not match it.
    pub(crate) fn breakpoint<O: Observer>(&mut self, tval: u64, observer: &mut O) -> Option<Stop> {
        let code = cause::BREAKPOINT;
        if let Some(stop) = self.is_endless(Exception { code, tval }) {
            return Some(stop);
        }
        self.take_trap(Cause::Exception(Some(code)), tval, None, observer);
        None
    }

    /// A trap has been taken from a mode: lets triggers for it fire before its handler.
    #[cold]
    pub(super) fn watch_trap<O: Observer>(&mut self, why: Cause, from: Mode, observer: &mut O) {
        let cpu = &mut self.hart.cpu;
        let judged = match cpu.triggers.judges_handlers() {
            true => cpu.mode,
            false => from,
        };
        let now = cpu.circumstances(from, judged);
        let fired = cpu.triggers.trapped(why, &now);
        self.tell_fired(&fired, observer);
        if let Some(tval) = fired.breakpoint {
            let breakpoint = Cause::Exception(Some(cause::BREAKPOINT));
            self.take_trap(breakpoint, tval, None, observer);
        }
    }

    /// Reports trace actions, which belong to the instruction that follows.
    fn tell_fired<O: Observer>(&mut self, fired: &Fired, observer: &mut O) {
        if !fired.traces() || !O::WANTS.contains(Wants::EVENTS) {
            return;
        }
        let id = HartId(self.hart.cpu.id);
        self.hart.effects.clear();
        for (has_fired, signal) in [
            (fired.trace_on, Signal::TraceOn),
            (fired.notify, Signal::Notify),
            (fired.trace_off, Signal::TraceOff),
        ] {
            if has_fired {
                observer.step(id, &Step::Signal(signal), &self.hart.effects);
            }
        }
    }
}

/// The accesses that an instruction is about to make.
fn accesses(cpu: &Cpu, bits: u32) -> Accesses {
    let inst = decode(bits, cpu.isa);
    let mut all = Accesses::default();
    let touch = Touch::of(bits, cpu.isa);
    if let Touch::Accesses { kind, size, count } = touch
        && matches!(
            inst.op,
            Op::CmPush | Op::CmPop | Op::CmPopret | Op::CmPopretz
        )
    {
        moved(cpu, &inst, (kind, size, count), &mut all);
    } else if let Some(touched) = single(cpu, &inst, touch) {
        // There is room.
        let _ = all.push(touched);
    }
    all
}

/// The only access of an instruction, if it makes one.
fn single(cpu: &Cpu, inst: &Inst, touch: Touch) -> Option<Touched> {
    let base = cpu.read_x(inst.rs1.number());
    let addr = cpu.xlen().wrap(base.wrapping_add(inst.imm as u64));
    let is_float = matches!(
        inst.op,
        Op::Flh | Op::Flw | Op::Fld | Op::Fsh | Op::Fsw | Op::Fsd
    );
    let register = |reg: Reg| match is_float {
        true => RegId::F(reg.number()),
        false => RegId::X(reg.number()),
    };
    let (load, store, size) = match touch {
        _ if inst.op == Op::CboZero => return block(cpu, inst.op, addr),
        Touch::Conditional { size } => (false, true, size),
        // Two accesses of half the size, or one.
        Touch::Swap { size, count } => (true, true, size + count - 1),
        // Not executed.
        Touch::Vector { .. } => return None,
        Touch::Accesses { kind, .. } if kind.is_csr() => return None,
        Touch::Accesses { kind, size, .. } => {
            (kind != AccessKind::Store, kind != AccessKind::Load, size)
        }
        Touch::Nothing => return block(cpu, inst.op, addr),
    };
    let bytes = 1 << size;
    // What an atomic memory operation stores depends on what it loads.
    let stored = (store && !load).then(|| value(cpu, register(inst.rs2), bytes));
    Some(Touched {
        load,
        store,
        addr,
        bytes,
        block: false,
        stored,
        loaded: None,
        to: Some(register(inst.rd)).filter(|reg| load && *reg != RegId::X(0)),
    })
}

/// What an operation on the block of an address does.
fn block(cpu: &Cpu, op: Op, addr: u64) -> Option<Touched> {
    let is_store = matches!(op, Op::CboInval | Op::CboClean | Op::CboFlush | Op::CboZero);
    is_store.then(|| Touched {
        store: true,
        addr: addr & !(cpu.cache_block - 1),
        bytes: cpu.cache_block,
        block: true,
        ..Touched::default()
    })
}

/// The registers that `cm.push` and its family move; the last of the list is at the
/// highest address.
fn moved(cpu: &Cpu, inst: &Inst, what: (AccessKind, u8, u8), all: &mut Accesses) {
    let (kind, size, count) = what;
    let (load, bytes) = (kind == AccessKind::Load, 1 << size);
    let sp = cpu.read_x(Reg::SP.number());
    let top = match load {
        true => sp.wrapping_add(inst.imm as u64),
        false => sp,
    };
    let list = SAVED.iter().take(count.into()).rev();
    for (number, place) in list.zip(1u64..) {
        let reg = RegId::X(*number);
        let touched = Touched {
            load,
            store: !load,
            addr: cpu.xlen().wrap(top.wrapping_sub(place << size)),
            bytes,
            block: false,
            stored: (!load).then(|| value(cpu, reg, bytes)),
            loaded: None,
            to: load.then_some(reg),
        };
        // There is room for all of them.
        let _ = all.push(touched);
    }
}

/// The low bytes of a register.
fn value(cpu: &Cpu, register: RegId, bytes: u64) -> u64 {
    let value = match register {
        RegId::X(number) => cpu.read_x(number),
        RegId::F(number) => cpu.f.get(usize::from(number)).copied().unwrap_or(0),
    };
    value & u64::MAX >> (64 - 8 * bytes.clamp(1, 8))
}
