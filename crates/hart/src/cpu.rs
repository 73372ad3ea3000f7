//! The architectural state of one hart, and traps.

use hartrace_flow::{Cause, Context, Mode};
use hartrace_isa::{Ext, Isa, Xlen, csr};

use crate::config::ContextSource;
use crate::events::Events;
use crate::notes::Records;
use crate::pending::{Due, Pending};
use crate::pmp::Pmp;
use crate::triggers::Triggers;
use crate::variant::Own;

/// A register that swallows writes to x0, so that the interpreter need not ask.
pub(crate) const SINK: u8 = 32;

/// Fields of `mstatus`.
#[allow(missing_docs)]
pub(crate) mod status {
    pub(crate) const SIE: u64 = 1 << 1;
    pub(crate) const MIE: u64 = 1 << 3;
    pub(crate) const SPIE: u64 = 1 << 5;
    pub(crate) const MPIE: u64 = 1 << 7;
    pub(crate) const SPP: u64 = 1 << 8;
    pub(crate) const MPP: u64 = 3 << 11;
    pub(crate) const FS: u64 = 3 << 13;
    pub(crate) const MPRV: u64 = 1 << 17;
    pub(crate) const SUM: u64 = 1 << 18;
    pub(crate) const MXR: u64 = 1 << 19;
    pub(crate) const TVM: u64 = 1 << 20;
    pub(crate) const TW: u64 = 1 << 21;
    pub(crate) const TSR: u64 = 1 << 22;
    pub(crate) const UXL: u64 = 3 << 32;
}

/// Fields of `menvcfg`; the first three are those of `senvcfg`, too.
pub(crate) mod envcfg {
    /// `cbo.inval`: 1 lets it flush, 3 lets it invalidate.
    pub(crate) const CBIE: u64 = 3 << 4;
    /// `cbo.clean` and `cbo.flush`.
    pub(crate) const CBCFE: u64 = 1 << 6;
    /// `cbo.zero`.
    pub(crate) const CBZE: u64 = 1 << 7;
    /// The page-table walker sets A and D.
    pub(crate) const ADUE: u64 = 1 << 61;
    /// Page-based memory types (Svpbmt).
    pub(crate) const PBMTE: u64 = 1 << 62;
    /// The timer of the supervisor (Sstc).
    pub(crate) const STCE: u64 = 1 << 63;
}

/// Bits of `mip` and `mie`.
#[allow(missing_docs)]
pub(crate) mod interrupt {
    pub(crate) const SSI: u64 = 1 << 1;
    pub(crate) const MSI: u64 = 1 << 3;
    pub(crate) const STI: u64 = 1 << 5;
    pub(crate) const MTI: u64 = 1 << 7;
    pub(crate) const SEI: u64 = 1 << 9;
    pub(crate) const MEI: u64 = 1 << 11;
    /// Only with Sscofpmf.
    pub(crate) const LCOFI: u64 = 1 << 13;
    pub(crate) const EXTERNAL: u64 = SEI | MEI;
    pub(crate) const SUPERVISOR: u64 = SSI | STI | SEI;
    pub(crate) const ALL: u64 = SUPERVISOR | MSI | MTI | MEI;

    /// Highest priority first (privileged architecture, 3.1.9).
    pub(crate) const PRIORITY: [u32; 7] = [11, 3, 7, 9, 1, 5, 13];
}

/// Codes of exceptions in xcause.
#[allow(missing_docs)]
pub(crate) mod cause {
    pub(crate) const FETCH_MISALIGNED: u32 = 0;
    pub(crate) const FETCH_ACCESS: u32 = 1;
    pub(crate) const ILLEGAL: u32 = 2;
    pub(crate) const BREAKPOINT: u32 = 3;
    pub(crate) const LOAD_MISALIGNED: u32 = 4;
    pub(crate) const LOAD_ACCESS: u32 = 5;
    pub(crate) const STORE_MISALIGNED: u32 = 6;
    pub(crate) const STORE_ACCESS: u32 = 7;
    pub(crate) const ECALL_U: u32 = 8;
    pub(crate) const ECALL_S: u32 = 9;
    pub(crate) const ECALL_M: u32 = 11;
    pub(crate) const FETCH_PAGE: u32 = 12;
    pub(crate) const LOAD_PAGE: u32 = 13;
    pub(crate) const STORE_PAGE: u32 = 15;
}

