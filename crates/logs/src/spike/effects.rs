//! The effects at the end of a commit line.

use super::line::Cursor;
use crate::entry::{Entry, EntryAccess, EntryTrap, MemoryOp};
use crate::text::decimal;
use crate::{LineErrorKind, LineErrorKind as Kind};
use hartrace_flow::{Cause, RegId};

/// The tail of one line on its way into an [`Entry`].
pub(super) struct Tail<'a> {
    pub(super) entry: &'a mut Entry,
    pub(super) op: MemoryOp,
    /// A line of a core: values have the width of a register, whatever was stored.
    pub(super) bare: bool,
    /// A register whose value comes later.
    pub(super) owed: Option<RegId>,
    /// log2 of the size of vector elements.
    element: Option<u8>,
}

impl<'a> Tail<'a> {
    pub(super) fn new(entry: &'a mut Entry, op: MemoryOp, bare: bool) -> Tail<'a> {
        Tail {
            entry,
            op,
            bare,
            owed: None,
            element: None,
        }
    }

    /// Reads to the end of the line.
    #[inline]
    pub(super) fn read(&mut self, line: &mut Cursor<'_>) -> Result<(), LineErrorKind> {
        while let [b' ', kind, rest @ ..] = line.rest {
            match kind {
                b'x' | b'f' => {
                    line.rest = rest;
                    self.register(line, *kind == b'x')?;
                }
                b'm' if rest.starts_with(b"em ") => {
                    line.rest = rest.get(3..).unwrap_or_default();
                    self.memory(line)?;
                }
                b'c' => {
                    line.rest = rest;
                    self.csr(line)?;
                }
                b'v' => {
                    line.rest = rest;
                    line.spaces();
                    line.small().ok_or(Kind::Effect)?;
                    line.spaces();
                    line.hex().ok_or(Kind::Effect)?;
                    self.entry.incomplete = true;
                }
                b'e' if rest.starts_with(b"xception ") => {
                    line.rest = rest.get(9..).unwrap_or_default();
                    self.exception(line)?;
                }
                b'e' | b'm' | b'l' => {
                    line.rest = rest;
                    line.eat(b"f");
                    let value = line.small().ok_or(Kind::Effect)?;
                    if *kind == b'e' {
                        self.element = Some(value.trailing_zeros().saturating_sub(3) as u8);
                    }
                    self.entry.incomplete = true;
                }
                _ => return Err(Kind::Effect),
            }
        }
        match line.rest.is_empty() {
            true => Ok(()),
            false => Err(Kind::Effect),
        }
    }

    #[inline]
    fn register(&mut self, line: &mut Cursor<'_>, integer: bool) -> Result<(), LineErrorKind> {
        let (reg, late) = line.register(integer).ok_or(Kind::Effect)?;
        if late {
            line.rest = line.rest.strip_prefix(b"0x").ok_or(Kind::Effect)?;
            let unknown = line.rest.iter().take_while(|&&b| b == b'X' || b == b'x');
            let unknown = unknown.count();
            line.rest = line.rest.get(unknown..).unwrap_or_default();
            (self.owed, self.entry.incomplete) = (Some(reg), true);
            return Ok(());
        }
        let (value, digits) = line.hex().ok_or(Kind::Effect)?;
        self.entry.incomplete |= digits > 16;
        // While misa.D is clear, registers of 64 bits are shown by half; what is
        // narrower than a register is boxed in it.
        let value = match !integer && digits == 8 {
            true => value | 0xffff_ffff_0000_0000,
            false => value,
        };
        self.entry.reg(reg, value);
        Ok(())
    }

    fn csr(&mut self, line: &mut Cursor<'_>) -> Result<(), LineErrorKind> {
        let csr = line.small().filter(|&n| n < 4096).ok_or(Kind::Effect)? as u16;
        let name = line.rest.iter().take_while(|&&b| b != b' ').count();
        if !line.rest.starts_with(b"_") {
            return Err(Kind::Effect);
        }
        line.rest = line.rest.get(name + 1..).ok_or(Kind::Effect)?;
        let (value, _) = line.hex().ok_or(Kind::Effect)?;
        self.entry.csr(csr, value);
        Ok(())
    }

    fn memory(&mut self, line: &mut Cursor<'_>) -> Result<(), LineErrorKind> {
        let (addr, _) = line.hex().ok_or(Kind::Effect)?;
        if !line.rest.starts_with(b" 0x") {
            self.entry.access(EntryAccess {
                addr,
                size: self
                    .element
                    .filter(|_| matches!(self.op, MemoryOp::Vector(_))),
                ..EntryAccess::default()
            });
            return Ok(());
        }
        line.eat(b" ");
        let (data, digits) = line.hex().ok_or(Kind::Effect)?;
        if !digits.is_power_of_two() || digits < 2 {
            return Err(Kind::Effect);
        }
        self.entry.incomplete |= digits > 16;
        let size = match self.op {
            _ if self.bare => None,
            // Spike zeroes byte by byte. Eight bytes are one access.
            MemoryOp::Zero if addr % 8 != 0 => return Ok(()),
            MemoryOp::Zero => Some(3),
            _ => Some(digits.trailing_zeros() as u8 - 1),
        };
        // What a core has for an atomic is its operand, not what it stored.
        let operand = self.bare && matches!(self.op, MemoryOp::Atomic(..));
        self.entry.access(EntryAccess {
            store: true,
            addr,
            paddr: None,
            size,
            data: Some(data).filter(|_| !operand),
        });
        Ok(())
    }

    /// Dromajo: the instruction trapped. The interrupt bit of the cause is its sign.
    #[cold]
    fn exception(&mut self, line: &mut Cursor<'_>) -> Result<(), LineErrorKind> {
        let interrupt = line.eat(b"-");
        let len = line.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = line.rest.split_at_checked(len).ok_or(Kind::Effect)?;
        let code = decimal(digits).and_then(|code| u32::try_from(code).ok());
        let code = code.ok_or(Kind::Decimal)?;
        line.rest = rest;
        let cause = match interrupt {
            true => Cause::Interrupt(Some(code.wrapping_neg() & 0x7fff_ffff)),
            false => Cause::Exception(Some(code)),
        };
        if !line.eat(b", tval ") {
            return Err(Kind::Effect);
        }
        let tval = crate::text::prefixed_hex(line.rest).ok_or(Kind::Hex)?;
        line.rest = &[];
        self.entry.trap = Some(EntryTrap {
            cause,
            tval: Some(tval),
        });
        Ok(())
    }
}
