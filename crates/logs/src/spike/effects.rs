//! The effects at the end of a commit line.

use super::line::Cursor;
use crate::{LineErrorKind, LineErrorKind as Kind};
use hartrace_flow::{Access, AccessKind, CsrWrite, Effects, RegId, RegWrite};
use hartrace_isa::csr;

/// What an instruction does to memory, as far as its encoding shows. A load's line
/// has no size, and an atomic's does not say which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryOp {
    /// Loads of this size (log2), or stores, whose digits show theirs.
    Plain(u8),
    /// Load and store in one.
    Atomic(AccessKind, u8),
    /// sc.w, sc.d
    StoreConditional(u8),
    /// cbo.zero, which Spike does byte by byte.
    Zero,
    /// Vector accesses of elements of this size (log2). It is the index's size
    /// for indexed ones, whose elements have the size the line gives (`e32`).
    Vector(u8),
    /// Unknown instructions.
    Other,
}

impl MemoryOp {
    #[inline]
    pub(super) const fn of(bits: u32, narrow: bool) -> MemoryOp {
        if bits & 3 != 3 {
            return MemoryOp::compressed(bits, narrow);
        }
        let funct3 = (bits >> 12 & 7) as u8;
        match bits & 0x7f {
            0x03 => MemoryOp::Plain(funct3 & 3),
            // flh, flw, fld, flq and their stores; the other widths are vectors.
            0x07 | 0x27 if matches!(funct3, 1..=4) => MemoryOp::Plain(funct3),
            0x07 | 0x27 => MemoryOp::Vector(funct3.saturating_sub(4)),
            0x2f => MemoryOp::amo(bits >> 27, funct3),
            // hlv
            0x73 if funct3 == 4 => MemoryOp::Plain((bits >> 26 & 3) as u8),
            0x23 => MemoryOp::Plain(funct3 & 3),
            0x0f if bits >> 20 == 4 && funct3 == 2 => MemoryOp::Zero,
            _ => MemoryOp::Other,
        }
    }

    const fn amo(funct5: u32, size: u8) -> MemoryOp {
        let kind = match funct5 {
            0x00 => AccessKind::AtomicAdd,
            // amoswap, amocas (there is no code of its own for it), ssamoswap
            0x01 | 0x05 | 0x09 => AccessKind::AtomicSwap,
            0x04 => AccessKind::AtomicXor,
            0x08 => AccessKind::AtomicOr,
            0x0c => AccessKind::AtomicAnd,
            0x10 | 0x18 => AccessKind::AtomicMin,
            0x14 | 0x1c => AccessKind::AtomicMax,
            0x03 => return MemoryOp::StoreConditional(size),
            // lr, and the load-acquire and store-release of Zalasr
            0x02 | 0x06 | 0x07 => return MemoryOp::Plain(size),
            _ => return MemoryOp::Other,
        };
        MemoryOp::Atomic(kind, size)
    }

    const fn compressed(bits: u32, narrow: bool) -> MemoryOp {
        let word = if narrow { 2 } else { 3 };
        match (bits & 3, bits >> 13 & 7) {
            // c.fld, c.fldsp
            (0 | 2, 1) => MemoryOp::Plain(3),
            // c.lw, c.lwsp
            (0 | 2, 2) => MemoryOp::Plain(2),
            // c.ld, c.ldsp; c.flw, c.flwsp on RV32
            (0 | 2, 3) => MemoryOp::Plain(word),
            // c.lbu, c.lhu, c.lh
            (0, 4) => MemoryOp::Plain((bits >> 10 & 1) as u8),
            // cm.pop and its relatives
            (2, 5) => MemoryOp::Plain(word),
            _ => MemoryOp::Other,
        }
    }
}

/// What the reader wants to know of a line's effects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) regs: bool,
    pub(super) csrs: bool,
    pub(super) accesses: bool,
}

/// Integer registers, as far as the log has recorded them.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    x: [u64; 32],
    known: u32,
}

