//! Control and status registers: which exist, which mode may access them, and
//! their values.

mod counters;
mod envcfg;
mod outside;
mod records;
mod stateen;

use counters::merge;
pub(crate) use outside::set_csr;

use hartrace_flow::Mode;
use hartrace_isa::{Ext, Isa, Xlen, csr};

use crate::cpu::{Cpu, interrupt, status};
use crate::pmp::{ENTRIES, Pmp};

/// Exceptions that can be delegated: all but those that cannot happen below
/// machine mode. Misaligned fetches only where there are any.
const DELEGABLE: u64 = 0xb3fe;

/// What the select registers of Smcsrind and Sscsrind hold: the range that a
/// supervisor is promised.
const SELECT: u64 = 0xfff;

/// A hardware error, which has come with the counters.
const HARDWARE_ERROR: u64 = 1 << 19;

/// What a CSR write asks of the hart besides the new value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aftermath {
    /// Address translation or protection has changed.
    pub(crate) translation: bool,
    /// The instruction set has changed.
    pub(crate) decoding: bool,
    /// When the timer of the supervisor is due has changed.
    pub(crate) timer: bool,
}

/// A CSR written, with its new value.
pub(crate) type Wrote<'a> = &'a mut dyn FnMut(u16, u64);

impl Cpu {
    /// Whether an instruction in the current mode may access this CSR. It also
    /// has to exist.
    pub(crate) fn may_access(&self, csr: u16, write: bool) -> bool {
        let level = (csr >> 8 & 3) as u8;
        if self.own.as_ref().is_some_and(|own| own.is_absent(csr)) {
            return false;
        }
        if write && csr >> 10 == 3 || self.mode.code() < level || !self.is_enabled(csr) {
            return false;
        }
        match csr {
            csr::FFLAGS..=csr::FCSR => self.isa.has(Ext::F) && self.float_on(),
            csr::SATP => self.mode == Mode::M || self.mstatus & status::TVM == 0,
            csr::STIMECMP | csr::STIMECMPH => self.may_access_timer(),
            csr::CYCLE..=csr::HPMCOUNTER31 | csr::CYCLEH..=csr::HPMCOUNTER31H => {
                self.may_count(csr)
            }
            _ => self.may_access_records(csr),
        }
    }

    /// The interrupts there are.
    fn interrupts(&self) -> u64 {
        self.own_interrupts(interrupt::ALL | self.overflow_interrupt())
    }

    /// The fields of `sstatus`, read.
    fn sstatus_mask(&self) -> u64 {
        self.sstatus_writable() | self.sd() | status::UXL
    }

    fn sstatus_writable(&self) -> u64 {
        status::SIE | status::SPIE | status::SPP | status::FS | status::SUM | status::MXR
    }

    /// `misa`: the width and the single-letter extensions.
    pub(crate) fn misa(&self) -> u64 {
        let width = match self.xlen() {
            Xlen::Rv32 => 1 << 30,
            Xlen::Rv64 => 2 << 62,
        };
        let letters = [
            ('a', Ext::A),
            ('b', Ext::B),
            ('c', Ext::C),
            ('d', Ext::D),
            ('f', Ext::F),
            ('m', Ext::M),
        ];
        let bit = |letter: char| 1u64 << (letter as u32 - 'a' as u32);
        let has = letters.iter().filter(|(_, ext)| self.isa.has(*ext));
        let set: u64 = has.map(|(letter, _)| bit(*letter)).sum();
        self.own_misa(width | set | bit('i') | bit('s') | bit('u'))
    }

    /// Takes away or gives back what `misa` can switch: M, A, B, F, D, C and
    /// what stands on them.
    fn set_misa(&mut self, value: u64) -> bool {
        let wants = |letter: char| value >> (letter as u32 - 'a' as u32) & 1 != 0;
        // Instructions must not become misaligned under the program.
        if !wants('c') && self.isa.has(Ext::C) && self.pc.wrapping_add(4) & 2 != 0 {
            return false;
        }
        let mut isa = self.whole;
        let mut drop = |gone: bool, exts: &[Ext]| {
            if gone {
                isa = exts.iter().fold(isa, |isa: Isa, &ext| isa.without(ext));
            }
        };
        let float = wants('f');
        drop(!wants('m'), &[Ext::M, Ext::Zmmul]);
        drop(
            !wants('a') && self.whole.has(Ext::A),
            &[Ext::A, Ext::Zaamo, Ext::Zalrsc],
        );
        drop(
            !wants('b') && self.whole.has(Ext::B),
            &[Ext::B, Ext::Zba, Ext::Zbb, Ext::Zbs],
        );
        drop(!float, &[Ext::F, Ext::Zfh, Ext::Zfhmin, Ext::Zfa, Ext::Zcf]);
        drop(!float || !wants('d'), &[Ext::D, Ext::Zcd]);
        drop(
            !wants('c') && self.whole.has(Ext::C),
            &[
                Ext::C,
                Ext::Zca,
                Ext::Zcf,
                Ext::Zcd,
                Ext::Zcb,
                Ext::Zcmop,
                Ext::Zcmp,
                Ext::Zcmt,
            ],
        );
        self.isa = isa;
        true
    }

