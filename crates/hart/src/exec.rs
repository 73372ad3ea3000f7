//! The interpreter.
//!
//! [`run`] goes from block to block until something needs the attention of
//! the whole hart: a trap, a system instruction, code that is not decoded yet,
//! a device, or the end of its budget. It is compiled once for every width
//! and observer, and what the observer does not want is not there.

mod atomic;
mod bits;
mod float;

use hartrace_flow::{
    Access, AccessKind, CsrWrite, Effects, HartId, Insn, Observer, RegId, RegWrite, Step, Wants,
};
use hartrace_isa::Op;

use crate::access::Port;
use crate::bus::Bus;
use crate::code::{Block, Micro};
use crate::cpu::{Cpu, Exception, SINK, cause};
use crate::hart::Hart;
use crate::memory::{PAGE, Page};
use crate::mmu::Tlb;
use crate::width::Width;

/// Why the interpreter came back. The pc is where it will go on: at the
/// instruction that trapped or was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The budget is used up.
    Spent,
    /// There is no decoded code at pc.
    Fetch,
    /// The instruction at pc concerns more than registers and memory.
    System {
        /// The instruction.
        bits: u32,
        /// What it does.
        op: Op,
    },
    /// The instruction at pc traps.
    Trap {
        /// How.
        exception: Exception,
        /// The instruction.
        bits: u32,
    },
    /// The last instruction did something that may change what comes next.
    Event,
}

/// What an instruction changes, as far as the observer wants to know.
pub(crate) struct Report<'a, O> {
    pub(crate) effects: &'a mut Effects,
    pub(crate) observer: &'a mut O,
}

impl<O: Observer> Report<'_, O> {
    #[inline(always)]
    pub(crate) fn reg(&mut self, reg: RegId, value: u64) {
        if O::WANTS.contains(Wants::REGS) {
            let full = self.effects.regs.push(RegWrite { reg, value }).is_err();
            self.effects.incomplete |= full;
        }
    }

    #[inline(always)]
    pub(crate) fn csr(&mut self, csr: u16, value: u64) {
        if O::WANTS.contains(Wants::CSRS) {
            let full = self.effects.csrs.push(CsrWrite { csr, value }).is_err();
            self.effects.incomplete |= full;
        }
    }

    #[inline(always)]
    pub(crate) fn access(&mut self, access: Access) {
        if O::WANTS.contains(Wants::ACCESSES) {
            let full = self.effects.accesses.push(access).is_err();
            self.effects.incomplete |= full;
        }
    }
}

/// What only `exec` needs to know about the hart while it runs.
pub(crate) struct Frame<'a, O> {
    pub(crate) cpu: &'a mut Cpu,
    pub(crate) tlb: &'a mut Tlb,
    pub(crate) bus: &'a mut Bus,
    pub(crate) report: Report<'a, O>,
    pub(crate) misaligned: bool,
}

