//! The steps that pass the filters of an encoder, while triggers let it trace.

use hartrace_flow::filter::{Filter, FilterConfig};
use hartrace_flow::{
    Access, DataIngress, DataPort, Effects, HartId, Ingress, IngressSink, Insn, Observer, Port,
    PortConfig, Step, TrapStep, Wants,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Whether a block without instructions shows a trap, whatever type it has in the
/// table of the port.
fn is_at(block: &Ingress, step: &TrapStep) -> bool {
    block.iretire == 0 && step.trap.epc == Some(block.iaddr)
}

/// What starts and stops an encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Switches {
    /// Tracing waits for one of these.
    pub(super) starts_disabled: bool,
    /// Debug triggers do.
    pub(super) triggers: bool,
    /// External triggers that start it, and those that stop it, one bit each.
    pub(super) external_on: u8,
    pub(super) external_off: u8,
}

impl Switches {
    fn turns_on(&self, block: &Ingress) -> bool {
        self.triggers && block.trigger.on || self.external_on & block.external != 0
    }

    fn turns_off(&self, block: &Ingress) -> bool {
        self.triggers && block.trigger.off || self.external_off & block.external != 0
    }
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
    switches: Switches,
    /// A trap is reported only with the first block of its handler.
    late_traps: bool,
    harts: Vec<Hart>,
    /// Steps that passed.
    out: VecDeque<PassedStep>,
}

/// A step that passed, and those of its accesses that did.
pub(super) struct PassedStep {
    pub(super) hart: HartId,
    pub(super) step: Step,
    pub(super) effects: Box<Effects>,
}

struct Hart {
    id: HartId,
    filter: Filter,
    /// Triggers have tracing enabled.
    enabled: bool,
    /// Steps that no block has shown yet.
    waiting: VecDeque<Step>,
    /// The instruction shown last. One with several accesses is shown again.
    last: Option<Insn>,
    /// The block shown last passed.
    traced: bool,
    /// A trap that passes if the next block does.
    last_trap: Option<Step>,
}

impl Passed {
    /// For an encoder at such a port; `None` if everything passes. With
    /// `late_traps` it reports a trap only if the handler passes too.
    pub(super) fn new(
        port: &PortConfig,
        (config, switches): (&FilterConfig, Switches),
        late_traps: bool,
    ) -> Option<Passed> {
        if Filter::new(config).is_empty() && switches == Switches::default() {
            return None;
        }
        let gate = Shared(Rc::new(RefCell::new(Gate {
            config: *config,
            switches,
            late_traps,
            harts: Vec::new(),
            out: VecDeque::new(),
        })));
        // All of an access at once, however the encoder's own port shows it.
        let data = match port.data {
            DataPort::None => DataPort::None,
            _ => DataPort::Unified,
        };
        Some(Passed {
            port: Port::new(PortConfig { data, ..*port }, gate.clone()),
            gate,
        })
    }

    /// A step that passed.
    pub(super) fn next(&mut self) -> Option<PassedStep> {
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
            let last = hart.last_trap.take();
            gate.out
                .extend(last.map(|step| PassedStep::new(hart.id, step)));
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
                enabled: !self.switches.starts_disabled,
                waiting: VecDeque::new(),
                last: None,
                traced: false,
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
        let (late_traps, switches) = (gate.late_traps, gate.switches);
        let hart = gate.hart(id);
        hart.enabled |= switches.turns_on(block);
        let traced = hart.filter.qualifies(block).traced && hart.enabled;
        // The block itself is the last one traced.
        hart.enabled &= !switches.turns_off(block);
        hart.traced = traced;
        if block.iretire > 0 || block.itype.is_trap() {
            let last = hart.last_trap.take().filter(|_| traced);
            out.extend(last.map(|step| PassedStep::new(id, step)));
        }
        let mut bytes = u64::from(block.iretire) * 2;
        let again = hart.last.filter(|last| last.pc == block.iaddr);
        let first = hart.waiting.front();
        if let (Some(again), false) = (
            again,
            matches!(first, Some(Step::Insn(i)) if i.pc == block.iaddr),
        ) {
            bytes = bytes.saturating_sub(again.len().into());
        }
        let mut trap = block.itype.is_trap();
        // An instruction that traps may count as retired, without a step of its
        // own.
        while let Some(step) = hart.waiting.front() {
            let shown = match step {
                Step::Insn(insn) if bytes > 0 => {
                    hart.last = Some(*insn);
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
            out.extend(step.map(|step| PassedStep::new(id, step)));
        }
        gate.out = out;
    }

    fn data(&mut self, id: HartId, data: &DataIngress) {
        let gate = &mut *self.0.borrow_mut();
        let hart = gate.hart(id);
        let passes = hart.filter.qualifies_data(data).traced && hart.traced;
        if !data.dretire || !passes {
            return;
        }
        let Some(access) = data.access() else {
            return;
        };
        // Its instruction was shown right before.
        let mut shown = gate.out.iter_mut().rev();
        let by = |passed: &&mut PassedStep| {
            passed.hart == id
                && matches!(passed.step, Step::Insn(insn) if insn.pc == data.iaddr_lsbs)
        };
        if let Some(passed) = shown.find(by) {
            passed.add(access);
        }
    }
}

impl PassedStep {
    fn new(hart: HartId, step: Step) -> PassedStep {
        PassedStep {
            hart,
            step,
            effects: Box::default(),
        }
    }

    fn add(&mut self, access: Access) {
        match access.kind.is_csr() {
            true => self.effects.csr_access = Some(access),
            false => {
                // There is room for all that one instruction does.
                let _ = self.effects.accesses.push(access);
            }
        }
    }
}
