//! From steps to ingress blocks.

use alloc::vec::Vec;

use hartrace_isa::{Flow, Isa, Itype, ItypeTable};

use super::{Ctype, DataIngress, Ingress, IngressSink, Trigger};
use crate::{
    Access, AccessKind, Cause, Context, Effects, HartId, Insn, Observer, Signal, Step, TrapStep,
    Wants,
};

/// Width of `itype`: three bits do not tell jumps apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItypeWidth {
    /// Codes 0 to 6.
    Three,
    /// Codes 0 to 5 and 8 to 15.
    Four,
}

/// How many instructions a block may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retirement {
    /// One (table 4.3).
    Single,
    /// As many as lie behind each other, up to this many halfwords (table
    /// 4.2).
    Block(u32),
}

/// What kind of port a hart has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Instruction set of the code.
    pub isa: Isa,
    /// `itype_width_p`.
    pub itype_width: ItypeWidth,
    /// Whose table gives `itype`.
    pub table: ItypeTable,
    /// One instruction per block or several.
    pub retirement: Retirement,
    /// Sequentially inferable jumps are marked (`sijump`).
    pub sijump: bool,
    /// Direct jumps and calls are shown as taken branches (N-Trace
    /// trTeInstEnAllJumps).
    pub all_jumps: bool,
    /// ecall and ebreak count as retired in the block of their trap, as in
    /// N-Trace rc7 and the E-Trace reference flow. The ratified texts say they
    /// do not retire.
    pub ecall_retires: bool,
    /// How a change of context is to be reported.
    pub ctype: Ctype,
}

impl PortConfig {
    /// A single-retirement port of the ratified E-Trace text with four-bit
    /// `itype` and every optional signal.
    #[must_use]
    pub const fn new(isa: Isa) -> PortConfig {
        PortConfig {
            isa,
            itype_width: ItypeWidth::Four,
            table: ItypeTable::ETrace20,
            retirement: Retirement::Single,
            sijump: true,
            all_jumps: false,
            ecall_retires: false,
            ctype: Ctype::Precise,
        }
    }
}

/// The adapter: an [`Observer`] of steps that shows a sink what the port of
/// such a hart would show. Any number of harts, each with its own state.
#[derive(Debug)]
pub struct Port<S> {
    config: PortConfig,
    harts: Vec<(HartId, Hart)>,
    sink: S,
}

impl<S: IngressSink> Port<S> {
    /// A port in front of the sink.
    pub fn new(config: PortConfig, sink: S) -> Self {
        Port {
            config,
            harts: Vec::new(),
            sink,
        }
    }

    /// The sink. What is still gathered in a block is shown first.
    pub fn into_sink(mut self) -> S {
        self.flush();
        self.sink
    }

    fn flush(&mut self) {
        for (id, hart) in &mut self.harts {
            hart.close(*id, &mut self.sink);
        }
    }
}

impl<S: IngressSink> Observer for Port<S> {
    const WANTS: Wants = Wants::STEPS.and(Wants::ACCESSES);

    fn step(&mut self, id: HartId, step: &Step, effects: &Effects) {
        // Few harts, and mostly the same one again.
        let at = self.harts.iter().position(|(h, _)| *h == id);
        let at = at.unwrap_or_else(|| {
            self.harts.push((id, Hart::default()));
            self.harts.len() - 1
        });
        let Some((_, hart)) = self.harts.get_mut(at) else {
            return;
        };
        match step {
            Step::Insn(insn) => {
                hart.insn(&self.config, id, insn, &mut self.sink);
                if !effects.accesses.is_empty() {
                    hart.accesses(id, insn, &effects.accesses, &mut self.sink);
                }
            }
            Step::Trap(trap) => hart.trap(&self.config, id, trap, &mut self.sink),
            Step::Signal(signal) => hart.signal(id, *signal, &mut self.sink),
        }
    }

    fn finish(&mut self) {
        self.flush();
        self.sink.finish();
    }
}

/// What the port remembers of one hart.
#[derive(Debug, Default)]
struct Hart {
    /// A block that may still grow, or take in a trap.
    open: Option<Ingress>,
    /// Data accesses of the open block, shown after it.
    accesses: Vec<DataIngress>,
    /// The instruction before, for sequentially inferable jumps.
    before: Option<(Flow, u64)>,
    context: Option<Context>,
    trigger: Trigger,
    external: u8,
    halted: bool,
}

impl Hart {
    fn insn(&mut self, config: &PortConfig, id: HartId, insn: &Insn, sink: &mut impl IngressSink) {
        let flow = Flow::of(insn.bits, config.isa);
        let block = self.single(config, insn, flow);
        let ends = block.itype != Itype::None || insn.next != config.isa.xlen().wrap(insn.end());
        self.before = Some((flow, insn.pc));
        let room = match config.retirement {
            Retirement::Single => {
                sink.ingress(id, &block);
                return;
            }
            Retirement::Block(room) => room,
        };
        let marked = block.trigger != Trigger::default() || block.external != 0;
        let joined = self.open.filter(|open| {
            !marked
                && open.end() == block.iaddr
                && open.mode == block.mode
                && block.ctype == Ctype::Unreported
                && open.context == block.context
                && open.iretire + block.iretire <= room
        });
        let block = match joined {
            Some(open) => Ingress {
                itype: block.itype,
                iretire: open.iretire + block.iretire,
                ilastsize: block.ilastsize,
                sijump: block.sijump,
                ..open
            },
            None => {
                self.close(id, sink);
                block
            }
        };
        if ends || marked {
            // Taken by an itype of its own, or by a gap in the addresses: a
            // trap after it gets a block of its own.
            self.open = None;
            self.show(id, &block, sink);
        } else {
            self.open = Some(block);
        }
    }

