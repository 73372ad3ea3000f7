//! The trace ingress port (E-Trace chapter 4), and that of CVA6.

use super::edge::{At, Fault, Show, Shown};
use super::fields::Block;
use super::find::{Bits, Lane, Plan};
use hartrace_files::wave_port::WavePort;
use hartrace_flow::{Context, Ctype, Ingress, Mode, Trigger};
use hartrace_isa::Itype;
use hartrace_logs::LineErrorKind;
use hartrace_wave::WaveError;

/// The state of the port between edges.
pub(super) struct IngressPort {
    /// A signal was known at some edge: before, a simulation has only begun.
    known: bool,
    /// The blocks of a cycle.
    blocks: Vec<Ingress>,
    /// Instructions that trap count as retired.
    traps_retire: bool,
    /// The levels of the sideband at the last edge.
    levels: (bool, bool),
}

impl IngressPort {
    pub(super) fn new(plan: &Plan) -> IngressPort {
        IngressPort {
            known: false,
            blocks: Vec::new(),
            traps_retire: plan.port == WavePort::Cva6,
            levels: (false, false),
        }
    }

    /// The hart starts again.
    pub(super) fn restart(&mut self) {
        self.levels = (false, false);
    }

    pub(super) fn edge(
        &mut self,
        at: &mut At<'_, '_>,
        show: &mut Show<'_>,
    ) -> Result<(), WaveError> {
        match self.cycle(at) {
            Ok(()) => {
                self.known = true;
                if !self.blocks.is_empty() {
                    show(Shown::Blocks(&self.blocks));
                }
            }
            Err(Fault::Wave(error)) => return Err(error),
            Err(Fault::Line(_)) if !self.known => {}
            Err(Fault::Line(error)) => {
                show(Shown::Damaged(error));
                show(Shown::Lost);
            }
        }
        Ok(())
    }

    /// Reads the blocks of a cycle; none if it shows nothing.
    fn cycle(&mut self, at: &mut At<'_, '_>) -> Result<(), Fault> {
        self.blocks.clear();
        let plan = at.plan;
        for lane in &plan.lanes {
            if let Some(block) = self.block(at, lane)? {
                self.blocks.push(block);
            }
        }
        let Some(lane) = plan.lanes.first() else {
            return Ok(());
        };
        let levels = (
            at.get(lane.block(Block::Halted))?
                .is_some_and(|level| level != 0),
            at.get(lane.block(Block::Reset))?
                .is_some_and(|level| level != 0),
        );
        let trigger = at.get(lane.block(Block::Trigger))?.unwrap_or(0);
        if self.blocks.is_empty() {
            // A cycle in which nothing retires matters where the sideband does.
            if levels == self.levels && trigger == 0 {
                return Ok(());
            }
            self.blocks.push(Ingress::default());
        }
        self.levels = levels;
        self.shared(at, lane, trigger)
    }

    /// The block of a lane; `None` if it shows nothing.
    fn block(&self, at: &mut At<'_, '_>, lane: &Lane) -> Result<Option<Ingress>, Fault> {
        if at.get(lane.block(Block::Valid))? == Some(0) {
            return Ok(None);
        }
        let iretire = at.get(lane.block(Block::Iretire))?.unwrap_or(0);
        let code = at.get(lane.block(Block::Itype))?.unwrap_or(0);
        let itype = u8::try_from(code).ok().and_then(Itype::from_code);
        let value = |at: &At<'_, '_>, field: Block, value| match lane.block(field) {
            Some(bits) => at.fault(bits, LineErrorKind::SignalValue(value)),
            None => Fault::Wave(WaveError::Unsupported("a field without a signal")),
        };
        let itype = itype.ok_or_else(|| value(at, Block::Itype, code))?;
        if iretire == 0 && itype == Itype::None {
            return Ok(None);
        }
        // Without the signal, all instructions have 32 bits.
        let ilastsize = at.get(lane.block(Block::Ilastsize))?.unwrap_or(1);
        if ilastsize > 4 {
            return Err(value(at, Block::Ilastsize, ilastsize));
        }
        let mut block = Ingress {
            itype,
            ilastsize: ilastsize as u8,
            // An instruction of two halfwords or more in one halfword: instructions are
            // counted.
            iretire: match iretire {
                1 => 1 << ilastsize,
                halfwords => {
                    u32::try_from(halfwords).map_err(|_| value(at, Block::Iretire, iretire))?
                }
            },
            sijump: at.get(lane.block(Block::Sijump))? == Some(1),
            ..Ingress::default()
        };
        // Of an interrupt between blocks it need not be known.
        block.iaddr = match at.get(lane.block(Block::Iaddr)) {
            Ok(address) => address.unwrap_or(0),
            Err(Fault::Line(_)) if block.iretire == 0 => 0,
            Err(fault) => return Err(fault),
        };
        if self.traps_retire && itype.is_trap() && block.iretire > 0 {
            let last = block.last_addr();
            block.iretire = u32::try_from(last.wrapping_sub(block.iaddr) / 2).unwrap_or(0);
            if block.iretire == 0 {
                block.iaddr = last;
            }
        }
        Ok(Some(block))
    }

    /// Adds what a cycle has once.
    fn shared(&mut self, at: &mut At<'_, '_>, lane: &Lane, trigger: u64) -> Result<(), Fault> {
        let mode = match lane.block(Block::Priv) {
            None => Mode::M,
            Some(bits) => {
                let code = at.get(Some(bits))?.unwrap_or(0);
                let mode = u8::try_from(code).ok().and_then(Mode::from_code);
                mode.ok_or_else(|| at.fault(bits, LineErrorKind::SignalValue(code)))?
            }
        };
        let context = at.get(lane.block(Block::Context))?.unwrap_or(0);
        let ctype = at.get(lane.block(Block::Ctype))?.unwrap_or(0);
        let ctype = u8::try_from(ctype).ok().and_then(Ctype::from_code);
        let time = match at.get(lane.block(Block::Time))? {
            Some(time) => Some(time),
            None => at.get(lane.block(Block::Cycles))?,
        };
        let time = time.unwrap_or(at.sample.time());
        let impdef = at.get(lane.block(Block::Impdef))?.unwrap_or(0) as u32;
        let (cause, tval) = match self.blocks.iter().any(|block| block.itype.is_trap()) {
            true => (
                at.get(lane.block(Block::Cause))?.unwrap_or(0),
                at.get(lane.block(Block::Tval))?.unwrap_or(0),
            ),
            false => (0, 0),
        };
        let last = self.blocks.len() - 1;
        for (number, block) in self.blocks.iter_mut().enumerate() {
            block.block = number as u8;
            (block.mode, block.context, block.time) = (mode, Context(context), time);
            (block.halted, block.reset) = self.levels;
            block.impdef = impdef;
            block.trigger = Trigger {
                on: trigger & 1 != 0 && number == 0,
                off: trigger & 2 != 0 && number == last,
                notify: trigger >> (2 + number.min(61)) & 1 != 0,
            };
            if number == 0 {
                block.ctype = ctype.unwrap_or_default();
            }
            if block.itype.is_trap() {
                (block.cause, block.tval) = (cause as u32, tval);
            }
        }
        Ok(())
    }
}

impl Lane {
    /// The bits of a field of the ingress port.
    #[inline]
    pub(super) fn block(&self, field: Block) -> Option<Bits> {
        self.fields.get(field as usize).copied().flatten()
    }
}
