//! Operations on cache blocks: Zicbom and Zicboz.
//!
//! Memory is always coherent, so that managing a block changes nothing; what is left is
//! to check whether the program may.

use hartrace_flow::{Access, AccessKind, Mode, Observer};
use hartrace_isa::Op;

use crate::access::Port;
use crate::code::Micro;
use crate::cpu::{Cpu, Exception, envcfg};
use crate::exec::{Fault, Frame};
use crate::memory::PAGE;
use crate::mmu::Use;
use crate::width::Width;

/// Bytes of the stores that `cbo.zero` is reported as.
const PIECE: u64 = 8;

/// The smallest piece of memory with rights of its own, in bytes.
const GRAIN: u64 = 4;

impl<O: Observer> Frame<'_, O> {
    /// An operation on the block that holds an address; true when the hart must look up.
    pub(super) fn cache_block<W: Width>(&mut self, op: &Micro, cycles: u64) -> Result<bool, Fault> {
        let enable = match op.op {
            Op::CboInval => envcfg::CBIE,
            Op::CboZero => envcfg::CBZE,
            _ => envcfg::CBCFE,
        };
        if !may_operate(self.cpu, enable) {
            return Err(Fault::Illegal);
        }
        let addr = W::unsigned(self.get(op.rs1));
        if op.op != Op::CboZero {
            self.with_port(cycles, |port| port.manage(addr))?;
            return Ok(false);
        }
        let (paddr, event) = self.with_port(cycles, |port| port.zero(addr))?;
        let size = self.cpu.cache_block;
        let base = addr & !(size - 1);
        for at in (0..size).step_by(PIECE as usize) {
            self.access(Access {
                kind: AccessKind::Store,
                size: PIECE.trailing_zeros() as u8,
                addr: base + at,
                paddr: Some(paddr + at),
                data: Some(0),
                operand: None,
            });
        }
        Ok(event)
    }
}

/// Whether `menvcfg` and `senvcfg` let the current mode do this.
fn may_operate(cpu: &Cpu, enable: u64) -> bool {
    let machine = cpu.mode == Mode::M || cpu.menvcfg & enable != 0;
    let supervisor = cpu.mode != Mode::U || cpu.senvcfg & enable != 0;
    machine && supervisor
}

impl Port<'_> {
    /// The pieces of the block that holds an address whose rights may differ: their
    /// addresses and their size.
    fn pieces(
        &mut self,
        addr: u64,
        what: Use,
    ) -> Result<(impl Iterator<Item = u64> + use<>, u64), Exception> {
        let block = self.cpu.cache_block;
        let base = addr & !(block - 1);
        let paddr = self.find(base, GRAIN, what)?;
        let size = match self.cpu.pmp.is_uniform(paddr & !(PAGE - 1)) {
            true => block,
            false => GRAIN,
        };
        // The last block of all ends with the last address.
        let pieces = (0..block).step_by(size as usize).map(move |at| base + at);
        Ok((pieces, size))
    }

    /// Checks that a block may be managed: where loads are permitted. Faults are those of
    /// stores and have the address in the register.
    fn manage(&mut self, addr: u64) -> Result<(), Exception> {
        let page_fault = Use::Load.page_fault(addr).code;
        match self.may_manage(addr) {
            Ok(true) => Ok(()),
            Err(why) if why.code == page_fault => Err(Use::Store.page_fault(addr)),
            _ => Err(Use::Store.access_fault(addr)),
        }
    }

    fn may_manage(&mut self, addr: u64) -> Result<bool, Exception> {
        // Spike looks at one byte.
        if !self.bus.as_spike {
            for piece in self.pieces(addr, Use::Load)?.0 {
                self.find(piece, GRAIN, Use::Load)?;
            }
        }
        let paddr = self.find(addr, 1, Use::Load)?;
        Ok(self.is_reservable(paddr))
    }

    /// Fills a block with zeros; gives its physical address and whether the hart must
    /// look up. Faults have the address in the register, and then nothing is stored; as
    /// Spike does it, they have that of the byte, and what is before it is stored.
    fn zero(&mut self, addr: u64) -> Result<(u64, bool), Exception> {
        let whole = |why| Exception { tval: addr, ..why };
        if self.bus.as_spike {
            return self.fill(addr, true);
        }
        self.fill(addr, false).map_err(whole)?;
        self.fill(addr, true).map_err(whole)
    }

    /// The same, or only the checks.
    fn fill(&mut self, addr: u64, store: bool) -> Result<(u64, bool), Exception> {
        let (pieces, size) = self.pieces(addr, Use::Store)?;
        let (mut first, mut event) = (None, false);
        for piece in pieces {
            let paddr = self.find(piece, GRAIN, Use::Store)?;
            if !self.is_reservable(paddr) {
                return Err(Use::Store.access_fault(piece));
            }
            first = first.or(Some(paddr));
            let len = PIECE.min(size);
            for part in (0..size).step_by(len as usize) {
                let written = store.then(|| self.write(paddr + part, len, 0));
                event |= written.flatten().unwrap_or(false);
            }
        }
        Ok((first.unwrap_or(0), event))
    }
}
