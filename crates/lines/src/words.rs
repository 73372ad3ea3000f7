//! The words that text and JSON share: causes, signals, kinds of access, ends
//! of runs; and the formatting of counts, bytes and untrusted names.

use hartrace_flow::{AccessKind, Cause, Exit, Mark, Mode, Signal, exception_name, interrupt_name};
use hartrace_isa::Xlen;
use std::fmt::Write as _;

/// A number and what it counts: `1 byte`, `2 bytes`.
///
/// ```
/// assert_eq!(hartrace_lines::words::count(1, "byte"), "1 byte");
/// assert_eq!(hartrace_lines::words::count(0, "byte"), "0 bytes");
/// ```
#[must_use]
pub fn count(number: u64, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {word}{plural}")
}

/// The same with digits in groups of three: `1 cycle`, `1 000 cycles`.
#[must_use]
pub fn counted(number: u64, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {word}{plural}", grouped(number))
}

/// Digits in groups of three.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Bytes as hexadecimal digits, two each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Text from a file or an argument, made safe for a terminal: control
/// characters become U+FFFD.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// The encoding of an instruction: four digits, or eight.
#[must_use]
pub fn encoding(bits: u32) -> String {
    match bits & 3 {
        3 => format!("{bits:08x}"),
        _ => format!("{bits:04x}"),
    }
}

/// The cause of a trap, and its code.
#[must_use]
pub const fn cause(cause: Cause) -> (&'static str, Option<u32>) {
    match cause {
        Cause::Exception(code) => ("exception", code),
        Cause::Interrupt(code) => ("interrupt", code),
        Cause::Unknown => ("unknown", None),
    }
}

/// A value of `mcause` or `scause`: `breakpoint (3)`, `interrupt 20`.
#[must_use]
pub fn xcause(value: u64, xlen: Xlen) -> String {
    let top = xlen.bits() - 1;
    let code = (value & !(1 << top)) as u32;
    match value >> top & 1 {
        0 => named(exception_name(code), "exception", code),
        _ => interrupt(code),
    }
}

/// An interrupt by its code: `machine timer interrupt (7)`.
#[must_use]
pub fn interrupt(code: u32) -> String {
    named(interrupt_name(code), "interrupt", code)
}

fn named(name: Option<&str>, kind: &str, code: u32) -> String {
    match name {
        Some(name) => format!("{name} ({code})"),
        None => format!("{kind} {code}"),
    }
}

/// The privilege mode in the terms of the tandem protocol, which knows no
/// other than `U`, `S` and `M`.
#[must_use]
pub const fn privilege(mode: Mode) -> &'static str {
    match mode {
        Mode::U => "U",
        Mode::S => "S",
        _ => "M",
    }
}

/// A signal.
#[must_use]
pub const fn signal(signal: Signal) -> &'static str {
    match signal {
        Signal::Halted => "halted",
        Signal::Resumed => "resumed",
        Signal::Reset => "reset",
        Signal::PowerDown => "power-down",
        Signal::PowerUp => "power-up",
        Signal::TraceOn => "trace-on",
        Signal::TraceOff => "trace-off",
        Signal::Notify => "notify",
        Signal::External(_) => "external",
        Signal::Update => "update",
        Signal::Lost => "lost",
        Signal::Untraced => "untraced",
    }
}

/// A kind of data access.
#[must_use]
pub const fn access_kind(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Load => "load",
        AccessKind::Store => "store",
        AccessKind::CsrReadWrite => "csr-read-write",
        AccessKind::CsrReadSet => "csr-read-set",
        AccessKind::CsrReadClear => "csr-read-clear",
        AccessKind::AtomicSwap => "atomic-swap",
        AccessKind::AtomicAdd => "atomic-add",
        AccessKind::AtomicAnd => "atomic-and",
        AccessKind::AtomicOr => "atomic-or",
        AccessKind::AtomicXor => "atomic-xor",
        AccessKind::AtomicMax => "atomic-max",
        AccessKind::AtomicMin => "atomic-min",
        AccessKind::ConditionalStoreFailure => "conditional-store-failure",
        AccessKind::CompareSwapFailure => "compare-swap-failure",
    }
}

/// How a run ended.
#[must_use]
pub const fn exit(exit: Exit) -> &'static str {
    match exit {
        Exit::Stop => "stop",
        Exit::NotTaken => "not-taken",
        Exit::Taken => "taken",
        Exit::DirectJump => "direct-jump",
        Exit::DirectCall => "direct-call",
        Exit::OtherDirect => "other-direct",
        Exit::IndirectJump => "indirect-jump",
        Exit::IndirectCall => "indirect-call",
        Exit::OtherIndirect => "other-indirect",
        Exit::Return => "return",
        Exit::Swap => "swap",
        Exit::TrapReturn => "trap-return",
    }
}

/// A mark, and its number.
#[must_use]
pub const fn mark(mark: Mark) -> (&'static str, Option<u16>) {
    match mark {
        Mark::On => ("on", None),
        Mark::Off => ("off", None),
        Mark::Notify => ("notify", None),
        Mark::External(input) => ("external", Some(input as u16)),
        Mark::Halted => ("halted", None),
        Mark::Resumed => ("resumed", None),
        Mark::Reset => ("reset", None),
        Mark::PowerDown => ("power-down", None),
        Mark::PowerUp => ("power-up", None),
        Mark::Sync(code) => ("sync", Some(code as u16)),
        Mark::Vendor(code) => ("vendor", Some(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1 000");
        assert_eq!(grouped(1_000_123_456), "1 000 123 456");
    }
}
