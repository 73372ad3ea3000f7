//! QEMU's `-d exec,nochain`: a line for each translated block that is executed.
//!
//! ```text
//! Trace 0: 0x7f8bd0000400 [00000000/0000000080000000/00209003/ff000200] _start
//! riscv_cpu_do_interrupt: hart:0, async:0, cause:000000000000000b, epc:0x80000414, tval:0x0, desc=machine_ecall
//! Stopped execution of TB chain before 0x7f8bd0000400 [0000000080000000] _start
//! ```
//!
//! The numbers in brackets are `cs_base`, the pc, flags that have the mode, and flags that
//! may have the number of instructions (`-singlestep`). The instructions are those of the
//! program, from the pc to where QEMU ends a block: at a jump, an instruction that changes
//! how the next ones are translated, or a page; if that does not lead to the next block,
//! to its pc. Where a trap is taken is recorded only with
//! `-d exec,nochain,int`; without it, one in the middle of a block cannot be found. The
//! last block of a log is left out: how far it was executed is not known.

use alloc::vec::Vec;

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::entry::EntryTrap;
use crate::scan::{Fault, Scan};
use hartrace_flow::{Cause, HartId, Mode, Touch};
use hartrace_isa::{Flow, Isa, MRET, SRET, Xlen, length};

/// Instructions of a block at most (`TCG_MAX_INSNS`).
const LONGEST: usize = 512;

/// Harts whose blocks are kept.
const HARTS: usize = 1024;

const BLOCK: &[u8] = b"Trace ";
const TRAP: &[u8] = b"riscv_cpu_do_interrupt: hart:";
const STOPPED: &[u8] = b"Stopped execution of TB chain before ";

#[derive(Default)]
pub(super) struct Blocks {
    /// Blocks that are known to have started.
    open: Vec<Block>,
}

#[derive(Clone, Copy)]
struct Block {
    hart: HartId,
    pc: u64,
    mode: Mode,
    /// How many instructions it has at most.
    most: usize,
}

pub(super) fn is_line(line: &[u8]) -> bool {
    let mut scan = Scan::new(line);
    scan.eat(BLOCK) && block(&mut scan).is_ok()
}

fn block(scan: &mut Scan<'_>) -> Result<Block, Fault> {
    let hart = scan.count("a CPU number")?;
    scan.need(b": ", "`: ` and an address of the host")?;
    scan.word();
    scan.spaces();
    scan.need(b"[", "`[` and four numbers")?;
    scan.digits("four numbers in hexadecimal")?;
    scan.need(b"/", "four numbers in hexadecimal")?;
    let pc = scan.digits("a pc in hexadecimal")?;
    scan.need(b"/", "four numbers in hexadecimal")?;
    let flags = scan.digits("flags in hexadecimal")?;
    scan.need(b"/", "four numbers in hexadecimal")?;
    let most = scan.digits("flags in hexadecimal")? as usize & 0x1ff;
    let Ok(hart) = u32::try_from(hart) else {
        return scan.expected("a CPU number");
    };
    Ok(Block {
        hart: HartId(hart),
        pc,
        mode: mode(flags),
        most: if most == 0 { LONGEST } else { most },
    })
}

/// The mode is a field of its own in newer versions; in all versions, the low bits are
/// the index of its memory accesses: 0 user, 1 and 2 supervisor, 3 machine, 4 more with
/// virtualisation.
const fn mode(flags: u64) -> Mode {
    let index = match flags >> 22 & 3 {
        0 => flags & 3,
        field => field,
    };
    match (index, flags >> 2 & 1) {
        (0, 0) => Mode::U,
        (0, _) => Mode::VU,
        (1 | 2, 0) => Mode::S,
        (1 | 2, _) => Mode::VS,
        _ => Mode::M,
    }
}

impl Grammar for Blocks {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let mut scan = Scan::new(line);
        if scan.eat(BLOCK) {
            let next = block(&mut scan)?;
            let done = self.take(next.hart);
            if self.open.len() >= HARTS {
                return Err((Kind::TooManyHarts, 0));
            }
            self.open.push(next);
            return done.map_or(Ok(()), |done| expand(done, next.pc, Then::Block, to));
        }
        if scan.eat(TRAP) {
            return self.trap(&mut scan, to);
        }
        // A block that was about to be executed, but was not.
        if scan.eat(STOPPED) {
            scan.word();
            scan.spaces();
            scan.eat(b"[");
            let pc = scan.digits("a pc in hexadecimal")?;
            if let Some(at) = self.open.iter().rposition(|block| block.pc == pc) {
                self.open.remove(at);
            }
        }
        Ok(())
    }

    /// How far the last blocks were executed is not known.
    fn close(&mut self, _: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        self.open.clear();
        Ok(())
    }
}

impl Blocks {
    /// The block that a hart was in.
    fn take(&mut self, hart: HartId) -> Option<Block> {
        let at = self.open.iter().position(|block| block.hart == hart)?;
        Some(self.open.swap_remove(at))
    }

