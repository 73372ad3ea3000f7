//! `[ingress]`: the trace ingress port (E-Trace chapter 4) that steps are
//! turned into.

use super::Setting;
use super::section::{said, value};
use hartrace_flow::{Ctype, ItypeWidth, PortConfig, Retirement, Retires};
use hartrace_isa::{Isa, ItypeTable};
use hartrace_logs::Iretire;

/// `[ingress]`. What is `None` is not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ingress {
    /// Bits of `itype`.
    pub itype_width: Option<Setting<ItypeWidth>>,
    /// Which text's table of instruction types.
    pub table: Option<Setting<ItypeTable>>,
    /// Instructions one by one (`single`) or in blocks (`block`), which is
    /// also what `iretire` counts in a table.
    pub retirement: Option<Setting<Iretire>>,
    /// The longest block, in halfwords; 2 to 65535. Of use with blocks only.
    pub max_halfwords: Option<Setting<u16>>,
    /// Whether sequentially inferable jumps are told.
    pub sijump: Option<Setting<bool>>,
    /// Whether direct jumps appear as taken branches (N-Trace,
    /// trTeInstEnAllJumps).
    pub all_jumps: Option<Setting<bool>>,
    /// Which instructions that always trap count as retired; the ratified
    /// texts say none.
    pub retires: Option<Setting<Retires>>,
    /// How a change of context is reported.
    pub ctype: Option<Setting<Ctype>>,
    /// Low bits of `tval` that are shown, 0 to 64.
    pub tval_bits: Option<Setting<u8>>,
}

/// A value by its name in a configuration.
pub(super) type Named<T> = &'static [(&'static str, T)];

pub(super) const TABLES: Named<ItypeTable> = &[
    ("etrace-1.1.1", ItypeTable::ETrace111),
    ("etrace-2.0", ItypeTable::ETrace20),
    ("ntrace-rc7", ItypeTable::NTraceRc7),
    ("ntrace-1.0", ItypeTable::NTrace10),
    ("nexrv", ItypeTable::NexRv),
    ("etrace-reference", ItypeTable::ETraceReference),
];

pub(super) const RETIREMENTS: Named<Iretire> = &[
    ("single", Iretire::Instructions),
    ("block", Iretire::Halfwords),
];

pub(super) const RETIRES: Named<Retires> = &[
    ("none", Retires::Neither),
    ("ecall", Retires::Ecall),
    ("ecall-ebreak", Retires::EcallAndEbreak),
];

/// The name of a value.
pub(super) fn name_of<T: PartialEq>(names: Named<T>, value: &T) -> &'static str {
    let named = names.iter().find(|n| n.1 == *value);
    named.map_or("", |n| n.0)
}

/// The longest block where nobody says it.
const MAX_HALFWORDS: u16 = 32;

impl Ingress {
    /// The values of [`PortConfig::new`], said by nobody.
    pub(super) fn defaults() -> Ingress {
        let port = PortConfig::new(Isa::RV64GC);
        Ingress {
            itype_width: Some(Setting::default(port.itype_width)),
            table: Some(Setting::default(port.table)),
            retirement: Some(Setting::default(Iretire::default())),
            max_halfwords: Some(Setting::default(MAX_HALFWORDS)),
            sijump: Some(Setting::default(port.sijump)),
            all_jumps: Some(Setting::default(port.all_jumps)),
            retires: Some(Setting::default(port.retires)),
            ctype: Some(Setting::default(port.ctype)),
            tval_bits: Some(Setting::default(port.tval_bits)),
        }
    }

    /// This layer on top of another.
    pub(super) fn over(self, below: Ingress) -> Ingress {
        Ingress {
            itype_width: self.itype_width.or(below.itype_width),
            table: self.table.or(below.table),
            retirement: self.retirement.or(below.retirement),
            max_halfwords: self.max_halfwords.or(below.max_halfwords),
            sijump: self.sijump.or(below.sijump),
            all_jumps: self.all_jumps.or(below.all_jumps),
            retires: self.retires.or(below.retires),
            ctype: self.ctype.or(below.ctype),
            tval_bits: self.tval_bits.or(below.tval_bits),
        }
    }

    /// The port before an encoder that needs this one: settings not given in
    /// `[ingress]` are as the encoder needs them.
    #[must_use]
    pub fn for_encoder(self, port: &PortConfig) -> Ingress {
        Ingress {
            itype_width: said(self.itype_width, port.itype_width),
            table: said(self.table, port.table),
            sijump: said(self.sijump, port.sijump),
            all_jumps: said(self.all_jumps, port.all_jumps),
            retires: said(self.retires, port.retires),
            ..self
        }
    }

    /// The port of a hart with this instruction set. What is not said is as in
    /// [`PortConfig::new`].
    #[must_use]
    pub fn port(&self, isa: Isa) -> PortConfig {
        let default = PortConfig::new(isa);
        let room = value(&self.max_halfwords, MAX_HALFWORDS);
        PortConfig {
            isa,
            itype_width: value(&self.itype_width, default.itype_width),
            table: value(&self.table, default.table),
            retirement: match self.iretire() {
                Iretire::Instructions => Retirement::Single,
                Iretire::Halfwords => Retirement::Block(room.into()),
            },
            sijump: value(&self.sijump, default.sijump),
            all_jumps: value(&self.all_jumps, default.all_jumps),
            retires: value(&self.retires, default.retires),
            ctype: value(&self.ctype, default.ctype),
            tval_bits: value(&self.tval_bits, default.tval_bits),
        }
    }

    /// What `iretire` counts in a table of this port.
    #[must_use]
    pub fn iretire(&self) -> Iretire {
        value(&self.retirement, Iretire::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn port(text: &str, isa: Isa) -> PortConfig {
        let config = Config::parse(text, Path::new("a.toml")).unwrap();
        config.over(Config::defaults()).ingress.port(isa)
    }

    #[test]
    fn nothing_said_is_the_default_port() {
        for isa in [Isa::RV64GC, Isa::RV32GC] {
            assert_eq!(port("", isa), PortConfig::new(isa));
            assert_eq!(Ingress::default().port(isa), PortConfig::new(isa));
        }
    }

    #[test]
    fn every_setting_reaches_the_port() {
        let text = "[ingress]\nitype_width = 3\ntable = \"ntrace-rc7\"\nretirement = \"block\"\n\
                    max_halfwords = 7\nsijump = false\nall_jumps = true\nretires = \"ecall\"\n\
                    ctype = 3\ntval_bits = 8\n";
        let expected = PortConfig {
            isa: Isa::RV32GC,
            itype_width: ItypeWidth::Three,
            table: ItypeTable::NTraceRc7,
            retirement: Retirement::Block(7),
            sijump: false,
            all_jumps: true,
            retires: Retires::Ecall,
            ctype: Ctype::Discontinuity,
            tval_bits: 8,
        };
        assert_eq!(port(text, Isa::RV32GC), expected);
        let single = text.replace("block", "single");
        assert_eq!(port(&single, Isa::RV32GC).retirement, Retirement::Single);
    }

    #[test]
    fn every_table_has_its_name() {
        for (name, table) in TABLES {
            let text = format!("[ingress]\ntable = \"{name}\"\n");
            assert_eq!(port(&text, Isa::RV64GC).table, *table);
            assert_eq!(name_of(TABLES, table), *name);
        }
    }
}