impl<O: Observer> Frame<'_, O> {
    fn port(&mut self, cycles: u64) -> Port<'_> {
        Port {
            cpu: self.cpu,
            tlb: self.tlb,
            bus: self.bus,
            misaligned: self.misaligned,
            cycles,
        }
    }

    /// Loads `N` bytes; inlined where the page is remembered.
    #[inline(always)]
    fn load<const N: usize>(&mut self, addr: u64, cycles: u64) -> Result<u64, Exception> {
        let entry = Tlb::slot(&self.tlb.load, addr);
        let (value, paddr) = if entry.tag == key::<N>(addr, self.tlb.data_context)
            && let Some(page) = self.bus.memory.pages().get(entry.frame as usize)
        {
            (read::<N>(page, addr), entry.page | addr % PAGE)
        } else {
            self.load_slowly(addr, N as u64, cycles)?
        };
        self.report.access(Access {
            kind: AccessKind::Load,
            size: N.trailing_zeros() as u8,
            addr,
            paddr: Some(paddr),
            data: Some(value),
            operand: None,
        });
        Ok(value)
    }

    #[cold]
    #[inline(never)]
    fn load_slowly(&mut self, addr: u64, len: u64, cycles: u64) -> Result<(u64, u64), Exception> {
        let done = self.port(cycles).load(addr, len)?;
        Ok((done.value, done.paddr))
    }

    /// Stores `N` bytes; true when the hart must look up.
    #[inline(always)]
    fn store<const N: usize>(
        &mut self,
        addr: u64,
        value: u64,
        cycles: u64,
    ) -> Result<bool, Exception> {
        let entry = Tlb::slot(&self.tlb.store, addr);
        let (event, paddr) = if entry.tag == key::<N>(addr, self.tlb.data_context)
            && let Some(page) = self.bus.memory.pages_mut().get_mut(entry.frame as usize)
        {
            write::<N>(page, addr, value);
            (false, entry.page | addr % PAGE)
        } else {
            self.store_slowly(addr, N as u64, value, cycles)?
        };
        self.report.access(Access {
            kind: AccessKind::Store,
            size: N.trailing_zeros() as u8,
            addr,
            paddr: Some(paddr),
            data: Some(value & u64::MAX >> (64 - 8 * N)),
            operand: None,
        });
        Ok(event)
    }

    #[cold]
    #[inline(never)]
    fn store_slowly(
        &mut self,
        addr: u64,
        len: u64,
        value: u64,
        cycles: u64,
    ) -> Result<(bool, u64), Exception> {
        let done = self.port(cycles).store(addr, len, value)?;
        Ok((done.event, done.paddr))
    }

    /// Writes an integer register.
    #[inline(always)]
    fn set<W: Width>(&mut self, rd: u8, value: u64) {
        let value = W::register(value);
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        {
            self.cpu.x[usize::from(rd & 63)] = value;
        }
        if O::WANTS.contains(Wants::REGS) && rd != SINK {
            self.report.reg(RegId::X(rd), W::unsigned(value));
        }
    }

    #[inline(always)]
    fn get(&self, register: u8) -> u64 {
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        self.cpu.x[usize::from(register & 63)]
    }
}

/// An address as tags of remembered pages would have it if it is aligned.
#[inline(always)]
fn key<const N: usize>(addr: u64, context: u64) -> u64 {
    addr & (!(PAGE - 1) | (N as u64 - 1)) | context
}

/// Aligned bytes of a page.
#[inline(always)]
fn read<const N: usize>(page: &Page, addr: u64) -> u64 {
    let at = addr as usize & (PAGE as usize - N);
    let mut bytes = [0; 8];
    if let (Some(into), Some(from)) = (bytes.get_mut(..N), page.get(at..at + N)) {
        into.copy_from_slice(from);
    }
    u64::from_le_bytes(bytes)
}

#[inline(always)]
fn write<const N: usize>(page: &mut Page, addr: u64, value: u64) {
    let at = addr as usize & (PAGE as usize - N);
    let bytes = value.to_le_bytes();
    if let (Some(into), Some(from)) = (page.get_mut(at..at + N), bytes.get(..N)) {
        into.copy_from_slice(from);
    }
}