    /// The block of one instruction.
    fn single(&mut self, config: &PortConfig, insn: &Insn, flow: Flow) -> Ingress {
        let taken = insn.next != config.isa.xlen().wrap(insn.end());
        let sijump = config.sijump
            && self.before.is_some_and(|(before, pc)| {
                let target = flow.sequential_target(before, pc, config.isa.xlen());
                target == Some(insn.next)
            });
        let mut itype = match config.itype_width {
            ItypeWidth::Three => flow.itype3(taken, config.table),
            ItypeWidth::Four => flow.itype4(taken, config.table),
        };
        if config.all_jumps && matches!(flow, Flow::Jump { .. } | Flow::Table { .. }) {
            itype = Itype::Taken;
        }
        let changed = self.context.is_some_and(|c| c != insn.context);
        self.context = Some(insn.context);
        Ingress {
            itype,
            iretire: u32::from(insn.len()) / 2,
            ilastsize: last_size(insn.len()),
            iaddr: insn.pc,
            mode: insn.mode,
            context: insn.context,
            ctype: if changed {
                config.ctype
            } else {
                Ctype::Unreported
            },
            sijump,
            time: insn.time,
            trigger: core::mem::take(&mut self.trigger),
            external: core::mem::take(&mut self.external),
            halted: self.halted,
            ..Ingress::default()
        }
    }

    fn trap(&mut self, config: &PortConfig, id: HartId, t: &TrapStep, sink: &mut impl IngressSink) {
        let (itype, cause) = match t.trap.cause {
            Cause::Interrupt(code) => (Itype::Interrupt, code),
            Cause::Exception(code) => (Itype::Exception, code),
            // The port has no code for "something": an exception says least.
            Cause::Unknown => (Itype::Exception, None),
        };
        let retires = t
            .bits
            .filter(|&bits| config.ecall_retires && Flow::of(bits, config.isa) == Flow::Trap);
        let len = retires.map_or(0, |bits| hartrace_isa::length(bits as u16));
        let alone = Ingress {
            iretire: u32::from(len) / 2,
            ilastsize: last_size(len),
            iaddr: t.trap.epc,
            mode: t.mode,
            context: t.context,
            time: t.time,
            trigger: core::mem::take(&mut self.trigger),
            external: core::mem::take(&mut self.external),
            halted: self.halted,
            ..Ingress::default()
        };
        let open = self.open.take();
        let joined = open.filter(|o| o.end() == alone.iaddr && o.mode == alone.mode);
        if joined.is_none()
            && let Some(open) = open
        {
            self.show(id, &open, sink);
        }
        let block = joined.map_or(alone, |open| Ingress {
            iretire: open.iretire + alone.iretire,
            ilastsize: if len == 0 {
                open.ilastsize
            } else {
                alone.ilastsize
            },
            ..open
        });
        let block = Ingress {
            itype,
            cause: cause.unwrap_or(0),
            tval: t.trap.tval.unwrap_or(0),
            ..block
        };
        self.before = None;
        self.show(id, &block, sink);
    }

    fn signal(&mut self, id: HartId, signal: Signal, sink: &mut impl IngressSink) {
        match signal {
            Signal::TraceOn => self.trigger.on = true,
            Signal::TraceOff => self.trigger.off = true,
            Signal::Notify => self.trigger.notify = true,
            Signal::External(n) => self.external |= 1u8.checked_shl(u32::from(n)).unwrap_or(0),
            Signal::Halted | Signal::Resumed | Signal::Reset | Signal::Lost => {
                self.close(id, sink);
                self.before = None;
                self.halted = signal == Signal::Halted;
                // Steps that nobody saw are a hart that was not watched: it
                // shows as halted for one cycle.
                let idle = Ingress {
                    halted: matches!(signal, Signal::Halted | Signal::Lost),
                    reset: signal == Signal::Reset,
                    ..Ingress::default()
                };
                sink.ingress(id, &idle);
            }
        }
    }

    fn accesses(
        &mut self,
        id: HartId,
        insn: &Insn,
        accesses: &[Access],
        sink: &mut impl IngressSink,
    ) {
        for access in accesses {
            let paired = access.kind.code() >= AccessKind::CsrReadWrite.code();
            // Both values in one signal, the stored one in the low half.
            let shift = if paired { 8u32 << (access.size & 3) } else { 0 };
            let high = u128::from(access.operand.filter(|_| paired).unwrap_or(0));
            let access = DataIngress {
                dretire: true,
                dtype: access.kind.code(),
                daddr: access.addr,
                dsize: access.size,
                data: u128::from(access.data.unwrap_or(0)) | high << shift,
                iaddr_lsbs: insn.pc,
                sdata: access.data.unwrap_or(0),
                ..DataIngress::default()
            };
            if self.open.is_some() {
                self.accesses.push(access);
            } else {
                sink.data(id, &access);
            }
        }
    }

    /// Shows a block and the accesses that waited for it.
    fn show(&mut self, id: HartId, block: &Ingress, sink: &mut impl IngressSink) {
        sink.ingress(id, block);
        for access in self.accesses.drain(..) {
            sink.data(id, &access);
        }
    }

    fn close(&mut self, id: HartId, sink: &mut impl IngressSink) {
        if let Some(open) = self.open.take() {
            self.show(id, &open, sink);
        }
    }
}

/// `ilastsize` of an instruction of so many bytes: log2 of its halfwords,
/// rounded up for the lengths that are no power of two.
const fn last_size(len: u8) -> u8 {
    match len {
        0..=2 => 0,
        3..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests;
