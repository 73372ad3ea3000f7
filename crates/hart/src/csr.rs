//! Control and status registers: which exist, who may touch them, what they
//! hold.

mod counters;
mod records;
mod stateen;

pub(crate) use counters::merge;

use hartrace_flow::Mode;
use hartrace_isa::{Ext, Isa, Xlen};

use crate::cpu::{ADUE, Cpu, interrupt, status};
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
}

/// A CSR written, with its new value.
pub(crate) type Wrote<'a> = &'a mut dyn FnMut(u16, u64);

impl Cpu {
    /// Whether an instruction in the current mode may access this CSR. It also
    /// has to exist.
    pub(crate) fn may_access(&self, csr: u16, write: bool) -> bool {
        let level = (csr >> 8 & 3) as u8;
        if write && csr >> 10 == 3 || self.mode.code() < level || !self.is_enabled(csr) {
            return false;
        }
        match csr {
            0x001..=0x003 => self.isa.has(Ext::F) && self.float_on(),
            0x180 => self.mode == Mode::M || self.mstatus & status::TVM == 0,
            0xc00..=0xc1f | 0xc80..=0xc9f => self.may_count(csr),
            _ => self.may_access_records(csr),
        }
    }

    /// The interrupts there are.
    fn interrupts(&self) -> u64 {
        interrupt::ALL | self.overflow_interrupt()
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
        width | set | bit('i') | bit('s') | bit('u')
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
        drop(!float, &[Ext::F, Ext::Zfh, Ext::Zfhmin, Ext::Zcf]);
        drop(!float || !wants('d'), &[Ext::D, Ext::Zcd]);
        drop(
            !wants('c') && self.whole.has(Ext::C),
            &[Ext::C, Ext::Zca, Ext::Zcf, Ext::Zcd, Ext::Zcb],
        );
        self.isa = isa;
        true
    }

    /// Reads a CSR without asking who may; `None` when there is none of this
    /// number. `time` is the value of mtime.
    pub(crate) fn read_csr(&self, csr: u16, time: u64) -> Option<u64> {
        let rv32 = self.xlen() == Xlen::Rv32;
        let value = match csr {
            0x001 => self.fflags.into(),
            0x002 => self.frm.into(),
            0x003 => u64::from(self.frm) << 5 | u64::from(self.fflags),
            0x100 => self.mstatus & self.sstatus_mask(),
            0x104 => self.mie & self.mideleg,
            0x105 => self.stvec,
            0x106 => self.scounteren,
            0x10a => 0,
            0x10c..=0x10f | 0x30c..=0x30f | 0x31c..=0x31f => self.read_stateen(csr)?,
            0x30a => self.menvcfg,
            0x31a if rv32 => self.menvcfg >> 32,
            0x140 => self.sscratch,
            0x141 => self.sepc & self.epc_mask(),
            0x142 => self.scause,
            0x143 => self.stval,
            0x144 => self.mip & self.mideleg,
            0x150 if self.isa.has(Ext::Sscsrind) => self.siselect,
            0x151..=0x157 | 0x351..=0x357 => self.read_alias(csr)?,
            0x180 => self.satp,
            0x5a8 => self.scontext,
            0x300 => self.mstatus,
            0x301 => self.misa(),
            0x302 => self.medeleg,
            0x303 => self.mideleg,
            0x304 => self.mie,
            0x305 => self.mtvec,
            0x306 => self.mcounteren,
            0x310 if rv32 => self.mstatus >> 32,
            0x320 => self.mcountinhibit,
            0x323..=0x33f | 0x723..=0x73f => self.read_event(csr)?,
            0x340 => self.mscratch,
            0x341 => self.mepc & self.epc_mask(),
            0x342 => self.mcause,
            0x343 => self.mtval,
            0x344 => self.mip,
            0x350 if self.isa.has(Ext::Smcsrind) => self.miselect,
            0x3a0..=0x3af => self.pmpcfg(csr)?,
            0x3b0..=0x3ef => self.pmp.addr(usize::from(csr - 0x3b0)),
            0x7a0..=0x7a4 => 0,
            0x7a8 => self.mcontext,
            0xda0 => self.scountovf()?,
            0xf11 | 0xf13 | 0xf15 => 0,
            0xf12 => 5,
            0xf14 => self.id.into(),
            _ if self.is_record_csr(csr) => self.read_record_csr(csr)?,
            _ => self.read_counter(csr, time)?,
        };
        Some(self.xlen().wrap(value))
    }

