//! Instructions that affect the whole hart: CSR accesses, trap returns, `wfi`,
//! fences of address translation.

use hartrace_flow::{Access, AccessKind, HartId, Insn, Mode, Observer, RegId, Step, Wants};
use hartrace_isa::{Itype, Op, Xlen, csr};

use crate::bus::Bus;
use crate::code::Micro;
use crate::cpu::{Cpu, Exception, SINK, cause, status};
use crate::hart::Hart;
use crate::mmu::Tlb;
use crate::report::Report;

/// Executes the system instruction at pc. It retires, or an exception comes
/// back and nothing has happened.
pub(crate) fn execute<O: Observer>(
    hart: &mut Hart,
    bus: &mut Bus,
    bits: u32,
    micro: &Micro,
    observer: &mut O,
) -> Result<(), Exception> {
    let (pc, mode, context) = (hart.cpu.pc, hart.cpu.mode, hart.cpu.context());
    let next = hart.cpu.xlen().wrap(pc.wrapping_add(micro.len.into()));
    let illegal = Exception {
        code: cause::ILLEGAL,
        tval: bits.into(),
    };
    hart.effects.clear();
    match micro.op {
        Op::Ecall => return Err(environment_call(mode)),
        Op::Ebreak => {
            return Err(Exception {
                code: cause::BREAKPOINT,
                tval: pc,
            });
        }
        Op::Mret if mode == Mode::M => hart.cpu.return_from_machine(),
        Op::Sret if may_return(&hart.cpu) => hart.cpu.return_from_supervisor(),
        Op::Wfi if may_wait(&hart.cpu) => {
            hart.cpu.pc = next;
            hart.cpu.waiting = true;
        }
        // Whether it stalls is decided where the other harts are known.
        Op::WrsNto if may_stall(&hart.cpu) => hart.cpu.pc = next,
        Op::WrsSto => hart.cpu.pc = next,
        // What is between the two fences is done at once.
        Op::SfenceWInval | Op::SfenceInvalIr if mode != Mode::U && hart.cpu.has_supervisor() => {
            hart.cpu.pc = next
        }
        Op::SfenceVma | Op::SinvalVma if may_fence(&hart.cpu) => {
            hart.cpu.pc = next;
            match micro.rs1 {
                0 => hart.tlb.flush(&hart.cpu),
                rs1 => hart.tlb.flush_page(&hart.cpu, hart.cpu.read_x(rs1)),
            }
        }
        // Decoded code follows stores by itself, and the machine looks for what the
        // page-table walker has written after every instruction that comes here.
        Op::FenceI => hart.cpu.pc = next,
        Op::Sctrclr if hart.cpu.may_clear_records() => {
            hart.cpu.pc = next;
            if let Some(ctr) = hart.cpu.settled() {
                ctr.clear();
            }
        }
        Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci => {
            access_csr(hart, bus, bits, micro, observer).ok_or(illegal)?;
            hart.cpu.pc = next;
        }
        _ => return Err(illegal),
    }
    if matches!(micro.op, Op::Mret | Op::Sret) {
        let mstatus = hart.cpu.xlen().wrap(hart.cpu.mstatus);
        let mut report = Report {
            effects: &mut hart.effects,
            accesses: &mut hart.accesses,
            observer,
        };
        report.csr(csr::MSTATUS, mstatus);
        if hart.cpu.mode != mode {
            hart.effects.mode = Some(hart.cpu.mode);
        }
        hart.tlb.change_mode(&hart.cpu);
    }
    let taken = if hart.cpu.pc == next {
        0
    } else {
        hart.costs.taken
    };
    let cycles = u64::from(hart.costs.system) + u64::from(taken);
    hart.cpu.retire_in(mode, 1, cycles);
    hart.cpu.pending.note(hart.cpu.mip, hart.cpu.cycles);
    if matches!(micro.op, Op::Mret | Op::Sret) {
        hart.cpu.record(pc, mode, Itype::TrapReturn, None);
    }
    if O::WANTS.contains(Wants::INSNS) {
        let insn = Insn {
            pc,
            next: hart.cpu.pc,
            time: hart.cpu.cycles,
            context,
            bits,
            mode,
        };
        observer.step(HartId(hart.cpu.id), &Step::Insn(insn), &hart.effects);
    }
    hart.effects.clear();
    Ok(())
}