/// An exception to be taken: its code and the trap value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exception {
    pub(crate) code: u32,
    pub(crate) tval: u64,
}

/// Everything a program can see of a hart, memory aside.
#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    pub(crate) x: [u64; 32],
    pub(crate) f: [u64; 32],
    /// Floating-point registers that hold no number yet, not even a boxed one:
    /// their bits are zero, but to arithmetic they are NaN in every format.
    /// Spike has them after reset.
    pub(crate) unwritten: u32,
    pub(crate) pc: u64,
    pub(crate) mode: Mode,

    /// The instruction set in force; `misa` can take away from `whole`.
    pub(crate) isa: Isa,
    pub(crate) whole: Isa,
    pub(crate) id: u32,
    /// The base counters exist although the instruction set does not name
    /// them.
    pub(crate) always_counters: bool,
    /// The page-table walker always sets A and D.
    pub(crate) update_ad: bool,
    /// It does so when `menvcfg.ADUE` says so (Svadu).
    pub(crate) svadu: bool,
    /// Page-table entries for 64 KiB (Svnapot).
    pub(crate) svnapot: bool,
    /// Page-based memory types, when `menvcfg.PBMTE` says so (Svpbmt).
    pub(crate) svpbmt: bool,
    /// Bytes of a cache block, a power of two.
    pub(crate) cache_block: u64,
    /// What traces report as the context.
    pub(crate) context_source: ContextSource,
    /// How it differs from the whole hart.
    pub(crate) own: Option<Box<Own>>,

    pub(crate) frm: u8,
    pub(crate) fflags: u8,

    pub(crate) mstatus: u64,
    pub(crate) medeleg: u64,
    pub(crate) mideleg: u64,
    pub(crate) mie: u64,
    pub(crate) mip: u64,
    /// External interrupts in `mip` are the sum of what was written, of SEIP by
    /// programs, and of the signals of the interrupt controller.
    pub(crate) external_written: u64,
    external_signals: u64,
    /// When its bits were set.
    pub(crate) pending: Pending,
    pub(crate) mtvec: u64,
    pub(crate) menvcfg: u64,
    pub(crate) senvcfg: u64,
    /// When the timer of the supervisor is due (Sstc).
    pub(crate) stimecmp: u64,
    /// Where the jump table is (Zcmt).
    pub(crate) jvt: u64,
    pub(crate) mcounteren: u64,
    pub(crate) mcountinhibit: u64,
    pub(crate) mscratch: u64,
    pub(crate) mepc: u64,
    pub(crate) mcause: u64,
    pub(crate) mtval: u64,
    pub(crate) stvec: u64,
    pub(crate) scounteren: u64,
    pub(crate) sscratch: u64,
    pub(crate) sepc: u64,
    pub(crate) scause: u64,
    pub(crate) stval: u64,
    pub(crate) satp: u64,
    pub(crate) scontext: u64,
    pub(crate) mcontext: u64,
    /// Which registers the indirect aliases show.
    pub(crate) miselect: u64,
    pub(crate) siselect: u64,
    pub(crate) mstateen: [u64; 4],
    pub(crate) sstateen0: u64,
    /// Control transfer records, if there are any.
    pub(crate) records: Option<Box<Records>>,
    pub(crate) pmp: Pmp,
    pub(crate) triggers: Triggers,

    /// What programs read as `mcycle` and `minstret`.
    pub(crate) mcycle: u64,
    pub(crate) minstret: u64,
    /// The counters were written by the instruction that is about to retire:
    /// the write wins over the increment.
    pub(crate) wrote_mcycle: bool,
    pub(crate) wrote_minstret: bool,
    /// The counters of events.
    pub(crate) events: Events,
    /// Instructions and cycles since reset, whatever programs write.
    pub(crate) retired: u64,
    pub(crate) cycles: u64,

    /// Physical address of the reservation of a load-reserved.
    pub(crate) reservation: Option<u64>,
    /// In `wfi`.
    pub(crate) waiting: bool,
    /// Returns from traps since reset.
    pub(crate) returns: u64,
}

