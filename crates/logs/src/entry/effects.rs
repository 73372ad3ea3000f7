//! The effects of an entry, completed from its instruction.

use super::{Entry, EntryAccess};
use hartrace_flow::{Access, AccessKind, Effects, RegId};

/// What an instruction does to memory, as far as its encoding shows. Many sources have
/// no size, and do not say which atomic operation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryOp {
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
    pub(crate) const fn of(bits: u32, narrow: bool) -> MemoryOp {
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
            // c.lbu, c.lhu, c.lh, c.sb, c.sh
            (0, 4) => MemoryOp::Plain((bits >> 10 & 1) as u8),
            // cm.pop and its relatives
            (2, 5) => MemoryOp::Plain(word),
            // c.fsd
            (0, 5) => MemoryOp::Plain(3),
            // c.sw, c.swsp
            (0 | 2, 6) => MemoryOp::Plain(2),
            // c.sd, c.sdsp; c.fsw, c.fswsp on RV32
            (0 | 2, 7) => MemoryOp::Plain(word),
            _ => MemoryOp::Other,
        }
    }

    /// log2 of the size of its accesses.
    #[inline]
    pub(crate) const fn size(self) -> u8 {
        match self {
            MemoryOp::Plain(size)
            | MemoryOp::Atomic(_, size)
            | MemoryOp::StoreConditional(size)
            | MemoryOp::Vector(size) => size,
            MemoryOp::Zero => 3,
            MemoryOp::Other => 0,
        }
    }
}

/// log2 of the size of the accesses that an instruction makes, as far as its encoding shows;
/// `narrow` on RV32.
#[must_use]
pub fn access_size(bits: u32, narrow: bool) -> u8 {
    MemoryOp::of(bits, narrow).size()
}

/// Which effects are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) regs: bool,
    pub(crate) csrs: bool,
    pub(crate) accesses: bool,
}

impl Parts {
    /// Whether any are.
    #[inline]
    pub(crate) const fn any(self) -> bool {
        self.regs || self.csrs || self.accesses
    }
}

/// Integer registers, as far as the log has recorded them.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    x: [u64; 32],
    known: u32,
}

impl Shadow {
    #[inline]
    pub(super) fn set(&mut self, reg: u8, value: u64) {
        if let Some(slot) = self.x.get_mut(usize::from(reg) & 31) {
            *slot = value;
            self.known |= 1 << (reg & 31);
        }
    }

    /// A register by its number in the low five bits.
    pub(super) fn get(&self, reg: u32) -> Option<u64> {
        match reg & 31 {
            0 => Some(0),
            reg if self.known >> reg & 1 != 0 => self.x.get(reg as usize).copied(),
            _ => None,
        }
    }

    /// A register has a value that the log has not shown.
    pub(super) fn lose(&mut self, reg: u8) {
        self.known &= !(1 << (reg & 31));
    }

    pub(super) fn forget(&mut self) {
        self.known = 0;
    }
}

/// The effects of an entry, from what it says and what its instruction does.
#[inline]
pub(super) fn complete(
    entry: &Entry,
    (bits, op): (u32, MemoryOp),
    shadow: &mut Shadow,
    parts: Parts,
    effects: &mut Effects,
) {
    effects.clear();
    effects.incomplete = entry.incomplete;
    // A store-conditional may overwrite its own address.
    let address = match op {
        MemoryOp::StoreConditional(_) => shadow.get(bits >> 15),
        _ => None,
    };
    for write in entry.regs.iter() {
        if let RegId::X(number) = write.reg {
            shadow.set(number, write.value);
        }
        if parts.regs && write.reg != RegId::X(0) {
            // As many as there is room for in an entry.
            let _ = effects.regs.push(*write);
        }
    }
    if parts.csrs {
        effects.csrs.copy_from(&entry.csrs);
    }
    if parts.accesses && (!entry.accesses.is_empty() || address.is_some()) {
        let mut accesses = Accesses {
            entry,
            op,
            effects,
            held: None,
        };
        accesses.all(address);
    } else if matches!(op, MemoryOp::StoreConditional(_)) && entry.accesses.is_empty() {
        // Its address is in a register that the log has not shown.
        effects.incomplete |= parts.accesses;
    }
}

