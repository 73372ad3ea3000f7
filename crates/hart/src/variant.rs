//! What a core has otherwise than the whole hart: fewer privilege modes, CSRs that are
//! missing, CSRs and interrupts of its own, other values after reset. A core is verified
//! against a hart that is as it is.

use hartrace_isa::{Ext, csr};

use crate::cpu::{Cpu, interrupt, status};

/// The privilege modes of a hart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modes {
    /// Machine mode alone.
    Machine,
    /// Machine and user mode.
    MachineUser,
    /// Machine, supervisor and user mode.
    #[default]
    All,
}

/// How a hart differs from the whole one, which has all that its extensions can have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its privilege modes.
    pub modes: Modes,
    /// CSRs that it does not have: accesses are illegal.
    pub absent_csrs: Vec<u16>,
    /// CSRs of its own, which hold what is written and do nothing.
    pub plain_csrs: Vec<u16>,
    /// Interrupts of its own, as bits of `mie` and `mip`, from 16 on.
    pub interrupts: u64,
    /// What CSRs hold after reset. `misa`, and what is read-only, holds it forever.
    pub reset: Vec<(u16, u64)>,
}

/// The numbers of CSRs, a bit each.
const WORDS: usize = 4096 / 64;

/// A variant, as a hart looks at it.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    modes: Modes,
    absent: [u64; WORDS],
    /// CSRs of its own, with what they hold.
    plain: Vec<(u16, u64)>,
    /// CSRs that always hold the same.
    fixed: Vec<(u16, u64)>,
    interrupts: u64,
}

impl Variant {
    /// Whether it is the whole hart.
    fn is_whole(&self) -> bool {
        *self == Variant::default()
    }

    fn lacks(&self, number: u16) -> bool {
        let supervisor = number >> 8 & 3 == 1 || matches!(number, csr::MEDELEG | csr::MIDELEG);
        let user = matches!(number, csr::MCOUNTEREN | csr::MENVCFG | csr::MENVCFGH);
        let lower = match self.modes {
            Modes::All => false,
            Modes::MachineUser => supervisor,
            Modes::Machine => supervisor || user,
        };
        lower || self.absent_csrs.contains(&number)
    }
}

/// Whether a CSR never changes: read-only, or set by what the hart is.
const fn is_fixed(number: u16) -> bool {
    number >> 10 == 3 || number == csr::MISA
}

impl Own {
    fn new(variant: &Variant) -> Own {
        let mut absent = [0; WORDS];
        for (word, first) in absent.iter_mut().zip((0u16..).step_by(64)) {
            let lacks = (0..64).filter(|bit| variant.lacks(first + bit));
            *word = lacks.map(|bit| 1 << bit).sum();
        }
        let fixed = variant.reset.iter().filter(|(number, _)| is_fixed(*number));
        Own {
            modes: variant.modes,
            absent,
            plain: variant.plain_csrs.iter().map(|csr| (*csr, 0)).collect(),
            fixed: fixed.copied().collect(),
            interrupts: variant.interrupts & !0xffff,
        }
    }

    pub(crate) fn is_absent(&self, number: u16) -> bool {
        let word = self.absent.get(usize::from(number) / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// What a CSR holds that is not the whole hart's.
    pub(crate) fn read(&self, number: u16) -> Option<u64> {
        let mut own = self.plain.iter().chain(&self.fixed);
        own.find(|(known, _)| *known == number)
            .map(|(_, value)| *value)
    }

    /// Writes a CSR that is not the whole hart's; whether it is one.
    pub(crate) fn write(&mut self, number: u16, value: u64) -> bool {
        if self.fixed.iter().any(|(known, _)| *known == number) {
            return true;
        }
        let own = self.plain.iter_mut().find(|(known, _)| *known == number);
        own.map(|(_, held)| *held = value).is_some()
    }
}

impl Cpu {
    /// Becomes a hart of this kind.
    pub(crate) fn vary(&mut self, variant: &Variant) {
        if variant.is_whole() {
            return;
        }
        self.own = Some(Box::new(Own::new(variant)));
        self.mstatus = self.legal_mpp(self.mstatus);
    }

    /// The modes there are.
    fn modes(&self) -> Modes {
        self.own.as_ref().map_or(Modes::All, |own| own.modes)
    }

    pub(crate) fn has_supervisor(&self) -> bool {
        self.modes() == Modes::All
    }

    /// The interrupts that a variant has instead of these.
    pub(crate) fn own_interrupts(&self, all: u64) -> u64 {
        match &self.own {
            None => all,
            Some(own) if own.modes == Modes::All => all | own.interrupts,
            Some(own) => all & !interrupt::SUPERVISOR | own.interrupts,
        }
    }

    /// Fields of `mstatus` that are there.
    pub(crate) fn status_fields(&self, fields: u64) -> u64 {
        let supervisor = status::SIE | status::SPIE | status::SPP | status::SUM | status::MXR;
        let supervisor = supervisor | status::TVM | status::TSR;
        let float = match self.whole.has(Ext::F) {
            true => 0,
            false => status::FS,
        };
        match self.modes() {
            Modes::All => fields,
            Modes::MachineUser => fields & !(supervisor | float),
            Modes::Machine => fields & !(supervisor | float | status::MPRV | status::TW),
        }
    }

    /// `mstatus` with a mode in MPP that there is.
    pub(crate) fn legal_mpp(&self, value: u64) -> u64 {
        match (self.modes(), value >> 11 & 3) {
            (Modes::Machine, _) => value | status::MPP,
            // Two is no mode.
            (Modes::MachineUser, 1) | (_, 2) => value & !status::MPP,
            _ => value,
        }
    }

    /// `misa` without the modes that are not there.
    pub(crate) fn own_misa(&self, misa: u64) -> u64 {
        let (s, u) = (1 << 18, 1 << 20);
        match self.modes() {
            Modes::All => misa,
            Modes::MachineUser => misa & !s,
            Modes::Machine => misa & !(s | u),
        }
    }
}
