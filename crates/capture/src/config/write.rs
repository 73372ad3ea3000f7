//! [`Config`] to TOML.

use super::filter::{MODES, Span, TRAPS};
use super::hart::MACHINES;
use super::ingress::{RETIREMENTS, RETIRES, TABLES, name_of};
use super::{COSTS, Config, Filter, Hart, Ingress, Origin, Setting};
use crate::program::{ElfFile, RawFile};
use hartrace_flow::filter::Match;
use hartrace_flow::{ItypeWidth, Mode};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use std::ops::RangeInclusive;
use std::path::Path;

impl Config {
    /// The settings as a configuration file that [`Config::parse`] reads back.
    /// With `origins`, each value is followed by a comment that says where it
    /// came from.
    #[must_use]
    pub fn to_toml(&self, origins: bool) -> String {
        let mut out = Writer {
            text: String::new(),
            origins,
        };
        // Writing to a String does not fail.
        let _ = out.config(self);
        out.text
    }
}

pub(super) struct Writer {
    text: String,
    origins: bool,
}

impl Writer {
    fn config(&mut self, config: &Config) -> fmt::Result {
        if let Some(trace) = &config.trace {
            self.section("trace")?;
            self.key("format", Some(&trace.format), |v| quote(v))?;
            self.key("version", trace.version.as_ref(), |v| quote(v))?;
        }
        let program = &config.program;
        if program.isa.is_some() || program.elf.is_some() || program.raw.is_some() {
            self.section("program")?;
            self.key("isa", program.isa.as_ref(), |v| quote(v))?;
            self.key("elf", program.elf.as_ref(), |v| list(v, elf))?;
            self.key("raw", program.raw.as_ref(), |v| list(v, raw))?;
        }
        self.ingress(&config.ingress)?;
        self.filter(&config.filter)?;
        self.hart(&config.hart)?;
        config.ntrace.write(self)?;
        config.etrace.write(self)?;
        config.tandem.write(self)?;
        config.ctr.write(self)
    }

    fn ingress(&mut self, i: &Ingress) -> fmt::Result {
        if *i == Ingress::default() {
            return Ok(());
        }
        self.section("ingress")?;
        self.key("itype_width", i.itype_width.as_ref(), |v| {
            let width = match v {
                ItypeWidth::Three => 3,
                ItypeWidth::Four => 4,
            };
            width.to_string()
        })?;
        self.key("table", i.table.as_ref(), |v| quote(name_of(TABLES, v)))?;
        self.key("retirement", i.retirement.as_ref(), |v| {
            quote(name_of(RETIREMENTS, v))
        })?;
        self.key("max_halfwords", i.max_halfwords.as_ref(), u16::to_string)?;
        self.key("sijump", i.sijump.as_ref(), bool::to_string)?;
        self.key("all_jumps", i.all_jumps.as_ref(), bool::to_string)?;
        self.key("retires", i.retires.as_ref(), |v| {
            quote(name_of(RETIRES, v))
        })?;
        self.key("ctype", i.ctype.as_ref(), |v| v.code().to_string())?;
        self.key("tval_bits", i.tval_bits.as_ref(), u8::to_string)
    }

    fn hart(&mut self, hart: &Hart) -> fmt::Result {
        let others = Hart {
            cost: BTreeMap::new(),
            ..hart.clone()
        };
        if others != Hart::default() {
            self.section("hart")?;
        }
        self.key("machine", hart.machine.as_ref(), |v| {
            quote(name_of(MACHINES, v))
        })?;
        self.key("memory", hart.memory.as_ref(), |v| list(v, |r| quote(r)))?;
        self.key("misaligned", hart.misaligned.as_ref(), bool::to_string)?;
        self.key("update_ad", hart.update_ad.as_ref(), bool::to_string)?;
        self.key("semihosting", hart.semihosting.as_ref(), bool::to_string)?;
        self.key(
            "cycles_per_tick",
            hart.cycles_per_tick.as_ref(),
            u64::to_string,
        )?;
        self.key("max_insns", hart.max_insns.as_ref(), |v| count(*v))?;
        if !hart.cost.is_empty() {
            self.section("hart.cost")?;
        }
        for (name, _) in COSTS {
            self.key(name, hart.cost.get(name), u8::to_string)?;
        }
        Ok(())
    }

