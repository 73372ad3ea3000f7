//! Privilege modes that no entry has, and addresses that returns lead to: what decides on
//! them.

use hartrace_isa::{MRET, SRET, csr};

use super::Entry;
use super::effects::Shadow;
use hartrace_flow::{Cause, Mode};

/// Fields of `mstatus`.
const MPP: u64 = 3 << 11;
const SPP: u64 = 1 << 8;

/// The registers that decide which mode a trap or a return leads to, as far as they are
/// known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Modes {
    /// Modes to return to, as mret and sret would find them.
    mpp: Option<Mode>,
    spp: Option<Mode>,
    /// `mepc` and `sepc`, where mret and sret lead.
    mepc: Option<u64>,
    sepc: Option<u64>,
    /// `mstatus`, as far as instructions and traps have written it.
    mstatus: u64,
    /// Traps below machine mode that supervisor mode takes, by their codes; none
    /// after reset.
    exceptions: u64,
    interrupts: u64,
}

impl Modes {
    /// A loss: what is to be returned to is not known any more.
    pub(super) fn forget(&mut self) {
        (self.mpp, self.spp) = (None, None);
        self.forget_addresses();
    }

    /// There may have been a trap that nothing shows.
    pub(super) fn forget_addresses(&mut self) {
        (self.mepc, self.sepc) = (None, None);
    }

    /// A trap from `before`, at `epc`, led to `to`.
    pub(super) fn trapped(&mut self, before: Mode, epc: u64, to: Mode) {
        let code = u64::from(before.code());
        match to {
            Mode::M => {
                (self.mpp, self.mepc) = (Some(before), Some(epc));
                self.mstatus = self.mstatus & !MPP | code << 11 & MPP;
            }
            Mode::S => {
                (self.spp, self.sepc) = (Some(before), Some(epc));
                self.mstatus = self.mstatus & !SPP | code << 8 & SPP;
            }
            _ => {}
        }
    }

    /// Where a return leads that executes in `mode`, if that is known.
    pub(super) fn target(&self, bits: u32, mode: Mode) -> Option<u64> {
        match (bits, mode) {
            (MRET, _) => self.mepc,
            (SRET, Mode::S | Mode::M) => self.sepc,
            _ => None,
        }
    }

    /// The mode that an instruction leaves the hart in.
    pub(super) fn after(&self, bits: u32, mode: Mode) -> Mode {
        let returned = match bits {
            MRET => self.mpp,
            SRET => self.spp,
            _ => None,
        };
        returned.unwrap_or(mode)
    }

    /// The mode that a trap leads to, by the delegation registers.
    pub(super) fn handler(&self, cause: Cause, mode: Mode) -> Option<Mode> {
        let (traps, code) = match cause {
            Cause::Exception(code) => (self.exceptions, code?),
            Cause::Interrupt(code) => (self.interrupts, code?),
            Cause::Unknown => return None,
        };
        let delegated = traps.checked_shr(code).is_some_and(|bits| bits & 1 != 0);
        Some(match mode {
            mode if mode != Mode::M && delegated => Mode::S,
            _ => Mode::M,
        })
    }

    /// As [`Modes::handler`], also for a trap whose cause is not known: supervisor mode
    /// takes it if it takes any.
    pub(super) fn likely_handler(&self, cause: Cause, mode: Mode) -> Mode {
        let any = match cause {
            Cause::Exception(_) => self.exceptions,
            Cause::Interrupt(_) => self.interrupts,
            Cause::Unknown => self.exceptions | self.interrupts,
        };
        let likely = match mode {
            mode if mode != Mode::M && any != 0 => Mode::S,
            _ => Mode::M,
        };
        self.handler(cause, mode).unwrap_or(likely)
    }

    /// An instruction that executed in `mode` wrote CSRs: those that its entry has, or what
    /// it writes by its operand.
    pub(super) fn wrote(&mut self, entry: &Entry, bits: u32, mode: Mode, shadow: &Shadow) {
        for write in entry.csrs.iter() {
            self.write(write.csr, write.value, bits);
        }
        let function = bits >> 12 & 7;
        // What a guest calls sepc is another register.
        let guest = matches!(mode, Mode::VS | Mode::VU);
        if !entry.csrs.is_empty() || bits & 0x7f != 0x73 || function & 3 == 0 || guest {
            return;
        }
        let operand = match function {
            4.. => Some(u64::from(bits >> 15 & 31)),
            _ => shadow.get(bits >> 15),
        };
        let number = (bits >> 20) as u16;
        let known = match number {
            csr::MSTATUS | csr::SSTATUS => Some(self.mstatus),
            csr::MEDELEG => Some(self.exceptions),
            csr::MIDELEG => Some(self.interrupts),
            csr::MEPC => self.mepc,
            csr::SEPC => self.sepc,
            _ => return,
        };
        // What it reads is what was there.
        let old = entry.regs.first().map(|write| write.value).or(known);
        let value = match function & 3 {
            1 => operand,
            2 => old.zip(operand).map(|(old, operand)| old | operand),
            _ => old.zip(operand).map(|(old, operand)| old & !operand),
        };
        match (number, value) {
            (_, Some(value)) => self.write(number, value, bits),
            (csr::MEPC, None) => self.mepc = None,
            (csr::SEPC, None) => self.sepc = None,
            _ => {}
        }
    }

    fn write(&mut self, number: u16, value: u64, bits: u32) {
        match number {
            // A return changes what the next one would find.
            csr::MSTATUS if !matches!(bits, MRET | SRET) => {
                self.mstatus = value;
                self.mpp = Mode::from_code((value >> 11 & 3) as u8);
                self.spp = Mode::from_code((value >> 8 & 1) as u8);
            }
            csr::SSTATUS if !matches!(bits, MRET | SRET) => {
                self.spp = Mode::from_code((value >> 8 & 1) as u8);
            }
            csr::MEDELEG => self.exceptions = value,
            csr::MIDELEG => self.interrupts = value,
            csr::MEPC => self.mepc = Some(value & !1),
            csr::SEPC => self.sepc = Some(value & !1),
            _ => {}
        }
    }
}