    /// `0, async:0, cause:000000000000000b, epc:0x..., tval:0x..., desc=...`
    fn trap(&mut self, scan: &mut Scan<'_>, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let hart = HartId(scan.count("a hart number")? as u32);
        scan.need(b", async:", "`, async:` and 0 or 1")?;
        let interrupt = scan.count("0 or 1")? != 0;
        scan.need(b", cause:", "`, cause:` and a number")?;
        let code = scan.digits("a cause in hexadecimal")? as u32 & 0x7fff_ffff;
        scan.need(b", epc:0x", "`, epc:` and an address")?;
        let epc = scan.digits("an address in hexadecimal")?;
        scan.need(b", tval:0x", "`, tval:` and a value")?;
        let tval = Some(scan.digits("a value in hexadecimal")?);
        let mode = match self.take(hart) {
            Some(block) => {
                let then = match interrupt {
                    true => Then::Interrupt,
                    false => Then::Exception,
                };
                expand(block, epc, then, to)?;
                Some(block.mode)
            }
            None => None,
        };
        let cause = match interrupt {
            true => Cause::Interrupt(Some(code)),
            false => Cause::Exception(Some(code)),
        };
        let returned = to.entry.bits.is_some_and(|b| matches!(b, MRET | SRET));
        let entry = to.begin(epc, None);
        (entry.hart, entry.mode) = (hart, mode.filter(|_| !returned));
        entry.trap = Some(EntryTrap { cause, tval });
        to.give()
    }
}

/// Why the hart was where it was after a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The next block.
    Block,
    /// An exception at an instruction of the block, or after it.
    Exception,
    /// An interrupt, which is taken between two blocks.
    Interrupt,
}

/// Gives the instructions of a block, after which the hart was at `next`.
fn expand(
    block: Block,
    next: u64,
    then: Then,
    to: &mut Entries<'_, '_, '_, '_>,
) -> Result<(), Fault> {
    to.entry.clear();
    let mut count = extent(&block, next, then, to)?;
    let mut pc = block.pc;
    while count > 0
        && let Some(bits) = to.steps.code(pc)
    {
        let entry = to.begin(pc, Some(bits));
        (entry.hart, entry.mode) = (block.hart, Some(block.mode));
        entry.incomplete = true;
        to.give()?;
        pc = pc.wrapping_add(length(bits as u16).into());
        count -= 1;
    }
    Ok(())
}

const MIDDLE: &str = "where a trap in the middle of a block was taken (use -d exec,nochain,int)";

/// How many instructions of a block were executed before the hart was at `next`.
fn extent(
    block: &Block,
    next: u64,
    then: Then,
    to: &mut Entries<'_, '_, '_, '_>,
) -> Result<usize, Fault> {
    let isa = match to.steps.xlen() {
        Xlen::Rv32 => Isa::RV32GC,
        Xlen::Rv64 => Isa::RV64GC,
    };
    let (mut at, mut count, mut may_trap) = (block.pc, 0, false);
    // Where straight-line code passes `next`.
    let mut passed = None;
    let leads = loop {
        if at == next && (count > 0 || then != Then::Block) {
            passed = passed.or(Some(count));
            if then == Then::Exception {
                return Ok(count);
            }
        }
        let Some(bits) = to.steps.code(at) else {
            return match passed {
                Some(passed) => Ok(passed),
                None => Err((Kind::MissingCode(at), 0)),
            };
        };
        let flow = Flow::of_retired(bits, isa);
        let end = isa.xlen().wrap(at.wrapping_add(length(bits as u16).into()));
        count += 1;
        if !flow.is_sequential() {
            let target = flow.target(at, isa.xlen());
            let branch = matches!(flow, Flow::Branch { .. }) && end == next;
            break target.is_none_or(|target| target == next) || branch;
        }
        may_trap |= Touch::of(bits, isa).count() > 0 || bits & 0x7f == 0x73;
        at = end;
        let crosses = |bits: u32| at & 0xfff == 0xffe && bits & 3 == 3;
        let page = at >> 12 != block.pc >> 12 || to.steps.code(at).is_some_and(crosses);
        if count >= block.most || page {
            break end == next;
        }
        // Which of them end a block depends on the version.
        if may_end(bits) && end == next {
            break true;
        }
    };
    match (leads, passed, then) {
        (true, _, _) => Ok(count),
        (false, Some(passed), _) => Ok(passed),
        // An interrupt of an instruction that does not trap.
        (false, None, Then::Block) if may_trap => Err((Kind::Limit(MIDDLE), 0)),
        (false, None, _) => Ok(count),
    }
}

/// Whether QEMU may end a block with an instruction that does not jump: one of the system, a
/// fence of instructions, and what sets the length of vectors.
const fn may_end(bits: u32) -> bool {
    match bits & 0x7f {
        0x73 => true,
        0x0f => bits >> 12 & 7 == 1,
        0x57 => bits >> 12 & 7 == 7,
        _ => false,
    }
}
