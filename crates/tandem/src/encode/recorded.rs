//! The register values the trace has recorded, so that a change can be encoded
//! as a difference.

use alloc::boxed::Box;
use alloc::vec;

use hartrace_isa::Xlen;
use hartrace_isa::csr::{self, FCSR, FFLAGS, FRM};

use crate::elements::Registers;
use crate::item::Item;
use crate::register::{REGISTERS, Register};

/// The values of registers as the trace has recorded them.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    xlen: Xlen,
    values: Box<[u64]>,
    known: Registers,
    /// Bits of fcsr that this group has recorded already, under any name.
    float_bits: u64,
}

impl Recorded {
    pub(super) fn new(xlen: Xlen) -> Recorded {
        Recorded {
            xlen,
            values: vec![0; REGISTERS].into_boxed_slice(),
            known: Registers::NONE,
            float_bits: 0,
        }
    }

    /// A group begins.
    pub(super) fn begin(&mut self) {
        self.float_bits = 0;
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.known = Registers::NONE;
    }

    /// A trap has changed the status register to an unknown value.
    pub(super) fn forget_status(&mut self) {
        self.lose(Register::csr(csr::MSTATUS));
    }

    /// A register has changed to an unknown value; neither is known what the
    /// others hold that show the same bits.
    #[cold]
    pub(super) fn lose(&mut self, register: Register) {
        self.known.remove(register);
        let others: &[u16] = match register.number() {
            csr::SSTATUS | csr::MSTATUS => &[csr::SSTATUS, csr::MSTATUS],
            csr::SIE | csr::MIE => &[csr::SIE, csr::MIE],
            FFLAGS | FRM | FCSR => &[FFLAGS, FRM, FCSR],
            _ => &[],
        };
        for csr in others {
            self.known.remove(Register::csr(*csr));
        }
    }

    /// The shortest encoding of a new value, which counts as recorded.
    #[inline]
    pub(super) fn tell(&mut self, register: Register, value: u64) -> Item {
        let old = match register.as_csr() {
            Some(csr) if is_volatile(csr) => None,
            Some(csr) => self.replace_csr(register, csr, value),
            None if register.is_float() => None,
            None => self.replace(register, value),
        };
        old.and_then(|old| difference(self.xlen, register, old, value))
            .unwrap_or(Item::Full(register, value))
    }

    /// Sets a register; its value before, if it was recorded.
    #[inline]
    fn replace(&mut self, register: Register, value: u64) -> Option<u64> {
        let old = self.get(register);
        self.set(register, value);
        old
    }

    /// As [`replace`](Recorded::replace), with the CSRs that show the same bits.
    fn replace_csr(&mut self, register: Register, csr: u16, value: u64) -> Option<u64> {
        // A difference to a value in the same group would be ambiguous.
        let bits = float_bits(csr);
        let told_twice = self.float_bits & bits != 0;
        self.float_bits |= bits;
        let old = self.replace(register, value);
        self.follow(csr, value);
        old.filter(|_| !told_twice)
    }

    #[inline]
    fn get(&self, register: Register) -> Option<u64> {
        let value = self.values.get(usize::from(register.number()))?;
        self.known.contains(register).then_some(*value)
    }

    #[inline]
    fn set(&mut self, register: Register, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(register.number())) {
            *slot = self.xlen.wrap(value);
            self.known.insert(register);
        }
    }

    /// CSRs that show the same bits as the recorded one.
    fn follow(&mut self, number: u16, value: u64) {
        let fcsr = self.get(Register::csr(FCSR));
        match (number, fcsr) {
            (FCSR, _) => {
                self.set(Register::csr(FFLAGS), value & 31);
                self.set(Register::csr(FRM), value >> 5 & 7);
            }
            (FFLAGS, Some(fcsr)) => self.set(Register::csr(FCSR), fcsr & !31 | value & 31),
            (FRM, Some(fcsr)) => self.set(Register::csr(FCSR), fcsr & 31 | (value & 7) << 5),
            // Which bits the other one shows is not for the encoder to know.
            (csr::SSTATUS | csr::SIE, _) => self.known.remove(Register::csr(number | 0x200)),
            (csr::MSTATUS | csr::MIE, _) => self.known.remove(Register::csr(number & !0x200)),
            _ => {}
        }
    }
}

/// The bits of fcsr that a CSR shows.
const fn float_bits(number: u16) -> u64 {
    match number {
        FFLAGS => 0x1f,
        FRM => 0xe0,
        FCSR => 0xff,
        _ => 0,
    }
}

/// Registers that change by themselves: counters with their overflow bits, and
/// pending interrupts. A difference would be to a value that was never recorded.
const fn is_volatile(number: u16) -> bool {
    matches!(
        number,
        csr::SIP | csr::VSIP | csr::MIP | csr::HIP | csr::HVIP | csr::MCYCLE..=csr::MHPMCOUNTER31H | 0xc00..=0xcff | 0xda0..=0xfff
    ) || matches!(number, csr::MHPMEVENT3..=csr::MHPMEVENT31 | csr::MHPMEVENT3H..=csr::MHPMEVENT31H)
}

/// The difference between two values, if it fits.
#[inline]
fn difference(xlen: Xlen, register: Register, old: u64, value: u64) -> Option<Item> {
    let offset = match xlen {
        Xlen::Rv32 => i64::from((value as u32).wrapping_sub(old as u32).cast_signed()),
        Xlen::Rv64 => value.wrapping_sub(old).cast_signed(),
    };
    let offset = i8::try_from(offset).ok();
    let offset = offset.map(|offset| Item::Offset(register, offset));
    let set = (old & !value == 0 && (old ^ value) >> 8 == 0)
        .then_some(Item::Mask(register, (old ^ value) as u8));
    // Both are as long. Flags accrue (table C.3), everything else counts.
    match register.number() {
        FFLAGS | FCSR => set.or(offset),
        _ => offset.or(set),
    }
}