    /// Reads a CSR without asking who may; `None` when there is none of this
    /// number. `time` is the value of mtime.
    pub(crate) fn read_csr(&self, csr: u16, time: u64) -> Option<u64> {
        let rv32 = self.xlen() == Xlen::Rv32;
        if let Some(own) = &self.own {
            if own.is_absent(csr) {
                return None;
            }
            if let Some(value) = own.read(csr) {
                return Some(self.xlen().wrap(value));
            }
        }
        let value = match csr {
            csr::FFLAGS => self.fflags.into(),
            csr::FRM => self.frm.into(),
            csr::FCSR => u64::from(self.frm) << 5 | u64::from(self.fflags),
            csr::SSTATUS => self.mstatus & self.sstatus_mask(),
            csr::SIE => self.mie & self.mideleg,
            csr::STVEC => self.stvec,
            csr::SCOUNTEREN => self.scounteren,
            csr::SENVCFG => self.senvcfg,
            csr::STIMECMP if self.whole.has(Ext::Sstc) => self.stimecmp,
            csr::STIMECMPH if rv32 && self.whole.has(Ext::Sstc) => self.stimecmp >> 32,
            csr::JVT if self.isa.has(Ext::Zcmt) => self.jvt,
            csr::SSTATEEN0..=csr::SSTATEEN3
            | csr::MSTATEEN0..=csr::MSTATEEN3
            | csr::MSTATEEN0H..=csr::MSTATEEN3H => self.read_stateen(csr)?,
            csr::MENVCFG => self.menvcfg,
            csr::MENVCFGH if rv32 => self.menvcfg >> 32,
            csr::SSCRATCH => self.sscratch,
            csr::SEPC => self.sepc & self.epc_mask(),
            csr::SCAUSE => self.scause,
            csr::STVAL => self.stval,
            csr::SIP => self.mip & self.mideleg,
            csr::SISELECT if self.isa.has(Ext::Sscsrind) => self.siselect,
            csr::SIREG..=csr::SIREG6 | csr::MIREG..=csr::MIREG6 => self.read_alias(csr)?,
            csr::SATP => self.satp,
            csr::SCONTEXT => self.scontext,
            csr::MSTATUS => self.mstatus,
            csr::MISA => self.misa(),
            csr::MEDELEG => self.medeleg,
            csr::MIDELEG => self.mideleg,
            csr::MIE => self.mie,
            csr::MTVEC => self.mtvec,
            csr::MCOUNTEREN => self.mcounteren,
            csr::MSTATUSH if rv32 => self.mstatus >> 32,
            csr::MCOUNTINHIBIT => self.mcountinhibit,
            csr::MHPMEVENT3..=csr::MHPMEVENT31 | csr::MHPMEVENT3H..=csr::MHPMEVENT31H => {
                self.read_event(csr)?
            }
            csr::MSCRATCH => self.mscratch,
            csr::MEPC => self.mepc & self.epc_mask(),
            csr::MCAUSE => self.mcause,
            csr::MTVAL => self.mtval,
            csr::MIP => self.mip,
            csr::MISELECT if self.isa.has(Ext::Smcsrind) => self.miselect,
            csr::PMPCFG0..=csr::PMPCFG15 => self.pmpcfg(csr)?,
            csr::PMPADDR0..=csr::PMPADDR63 => self.pmp.addr(usize::from(csr - csr::PMPADDR0)),
            csr::TSELECT..=csr::TINFO => self.triggers.read(csr),
            csr::MCONTEXT => self.mcontext,
            csr::SCOUNTOVF => self.scountovf()?,
            csr::MVENDORID | csr::MIMPID | csr::MCONFIGPTR => 0,
            csr::MARCHID => 5,
            csr::MHARTID => self.id.into(),
            _ if self.is_record_csr(csr) => self.read_record_csr(csr)?,
            _ => self.read_counter(csr, time)?,
        };
        Some(self.xlen().wrap(value))
    }

