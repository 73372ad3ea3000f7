//! `[ingress]`: the trace ingress port (E-Trace chapter 4) that steps are
//! turned into.

use super::read::{Reader, Value};
use super::section::{said, some, value};
use super::value::Named;
use hartrace_flow::{Ctype, DataPort, ItypeWidth, PortConfig, Retirement, Retires};
use hartrace_isa::{Isa, ItypeTable};
use hartrace_logs::Iretire;

const TABLES: Named<ItypeTable> = &[
    ("etrace-1.1.1", ItypeTable::ETrace111),
    ("etrace-2.0", ItypeTable::ETrace20),
    ("ntrace-rc7", ItypeTable::NTraceRc7),
    ("ntrace-1.0", ItypeTable::NTrace10),
    ("nexrv", ItypeTable::NexRv),
    ("etrace-reference", ItypeTable::ETraceReference),
];

const RETIREMENTS: Named<Iretire> = &[
    ("single", Iretire::Instructions),
    ("block", Iretire::Halfwords),
];

pub(super) const RETIRES: Named<Retires> = &[
    ("none", Retires::Neither),
    ("ecall", Retires::Ecall),
    ("ecall-ebreak", Retires::EcallAndEbreak),
];

/// The form of data accesses at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataForm {
    /// They are not shown.
    None,
    /// With their instruction.
    Unified,
    /// What was read comes later.
    Split,
}

const FORMS: Named<DataForm> = &[
    ("none", DataForm::None),
    ("unified", DataForm::Unified),
    ("split", DataForm::Split),
];

/// Defaults of `load_ids` and `load_latency`.
const LOADS: (u16, u8) = (16, 2);

section! {
    /// `[ingress]`. What is `None` is not said.
    Ingress = "[ingress]" {
        /// Bits of `itype`.
        itype_width: ItypeWidth = (itype_width);
        /// Which text's table of instruction types.
        table: ItypeTable = (named TABLES);
        /// Instructions one by one (`single`) or in blocks (`block`), which is
        /// also what `iretire` counts in a table.
        retirement: Iretire = (named RETIREMENTS);
        /// The longest block, in halfwords; 2 to 65535. Of use with blocks only.
        max_halfwords: u16 = (number 2 65535);
        /// Whether sequentially inferable jumps are reported.
        sijump: bool = (boolean);
        /// Whether direct jumps appear as taken branches (N-Trace,
        /// trTeInstEnAllJumps).
        all_jumps: bool = (boolean);
        /// Which instructions that always trap count as retired; the ratified
        /// texts say none.
        retires: Retires = (named RETIRES);
        /// How a change of context is reported.
        ctype: Ctype = (ctype);
        /// Low bits of `tval` that are shown, 0 to 64.
        tval_bits: u8 = (number 0 64);
        /// The form of data accesses.
        data: DataForm = (named FORMS);
        /// Split loads that can be in progress.
        load_ids: u16 = (number 1 256);
        /// Instructions that retire between a split load and its response.
        load_latency: u8 = (number 0 255);
        /// Whether several accesses of an instruction have a `dtype` of their own.
        multiple: bool = (boolean);
    }
}

impl Reader {
    fn itype_width(&mut self, name: &'static str, value: &Value<'_>) -> Option<ItypeWidth> {
        Some(match self.number(name, value, 3..=4)? {
            3u8 => ItypeWidth::Three,
            _ => ItypeWidth::Four,
        })
    }

    fn ctype(&mut self, name: &'static str, value: &Value<'_>) -> Option<Ctype> {
        Ctype::from_code(self.number(name, value, 0..=3)?)
    }
}

fn itype_width(width: &ItypeWidth) -> String {
    let width = match width {
        ItypeWidth::Three => 3,
        ItypeWidth::Four => 4,
    };
    width.to_string()
}

fn ctype(ctype: &Ctype) -> String {
    ctype.code().to_string()
}

/// The default length of the longest block.
const MAX_HALFWORDS: u16 = 32;

impl Ingress {
    /// The values of [`PortConfig::new`], as defaults.
    pub(super) fn defaults() -> Ingress {
        let port = PortConfig::new(Isa::RV64GC);
        Ingress {
            itype_width: some(port.itype_width),
            table: some(port.table),
            retirement: some(Iretire::default()),
            max_halfwords: some(MAX_HALFWORDS),
            sijump: some(port.sijump),
            all_jumps: some(port.all_jumps),
            retires: some(port.retires),
            ctype: some(port.ctype),
            tval_bits: some(port.tval_bits),
            data: None,
            load_ids: None,
            load_latency: None,
            multiple: some(port.multiple),
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
            data: match port.data {
                DataPort::None => self.data,
                DataPort::Unified => said(self.data, DataForm::Unified),
                DataPort::Split { .. } => said(self.data, DataForm::Split),
            },
            load_ids: match port.data {
                DataPort::Split { ids, .. } => said(self.load_ids, ids),
                _ => self.load_ids,
            },
            multiple: said(self.multiple, port.multiple),
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
            data: match value(&self.data, DataForm::None) {
                DataForm::None => DataPort::None,
                DataForm::Unified => DataPort::Unified,
                DataForm::Split => DataPort::Split {
                    ids: value(&self.load_ids, LOADS.0),
                    latency: value(&self.load_latency, LOADS.1),
                },
            },
            multiple: value(&self.multiple, default.multiple),
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
    use crate::config::value::name_of;
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
                    ctype = 3\ntval_bits = 8\nmultiple = true\n";
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
            data: DataPort::None,
            multiple: true,
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