/// Runs up to `budget` instructions; gives back why it stopped. `start` is a
/// block to run first instead of what is at pc.
// One dispatch for all instructions: splitting it would cost a second jump
// for each.
#[allow(clippy::too_many_lines)]
pub(crate) fn run<W: Width, O: Observer>(
    hart: &mut Hart,
    bus: &mut Bus,
    start: Option<Block>,
    budget: &mut u64,
    observer: &mut O,
) -> Leave {
    let id = HartId(hart.cpu.id);
    let (mode, context) = (hart.cpu.mode, hart.cpu.context());
    let misalignment = hart.cpu.misalignment();
    let taken_cost = u64::from(hart.costs.taken);
    let code = &hart.code;
    let mut hart = Frame {
        cpu: &mut hart.cpu,
        tlb: &mut hart.tlb,
        bus,
        report: Report { effects: &mut hart.effects, observer },
        misaligned: hart.misaligned,
    };
    let mut pc = hart.cpu.pc;
    // Instructions and cycles not yet told to the counters.
    let (mut retired, mut cycles) = (0u64, hart.cpu.cycles);
    let mut start = start;
    // The page we are in, as the tag of its entry, and its code.
    let (mut here, mut table) = (u64::MAX, 0);

    let leave = 'blocks: loop {
        let block = match start.take() {
            Some(block) => block,
            None => {
                let tag = pc & !(PAGE - 1) | hart.tlb.fetch_context;
                if tag != here {
                    let entry = Tlb::slot(&hart.tlb.fetch, pc);
                    if entry.tag != tag {
                        break 'blocks Leave::Fetch;
                    }
                    (here, table) = (tag, entry.frame);
                }
                code.block(table, pc)
            }
        };
        if block.count == 0 {
            break 'blocks Leave::Fetch;
        }
        let left = *budget - retired;
        if left == 0 {
            break 'blocks Leave::Spent;
        }
        let first = block.first as usize;
        let count = usize::from(block.count).min(left as usize);
        let Some(micros) = code.micros.get(first..first + count) else {
            break 'blocks Leave::Fetch;
        };

        for (i, op) in micros.iter().enumerate() {
            /// The address of the instruction.
            macro_rules! here {
                () => {
                    pc.wrapping_add(u64::from(op.offset))
                };
            }
            macro_rules! bits {
                () => {
                    code.bits.get(first + i).copied().unwrap_or(0)
                };
            }
            macro_rules! now {
                () => {
                    cycles + u64::from(op.cost)
                };
            }
            macro_rules! tell {
                ($next:expr, $time:expr) => {{
                    let insn = Insn {
                        pc: here!(),
                        next: $next,
                        time: $time,
                        context,
                        bits: bits!(),
                        mode,
                    };
                    let report = &mut hart.report;
                    report.observer.step(id, &Step::Insn(insn), report.effects);
                    report.effects.clear();
                }};
            }
            // Leaves the block in front of this instruction.
            macro_rules! leave {
                ($why:expr) => {{
                    let why = $why;
                    pc = W::unsigned(here!());
                    retired += i as u64;
                    cycles += before(micros, i);
                    break 'blocks why;
                }};
            }
            macro_rules! trap {
                ($exception:expr) => {{
                    let exception = $exception;
                    hart.report.effects.clear();
                    leave!(Leave::Trap { exception, bits: bits!() })
                }};
            }
            // Leaves the block behind this instruction.
            macro_rules! event {
                () => {{
                    let next = W::unsigned(here!().wrapping_add(op.len.into()));
                    if O::WANTS.contains(Wants::INSNS) {
                        tell!(next, now!());
                    }
                    retired += i as u64 + 1;
                    cycles += u64::from(op.cost);
                    pc = next;
                    break 'blocks Leave::Event;
                }};
            }
            macro_rules! jump {
                ($to:expr, $then:block) => {{
                    let to: u64 = $to;
                    if to & misalignment != 0 {
                        trap!(Exception { code: cause::FETCH_MISALIGNED, tval: to });
                    }
                    $then;
                    retired += i as u64 + 1;
                    cycles += u64::from(op.cost) + taken_cost;
                    if O::WANTS.contains(Wants::TRANSFERS) {
                        tell!(to, cycles);
                    }
                    pc = to;
                    continue 'blocks;
                }};
            }
            macro_rules! branch {
                ($condition:expr) => {
                    if $condition {
                        jump!(W::unsigned(pc.wrapping_add(op.imm as u64)), {});
                    }
                };
            }
            macro_rules! load {
                ($bytes:literal, $extend:expr) => {{
                    let addr = W::unsigned(hart.get(op.rs1).wrapping_add(op.imm as u64));
                    match hart.load::<$bytes>(addr, now!()) {
                        Ok(value) => hart.set::<W>(op.rd, $extend(value)),
                        Err(exception) => trap!(exception),
                    }
                }};
            }
            macro_rules! store {
                ($bytes:literal, $value:expr) => {{
                    let addr = W::unsigned(hart.get(op.rs1).wrapping_add(op.imm as u64));
                    match hart.store::<$bytes>(addr, $value, now!()) {
                        Ok(false) => {}
                        Ok(true) => event!(),
                        Err(exception) => trap!(exception),
                    }
                }};
            }
            macro_rules! set {
                ($value:expr) => {
                    hart.set::<W>(op.rd, $value)
                };
            }

            let (a, b) = (hart.get(op.rs1), hart.get(op.rs2));
            let (sa, sb) = (a as i64, b as i64);
            let imm = op.imm as u64;
            match op.op {
                Op::Addi => set!(a.wrapping_add(imm)),
                Op::Add => set!(a.wrapping_add(b)),
                Op::Sub => set!(a.wrapping_sub(b)),
                Op::Lui => set!(imm),
                Op::Auipc => set!(here!().wrapping_add(imm)),
                Op::And => set!(a & b),
                Op::Or => set!(a | b),
                Op::Xor => set!(a ^ b),
                Op::Andi => set!(a & imm),
                Op::Ori => set!(a | imm),
                Op::Xori => set!(a ^ imm),
                Op::Slt => set!((sa < sb).into()),
                Op::Sltu => set!((a < b).into()),
                Op::Slti => set!((sa < imm as i64).into()),
                Op::Sltiu => set!((a < imm).into()),
                Op::Slli => set!(a << (imm as u32 % W::BITS)),
                Op::Srli => set!(W::unsigned(a) >> (imm as u32 % W::BITS)),
                Op::Srai => set!((sa >> (imm as u32 % W::BITS)) as u64),
                Op::Sll => set!(a << (b as u32 % W::BITS)),
                Op::Srl => set!(W::unsigned(a) >> (b as u32 % W::BITS)),
                Op::Sra => set!((sa >> (b as u32 % W::BITS)) as u64),
                Op::Addiw => set!(a.wrapping_add(imm) as i32 as u64),
                Op::Addw => set!(a.wrapping_add(b) as i32 as u64),
                Op::Subw => set!(a.wrapping_sub(b) as i32 as u64),
                Op::Slliw => set!(((a as i32) << (imm & 31)) as u64),
                Op::Srliw => set!((a as u32 >> (imm & 31)) as i32 as u64),
                Op::Sraiw => set!((a as i32 >> (imm & 31)) as u64),
                Op::Sllw => set!(((a as i32) << (b & 31)) as u64),
                Op::Srlw => set!((a as u32 >> (b & 31)) as i32 as u64),
                Op::Sraw => set!((a as i32 >> (b & 31)) as u64),

                Op::Lb => load!(1, |v| v as i8 as u64),
                Op::Lbu => load!(1, |v| v),
                Op::Lh => load!(2, |v| v as i16 as u64),
                Op::Lhu => load!(2, |v| v),
                Op::Lw => load!(4, |v| v as i32 as u64),
                Op::Lwu => load!(4, |v| v),
                Op::Ld => load!(8, |v| v),
                Op::Sb => store!(1, b),
                Op::Sh => store!(2, b),
                Op::Sw => store!(4, b),
                Op::Sd => store!(8, b),

                Op::Beq => branch!(a == b),
                Op::Bne => branch!(a != b),
                Op::Blt => branch!(sa < sb),
                Op::Bge => branch!(sa >= sb),
                Op::Bltu => branch!(a < b),
                Op::Bgeu => branch!(a >= b),
                Op::Jal => {
                    let link = here!().wrapping_add(op.len.into());
                    jump!(W::unsigned(pc.wrapping_add(imm)), { set!(link) });
                }
                Op::Jalr => {
                    let link = here!().wrapping_add(op.len.into());
                    let to = W::unsigned(a.wrapping_add(imm)) & !1;
                    jump!(to, { set!(link) });
                }

                Op::Mul => set!(a.wrapping_mul(b)),
                Op::Mulh => set!(multiply_high::<W>(sa.into(), sb.into())),
                Op::Mulhsu => set!(multiply_high::<W>(sa.into(), W::unsigned(b).into())),
                Op::Mulhu => set!(multiply_high::<W>(
                    W::unsigned(a).into(),
                    W::unsigned(b).into()
                )),
                Op::Div => set!(if b == 0 { u64::MAX } else { sa.wrapping_div(sb) as u64 }),
                Op::Divu => set!(divide(W::unsigned(a), W::unsigned(b))),
                Op::Rem => set!(if b == 0 { a } else { sa.wrapping_rem(sb) as u64 }),
                Op::Remu => set!(remainder(W::unsigned(a), W::unsigned(b))),
                Op::Mulw => set!((a as i32).wrapping_mul(b as i32) as u64),
                Op::Divw => set!(match b as i32 {
                    0 => u64::MAX,
                    b => (a as i32).wrapping_div(b) as u64,
                }),
                Op::Divuw => set!(divide(a as u32 as u64, b as u32 as u64) as i32 as u64),
                Op::Remw => set!(match b as i32 {
                    0 => a as i32 as u64,
                    b => (a as i32).wrapping_rem(b) as u64,
                }),
                Op::Remuw => set!(remainder(a as u32 as u64, b as u32 as u64) as i32 as u64),

                Op::Fld => match hart.load_float::<W, 8>(op, now!()) {
                    Ok(()) => {}
                    Err(fault) => trap!(fault.exception(bits!())),
                },
                Op::Flw => match hart.load_float::<W, 4>(op, now!()) {
                    Ok(()) => {}
                    Err(fault) => trap!(fault.exception(bits!())),
                },
                Op::Flh => match hart.load_float::<W, 2>(op, now!()) {
                    Ok(()) => {}
                    Err(fault) => trap!(fault.exception(bits!())),
                },
                Op::Fsd | Op::Fsw | Op::Fsh => match hart.store_float::<W>(op, now!()) {
                    Ok(false) => {}
                    Ok(true) => event!(),
                    Err(fault) => trap!(fault.exception(bits!())),
                },
                Op::Fence | Op::FenceTso | Op::Pause => {}
                Op::NtlP1 | Op::NtlPall | Op::NtlS1 | Op::NtlAll => {}

                Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci => {
                    leave!(Leave::System { bits: bits!(), op: op.op })
                }
                Op::Ecall | Op::Ebreak | Op::Mret | Op::Sret | Op::Wfi => {
                    leave!(Leave::System { bits: bits!(), op: op.op })
                }
                Op::FenceI | Op::SfenceVma => leave!(Leave::System { bits: bits!(), op: op.op }),
                _ => match bits::evaluate::<W>(op.op, a, b, imm) {
                    Some(value) => set!(value),
                    None => match hart.rare::<W>(op, now!()) {
                        Ok(false) => {}
                        Ok(true) => event!(),
                        Err(fault) => trap!(fault.exception(bits!())),
                    },
                },
            }
            if O::WANTS.contains(Wants::INSNS) {
                tell!(W::unsigned(here!().wrapping_add(op.len.into())), now!());
            }
        }
        // Through to the end of the block.
        if let Some(end) = micros.last() {
            retired += count as u64;
            cycles += u64::from(end.cost);
            pc = W::unsigned(pc.wrapping_add(u64::from(end.offset) + u64::from(end.len)));
        }
    };
    *budget -= retired;
    let spent = cycles - hart.cpu.cycles;
    hart.cpu.retire(retired, spent);
    hart.cpu.pc = pc;
    leave
}

/// Why an instruction was not done.
pub(crate) enum Fault {
    /// It does not exist here, or not now.
    Illegal,
    Memory(Exception),
}

impl Fault {
    #[cold]
    pub(crate) fn exception(self, bits: u32) -> Exception {
        match self {
            Fault::Illegal => Exception { code: cause::ILLEGAL, tval: bits.into() },
            Fault::Memory(exception) => exception,
        }
    }
}

impl From<Exception> for Fault {
    fn from(exception: Exception) -> Fault {
        Fault::Memory(exception)
    }
}

/// The upper half of a product.
#[inline(always)]
fn multiply_high<W: Width>(a: i128, b: i128) -> u64 {
    (a.wrapping_mul(b) >> W::BITS) as u64
}

#[inline(always)]
fn divide(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(u64::MAX)
}

#[inline(always)]
fn remainder(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(a)
}

/// Cycles of a block in front of its instruction `i`.
fn before(micros: &[Micro], i: usize) -> u64 {
    let previous = i.checked_sub(1).and_then(|i| micros.get(i));
    previous.map_or(0, |micro| micro.cost.into())
}