fn environment_call(mode: Mode) -> Exception {
    let code = match mode {
        Mode::U => cause::ECALL_U,
        Mode::S => cause::ECALL_S,
        _ => cause::ECALL_M,
    };
    Exception { code, tval: 0 }
}

fn may_return(cpu: &Cpu) -> bool {
    match cpu.mode {
        Mode::M => cpu.has_supervisor(),
        Mode::S => cpu.mstatus & status::TSR == 0,
        _ => false,
    }
}

fn may_wait(cpu: &Cpu) -> bool {
    match cpu.mode {
        Mode::M => true,
        Mode::S => cpu.mstatus & status::TW == 0,
        _ => !cpu.has_supervisor() && cpu.mstatus & status::TW == 0,
    }
}

/// `wrs.nto`: with TW the time it may take below machine mode is limited (Zawrs); we
/// limit it to none.
fn may_stall(cpu: &Cpu) -> bool {
    cpu.mode == Mode::M || cpu.mstatus & status::TW == 0
}

fn may_fence(cpu: &Cpu) -> bool {
    match cpu.mode {
        Mode::M => cpu.has_supervisor(),
        Mode::S => cpu.mstatus & status::TVM == 0,
        _ => false,
    }
}

/// What a Zicsr instruction asks for.
struct Request {
    csr: u16,
    write: bool,
    /// The value of `rs1`, or the immediate.
    operand: u64,
}

impl Request {
    /// The instruction, with the value of the register it names.
    fn new(bits: u32, micro: &Micro, rs1: u64) -> Request {
        let (named, operand) = match micro.op {
            Op::Csrrw | Op::Csrrs | Op::Csrrc => (micro.rs1 != 0, rs1),
            _ => (micro.imm != 0, micro.imm as u64),
        };
        Request {
            csr: (bits >> 20) as u16,
            write: named || matches!(micro.op, Op::Csrrw | Op::Csrrwi),
            operand,
        }
    }

    /// The new value of the CSR.
    fn new_value(&self, op: Op, old: u64) -> u64 {
        match op {
            Op::Csrrw | Op::Csrrwi => self.operand,
            Op::Csrrs | Op::Csrrsi => old | self.operand,
            _ => old & !self.operand,
        }
    }
}

/// Whether an access to a CSR affects only the register itself, or at most which
/// interrupts are enabled. Kernels make such accesses at every entry, exit and critical
/// section.
fn is_simple(csr: u16, write: bool) -> bool {
    match csr {
        csr::SSCRATCH | csr::SEPC | csr::SCAUSE | csr::STVAL | csr::SSTATUS => true,
        csr::MSCRATCH | csr::MEPC | csr::MCAUSE | csr::MTVAL => true,
        csr::FFLAGS..=csr::FCSR => true,
        csr::TIME => !write,
        _ => false,
    }
}

/// What came of a CSR instruction that the interpreter has tried.
pub(crate) enum Tried {
    /// It is done.
    Done,
    /// It is done, and an interrupt can be taken.
    Interrupts,
    /// Nothing has happened: the whole hart has to see to it.
    Left,
}

