//! Instructions that affect the whole hart: CSR accesses, trap returns, `wfi`,
//! fences of address translation.

use hartrace_flow::{Access, AccessKind, HartId, Insn, Mode, Observer, RegId, Step, Wants};
use hartrace_isa::{Itype, Op, csr};

use crate::bus::Bus;
use crate::code::Micro;
use crate::cpu::{Cpu, Exception, SINK, cause, status};
use crate::exec::Report;
use crate::hart::Hart;

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
        Op::SfenceVma if may_fence(&hart.cpu) => {
            hart.cpu.pc = next;
            hart.tlb.flush(&hart.cpu);
        }
        // Decoded code follows stores by itself, but not what the page-table
        // walker writes.
        Op::FenceI => {
            hart.cpu.pc = next;
            hart.forget_stale(bus);
        }
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
        Mode::M => true,
        Mode::S => cpu.mstatus & status::TSR == 0,
        _ => false,
    }
}

fn may_wait(cpu: &Cpu) -> bool {
    match cpu.mode {
        Mode::M => true,
        Mode::S => cpu.mstatus & status::TW == 0,
        _ => false,
    }
}

fn may_fence(cpu: &Cpu) -> bool {
    match cpu.mode {
        Mode::M => true,
        Mode::S => cpu.mstatus & status::TVM == 0,
        _ => false,
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
    let csr = (bits >> 20) as u16;
    let operand = match micro.op {
        Op::Csrrw | Op::Csrrs | Op::Csrrc => hart.cpu.read_x(micro.rs1),
        _ => micro.imm as u64,
    };
    let named = match micro.op {
        Op::Csrrw | Op::Csrrs | Op::Csrrc => micro.rs1 != 0,
        _ => micro.imm != 0,
    };
    let write = named || matches!(micro.op, Op::Csrrw | Op::Csrrwi);
    if !hart.cpu.may_access(csr, write) {
        return None;
    }
    match csr {
        csr::TIME | csr::TIMEH => bus.set_time(hart.cpu.cycles),
        // Time may have passed since the machine last looked.
        csr::SIP | csr::MIP if bus.runs_by_itself() => {
            let pending = bus.interrupts(hart.cpu.id, hart.cpu.cycles);
            hart.cpu.set_outside_interrupts(pending);
        }
        _ => hart.cpu.settle_for(csr),
    }
    let old = hart.cpu.read_csr(csr, bus.clint.mtime)?;
    let mut report = Report {
        effects: &mut hart.effects,
        accesses: &mut hart.accesses,
        observer,
    };
    let (kind, new) = match micro.op {
        Op::Csrrw | Op::Csrrwi => (AccessKind::CsrReadWrite, operand),
        Op::Csrrs | Op::Csrrsi => (AccessKind::CsrReadSet, old | operand),
        _ => (AccessKind::CsrReadClear, old & !operand),
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
        let after = hart
            .cpu
            .write_csr(csr, new, &mut |csr, value| report.csr(csr, value));
        if after.decoding {
            hart.code.clear(hart.cpu.isa);
            hart.tlb.forget_code();
        }
        if after.translation {
            hart.tlb.flush(&hart.cpu);
        }
        hart.tlb.change_status(&hart.cpu);
    }
    if micro.rd != SINK {
        hart.cpu.write_x(micro.rd, old);
        report.reg(RegId::X(micro.rd), old);
    }
    Some(())
}
