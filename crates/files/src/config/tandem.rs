//! `[tandem]`: the tandem-verification trace, how it is written and read.

use super::read::{Reader, Value, integer};
use super::section::{Section as _, set, some, value};
use super::value::Named;
use super::write::quote;
use hartrace_isa::{Isa, Xlen};
use hartrace_tandem::{
    Addresses, Config, ConfigError, EaddrWidth, Elements, Flen, MemoryStyle, Mlen, Nibbles, PcForm,
    PcStyle, StoreData, Style,
};

/// The one text there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TandemVersion {
    /// Of 2018-11-20.
    #[default]
    V20181120,
}

/// How an encoder writes, by name; single switches come on top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TandemStyle {
    /// As the examples of the specification.
    #[default]
    Full,
    /// As small as it gets with nothing left out.
    Compact,
    /// As the Bluespec cores do.
    Bluespec,
}

impl TandemStyle {
    fn style(self) -> Style {
        match self {
            TandemStyle::Full => Style::default(),
            TandemStyle::Compact => Style::compact(),
            TandemStyle::Bluespec => Style::bluespec(),
        }
    }
}

const VERSIONS: Named<TandemVersion> = &[("2018-11-20", TandemVersion::V20181120)];
const STYLES: Named<TandemStyle> = &[
    ("full", TandemStyle::Full),
    ("compact", TandemStyle::Compact),
    ("bluespec", TandemStyle::Bluespec),
];
const EADDR: Named<EaddrWidth> = &[("mlen", EaddrWidth::Mlen), ("xlen", EaddrWidth::Xlen)];
const NIBBLES: Named<Nibbles> = &[("low", Nibbles::Low), ("high", Nibbles::High)];
const PC_FORMS: Named<PcForm> = &[("new", PcForm::New), ("both", PcForm::Both)];
const PC_STYLES: Named<PcStyle> = &[("increment", PcStyle::Increment), ("full", PcStyle::Full)];
const STORE_DATA: Named<StoreData> = &[
    ("result", StoreData::Result),
    ("operand", StoreData::Operand),
];
const ADDRESSES: Named<Addresses> = &[
    ("none", Addresses::None),
    ("effective", Addresses::Effective),
    ("physical", Addresses::Physical),
    ("both", Addresses::Both),
    ("translated", Addresses::Translated),
];
const MEMORY: Named<MemoryStyle> = &[
    ("none", MemoryStyle::None),
    ("requests", MemoryStyle::Requests),
    ("responses", MemoryStyle::Responses),
];

section! {
    /// `[tandem]`. What is `None` is not said.
    Tandem = "[tandem]" {
        /// Which text.
        version: TandemVersion = (named VERSIONS);
        /// Width of integer registers, CSRs and the pc; without it that of the
        /// instruction set.
        xlen: Xlen = (xlen);
        /// Width of floating-point registers, 0 for none.
        flen: Flen = (flen);
        /// Width of memory addresses.
        mlen: Mlen = (mlen);
        /// Width of effective addresses.
        eaddr: EaddrWidth = (named EADDR);
        /// Order of four-bit fields.
        nibbles: Nibbles = (named NIBBLES);
        /// What the identifier of the pc carries.
        pc: PcForm = (named PC_FORMS);
        /// Read identifier 16 as that of the pc.
        lenient_pc_identifier: bool = (boolean);
        /// What the data of an atomic operation is.
        store_data: StoreData = (named STORE_DATA);
        /// A group with more items is a fault.
        max_items: u32 = (number 64 0xffff_ffff);
        /// What the trace does not record.
        absent: Elements = (absent);
        /// How an encoder writes.
        style: TandemStyle = (named STYLES);
        /// How it records the pc.
        pc_style: PcStyle = (named PC_STYLES);
        /// Whether it records registers as increments.
        incremental: bool = (boolean);
        /// Which addresses of loads and stores it records.
        addresses: Addresses = (named ADDRESSES);
        /// Whether every instruction records the increment of minstret.
        minstret: bool = (boolean);
        /// Which memory transactions it records.
        memory: MemoryStyle = (named MEMORY);
        /// Whether groups end with an opcode of their own.
        end_group: bool = (boolean);
        /// Whether the trace starts with a group that records pc and mode.
        start: bool = (boolean);
    }
}

impl Reader {
    /// One of a few widths.
    fn bits<T: Copy>(
        &mut self,
        name: &'static str,
        value: &Value<'_>,
        widths: &[(u64, T)],
    ) -> Option<T> {
        let bits = integer(value);
        let found = widths.iter().find(|(width, _)| Some(*width) == bits);
        found.map(|(_, width)| *width).or_else(|| {
            let all: Vec<String> = widths.iter().map(|(n, _)| n.to_string()).collect();
            self.refuse(name, value, &format!("one of {}", all.join(", ")))
        })
    }

