//! A retirement as the RISC-V Formal Interface shows it.

use hartrace_flow::{Access, AccessKind, Cause, Mode, RegId, RegWrite};
use hartrace_isa::Xlen;

use crate::entry::{C_EBREAK, MemoryOp, mask, short};
use crate::{Entry, EntryAccess, EntryTrap};

/// The signals of one lane of the RISC-V Formal Interface in a cycle in which its
/// `valid` is set. `None` stands for a signal that the port does not have.
///
/// ```
/// use hartrace_logs::{Entry, Rvfi};
///
/// let addi = Rvfi {
///     insn: 0x0010_0513,
///     pc_rdata: 0x80,
///     pc_wdata: Some(0x84),
///     rd: Some((10, 1)),
///     ..Rvfi::default()
/// };
/// let mut entry = Entry::default();
/// addi.fill(&mut entry);
/// assert_eq!((entry.pc, entry.next, entry.regs.len()), (0x80, Some(0x84), 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rvfi {
    /// `insn`: the instruction, a compressed one in the low half.
    pub insn: u32,
    /// `trap`: the instruction did not retire, but trapped.
    pub trap: bool,
    /// `intr`: it is the first instruction of a trap handler.
    pub intr: bool,
    /// `mode`: 0, 1 or 3.
    pub mode: Option<u8>,
    /// `ixl`: 1 for 32 bits, 2 for 64.
    pub ixl: Option<u8>,
    /// `pc_rdata`: the address of the instruction.
    pub pc_rdata: u64,
    /// `pc_wdata`: the address of the next one; of no meaning for one that traps.
    pub pc_wdata: Option<u64>,
    /// `rd_addr` and `rd_wdata`; register 0: nothing is written.
    pub rd: Option<(u8, u64)>,
    /// `mem_addr` and what belongs to it.
    pub memory: Option<RvfiMemory>,
}

/// The memory access of a retirement. A mask has a bit for each byte from `addr` on, and
/// the data their bytes in the same places: ports that show the address of the bus have
/// masks and data that do not begin with the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RvfiMemory {
    /// `mem_addr`.
    pub addr: u64,
    /// `mem_rmask`; 0: nothing is read.
    pub rmask: u8,
    /// `mem_wmask`; 0: nothing is written.
    pub wmask: u8,
    /// `mem_rdata`.
    pub rdata: u64,
    /// `mem_wdata`.
    pub wdata: u64,
}

impl Rvfi {
    /// Makes this the content of an entry, in place of what it had.
    #[inline]
    pub fn fill(&self, entry: &mut Entry) {
        entry.clear();
        entry.pc = self.pc_rdata;
        entry.bits = Some(self.insn);
        entry.mode = self.mode.and_then(Mode::from_code);
        entry.xlen = match self.ixl {
            Some(1) => Some(Xlen::Rv32),
            Some(2) => Some(Xlen::Rv64),
            _ => None,
        };
        entry.handler = self.intr.then_some(Cause::Interrupt(None));
        if self.trap {
            entry.trap = Some(EntryTrap {
                cause: Cause::Exception(None),
                tval: None,
            });
            return;
        }
        entry.next = self.pc_wdata;
        if let Some((number @ 1..32, value)) = self.rd {
            entry.reg(RegId::X(number), value);
        }
        if let Some(memory) = &self.memory {
            memory.fill(self.insn, entry);
        }
    }
}

/// What a retirement does, where that is simple ([`Rvfi::plain`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainRvfi {
    /// The instruction, a compressed one alone.
    pub bits: u32,
    /// Where it went.
    pub next: u64,
    /// The register that it wrote.
    pub reg: Option<RegWrite>,
    /// The load or store that the port shows.
    pub access: Option<Access>,
}

impl Rvfi {
    /// A retirement of one of the instructions that are nearly all that there are: it did
    /// not trap, no trap came before it, it is neither a system instruction nor an atomic
    /// operation, and has no more than one access. An [`Entry`] of it would say the same.
    #[inline]
    #[must_use]
    pub fn plain(&self) -> Option<PlainRvfi> {
        let bits = short(self.insn);
        let special = matches!(bits & 0x7f, 0x73 | 0x2f) || bits == C_EBREAK;
        if self.trap || self.intr || special || self.ixl.is_some() {
            return None;
        }
        let access = match &self.memory {
            None => None,
            Some(memory) if memory.rmask != 0 && memory.wmask != 0 => return None,
            Some(memory) => {
                let access = memory.access(bits, memory.wmask != 0).ok()?;
                access.map(|access| plain_access(&access))
            }
        };
        let reg = match self.rd {
            Some((number @ 1..32, value)) => Some(RegWrite {
                reg: RegId::X(number),
                value,
            }),
            _ => None,
        };
        Some(PlainRvfi {
            bits,
            next: self.pc_wdata?,
            reg,
            access,
        })
    }
}

