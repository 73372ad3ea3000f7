//! The names of traps.

use core::fmt;

use crate::{Cause, Trap};

/// What an exception is called (privileged architecture, `mcause`); `None` for
/// codes that are reserved or custom.
///
/// ```
/// assert_eq!(hartrace_flow::exception_name(2), Some("illegal instruction"));
/// assert_eq!(hartrace_flow::exception_name(10), None);
/// ```
#[must_use]
pub const fn exception_name(code: u32) -> Option<&'static str> {
    Some(match code {
        0 => "instruction address misaligned",
        1 => "instruction access fault",
        2 => "illegal instruction",
        3 => "breakpoint",
        4 => "load address misaligned",
        5 => "load access fault",
        6 => "store address misaligned",
        7 => "store access fault",
        8 => "environment call from U-mode",
        9 => "environment call from S-mode",
        11 => "environment call from M-mode",
        12 => "instruction page fault",
        13 => "load page fault",
        15 => "store page fault",
        18 => "software check",
        19 => "hardware error",
        _ => return None,
    })
}

/// What an interrupt is called (privileged architecture, `mcause`); `None` for
/// codes that are reserved or custom.
///
/// ```
/// assert_eq!(hartrace_flow::interrupt_name(7), Some("machine timer interrupt"));
/// assert_eq!(hartrace_flow::interrupt_name(16), None);
/// ```
#[must_use]
pub const fn interrupt_name(code: u32) -> Option<&'static str> {
    Some(match code {
        1 => "supervisor software interrupt",
        2 => "virtual supervisor software interrupt",
        3 => "machine software interrupt",
        5 => "supervisor timer interrupt",
        6 => "virtual supervisor timer interrupt",
        7 => "machine timer interrupt",
        9 => "supervisor external interrupt",
        10 => "virtual supervisor external interrupt",
        11 => "machine external interrupt",
        12 => "supervisor guest external interrupt",
        13 => "counter overflow interrupt",
        _ => return None,
    })
}

/// `store page fault (15)`, `exception 24`, `interrupt 7`.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Cause::Exception(Some(code)) => match exception_name(code) {
                Some(name) => write!(f, "{name} ({code})"),
                None => write!(f, "exception {code}"),
            },
            Cause::Exception(None) => f.write_str("exception"),
            Cause::Interrupt(Some(code)) => write!(f, "interrupt {code}"),
            Cause::Interrupt(None) => f.write_str("interrupt"),
            Cause::Unknown => f.write_str("trap"),
        }
    }
}

/// `store page fault (15) at 0x80002388, value 0x4000fff0, handler 0x80000100`;
/// what is not known is left out.
impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)?;
        match self.epc {
            Some(epc) => write!(f, " at {epc:#x}")?,
            None => f.write_str(" at an unknown address")?,
        }
        if let Some(tval) = self.tval {
            write!(f, ", value {tval:#x}")?;
        }
        match self.handler {
            Some(handler) => write!(f, ", handler {handler:#x}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn traps_in_words() {
        let trap = Trap {
            epc: Some(0x8000_2388),
            handler: None,
            cause: Cause::Exception(Some(15)),
            tval: Some(0x4000_fff0),
            pending: None,
        };
        let words = "store page fault (15) at 0x80002388, value 0x4000fff0";
        assert_eq!(trap.to_string(), words);
        for (cause, words) in [
            (Cause::Exception(Some(24)), "exception 24"),
            (Cause::Exception(None), "exception"),
            (Cause::Interrupt(Some(7)), "interrupt 7"),
            (Cause::Interrupt(None), "interrupt"),
            (Cause::Unknown, "trap"),
        ] {
            let trap = Trap {
                epc: None,
                handler: Some(0x100),
                cause,
                tval: None,
                pending: None,
            };
            let rest = " at an unknown address, handler 0x100";
            assert_eq!(trap.to_string(), [words, rest].concat());
        }
    }
}