    fn xlen(&mut self, name: &'static str, value: &Value<'_>) -> Option<Xlen> {
        self.bits(name, value, &[(32, Xlen::Rv32), (64, Xlen::Rv64)])
    }

    fn flen(&mut self, name: &'static str, value: &Value<'_>) -> Option<Flen> {
        let widths = [(0, Flen::None), (32, Flen::F32), (64, Flen::F64)];
        self.bits(name, value, &widths)
    }

    fn mlen(&mut self, name: &'static str, value: &Value<'_>) -> Option<Mlen> {
        let widths = [(32, Mlen::M32), (34, Mlen::M34), (64, Mlen::M64)];
        self.bits(name, value, &widths)
    }

    /// A list of elements.
    pub(super) fn absent(&mut self, name: &'static str, value: &Value<'_>) -> Option<Elements> {
        let names = self.list(name, value, "elements", |r, n, v| {
            let Some(text) = v.get_ref().as_str() else {
                return r.refuse(n, v, "a list of elements such as [\"trap.mstatus\"]");
            };
            match Elements::default().add(text) {
                Ok(()) => Some(text.to_owned()),
                Err(error) => r.refuse(n, v, &format!("a list of elements: {error}")),
            }
        })?;
        let mut elements = Elements::default();
        for name in &names {
            // They have been looked at.
            let _ = elements.add(name);
        }
        Some(elements)
    }
}

fn xlen(xlen: &Xlen) -> String {
    xlen.bits().to_string()
}

fn flen(flen: &Flen) -> String {
    flen.bits().to_string()
}

fn mlen(mlen: &Mlen) -> String {
    mlen.bits().to_string()
}

fn absent(elements: &Elements) -> String {
    let names: Vec<String> = elements.names().iter().map(quote).collect();
    format!("[{}]", names.join(", "))
}

impl Tandem {
    /// The settings for an instruction set, defaults included. A hart has
    /// supervisor mode, and with it Sv32 on RV32, unless `mlen` says otherwise.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn settings(&self, isa: Isa) -> Result<Config, ConfigError> {
        let mut config = Config::new(isa, true);
        if let Some(xlen) = &self.xlen
            && xlen.value != isa.xlen()
        {
            config.xlen = xlen.value;
            config.mlen = match xlen.value {
                Xlen::Rv32 => Mlen::M34,
                Xlen::Rv64 => Mlen::M64,
            };
        }
        set(&mut config.flen, &self.flen);
        set(&mut config.mlen, &self.mlen);
        set(&mut config.eaddr, &self.eaddr);
        set(&mut config.nibbles, &self.nibbles);
        set(&mut config.pc, &self.pc);
        set(
            &mut config.lenient_pc_identifier,
            &self.lenient_pc_identifier,
        );
        set(&mut config.store_data, &self.store_data);
        set(&mut config.max_items, &self.max_items);
        if let Some(absent) = &self.absent {
            config.absent = absent.value.clone();
        }
        config.style = value(&self.style, TandemStyle::default()).style();
        if config.pc == PcForm::Both {
            // An increment does not give the address of the instruction.
            config.style.pc = PcStyle::Full;
        }
        let style = &mut config.style;
        set(&mut style.pc, &self.pc_style);
        set(&mut style.incremental, &self.incremental);
        set(&mut style.addresses, &self.addresses);
        set(&mut style.minstret, &self.minstret);
        set(&mut style.memory, &self.memory);
        set(&mut style.end_group, &self.end_group);
        set(&mut style.start, &self.start);
        config.validate()?;
        Ok(config)
    }

    /// The same with every setting said, as in `config`, which was made of it.
    #[must_use]
    pub fn completed(self, config: &Config) -> Tandem {
        let of = Tandem::of(config);
        // More may be absent than was said, once all is written.
        let said = self.absent.clone();
        let said = said.filter(|absent| absent.value == config.absent);
        Tandem {
            absent: said.or(of.absent.clone()),
            ..self.over(of)
        }
    }

    /// Every setting of a configuration, as a default.
    #[must_use]
    pub fn of(config: &Config) -> Tandem {
        let Style {
            pc,
            incremental,
            addresses,
            minstret,
            memory,
            end_group,
            start,
        } = config.style;
        Tandem {
            version: some(TandemVersion::default()),
            xlen: some(config.xlen),
            flen: some(config.flen),
            mlen: some(config.mlen),
            eaddr: some(config.eaddr),
            nibbles: some(config.nibbles),
            pc: some(config.pc),
            lenient_pc_identifier: some(config.lenient_pc_identifier),
            store_data: some(config.store_data),
            max_items: some(config.max_items),
            absent: some(config.absent.clone()),
            // The switches say it all.
            style: None,
            pc_style: some(pc),
            incremental: some(incremental),
            addresses: some(addresses),
            minstret: some(minstret),
            memory: some(memory),
            end_group: some(end_group),
            start: some(start),
        }
    }
}

#[cfg(test)]
mod tests;