/// A load or store that is no part of another operation.
#[inline]
fn plain_access(access: &EntryAccess) -> Access {
    let size = access.size.unwrap_or(0);
    Access {
        kind: match access.store {
            true => AccessKind::Store,
            false => AccessKind::Load,
        },
        size,
        addr: access.addr,
        paddr: None,
        data: access.data.map(|data| data & mask(size)),
        operand: None,
    }
}

impl RvfiMemory {
    #[inline]
    fn fill(&self, insn: u32, entry: &mut Entry) {
        for store in [false, true] {
            match self.access(insn, store) {
                Ok(Some(access)) => entry.access(access),
                Ok(None) => {}
                Err(Holes) => entry.incomplete = true,
            }
        }
    }

    /// What is loaded, or stored.
    #[inline]
    fn access(&self, insn: u32, store: bool) -> Result<Option<EntryAccess>, Holes> {
        let (mask, data) = match store {
            false => (self.rmask, self.rdata),
            true => (self.wmask, self.wdata),
        };
        if mask == 0 {
            return Ok(None);
        }
        let (offset, bytes) = (mask.trailing_zeros(), mask.count_ones());
        // Some ports read whole words: which bytes it is about they do not show.
        if !store && bytes > 1 << MemoryOp::of(insn, false).size() {
            return Ok(None);
        }
        // No access has holes.
        let whole = bytes.is_power_of_two() && (mask >> offset).trailing_ones() == bytes;
        if !whole {
            return Err(Holes);
        }
        Ok(Some(EntryAccess {
            store,
            addr: self.addr.wrapping_add(offset.into()),
            paddr: None,
            size: Some(bytes.ilog2() as u8),
            data: Some(data >> (8 * offset)),
        }))
    }
}

/// A mask that is not that of one access.
struct Holes;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(rvfi: &Rvfi) -> Entry {
        let mut entry = Entry::default();
        // Whatever was there before is gone.
        entry.reg(RegId::X(3), 3);
        entry.incomplete = true;
        rvfi.fill(&mut entry);
        entry
    }

    #[test]
    fn register_0_is_not_written() {
        let rvfi = Rvfi {
            rd: Some((0, 7)),
            ..Rvfi::default()
        };
        assert!(entry(&rvfi).regs.is_empty());
        assert!(!entry(&rvfi).incomplete);
    }

    #[test]
    fn masks_of_a_bus_become_accesses_of_their_bytes() {
        let memory = RvfiMemory {
            addr: 0x100,
            wmask: 0b1100,
            wdata: 0xabcd_0000,
            ..RvfiMemory::default()
        };
        let rvfi = Rvfi {
            memory: Some(memory),
            ..Rvfi::default()
        };
        let store = EntryAccess {
            store: true,
            addr: 0x102,
            paddr: None,
            size: Some(1),
            data: Some(0xabcd),
        };
        assert_eq!(*entry(&rvfi).accesses, [store]);
        // What no instruction does is not taken for one that is known.
        for wmask in [0b101, 0b111, 0b1001] {
            let memory = Some(RvfiMemory { wmask, ..memory });
            let entry = entry(&Rvfi { memory, ..rvfi });
            assert!(entry.incomplete && entry.accesses.is_empty(), "{wmask:b}");
        }
    }

    #[test]
    fn a_load_of_more_than_it_needs_has_no_address() {
        for (insn, rmask, there) in [
            (0x0000_4503, 0b1111, false), // lbu a0,0(zero)
            (0x0000_4503, 0b0100, true),
            (0x0000_5503, 0b1111, false), // lhu
            (0x0000_2503, 0b1111, true),  // lw
            (0x0000_4108, 0b1111, true),  // c.lw
        ] {
            let memory = Some(RvfiMemory {
                rmask,
                ..RvfiMemory::default()
            });
            let entry = entry(&Rvfi {
                insn,
                memory,
                ..Rvfi::default()
            });
            assert!(!entry.incomplete);
            assert_eq!(!entry.accesses.is_empty(), there, "{insn:x} {rmask:b}");
        }
    }

    #[test]
    fn an_instruction_that_traps_does_nothing_else() {
        let rvfi = Rvfi {
            trap: true,
            pc_wdata: Some(4),
            rd: Some((1, 1)),
            ..Rvfi::default()
        };
        let entry = entry(&rvfi);
        assert_eq!(
            entry.trap.map(|trap| trap.cause),
            Some(Cause::Exception(None))
        );
        assert!(entry.regs.is_empty() && entry.next.is_none());
    }
}