impl Cpu {
    /// A hart after reset, at address 0 in machine mode.
    pub(crate) fn new(isa: Isa, id: u32) -> Cpu {
        // B is a name for the three together.
        let bits = [Ext::Zba, Ext::Zbb, Ext::Zbs];
        let isa = if bits.iter().all(|&ext| isa.has(ext)) {
            isa.with(Ext::B)
        } else {
            isa
        };
        let wide = match isa.xlen() {
            Xlen::Rv32 => 0,
            // UXL and SXL read as 64.
            Xlen::Rv64 => 0xa_0000_0000,
        };
        Cpu {
            x: [0; 32],
            f: [0; 32],
            unwritten: 0,
            pc: 0,
            mode: Mode::M,
            isa,
            whole: isa,
            id,
            always_counters: false,
            update_ad: false,
            svadu: false,
            svnapot: false,
            svpbmt: false,
            cache_block: 64,
            context_source: ContextSource::default(),
            own: None,
            frm: 0,
            fflags: 0,
            mstatus: wide,
            medeleg: 0,
            mideleg: 0,
            mie: 0,
            mip: 0,
            external_written: 0,
            external_signals: 0,
            pending: Pending::default(),
            mtvec: 0,
            menvcfg: 0,
            senvcfg: 0,
            stimecmp: 0,
            jvt: 0,
            mcounteren: 0,
            mcountinhibit: 0,
            mscratch: 0,
            mepc: 0,
            mcause: 0,
            mtval: 0,
            stvec: 0,
            scounteren: 0,
            sscratch: 0,
            sepc: 0,
            scause: 0,
            stval: 0,
            satp: 0,
            scontext: 0,
            mcontext: 0,
            miselect: 0,
            siselect: 0,
            mstateen: [0; 4],
            sstateen0: 0,
            records: None,
            pmp: Pmp::open(isa.xlen()),
            triggers: Triggers::new(0, isa.xlen(), false),
            mcycle: 0,
            minstret: 0,
            wrote_mcycle: false,
            wrote_minstret: false,
            events: Events::new(),
            retired: 0,
            cycles: 0,
            reservation: None,
            waiting: false,
            returns: 0,
        }
    }

    pub(crate) fn xlen(&self) -> Xlen {
        self.isa.xlen()
    }

    /// The software context of trace.
    pub(crate) fn context(&self) -> Context {
        match self.context_source {
            ContextSource::Scontext => Context::new(self.scontext as u32, self.mcontext as u32),
            ContextSource::Asid => Context(self.asid()),
            ContextSource::Root => Context(self.root_page()),
        }
    }

    /// `satp.ASID`.
    pub(crate) fn asid(&self) -> u64 {
        match self.xlen() {
            Xlen::Rv32 => self.satp >> 22 & 0x1ff,
            Xlen::Rv64 => self.satp >> 44 & 0xffff,
        }
    }

    /// `satp.PPN`: the physical page of the root page table.
    pub(crate) fn root_page(&self) -> u64 {
        match self.xlen() {
            Xlen::Rv32 => self.satp & 0x3f_ffff,
            Xlen::Rv64 => self.satp & 0xfff_ffff_ffff,
        }
    }