    fn pmpcfg(&self, csr: u16) -> Option<u64> {
        let first = usize::from(csr - csr::PMPCFG0) * 4;
        let count = self.xlen().bits() as usize / 8;
        if !first.is_multiple_of(count) {
            return None;
        }
        let bytes = (0..count).map(|i| u64::from(self.pmp.cfg(first + i)) << (8 * i));
        Some(bytes.sum())
    }

    /// Writes a CSR that exists. What is written, under its own number, is
    /// given to `wrote`.
    pub(crate) fn write_csr(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) -> Aftermath {
        let xlen = self.xlen();
        let mut after = Aftermath::default();
        if let Some(own) = &mut self.own
            && own.write(csr, value)
        {
            wrote(csr, own.read(csr).unwrap_or(value));
            return after;
        }
        match csr {
            csr::FFLAGS..=csr::FCSR => self.write_float_csr(csr, value, wrote),
            csr::SSTATUS => {
                let mask = self.sstatus_writable();
                self.set_mstatus(self.mstatus & !mask | value & mask);
                wrote(csr::MSTATUS, xlen.wrap(self.mstatus));
            }
            csr::SIE => {
                let mask = self.mideleg & self.interrupts();
                self.mie = self.mie & !mask | value & mask;
                wrote(csr::MIE, self.mie);
            }
            csr::SIP => {
                let mask = self.mideleg & (interrupt::SSI | self.overflow_interrupt());
                self.mip = self.mip & !mask | value & mask;
                wrote(csr::MIP, self.mip);
            }
            csr::SATP => {
                after.translation = self.set_satp(value);
                wrote(csr, self.satp);
            }
            csr::MSTATUS => {
                let low = xlen.wrap(value);
                let high = self.mstatus & !xlen.wrap(u64::MAX);
                self.set_mstatus(high | low);
                wrote(csr, xlen.wrap(self.mstatus));
            }
            // The endianness bits of the high half are fixed to zero.
            csr::MSTATUSH => wrote(csr, self.mstatus >> 32),
            csr::MISA => {
                if self.set_misa(value) {
                    after.decoding = true;
                    wrote(csr, xlen.wrap(self.misa()));
                }
            }
            csr::MIE => {
                self.mie = value & self.interrupts();
                wrote(csr, self.mie);
            }
            csr::MIP => {
                let mask = interrupt::SUPERVISOR & !self.outside_interrupts();
                let mask = (mask | self.overflow_interrupt()) & self.interrupts();
                self.mip = self.mip & !mask | value & mask;
                self.write_external(mask, value);
                wrote(csr, self.mip);
            }
            csr::MENVCFG | csr::MENVCFGH => {
                after.translation = true;
                after.timer = true;
                self.write_menvcfg(csr, value, wrote);
            }
            csr::STIMECMP | csr::STIMECMPH => {
                after.timer = true;
                self.stimecmp = merge(self.stimecmp, value, xlen, csr == csr::STIMECMPH);
                wrote(csr, xlen.wrap(value));
            }
            csr::SSTATEEN0..=csr::SSTATEEN3
            | csr::MSTATEEN0..=csr::MSTATEEN3
            | csr::MSTATEEN0H..=csr::MSTATEEN3H => {
                self.write_stateen(csr, value, wrote);
            }
            csr::SIREG..=csr::SIREG6 | csr::MIREG..=csr::MIREG6 => {
                self.write_alias(csr, value, wrote)
            }
            csr::TSELECT..=csr::TDATA3 => {
                self.triggers.write(csr, value);
                wrote(csr, self.triggers.read(csr));
            }
            csr::PMPCFG0..=csr::PMPADDR63 => after.translation = self.write_pmp(csr, value, wrote),
            _ if self.is_record_csr(csr) => self.write_record_csr(csr, value, wrote),
            csr::MHPMEVENT3..=csr::MHPMEVENT31 | csr::MHPMEVENT3H..=csr::MHPMEVENT31H => {
                self.write_event(csr, value, wrote)
            }
            csr::MCYCLE..=csr::MHPMCOUNTER31H => self.write_counter(csr, value, wrote),
            _ => self.write_plain(csr, value, wrote),
        }
        after
    }

