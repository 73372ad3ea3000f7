//! The steps that pass the filters of an encoder.

use hartrace_flow::filter::{Filter, FilterConfig};
use hartrace_flow::{
    Effects, HartId, Ingress, IngressSink, Observer, Port, PortConfig, Step, TrapStep, Wants,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Whether a block without instructions shows a trap, whatever type it has in the
/// table of the port.
fn is_at(block: &Ingress, step: &TrapStep) -> bool {
    block.iretire == 0 && step.trap.epc == Some(block.iaddr)
}

/// Asks the filters about each block, as an encoder at the same port does.
pub(super) struct Passed {
    port: Port<Shared>,
    gate: Shared,
}

#[derive(Clone)]
struct Shared(Rc<RefCell<Gate>>);

struct Gate {
    config: FilterConfig,
    /// A trap is reported only with the first block of its handler.
    late_traps: bool,
    harts: Vec<Hart>,
    /// Steps that passed.
    out: VecDeque<(HartId, Step)>,
}

struct Hart {
    id: HartId,
    filter: Filter,
    /// Steps that no block has shown yet.
    waiting: VecDeque<Step>,
    /// A trap that passes if the next block does.
    last_trap: Option<Step>,
}

impl Passed {
    /// For an encoder at such a port; `None` if everything passes. With
    /// `late_traps` it reports a trap only if the handler passes too.
    pub(super) fn new(
        port: &PortConfig,
        config: &FilterConfig,
        late_traps: bool,
    ) -> Option<Passed> {
        if Filter::new(config).is_empty() {
            return None;
        }
        let gate = Shared(Rc::new(RefCell::new(Gate {
            config: *config,
            late_traps,
            harts: Vec::new(),
            out: VecDeque::new(),
        })));
        Some(Passed {
            port: Port::new(*port, gate.clone()),
            gate,
        })
    }

    /// A step that passed.
    pub(super) fn next(&mut self) -> Option<(HartId, Step)> {
        self.gate.0.borrow_mut().out.pop_front()
    }
}

/// Steps that pass come out of [`Passed::next`], some later.
impl Observer for Passed {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.gate.0.borrow_mut().hart(hart).waiting.push_back(*step);
        self.port.step(hart, step, effects);
    }

    fn finish(&mut self) {
        self.port.finish();
        let gate = &mut *self.gate.0.borrow_mut();
        for hart in &mut gate.harts {
            let last = hart.last_trap.take().map(|step| (hart.id, step));
            gate.out.extend(last);
        }
    }
}

impl Gate {
    fn hart(&mut self, id: HartId) -> &mut Hart {
        let at = self.harts.iter().position(|hart| hart.id == id);
        let at = at.unwrap_or_else(|| {
            self.harts.push(Hart {
                id,
                filter: Filter::new(&self.config),
                waiting: VecDeque::new(),
                last_trap: None,
            });
            self.harts.len() - 1
        });
        // Found or pushed just now.
        #[allow(clippy::indexing_slicing)]
        &mut self.harts[at]
    }
}

impl IngressSink for Shared {
    fn ingress(&mut self, id: HartId, block: &Ingress) {
        let gate = &mut *self.0.borrow_mut();
        let mut out = std::mem::take(&mut gate.out);
        let late_traps = gate.late_traps;
        let hart = gate.hart(id);
        let traced = hart.filter.qualifies(block).traced;
        if block.iretire > 0 || block.itype.is_trap() {
            let last = hart.last_trap.take().filter(|_| traced);
            out.extend(last.map(|step| (id, step)));
        }
        let mut bytes = u64::from(block.iretire) * 2;
        let mut trap = block.itype.is_trap();
        // An instruction that traps may count as retired, without a step of its
        // own.
        while let Some(step) = hart.waiting.front() {
            let shown = match step {
                Step::Insn(insn) if bytes > 0 => {
                    bytes = bytes.saturating_sub(insn.len().into());
                    true
                }
                // What is left of the block is the instruction that trapped.
                Step::Trap(step) if trap || bytes > 0 || is_at(block, step) => {
                    (bytes, trap) = (0, false);
                    true
                }
                Step::Signal(_) => bytes > 0 || trap,
                _ => false,
            };
            if !shown {
                break;
            }
            let step = hart.waiting.pop_front().filter(|_| traced);
            if late_traps && matches!(step, Some(Step::Trap(_))) {
                hart.last_trap = step;
                continue;
            }
            out.extend(step.map(|step| (id, step)));
        }
        gate.out = out;
    }
}