    /// Whether triggers may match the next instruction.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.triggers.watches(self.mode)
    }

    /// Bits that must be zero in a jump target.
    #[inline]
    pub(crate) fn misalignment(&self) -> u64 {
        if self.isa.has(Ext::Zca) { 0 } else { 2 }
    }

    /// The bits an exception pc can hold.
    pub(crate) fn epc_mask(&self) -> u64 {
        !(self.misalignment() | 1)
    }

    /// Reads an integer register, as the width holds it, zero-extended.
    pub(crate) fn read_x(&self, number: u8) -> u64 {
        let value = self.x.get(usize::from(number & 31)).copied();
        self.xlen().wrap(value.unwrap_or(0))
    }

    /// Writes an integer register.
    pub(crate) fn write_x(&mut self, number: u8, value: u64) {
        let value = match self.xlen() {
            Xlen::Rv32 => value as i32 as u64,
            Xlen::Rv64 => value,
        };
        if let Some(register) = self.x.get_mut(usize::from(number & 31))
            && number & 31 != 0
        {
            *register = value;
        }
    }

    /// The page-table walker sets A and D now; otherwise it faults.
    pub(crate) fn updates_ad(&self) -> bool {
        self.update_ad || self.menvcfg & envcfg::ADUE != 0
    }

    /// Floating-point state is on.
    #[inline]
    pub(crate) fn float_on(&self) -> bool {
        self.mstatus & status::FS != 0
    }

    /// Floating-point state has changed. True when `mstatus` has.
    #[inline]
    pub(crate) fn dirty_float(&mut self) -> bool {
        let clean = self.mstatus & status::FS != status::FS;
        self.mstatus |= status::FS | self.sd();
        clean
    }

    /// The bit that sums up FS.
    #[inline]
    pub(crate) fn sd(&self) -> u64 {
        match self.xlen() {
            Xlen::Rv32 => 1 << 31,
            Xlen::Rv64 => 1 << 63,
        }
    }

    /// The mode `mstatus.MPP` names.
    pub(crate) fn previous_mode(&self) -> Mode {
        Mode::from_code((self.mstatus >> 11 & 3) as u8).unwrap_or(Mode::U)
    }

    /// The mode loads and stores run in.
    pub(crate) fn data_mode(&self) -> Mode {
        if self.mstatus & status::MPRV != 0 {
            self.previous_mode()
        } else {
            self.mode
        }
    }

    /// Counts instructions that have retired and the cycles they took, all of
    /// it in the current mode.
    #[inline]
    pub(crate) fn retire(&mut self, instructions: u64, cycles: u64) {
        self.retire_in(self.mode, instructions, cycles);
    }

    /// The same for what happened in a mode that may have been left by it.
    #[inline]
    pub(crate) fn retire_in(&mut self, mode: Mode, instructions: u64, cycles: u64) {
        self.retired += instructions;
        self.cycles += cycles;
        if self.mcountinhibit & 4 == 0 && !self.wrote_minstret {
            self.minstret = self.minstret.wrapping_add(instructions);
        }
        if self.mcountinhibit & 1 == 0 && !self.wrote_mcycle {
            self.mcycle = self.mcycle.wrapping_add(cycles);
        }
        self.wrote_minstret = false;
        self.wrote_mcycle = false;
        if !self.events.is_idle() {
            let inhibited = self.mcountinhibit;
            if let Some(ago) = self.events.count(mode, inhibited, instructions, cycles) {
                self.mip |= interrupt::LCOFI;
                self.pending.note(self.mip, self.cycles - ago);
            }
        }
    }

    /// The bits of `mip` that come from outside, the external ones aside, which are also
    /// written.
    pub(crate) fn outside_interrupts(&self) -> u64 {
        let supervisor = match self.supervisor_timer() {
            Some(_) => interrupt::STI,
            None => 0,
        };
        interrupt::MSI | interrupt::MTI | supervisor
    }

    /// The time at which the timer of the supervisor is due, if it has one of its own
    /// now (Sstc).
    pub(crate) fn supervisor_timer(&self) -> Option<u64> {
        (self.menvcfg & envcfg::STCE != 0).then_some(self.stimecmp)
    }

    /// Sets the bits of `mip` that come from outside, some of them when time has come.
    pub(crate) fn set_outside_interrupts(&mut self, pending: u64, due: &[Due]) {
        self.mip = self.mip & !self.outside_interrupts() | pending;
        self.external_signals = pending & interrupt::EXTERNAL;
        self.sum_up_external();
        self.pending.look(self.mip, self.cycles, due);
    }

    /// Sets the external interrupts in `mip`, as far as they are written.
    pub(crate) fn write_external(&mut self, mask: u64, value: u64) {
        let mask = mask & interrupt::EXTERNAL;
        self.external_written = self.external_written & !mask | value & mask;
        self.sum_up_external();
    }

    fn sum_up_external(&mut self) {
        let sum = self.external_written | self.external_signals;
        self.mip = self.mip & !interrupt::EXTERNAL | sum;
    }

    /// What CSRRS and CSRRC start from, where a program reads `mip` as this: the signal
    /// of the interrupt controller does not take part (privileged architecture, 3.1.9).
    pub(crate) fn mip_to_modify(&self, mip: u64) -> u64 {
        mip & !interrupt::EXTERNAL | self.external_written
    }

    /// The interrupt to be taken now, if any (privileged architecture, 3.1.6.1
    /// and 3.1.9).
    pub(crate) fn interrupt(&self) -> Option<u32> {
        let pending = self.mip & self.mie;
        if pending == 0 {
            return None;
        }
        let machine = pending & !self.mideleg;
        let machine_on = self.mode != Mode::M || self.mstatus & status::MIE != 0;
        let supervisor = pending & self.mideleg;
        let supervisor_on = match self.mode {
            Mode::M => false,
            Mode::S => self.mstatus & status::SIE != 0,
            _ => true,
        };
        let enabled = if machine_on && machine != 0 {
            machine
        } else if supervisor_on {
            supervisor
        } else {
            0
        };
        let mut order = interrupt::PRIORITY.iter();
        order.find(|&&code| enabled >> code & 1 != 0).copied()
    }

    /// Takes a trap: saves, masks, changes mode and goes to the handler. The
    /// CSRs it writes are given to `wrote`.
    pub(crate) fn trap(&mut self, why: Cause, tval: u64, wrote: &mut impl FnMut(u16, u64)) {
        let (code, is_interrupt) = match why {
            Cause::Interrupt(code) => (code.unwrap_or(0), true),
            Cause::Exception(code) => (code.unwrap_or(0), false),
            Cause::Unknown => (0, false),
        };
        let xlen = self.xlen();
        let top = if is_interrupt {
            1 << (xlen.bits() - 1)
        } else {
            0
        };
        let delegated = if is_interrupt {
            self.mideleg
        } else {
            self.medeleg
        };
        let to_supervisor = self.mode != Mode::M && code < 64 && delegated >> code & 1 != 0;
        let tvec = if to_supervisor {
            self.stvec
        } else {
            self.mtvec
        };
        let vector = if tvec & 1 != 0 && is_interrupt {
            4 * u64::from(code)
        } else {
            0
        };
        let epc = self.pc;
        let tval = xlen.wrap(tval);
        if to_supervisor {
            self.sepc = epc;
            self.scause = u64::from(code) | top;
            self.stval = tval;
            self.enter_supervisor();
            wrote(csr::SCAUSE, self.scause);
            wrote(csr::SEPC, self.sepc);
            wrote(csr::STVAL, self.stval);
        } else {
            self.mepc = epc;
            self.mcause = u64::from(code) | top;
            self.mtval = tval;
            self.enter_machine();
            wrote(csr::MEPC, self.mepc);
            wrote(csr::MCAUSE, self.mcause);
            wrote(csr::MTVAL, self.mtval);
        }
        wrote(csr::MSTATUS, xlen.wrap(self.mstatus));
        self.pc = xlen.wrap((tvec & !1).wrapping_add(vector));
        self.waiting = false;
    }

    fn enter_supervisor(&mut self) {
        let mut s = self.mstatus & !(status::SPIE | status::SPP | status::SIE);
        if self.mstatus & status::SIE != 0 {
            s |= status::SPIE;
        }
        if self.mode == Mode::S {
            s |= status::SPP;
        }
        self.mstatus = s;
        self.mode = Mode::S;
    }

    fn enter_machine(&mut self) {
        let mut s = self.mstatus & !(status::MPIE | status::MPP | status::MIE);
        if self.mstatus & status::MIE != 0 {
            s |= status::MPIE;
        }
        s |= u64::from(self.mode.code()) << 11;
        self.mstatus = s;
        self.mode = Mode::M;
    }

    /// `mret`: what it does to state; the caller has checked that it may.
    pub(crate) fn return_from_machine(&mut self) {
        let to = self.previous_mode();
        let mut s = self.mstatus & !(status::MIE | status::MPP);
        if self.mstatus & status::MPIE != 0 {
            s |= status::MIE;
        }
        s |= status::MPIE;
        if to != Mode::M {
            s &= !status::MPRV;
        }
        self.mstatus = self.legal_mpp(s);
        self.mode = to;
        self.returns += 1;
        self.pc = self.mepc & self.epc_mask();
    }

    /// `sret`.
    pub(crate) fn return_from_supervisor(&mut self) {
        let to = if self.mstatus & status::SPP != 0 {
            Mode::S
        } else {
            Mode::U
        };
        let mut s = self.mstatus & !(status::SIE | status::SPP | status::MPRV);
        if self.mstatus & status::SPIE != 0 {
            s |= status::SIE;
        }
        s |= status::SPIE;
        self.mstatus = s;
        self.mode = to;
        self.returns += 1;
        self.pc = self.sepc & self.epc_mask();
    }
}
