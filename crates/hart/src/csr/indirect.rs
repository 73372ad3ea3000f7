//! Indirect CSR access (Smcsrind, Sscsrind): a select register at each level
//! says what six alias CSRs show.

use hartrace_flow::Mode;
use hartrace_isa::Ext;

use crate::cpu::Cpu;
use crate::csr::Wrote;

/// What the select registers hold: the range that a supervisor is promised.
pub(super) const SELECT: u64 = 0xfff;

/// An alias CSR: `mireg` to `mireg6`, `sireg` to `sireg6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Alias {
    /// Whose it is: M or S.
    level: Mode,
    /// What the select register of the level holds.
    select: u64,
    /// 1 to 6.
    number: u16,
}

/// A register that can be reached only in this way. There is none yet; the
/// entries of control transfer records will be at 0x200 to 0x2ff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Indirect {}

impl Cpu {
    /// Which register an alias shows to the current mode. `None` is nothing,
    /// and an access to it is illegal.
    #[allow(clippy::unused_self)] // state enables will be asked here
    fn indirect(&self, alias: Alias) -> Option<Indirect> {
        let Alias {
            level: _,
            select: _,
            number: _,
        } = alias;
        None
    }

    /// Reads an alias CSR; `None` where it shows nothing.
    pub(super) fn read_alias(&self, csr: u16) -> Option<u64> {
        let shown = self.indirect(self.alias(csr)?);
        shown.map(|register| match register {})
    }

    /// Writes an alias CSR.
    pub(super) fn write_alias(&mut self, csr: u16, _value: u64, _wrote: Wrote<'_>) {
        let shown = self.alias(csr).and_then(|alias| self.indirect(alias));
        if let Some(register) = shown {
            match register {}
        }
    }

    /// The alias of this number, if its level has any.
    fn alias(&self, csr: u16) -> Option<Alias> {
        // In the middle of the six is a register of interrupts.
        let number = match csr & 0xf {
            number @ 1..=3 => number,
            number @ 5..=7 => number - 1,
            _ => return None,
        };
        let (level, select, ext) = match csr >> 4 {
            0x15 => (Mode::S, self.siselect, Ext::Sscsrind),
            0x35 => (Mode::M, self.miselect, Ext::Smcsrind),
            _ => return None,
        };
        self.isa.has(ext).then_some(Alias {
            level,
            select,
            number,
        })
    }
}