    fn filter(&mut self, filter: &Filter) -> fmt::Result {
        if *filter == Filter::default() {
            return Ok(());
        }
        self.section("filter")?;
        let spans = |v: &Vec<Span>| list(v, |span| quote(span));
        self.key("address", filter.address.as_ref(), spans)?;
        self.key("modes", filter.modes.as_ref(), |v| {
            let modes: Vec<String> = v.iter().map(|mode| quote(name_of(MODES, mode))).collect();
            format!("[{}]", modes.join(", "))
        })?;
        self.key("context", filter.context.as_ref(), spans)?;
        self.key("any", filter.any.as_ref(), |v| list(v, one_filter))
    }

    pub(super) fn section(&mut self, name: &str) -> fmt::Result {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        writeln!(self.text, "{gap}[{name}]")
    }

    pub(super) fn key<T>(
        &mut self,
        name: &str,
        setting: Option<&Setting<T>>,
        show: impl Fn(&T) -> String,
    ) -> fmt::Result {
        let Some(Setting { value, origin }) = setting else {
            return Ok(());
        };
        let line = format!("{name} = {}", show(value));
        if self.origins {
            let origin = comment(origin);
            writeln!(self.text, "{line:<32} # {origin}")
        } else {
            writeln!(self.text, "{line}")
        }
    }
}

/// A comment ends with its line and may hold no control characters.
fn comment(origin: &Origin) -> String {
    let text = origin.to_string();
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

fn one_filter(filter: &Match) -> String {
    let mut keys = Vec::new();
    let mut key = |name: &str, value: Option<String>| {
        keys.extend(value.map(|value| format!("{name} = {value}")));
    };
    let span = |range: &Option<RangeInclusive<u64>>| {
        let span = range.as_ref().map(|range| Span(range.clone()));
        span.map(quote)
    };
    let bits = |set: u64| (0..64).filter(move |n| set >> n & 1 != 0);
    key("address", span(&filter.address));
    key("from", filter.between.map(|(from, _)| address(from)));
    key("until", filter.between.map(|(_, until)| address(until)));
    key(
        "modes",
        filter.modes.map(|set| {
            let modes = bits(set.into()).filter_map(Mode::from_code);
            let modes: Vec<String> = modes.map(|mode| quote(mode.name())).collect();
            format!("[{}]", modes.join(", "))
        }),
    );
    key("context", span(&filter.context));
    key("tval", span(&filter.tval));
    key(
        "causes",
        filter.causes.map(|set| {
            let causes: Vec<String> = bits(set).map(|n| n.to_string()).collect();
            format!("[{}]", causes.join(", "))
        }),
    );
    let trap = filter.trap.as_ref();
    key("trap", trap.map(|kind| quote(name_of(TRAPS, kind))));
    key("impdef", filter.impdef.map(|i| address(i.value.into())));
    key("impdef_mask", filter.impdef.map(|i| address(i.mask.into())));
    match keys.as_slice() {
        [] => "{}".to_owned(),
        keys => format!("{{ {} }}", keys.join(", ")),
    }
}

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(show).collect();
    match items.as_slice() {
        [] => "[]".to_owned(),
        [one] => format!("[{one}]"),
        many => format!("[\n    {},\n]", many.join(",\n    ")),
    }
}

fn elf(elf: &ElfFile) -> String {
    let mut text = format!("{{ file = {}", path(&elf.file));
    if let Some(base) = elf.base {
        let _ = write!(text, ", base = {}", address(base));
    }
    if let Some(sha256) = &elf.sha256 {
        let _ = write!(text, ", sha256 = {}", quote(sha256));
    }
    text + " }"
}

fn raw(raw: &RawFile) -> String {
    format!(
        "{{ file = {}, base = {} }}",
        path(&raw.file),
        address(raw.base)
    )
}

/// As [`address`], decimal.
pub(super) fn count(value: u64) -> String {
    if i64::try_from(value).is_ok() {
        value.to_string()
    } else {
        quote(value)
    }
}

/// TOML promises integers up to 2^63 - 1 only.
fn address(value: u64) -> String {
    if i64::try_from(value).is_ok() {
        format!("{value:#x}")
    } else {
        format!("\"{value:#x}\"")
    }
}

fn path(path: &Path) -> String {
    quote(path.display())
}

pub(super) fn quote(text: impl Display) -> String {
    let mut quoted = String::from("\"");
    for c in text.to_string().chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