impl Shadow {
    fn set(&mut self, reg: u32, value: u64) {
        if let Some(slot) = self.x.get_mut(reg as usize & 31) {
            *slot = value;
            self.known |= 1 << (reg & 31);
        }
    }

    fn get(&self, reg: u32) -> Option<u64> {
        let known = self.known >> (reg & 31) & 1 != 0;
        self.x.get(reg as usize & 31).copied().filter(|_| known)
    }

    pub(super) fn forget(&mut self) {
        self.known = 0;
    }
}

/// The tail of one line on its way into [`Effects`].
pub(super) struct Tail<'a> {
    pub(super) effects: &'a mut Effects,
    pub(super) shadow: &'a mut Shadow,
    pub(super) parts: Parts,
    pub(super) op: MemoryOp,
    /// Register writes so far and the value of the last one: with exactly one
    /// it is what a load loaded.
    written: u32,
    value: u64,
    /// An atomic's load, which waits for its store.
    held: Option<u64>,
    accesses: u32,
    /// The last values written to what decides on modes.
    pub(super) mstatus: Option<u64>,
    pub(super) medeleg: Option<u64>,
    pub(super) mideleg: Option<u64>,
}

impl<'a> Tail<'a> {
    pub(super) fn new(
        effects: &'a mut Effects,
        shadow: &'a mut Shadow,
        parts: Parts,
        op: MemoryOp,
    ) -> Tail<'a> {
        Tail {
            effects,
            shadow,
            parts,
            op,
            written: 0,
            value: 0,
            held: None,
            accesses: 0,
            mstatus: None,
            medeleg: None,
            mideleg: None,
        }
    }

    /// The value of the register written, if there was exactly one.
    pub(super) const fn only_value(&self) -> Option<u64> {
        match self.written {
            1 => Some(self.value),
            _ => None,
        }
    }

    /// Reads to the end of the line.
    #[inline]
    pub(super) fn read(&mut self, line: &mut Cursor<'_>, bits: u32) -> Result<(), LineErrorKind> {
        // A store-conditional may overwrite its own address.
        let address = match self.op {
            MemoryOp::StoreConditional(_) => self.shadow.get(bits >> 15),
            _ => None,
        };
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
                    line.small().ok_or(Kind::Effect)?;
                    line.spaces();
                    line.hex().ok_or(Kind::Effect)?;
                    self.effects.incomplete = true;
                }
                b'e' | b'm' | b'l' => {
                    line.rest = rest;
                    line.eat(b"f");
                    let value = line.small().ok_or(Kind::Effect)?;
                    if let (b'e', MemoryOp::Vector(_), 1) = (kind, self.op, bits >> 26 & 1) {
                        self.op = MemoryOp::Vector(value.trailing_zeros().saturating_sub(3) as u8);
                    }
                    self.effects.incomplete = true;
                }
                _ => return Err(Kind::Effect),
            }
        }
        if !line.rest.is_empty() {
            return Err(Kind::Effect);
        }
        self.end(address);
        Ok(())
    }

    #[inline]
    fn register(&mut self, line: &mut Cursor<'_>, integer: bool) -> Result<(), LineErrorKind> {
        let number = line.small().filter(|&n| n < 32).ok_or(Kind::Effect)?;
        line.spaces();
        let (value, digits) = line.hex().ok_or(Kind::Effect)?;
        if integer {
            self.shadow.set(number, value);
        }
        self.written += 1;
        self.value = value;
        self.effects.incomplete |= digits > 16;
        // While misa.D is clear, registers of 64 bits are shown by half; what is
        // narrower than a register is boxed in it.
        let value = match !integer && digits == 8 {
            true => value | 0xffff_ffff_0000_0000,
            false => value,
        };
        if self.parts.regs && !(integer && number == 0) {
            let reg = if integer {
                RegId::X(number as u8)
            } else {
                RegId::F(number as u8)
            };
            let full = self.effects.regs.push(RegWrite { reg, value }).is_err();
            self.effects.incomplete |= full;
        }
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
        match csr {
            csr::MSTATUS => self.mstatus = Some(value),
            csr::MEDELEG => self.medeleg = Some(value),
            csr::MIDELEG => self.mideleg = Some(value),
            _ => {}
        }
        if self.parts.csrs {
            let full = self.effects.csrs.push(CsrWrite { csr, value }).is_err();
            self.effects.incomplete |= full;
        }
        Ok(())
    }

    fn memory(&mut self, line: &mut Cursor<'_>) -> Result<(), LineErrorKind> {
        let (addr, _) = line.hex().ok_or(Kind::Effect)?;
        self.accesses += 1;
        if !line.rest.starts_with(b" 0x") {
            self.load(addr);
            return Ok(());
        }
        line.eat(b" ");
        let (data, digits) = line.hex().ok_or(Kind::Effect)?;
        if !digits.is_power_of_two() || digits < 2 {
            return Err(Kind::Effect);
        }
        self.effects.incomplete |= digits > 16;
        let mut access = Access {
            paddr: None,
            kind: AccessKind::Store,
            size: digits.trailing_zeros() as u8 - 1,
            addr,
            data: Some(data),
            operand: None,
        };
        match self.op {
            // amocas.q loads once and stores twice.
            MemoryOp::Atomic(kind, size) if self.held.is_some() || size == 4 => {
                access.kind = kind;
                access.operand = self.loaded(access.size);
                self.held = None;
            }
            // Eight bytes are one access.
            MemoryOp::Zero if addr % 8 != 0 => return Ok(()),
            MemoryOp::Zero => access.size = 3,
            _ => {}
        }
        self.push(access);
        Ok(())
    }

    fn load(&mut self, addr: u64) {
        let size = match self.op {
            MemoryOp::Atomic(..) if self.held.is_none() => {
                self.held = Some(addr);
                return;
            }
            MemoryOp::Plain(size)
            | MemoryOp::Atomic(_, size)
            | MemoryOp::StoreConditional(size) => size,
            MemoryOp::Vector(_) | MemoryOp::Zero | MemoryOp::Other => {
                self.effects.incomplete = true;
                let size = if let MemoryOp::Vector(size) = self.op {
                    size
                } else {
                    0
                };
                return self.push(Access {
                    addr,
                    size,
                    ..Access::default()
                });
            }
        };
        self.push_load(addr, size);
    }

    /// A load of the value that was written to the register.
    fn push_load(&mut self, addr: u64, size: u8) {
        self.push(Access {
            paddr: None,
            kind: AccessKind::Load,
            size,
            addr,
            data: self.loaded(size),
            operand: None,
        });
    }

    /// The part of the register written that came from memory.
    fn loaded(&self, size: u8) -> Option<u64> {
        let mask = u64::MAX >> 64u32.saturating_sub(8 << size.min(3));
        (self.written == 1 && size <= 3).then_some(self.value & mask)
    }

    #[inline]
    fn push(&mut self, access: Access) {
        if self.parts.accesses && self.effects.accesses.push(access).is_err() {
            self.effects.incomplete = true;
        }
    }

    /// What only the end of the line shows.
    #[inline]
    fn end(&mut self, address: Option<u64>) {
        match self.op {
            // amocas that did not match: it only loaded, amocas.q twice.
            MemoryOp::Atomic(_, size) => {
                if let Some(addr) = self.held.take() {
                    self.push_load(addr, size.min(3));
                    if size == 4 {
                        self.push_load(addr.wrapping_add(8), 3);
                    }
                }
            }
            MemoryOp::StoreConditional(size) if self.accesses == 0 => match address {
                Some(addr) => self.push(Access {
                    paddr: None,
                    kind: AccessKind::ConditionalStoreFailure,
                    size,
                    addr,
                    data: None,
                    operand: None,
                }),
                // Its address stands in a register the log has not shown.
                None => self.effects.incomplete |= self.parts.accesses,
            },
            _ => {}
        }
    }
}