    /// Registers that hold what is written, under a mask.
    fn write_plain(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) {
        let counters = self.counter_mask();
        let overflow = self.overflow_interrupt();
        let rv32 = self.xlen() == Xlen::Rv32;
        let fetch = if self.isa.has(Ext::Zca) { 0 } else { 1 };
        let error = if self.has_counters() {
            HARDWARE_ERROR
        } else {
            0
        };
        let blocks = self.cache_block_fields();
        let (register, mask) = match csr {
            csr::STVEC => (&mut self.stvec, !2),
            csr::SCOUNTEREN => (&mut self.scounteren, counters),
            csr::SSCRATCH => (&mut self.sscratch, !0),
            csr::SEPC => (&mut self.sepc, !1),
            csr::SCAUSE => (&mut self.scause, !0),
            csr::STVAL => (&mut self.stval, !0),
            csr::SISELECT => (&mut self.siselect, SELECT),
            csr::MISELECT => (&mut self.miselect, SELECT),
            csr::SCONTEXT => (&mut self.scontext, if rv32 { 0xffff } else { 0xffff_ffff }),
            csr::MEDELEG => (&mut self.medeleg, DELEGABLE | fetch | error),
            csr::MIDELEG => (&mut self.mideleg, interrupt::SUPERVISOR | overflow),
            csr::MTVEC => (&mut self.mtvec, !2),
            csr::MCOUNTEREN => (&mut self.mcounteren, counters),
            csr::MCOUNTINHIBIT => (&mut self.mcountinhibit, counters & !2),
            csr::MSCRATCH => (&mut self.mscratch, !0),
            csr::MEPC => (&mut self.mepc, !1),
            csr::MCAUSE => (&mut self.mcause, !0),
            csr::MTVAL => (&mut self.mtval, !0),
            csr::MCONTEXT => (&mut self.mcontext, if rv32 { 0x3f } else { 0x1fff }),
            csr::SENVCFG => (&mut self.senvcfg, blocks & envcfg::without_reserved(value)),
            // The mode is always 0, a jump table.
            csr::JVT => (&mut self.jvt, !0x3f),
            _ => return,
        };
        *register = value & mask;
        let now = *register;
        let epc = self.epc_mask();
        let value = match csr {
            csr::SEPC | csr::MEPC => now & epc,
            _ => now,
        };
        wrote(csr, value);
    }

    fn write_float_csr(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) {
        if self.dirty_float() {
            wrote(csr::MSTATUS, self.xlen().wrap(self.mstatus));
        }
        if csr != csr::FFLAGS {
            let shift = if csr == csr::FCSR { 5 } else { 0 };
            self.frm = (value >> shift) as u8 & 7;
            wrote(csr::FRM, self.frm.into());
        }
        if csr != csr::FRM {
            self.fflags = value as u8 & 31;
            wrote(csr::FFLAGS, self.fflags.into());
        }
    }

    fn set_mstatus(&mut self, value: u64) {
        let mut mask = self.sstatus_writable() | status::MIE | status::MPIE;
        mask |= status::MPRV | status::MPP | status::TW | status::TSR | status::TVM;
        mask = self.status_fields(mask);
        let value = self.legal_mpp(value);
        let mut new = self.mstatus & !mask | value & mask;
        new &= !self.sd();
        if new & status::FS == status::FS {
            new |= self.sd();
        }
        self.mstatus = new;
    }

    /// Sets `satp`; a mode that does not exist leaves it alone (privileged
    /// architecture, 10.1.11). True when it has changed.
    fn set_satp(&mut self, value: u64) -> bool {
        let new = match self.xlen() {
            Xlen::Rv32 => value & 0xffff_ffff,
            Xlen::Rv64 => match value >> 60 {
                0 | 8 | 9 | 10 => value,
                _ => return false,
            },
        };
        let changed = new != self.satp;
        self.satp = new;
        changed
    }

    fn write_pmp(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) -> bool {
        if csr >= csr::PMPADDR0 {
            let entry = usize::from(csr - csr::PMPADDR0);
            let value = value & Pmp::addr_mask(self.xlen());
            if entry >= ENTRIES || self.pmp.set_addr(entry, value) {
                wrote(csr, self.pmp.addr(entry));
            }
        } else {
            let first = usize::from(csr - csr::PMPCFG0) * 4;
            for (i, byte) in value.to_le_bytes().into_iter().enumerate() {
                if i < self.xlen().bits() as usize / 8 {
                    self.pmp.set_cfg(first + i, byte);
                }
            }
            if first < ENTRIES {
                wrote(csr, self.pmpcfg(csr).unwrap_or(0));
            }
        }
        true
    }
}
