//! Privilege modes that no entry has: what decides on them.

use hartrace_isa::csr;

use super::Entry;
use super::effects::Shadow;
use hartrace_flow::{Cause, Mode};

const MRET: u32 = 0x3020_0073;
const SRET: u32 = 0x1020_0073;

/// The registers that decide which mode a trap or a return leads to, as far as they are
/// known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Modes {
    /// Modes to return to, as mret and sret would find them.
    mpp: Option<Mode>,
    spp: Option<Mode>,
    /// `mstatus`, as far as instructions have written it.
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
    }

    /// A trap from `before` led to `to`.
    pub(super) fn trapped(&mut self, before: Mode, to: Mode) {
        match to {
            Mode::M => self.mpp = Some(before),
            Mode::S => self.spp = Some(before),
            _ => {}
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

    /// An instruction wrote CSRs: those that its entry has or, if `follow`, what it
    /// writes by its operand.
    pub(super) fn wrote(&mut self, entry: &Entry, bits: u32, shadow: &Shadow, follow: bool) {
        for write in entry.csrs.iter() {
            self.write(write.csr, write.value, bits);
        }
        let function = bits >> 12 & 7;
        if !follow || !entry.csrs.is_empty() || bits & 0x7f != 0x73 || function & 3 == 0 {
            return;
        }
        let operand = match function {
            4.. => Some(u64::from(bits >> 15 & 31)),
            _ => shadow.get(bits >> 15),
        };
        let number = (bits >> 20) as u16;
        let known = match number {
            csr::MSTATUS | csr::SSTATUS => self.mstatus,
            csr::MEDELEG => self.exceptions,
            csr::MIDELEG => self.interrupts,
            _ => return,
        };
        let Some(operand) = operand else {
            return;
        };
        // What it reads is what was there.
        let old = entry.regs.first().map_or(known, |write| write.value);
        let value = match function & 3 {
            1 => operand,
            2 => old | operand,
            _ => old & !operand,
        };
        self.write(number, value, bits);
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
            _ => {}
        }
    }
}