/// Executes a CSR instruction without leaving the interpreter, if it can be done so:
/// for observers that want no effects. `cycles` is the hart's count before it.
#[inline(never)]
pub(crate) fn try_csr(
    cpu: &mut Cpu,
    tlb: &mut Tlb,
    bus: &Bus,
    x: &mut [u64; 256],
    micro: &Micro,
    bits: u32,
    cycles: u64,
) -> Tried {
    let rs1 = x.get(usize::from(micro.rs1)).copied().unwrap_or(0);
    let request = Request::new(bits, micro, cpu.xlen().wrap(rs1));
    let Request { csr, write, .. } = request;
    let is_csr = matches!(
        micro.op,
        Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci
    );
    if !is_csr || !is_simple(csr, write) || bus.as_spike || !cpu.may_access(csr, write) {
        return Tried::Left;
    }
    let time = match csr {
        csr::TIME => bus.time(cycles),
        _ => 0,
    };
    let Some(old) = cpu.read_csr(csr, time) else {
        return Tried::Left;
    };
    if write {
        cpu.write_csr(csr, request.new_value(micro.op, old), &mut |_, _| {});
        if csr == csr::SSTATUS {
            tlb.change_status(cpu);
        }
    }
    if let Some(register) = x.get_mut(usize::from(micro.rd)) {
        *register = match cpu.xlen() {
            Xlen::Rv32 => old as i32 as u64,
            Xlen::Rv64 => old,
        };
    }
    if csr == csr::SSTATUS && cpu.interrupt().is_some() {
        Tried::Interrupts
    } else {
        Tried::Done
    }
}

/// After a write to what the timer of the supervisor depends on.
fn set_timer(cpu: &mut Cpu, bus: &mut Bus, csr: u16) {
    bus.find_deadline(cpu);
    // Spike looks at the time with the next tick only.
    if bus.runs_by_itself() || !matches!(csr, csr::MENVCFG | csr::MENVCFGH) {
        cpu.set_outside_interrupts(bus.interrupts(cpu), &bus.timers_due());
    }
}

/// A Zicsr instruction; `None` when it is illegal.
fn access_csr<O: Observer>(
    hart: &mut Hart,
    bus: &mut Bus,
    bits: u32,
    micro: &Micro,
    observer: &mut O,
) -> Option<()> {
    let request = Request::new(bits, micro, hart.cpu.read_x(micro.rs1));
    let Request { csr, write, .. } = request;
    if !hart.cpu.may_access(csr, write) {
        return None;
    }
    match csr {
        csr::TIME | csr::TIMEH => bus.set_time(hart.cpu.cycles),
        // Time may have passed since the machine last looked.
        csr::SIP | csr::MIP if bus.runs_by_itself() => {
            let pending = bus.interrupts(&hart.cpu);
            hart.cpu.set_outside_interrupts(pending, &bus.timers_due());
        }
        _ => hart.cpu.settle_for(csr),
    }
    let old = hart.cpu.read_csr(csr, bus.clint.mtime)?;
    let mut report = Report {
        effects: &mut hart.effects,
        accesses: &mut hart.accesses,
        observer,
    };
    let base = match csr {
        csr::MIP => hart.cpu.mip_to_modify(old),
        _ => old,
    };
    let new = request.new_value(micro.op, base);
    let kind = match micro.op {
        Op::Csrrw | Op::Csrrwi => AccessKind::CsrReadWrite,
        Op::Csrrs | Op::Csrrsi => AccessKind::CsrReadSet,
        _ => AccessKind::CsrReadClear,
    };
    let xlen = hart.cpu.isa.xlen();
    report.csr_access(Access {
        kind,
        size: xlen.bits().trailing_zeros() as u8 - 3,
        addr: csr.into(),
        paddr: None,
        data: Some(xlen.wrap(if write { new } else { old })),
        // A read-only CSR has only one value.
        operand: (csr >> 10 != 3).then_some(xlen.wrap(old)),
    });
    if write {
        let before = hart.cpu.context();
        let after = hart
            .cpu
            .write_csr(csr, new, &mut |csr, value| report.csr(csr, value));
        if after.decoding {
            hart.code.clear(hart.cpu.isa);
            hart.tlb.forget_code();
        }
        if after.translation {
            hart.tlb.flush(&hart.cpu);
            if let Some(processes) = &mut bus.processes {
                processes.enter(before, hart.cpu.context());
            }
        }
        if after.timer {
            set_timer(&mut hart.cpu, bus, csr);
        }
        hart.tlb.change_status(&hart.cpu);
    }
    if micro.rd != SINK {
        hart.cpu.write_x(micro.rd, old);
        report.reg(RegId::X(micro.rd), old);
    }
    Some(())
}
