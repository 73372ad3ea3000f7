//! How a run of the built-in hart ended: the summary line and the diagnostics.

use crate::diagnostic::{Code, Diagnostic};
use hartrace_analyze::Symbols;
use hartrace_flow::{Cause, TrapStep, exception_name};
use hartrace_hart::{Config, Platform, Program, Stop};
use std::fmt::Write as _;

/// What is known of a run besides its end.
pub struct Ended<'a> {
    /// The machine.
    pub config: &'a Config,
    /// The program.
    pub program: &'a Program,
    /// Its symbols.
    pub symbols: Option<&'a Symbols>,
    /// The trap with which the last row of traps began.
    pub first_trap: Option<TrapStep>,
    /// The pc at the end.
    pub pc: u64,
    /// The stack pointer at the end.
    pub sp: u64,
}

impl Ended<'_> {
    /// `0x80000024 <_start+0x24>`.
    #[must_use]
    pub fn place(&self, address: u64) -> String {
        let inside = self.program.segments.iter().any(|segment| {
            address
                .checked_sub(segment.addr)
                .is_some_and(|offset| offset < segment.size)
        });
        match self
            .symbols
            .and_then(|symbols| symbols.lookup(address))
            .filter(|_| inside)
        {
            Some((name, 0)) => format!("{address:#x} <{name}>"),
            Some((name, offset)) => format!("{address:#x} <{name}+{offset:#x}>"),
            None => format!("{address:#x}"),
        }
    }

    /// The end of the summary.
    #[must_use]
    pub fn words(&self, stop: Stop) -> String {
        match stop {
            Stop::Exit(code) => format!("the program ended with code {}", signed(code)),
            Stop::Limit => {
                format!(
                    "the instruction limit was reached at {}",
                    self.place(self.pc)
                )
            }
            Stop::Spins { pc } => format!("the hart spins at {}", self.place(pc)),
            Stop::Asleep { pc } => {
                format!("the hart waits forever before {}", self.place(pc))
            }
            Stop::TrapLoop { epc, .. } => {
                format!("the hart traps forever at {}", self.place(epc))
            }
        }
    }

    /// Why the run failed, if it did.
    #[must_use]
    pub fn failure(&self, stop: Stop) -> Option<Diagnostic> {
        match stop {
            Stop::Exit(0) | Stop::Limit | Stop::Spins { .. } => None,
            Stop::Exit(code) => {
                let message = format!("the program reported failure: code {}", signed(code));
                Some(Diagnostic::new(Code::ProgramFailed, message))
            }
            Stop::Asleep { pc } => Some(self.asleep(pc)),
            Stop::TrapLoop { epc, code, tval } => Some(self.trap_loop(epc, code, tval)),
        }
    }

    /// A program that could not have ended in another way.
    #[must_use]
    pub fn cannot_end(&self, stop: Stop) -> Option<Diagnostic> {
        let endless = matches!(stop, Stop::Limit | Stop::Spins { .. });
        let calls = self.program.calls_host();
        if !endless || self.program.tohost.is_some() || calls && self.config.semihosting {
            return None;
        }
        let message = "the program has no means to end the run";
        let diagnostic = Diagnostic::new(Code::CannotEnd, message)
            .note("it has no symbol `tohost`; a stripped program has no symbols at all");
        Some(match calls {
            false => diagnostic
                .help("write (code << 1) | 1 to a doubleword `tohost`, or exit by semihosting"),
            true => diagnostic
                .note("it uses semihosting, which is turned off")
                .help(self.serve_calls()),
        })
    }

    /// How semihosting is turned on.
    fn serve_calls(&self) -> &'static str {
        match self.config.platform {
            Platform::Spike => "use --machine virt, or set semihosting = true in section [hart]",
            Platform::Virt => "use semihosting = true in section [hart]",
        }
    }

    fn asleep(&self, pc: u64) -> Diagnostic {
        let place = self.place(pc);
        let message = format!("the hart waits for an interrupt that cannot occur, before {place}");
        Diagnostic::new(Code::Asleep, message)
            .note("no interrupt that can occur is enabled in mie, or mtimecmp was never set")
            .help("set mtimecmp (CLINT, 0x2004000) and enable the timer in mie before wfi")
    }

    fn trap_loop(&self, epc: u64, code: u32, tval: u64) -> Diagnostic {
        let here = format!("{} at {}", exception(code), self.place(epc));
        let first = self.first_trap.map(|step| step.trap);
        // The trap that is not taken any more is the last one of the row.
        let first = first
            .filter(|trap| trap.epc != Some(epc) || trap.cause != Cause::Exception(Some(code)));
        let (epc, code, tval) = match first {
            Some(trap) => {
                let code = match trap.cause {
                    Cause::Exception(code) => code,
                    _ => None,
                };
                (trap.epc.unwrap_or(epc), code, trap.tval.unwrap_or(0))
            }
            None => (epc, Some(code), tval),
        };
        let what = code.map_or_else(|| "interrupt".to_owned(), exception);
        let message = format!("{what} at {}, and no handler resolves it", self.place(epc));
        let mut diagnostic = Diagnostic::new(Code::TrapLoop, message);
        if let Some(cause) = code.and_then(|code| self.likely(code, epc, tval)) {
            diagnostic = diagnostic.note(cause);
        }
        let handler = self.first_trap.and_then(|step| step.trap.handler);
        match (handler, first) {
            (Some(0), _) => {
                diagnostic.note("the handler address is 0: the program has not set mtvec")
            }
            (Some(handler), Some(_)) => {
                let handler = self.place(handler);
                diagnostic.note(format!("the handler {handler} itself traps: {here}"))
            }
            _ => diagnostic.note("the handler runs and the same trap occurs again"),
        }
        .help("--log spike-traps=FILE --max-insns N logs how it got there")
    }

    /// Why such an exception is taken, probably.
    fn likely(&self, code: u32, epc: u64, tval: u64) -> Option<String> {
        Some(match code {
            1 | 5 | 7 if self.is_memory(tval) => format!(
                "{tval:#x} is in memory; physical memory protection (pmpcfg) may forbid the \
                 access, or an atomic access is misaligned"
            ),
            1 if tval < 0x1000 => format!(
                "there is no executable memory at {tval:#x}: a call or jump through a null \
                 pointer, probably"
            ),
            1 => format!("there is no executable memory at {tval:#x}: a jump to a wrong address"),
            2 if tval == 0 => {
                "the instruction is 0: the hart reached memory without code".to_owned()
            }
            2 => format!(
                "the instruction is {tval:#x}; it may belong to an extension that the hart does \
                 not have (see --isa), or need the floating-point unit enabled in mstatus.FS"
            ),
            3 if !self.config.semihosting && self.program.calls_host() => format!(
                "an ebreak; the program uses semihosting, which is turned off: {}",
                self.serve_calls()
            ),
            3 => "an ebreak that is not a semihosting call".to_owned(),
            4 | 6 => format!("the address is {tval:#x}; --misaligned yes allows such accesses"),
            5 | 7 => self.no_memory(code == 7, tval),
            12 | 13 | 15 => format!("the address {tval:#x} is not mapped for this access"),
            _ if tval != 0 && tval != epc => format!("the trap value is {tval:#x}"),
            _ => return None,
        })
    }

    /// There is RAM at an address.
    fn is_memory(&self, address: u64) -> bool {
        let mut regions = self.config.memory.iter();
        regions.any(|region| {
            let offset = address.checked_sub(region.base);
            offset.is_some_and(|offset| offset < region.size)
        })
    }

    fn no_memory(&self, store: bool, address: u64) -> String {
        let verb = if store { "stored to" } else { "loaded from" };
        match address {
            0..0x1000 => format!("{address:#x} cannot be {verb}: probably a null pointer"),
            _ if self.sp.abs_diff(address) < 4096 && !self.is_memory(self.sp) => format!(
                "{address:#x} cannot be {verb}; it is near sp ({:#x}): the stack overflowed or \
                 was never set up",
                self.sp
            ),
            _ if store && address / 4096 == self.config.boot_rom() / 4096 => {
                format!("{address:#x} is in the boot ROM, which cannot be written")
            }
            0x1000_0000..0x1000_0100 if self.config.platform == Platform::Spike => format!(
                "{address:#x} is a UART on other machines, but this one has none: print through \
                 tohost or semihosting, or use --machine virt"
            ),
            0x1000_0000..0x1000_0100 => format!(
                "{address:#x} is past the UART, which has eight one-byte registers from \
                 0x10000000 on"
            ),
            _ => {
                let mut ram = String::new();
                for region in &self.config.memory {
                    let _ = write!(
                        ram,
                        " {:#x}-{:#x}",
                        region.base,
                        region.end().wrapping_sub(1)
                    );
                }
                format!("{address:#x} cannot be {verb}; memory is at{ram} (see --memory)")
            }
        }
    }
}

fn exception(code: u32) -> String {
    exception_name(code).map_or_else(|| format!("exception {code}"), str::to_owned)
}

/// A C int, whatever its width became on the way.
fn signed(code: u64) -> i64 {
    code.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_codes() {
        assert_eq!(signed(u64::MAX), -1);
    }
}