/// Accesses on their way into [`Effects`].
struct Accesses<'a> {
    entry: &'a Entry,
    op: MemoryOp,
    effects: &'a mut Effects,
    /// An atomic's load, which waits for its store.
    held: Option<EntryAccess>,
}

impl Accesses<'_> {
    fn all(&mut self, address: Option<u64>) {
        for access in self.entry.accesses.iter() {
            match access.store {
                true => self.store(access),
                false => self.load(access),
            }
        }
        match self.op {
            // amocas that did not match: it only loaded, amocas.q twice.
            MemoryOp::Atomic(_, size) => {
                if let Some(held) = self.held.take() {
                    self.push_load(&held, size.min(3));
                    if size == 4 {
                        let addr = held.addr.wrapping_add(8);
                        self.push_load(&EntryAccess { addr, ..held }, 3);
                    }
                }
            }
            MemoryOp::StoreConditional(size) if self.entry.accesses.is_empty() => {
                if let Some(addr) = address {
                    self.push(Access {
                        kind: AccessKind::ConditionalStoreFailure,
                        size,
                        addr,
                        ..Access::default()
                    });
                }
            }
            _ => {}
        }
    }

    fn store(&mut self, access: &EntryAccess) {
        let size = access.size.unwrap_or_else(|| self.op.size());
        let mut stored = Access {
            paddr: access.paddr,
            kind: AccessKind::Store,
            size,
            addr: access.addr,
            data: access.data.map(|data| data & mask(size)),
            operand: None,
        };
        if let MemoryOp::Atomic(kind, _) = self.op {
            stored.kind = kind;
            let before = self.held.take().and_then(|held| held.data);
            stored.operand = before.or_else(|| self.loaded(size));
        }
        self.push(stored);
    }

    fn load(&mut self, access: &EntryAccess) {
        match self.op {
            MemoryOp::Atomic(..) if self.held.is_none() => self.held = Some(*access),
            MemoryOp::Plain(size)
            | MemoryOp::Atomic(_, size)
            | MemoryOp::StoreConditional(size) => self.push_load(access, size),
            MemoryOp::Vector(size) => self.unknown(access, size),
            MemoryOp::Zero | MemoryOp::Other => self.unknown(access, 0),
        }
    }

    /// A load of the value that was written to the register.
    fn push_load(&mut self, access: &EntryAccess, size: u8) {
        let size = access.size.unwrap_or(size);
        let data = access.data.map(|data| data & mask(size));
        let data = data.or_else(|| self.loaded(size));
        self.push(Access {
            paddr: access.paddr,
            kind: AccessKind::Load,
            size,
            addr: access.addr,
            data,
            operand: None,
        });
    }

    /// A load by an instruction that does not say how much.
    fn unknown(&mut self, access: &EntryAccess, size: u8) {
        self.effects.incomplete = true;
        self.push(Access {
            addr: access.addr,
            paddr: access.paddr,
            size: access.size.unwrap_or(size),
            data: access.data,
            ..Access::default()
        });
    }

    /// The part of the register written that came from memory, if there is one only.
    fn loaded(&self, size: u8) -> Option<u64> {
        let [write] = *self.entry.regs else {
            return None;
        };
        (size <= 3).then_some(write.value & mask(size))
    }

    fn push(&mut self, access: Access) {
        self.effects.incomplete |= self.effects.accesses.push(access).is_err();
    }
}

/// The bits of an access of this size (log2 of bytes).
pub(crate) const fn mask(size: u8) -> u64 {
    match size {
        0 => 0xff,
        1 => 0xffff,
        2 => 0xffff_ffff,
        _ => u64::MAX,
    }
}