    fn pmpcfg(&self, csr: u16) -> Option<u64> {
        let first = usize::from(csr - 0x3a0) * 4;
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
        match csr {
            0x001..=0x003 => self.write_float_csr(csr, value, wrote),
            0x100 => {
                let mask = self.sstatus_writable();
                self.set_mstatus(self.mstatus & !mask | value & mask);
                wrote(0x300, xlen.wrap(self.mstatus));
            }
            0x104 => {
                let mask = self.mideleg & self.interrupts();
                self.mie = self.mie & !mask | value & mask;
                wrote(0x304, self.mie);
            }
            0x144 => {
                let mask = self.mideleg & (interrupt::SSI | self.overflow_interrupt());
                self.mip = self.mip & !mask | value & mask;
                wrote(0x344, self.mip);
            }
            0x180 => {
                after.translation = self.set_satp(value);
                wrote(csr, self.satp);
            }
            0x300 => {
                let low = xlen.wrap(value);
                let high = self.mstatus & !xlen.wrap(u64::MAX);
                self.set_mstatus(high | low);
                wrote(csr, xlen.wrap(self.mstatus));
            }
            // The endianness bits of the high half are fixed to zero.
            0x310 => wrote(csr, self.mstatus >> 32),
            0x301 => {
                if self.set_misa(value) {
                    after.decoding = true;
                    wrote(csr, xlen.wrap(self.misa()));
                }
            }
            0x304 => {
                self.mie = value & self.interrupts();
                wrote(csr, self.mie);
            }
            0x344 => {
                let mask = interrupt::SUPERVISOR | self.overflow_interrupt();
                self.mip = self.mip & !mask | value & mask;
                wrote(csr, self.mip);
            }
            0x30a | 0x31a => {
                after.translation = true;
                self.write_menvcfg(csr, value, wrote);
            }
            0x10c..=0x10f | 0x30c..=0x30f | 0x31c..=0x31f => {
                self.write_stateen(csr, value, wrote);
            }
            0x151..=0x157 | 0x351..=0x357 => self.write_alias(csr, value, wrote),
            0x3a0..=0x3ef => after.translation = self.write_pmp(csr, value, wrote),
            _ if self.is_record_csr(csr) => self.write_record_csr(csr, value, wrote),
            0x323..=0x33f | 0x723..=0x73f => self.write_event(csr, value, wrote),
            0xb00..=0xb9f => self.write_counter(csr, value, wrote),
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
        let mut shown = None;
        let (register, mask) = match csr {
            0x105 => (&mut self.stvec, !2),
            0x106 => (&mut self.scounteren, counters),
            0x140 => (&mut self.sscratch, !0),
            0x141 => (&mut self.sepc, !1),
            0x142 => (&mut self.scause, !0),
            0x143 => (&mut self.stval, !0),
            0x150 => (&mut self.siselect, SELECT),
            0x350 => (&mut self.miselect, SELECT),
            0x5a8 => (&mut self.scontext, if rv32 { 0xffff } else { 0xffff_ffff }),
            0x302 => (&mut self.medeleg, DELEGABLE | fetch | error),
            0x303 => (&mut self.mideleg, interrupt::SUPERVISOR | overflow),
            0x305 => (&mut self.mtvec, !2),
            0x306 => (&mut self.mcounteren, counters),
            0x320 => (&mut self.mcountinhibit, counters & !2),
            0x340 => (&mut self.mscratch, !0),
            0x341 => (&mut self.mepc, !1),
            0x342 => (&mut self.mcause, !0),
            0x343 => (&mut self.mtval, !0),
            0x7a8 => (&mut self.mcontext, if rv32 { 0x3f } else { 0x1fff }),
            // Registers without a writable bit.
            0x10a | 0x7a0 => {
                shown = Some(0);
                (&mut 0, 0)
            }
            _ => return,
        };
        *register = value & mask;
        let now = *register;
        let epc = self.epc_mask();
        let value = match csr {
            0x141 | 0x341 => now & epc,
            _ => shown.unwrap_or(now),
        };
        wrote(csr, value);
    }

    fn write_float_csr(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) {
        if self.dirty_float() {
            wrote(0x300, self.xlen().wrap(self.mstatus));
        }
        if csr != 0x001 {
            let shift = if csr == 0x003 { 5 } else { 0 };
            self.frm = (value >> shift) as u8 & 7;
            wrote(0x002, self.frm.into());
        }
        if csr != 0x002 {
            self.fflags = value as u8 & 31;
            wrote(0x001, self.fflags.into());
        }
    }

    fn write_menvcfg(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) {
        let mask = if self.svadu { ADUE } else { 0 };
        let rv32 = self.xlen() == Xlen::Rv32;
        self.menvcfg = match (rv32, csr) {
            (false, _) => value & mask,
            (true, 0x30a) => self.menvcfg & !0xffff_ffff,
            (true, _) => value << 32 & mask,
        };
        let shown = if csr == 0x30a {
            self.menvcfg
        } else {
            self.menvcfg >> 32
        };
        wrote(csr, self.xlen().wrap(shown));
    }

    fn set_mstatus(&mut self, value: u64) {
        let mut mask = self.sstatus_writable() | status::MIE | status::MPIE;
        mask |= status::MPRV | status::MPP | status::TW | status::TSR | status::TVM;
        let mut value = value;
        // Two is no mode.
        if value & status::MPP == 2 << 11 {
            value &= !status::MPP;
        }
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
        if csr >= 0x3b0 {
            let entry = usize::from(csr - 0x3b0);
            let value = value & Pmp::addr_mask(self.xlen());
            if entry >= ENTRIES || self.pmp.set_addr(entry, value) {
                wrote(csr, self.pmp.addr(entry));
            }
        } else {
            let first = usize::from(csr - 0x3a0) * 4;
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
