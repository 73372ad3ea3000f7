//! CSRs that are set from outside.

use hartrace_isa::{Xlen, csr};

use super::{Aftermath, merge};
use crate::cpu::Cpu;

/// Sets a CSR to a value from outside, bits that programs cannot
/// write among them. `None` when there is none of this number, or none that
/// can differ.
pub(crate) fn set_csr(cpu: &mut Cpu, csr: u16, value: u64) -> Option<Aftermath> {
    let rv32 = cpu.xlen() == Xlen::Rv32;
    let value = cpu.xlen().wrap(value);
    let xlen = cpu.xlen();
    let half = |old: u64, high: bool| merge(old, value, xlen, high);
    match csr {
        // As a program's write these would make FS dirty.
        csr::FFLAGS => cpu.fflags = value as u8 & 31,
        csr::FRM => cpu.frm = value as u8 & 7,
        csr::FCSR => (cpu.frm, cpu.fflags) = ((value >> 5) as u8 & 7, value as u8 & 31),
        _ if cpu.own.as_ref().is_some_and(|own| own.read(csr).is_some()) => {
            cpu.write_csr(csr, value, &mut |_, _| {});
        }
        csr::MSTATUS => cpu.mstatus = half(cpu.mstatus, false),
        csr::MSTATUSH if rv32 => cpu.mstatus = half(cpu.mstatus, true),
        csr::MIE => cpu.mie = value,
        csr::MIP => {
            cpu.mip = value;
            cpu.write_external(u64::MAX, value);
        }
        csr::MCYCLE | csr::CYCLE => cpu.mcycle = half(cpu.mcycle, false),
        csr::MINSTRET | csr::INSTRET => cpu.minstret = half(cpu.minstret, false),
        csr::MCYCLEH | csr::CYCLEH if rv32 => cpu.mcycle = half(cpu.mcycle, true),
        csr::MINSTRETH | csr::INSTRETH if rv32 => cpu.minstret = half(cpu.minstret, true),
        csr::MHPMCOUNTER3..=csr::MHPMCOUNTER31
        | csr::HPMCOUNTER3..=csr::HPMCOUNTER31
        | csr::MHPMCOUNTER3H..=csr::MHPMCOUNTER31H
        | csr::HPMCOUNTER3H..=csr::HPMCOUNTER31H
            if cpu.counts_events() && cpu.read_csr(csr, 0).is_some() =>
        {
            let number = csr & 31;
            let new = half(cpu.events.counter(number), csr & 0x80 != 0);
            cpu.events.set_counter(number, new);
        }
        _ if csr >> 10 == 3 || cpu.read_csr(csr, 0).is_none() => return None,
        _ => {
            let after = cpu.write_csr(csr, value, &mut |_, _| {});
            cpu.wrote_mcycle = false;
            cpu.wrote_minstret = false;
            cpu.events.retire_writes();
            return Some(after);
        }
    }
    Some(Aftermath::default())
}
