//! `[hart]`: the machine that programs run on. The values are plain; the hart
//! interprets them.

use super::read::{Problem, Reader, Value, integer};
use super::section::Section;
use super::value::{Named, Origin, Setting};
use super::write::{Writer, list, quote};
use crate::memory::MemoryRange;
use hartrace_tandem::Register;
use std::collections::BTreeMap;
use std::fmt;
use toml::de::DeTable;

/// Which machine the hart stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Machine {
    /// Our own.
    #[default]
    Virt,
    /// Spike's.
    Spike,
}

const MACHINES: Named<Machine> = &[("virt", Machine::Virt), ("spike", Machine::Spike)];

/// What the context port of the hart carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextSource {
    /// The context CSRs.
    Scontext,
    /// The address space identifier.
    Asid,
    /// The page of the root page table.
    Root,
}

/// The privilege modes of the hart.
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

const MODES: Named<Modes> = &[
    ("m", Modes::Machine),
    ("mu", Modes::MachineUser),
    ("msu", Modes::All),
];

const CONTEXTS: Named<ContextSource> = &[
    ("scontext", ContextSource::Scontext),
    ("asid", ContextSource::Asid),
    ("root", ContextSource::Root),
];

/// What `[hart.cost]` takes: a class of instructions, and the least it can
/// cost.
pub const COSTS: &[(&str, u8)] = &[
    ("integer", 1),
    ("multiply", 1),
    ("divide", 1),
    ("load", 1),
    ("store", 1),
    ("branch", 1),
    ("jump", 1),
    ("atomic", 1),
    ("float", 1),
    ("float_multiply", 1),
    ("float_divide", 1),
    ("float_sqrt", 1),
    ("system", 1),
    ("taken", 0),
    ("trap", 0),
];

section! {
    /// `[hart]`. What is `None` is not said, and then depends on the machine.
    Hart = "[hart]" {
        /// Which machine the hart stands in.
        machine: Machine = (named MACHINES);
        /// Where the hart starts, an address or a symbol; otherwise at the entry of the
        /// program.
        entry: String = (entry);
        /// The privilege modes.
        modes: Modes = (named MODES);
        /// CSRs that the hart does not have, by number.
        absent_csrs: Vec<u16> = (csrs);
        /// CSRs without a meaning, which hold what is written.
        plain_csrs: Vec<u16> = (csrs);
        /// Interrupts of its own, by number.
        custom_interrupts: Vec<u8> = (interrupts);
        /// RAM.
        memory: Vec<MemoryRange> = (memory);
        /// Harts.
        harts: u32 = (number 1 64);
        /// Cycles in a turn of one of several harts.
        quantum: u64 = (number 1 1_000_000_000);
        /// Varies the turns.
        seed: u64 = (count);
        /// Misaligned loads and stores are done; otherwise they trap.
        misaligned: bool = (boolean);
        /// The page-table walker sets the A and D bits; otherwise it faults.
        update_ad: bool = (boolean);
        /// Bytes of a cache block.
        cache_block: u64 = (number 16 128);
        /// Semihosting calls are served.
        semihosting: bool = (boolean);
        /// Debug triggers of a hart.
        triggers: u32 = (number 0 32);
        /// What traces report as the context.
        context: ContextSource = (named CONTEXTS);
        /// Cycles for one tick of `time`, at least 1.
        cycles_per_tick: u64 = (number 1 1_000_000_000);
        /// Instructions after which a run ends.
        max_insns: u64 = (count);
    }
    sections {
        /// `[hart.reset]`: what CSRs hold after reset, by number.
        reset: Reset;
        /// `[hart.cost]`: cycles by a name of [`COSTS`].
        cost: Costs;
    }
}

type Reset = BTreeMap<u16, Setting<u64>>;

impl Section for Reset {
    const TITLE: &'static str = "[hart.reset]";

    fn over(self, below: Reset) -> Reset {
        let mut reset = below;
        reset.extend(self);
        reset
    }

    fn read(reader: &mut Reader, table: &DeTable<'_>) -> Reset {
        let mut reset = Reset::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let number = csr_number(name);
            match (number, integer(value)) {
                (Some(number), Some(bits)) => {
                    let origin = reader.origin(value);
                    reset.insert(
                        number,
                        Setting {
                            value: bits,
                            origin,
                        },
                    );
                }
                (None, _) => reader.fail(
                    Problem::Invalid(format!("`{name}` is not the name or number of a CSR")),
                    key.span(),
                ),
                (_, None) => {
                    let message = format!("`{name}` takes a number such as 0x1800");
                    reader.fail(Problem::Invalid(message), value.span());
                }
            }
        }
        reset
    }

    fn write(&self, out: &mut Writer) -> fmt::Result {
        if !self.is_empty() {
            out.section(Reset::TITLE)?;
        }
        for (number, value) in self {
            let show = |value: &u64| format!("{value:#x}");
            out.key(&csr_text(*number), Some(value), show)?;
        }
        Ok(())
    }
}

/// A CSR by its name or number.
fn csr_number(name: &str) -> Option<u16> {
    Register::from_name(name)?.as_csr()
}

fn csr_text(number: u16) -> String {
    match hartrace_isa::csr::name(number) {
        Some(name) => name.to_owned(),
        None => format!("{number:#x}"),
    }
}

type Costs = BTreeMap<&'static str, Setting<u8>>;

impl Section for Costs {
    const TITLE: &'static str = "[hart.cost]";

    fn over(self, below: Costs) -> Costs {
        let mut cost = below;
        cost.extend(self);
        cost
    }

    fn read(reader: &mut Reader, table: &DeTable<'_>) -> Costs {
        let names: Vec<&'static str> = COSTS.iter().map(|cost| cost.0).collect();
        reader.known(table, &names, Costs::TITLE);
        let costs = COSTS.iter().filter_map(|&(name, least)| {
            let least = u64::from(least);
            let cost = reader.get(table, name, |r, n, v| r.number(n, v, least..=255))?;
            Some((name, cost))
        });
        costs.collect()
    }

    fn write(&self, out: &mut Writer) -> fmt::Result {
        if !self.is_empty() {
            out.section(Costs::TITLE)?;
        }
        for (name, _) in COSTS {
            out.key(name, self.get(name), u8::to_string)?;
        }
        Ok(())
    }
}

impl Reader {
    fn csrs(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<u16>> {
        let expected = "a list of CSRs such as [\"mcounteren\", \"0x7c0\"]";
        self.list(name, value, "CSRs", |reader, name, item| {
            let number = item.get_ref().as_str().and_then(csr_number);
            number.or_else(|| reader.refuse(name, item, expected))
        })
    }

    fn interrupts(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<u8>> {
        self.list(name, value, "interrupts", |reader, name, item| {
            reader.number(name, item, 16..=63)
        })
    }

    /// A symbol, or an address as a number or as text.
    fn entry(&mut self, name: &'static str, value: &Value<'_>) -> Option<String> {
        if let Some(address) = integer(value) {
            return Some(format!("{address:#x}"));
        }
        self.string(name, value)
    }

    fn memory(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<MemoryRange>> {
        let expected = "\"BASE:SIZE\" such as \"0x80000000:256M\"";
        if value
            .get_ref()
            .as_array()
            .is_some_and(|list| list.is_empty())
        {
            return self.refuse(name, value, &format!("at least one {expected}"));
        }
        self.list(name, value, expected, |reader, name, item| {
            let text = item.get_ref().as_str();
            let range = text.and_then(MemoryRange::parse);
            range.or_else(|| reader.refuse(name, item, expected))
        })
    }
}

fn csrs(numbers: &[u16]) -> String {
    list(numbers, |number| quote(csr_text(*number)))
}

fn interrupts(numbers: &[u8]) -> String {
    list(numbers, u8::to_string)
}

fn entry(text: &str) -> String {
    quote(text)
}

fn memory(ranges: &[MemoryRange]) -> String {
    list(ranges, |range| quote(range))
}

impl Hart {
    /// What the state of a hart depends on, where it is not as usual: a tandem
    /// trace is verified on the same machine.
    #[must_use]
    pub fn for_replay(&self) -> Hart {
        fn said<T: Clone>(setting: &Option<Setting<T>>) -> Option<Setting<T>> {
            setting.clone().filter(|s| s.origin != Origin::Default)
        }
        Hart {
            memory: said(&self.memory),
            modes: said(&self.modes),
            absent_csrs: said(&self.absent_csrs),
            plain_csrs: said(&self.plain_csrs),
            custom_interrupts: said(&self.custom_interrupts),
            reset: self.reset.clone(),
            misaligned: said(&self.misaligned),
            update_ad: said(&self.update_ad),
            cache_block: said(&self.cache_block),
            triggers: said(&self.triggers),
            ..Hart::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    const FULL: &str = "[hart]\nmachine = \"spike\"\nmodes = \"mu\"\nabsent_csrs = [\"mcounteren\"]\n\
                        plain_csrs = [\"0x7c0\", \"0x7c1\"]\ncustom_interrupts = [16, 17]\n\
                        entry = \"main\"\nmemory = [\"0x80000000:256M\", \"0x0:64K\"]\n\
                        harts = 4\nquantum = 100\nseed = 7\n\
                        misaligned = true\nupdate_ad = true\nsemihosting = false\ntriggers = 2\n\
                        context = \"asid\"\n\
                        cycles_per_tick = 10\nmax_insns = \"10M\"\n\n[hart.reset]\nmtvec = 0x80000001\n\n[hart.cost]\nload = 7\n\
                        trap = 0\n";

    fn parse(text: &str) -> Config {
        Config::parse(text, Path::new("a.toml")).unwrap()
    }

    fn refused(text: &str) -> (String, String) {
        let error = Config::parse(text, Path::new("a.toml")).unwrap_err();
        let place = text.get(error.span.clone()).unwrap().to_owned();
        (error.to_string(), place)
    }

    #[test]
    fn everything_is_read_and_written() {
        let config = parse(FULL);
        let hart = &config.hart;
        assert_eq!(hart.machine.as_ref().unwrap().value, Machine::Spike);
        let memory = &hart.memory.as_ref().unwrap().value;
        assert_eq!(
            memory[1],
            MemoryRange {
                base: 0,
                size: 65536
            }
        );
        assert_eq!(hart.modes.as_ref().unwrap().value, Modes::MachineUser);
        assert_eq!(hart.absent_csrs.as_ref().unwrap().value, [0x306]);
        assert_eq!(hart.plain_csrs.as_ref().unwrap().value, [0x7c0, 0x7c1]);
        assert_eq!(hart.custom_interrupts.as_ref().unwrap().value, [16, 17]);
        assert_eq!(hart.entry.as_ref().unwrap().value, "main");
        assert_eq!(hart.reset[&0x305].value, 0x8000_0001);
        assert_eq!(hart.harts.as_ref().unwrap().value, 4);
        assert_eq!(hart.quantum.as_ref().unwrap().value, 100);
        assert_eq!(hart.seed.as_ref().unwrap().value, 7);
        assert!(hart.misaligned.as_ref().unwrap().value);
        assert!(hart.update_ad.as_ref().unwrap().value);
        assert!(!hart.semihosting.as_ref().unwrap().value);
        assert_eq!(hart.context.as_ref().unwrap().value, ContextSource::Asid);
        assert_eq!(hart.cycles_per_tick.as_ref().unwrap().value, 10);
        assert_eq!(hart.max_insns.as_ref().unwrap().value, 10_000_000);
        assert_eq!(hart.cost["load"].value, 7);
        assert_eq!(hart.cost["trap"].origin.to_string(), "a.toml:25");
        for origins in [false, true] {
            let written = config.to_toml(origins);
            let again = parse(&written).to_toml(false);
            assert_eq!(again, config.to_toml(false), "{written}");
        }
    }

    #[test]
    fn one_value_is_enough() {
        for line in FULL.lines().filter(|l| l.contains(" = ")) {
            let cost = ["load", "trap"].iter().any(|name| line.starts_with(name));
            let section = match cost {
                true => "hart.cost",
                false if line.starts_with("mtvec") => "hart.reset",
                false => "hart",
            };
            let config = parse(&format!("[{section}]\n{line}\n"));
            assert_eq!(
                parse(&config.to_toml(true)).to_toml(false),
                config.to_toml(false)
            );
            assert_ne!(config.to_toml(false), "", "{line}");
        }
        assert_eq!(
            parse("[hart]\nmemory = \"0x0:4K\"")
                .hart
                .memory
                .unwrap()
                .value
                .len(),
            1
        );
        assert_eq!(
            parse("[hart]\nmax_insns = 5").hart.max_insns.unwrap().value,
            5
        );
    }

    #[test]
    fn layers_cover_each_other_cost_by_cost() {
        let above = parse("[hart.cost]\nload = 3\n[hart]\nmisaligned = false\n");
        let all = above.over(parse(FULL)).hart;
        assert_eq!(all.cost["load"].value, 3);
        assert_eq!(all.cost["trap"].value, 0);
        assert!(!all.misaligned.unwrap().value);
        assert_eq!(all.machine.unwrap().value, Machine::Spike);
    }

    #[test]
    fn mistakes() {
        for (text, message, place) in [
            (
                "[hart]\nmachine = \"virtt\"",
                "`machine` takes one of \"virt\", \"spike\"; did you mean \"virt\"?",
                "\"virtt\"",
            ),
            (
                "[hart]\nmemory = [\"0x80000000\"]",
                "`memory` takes \"BASE:SIZE\" such as \"0x80000000:256M\"",
                "\"0x80000000\"",
            ),
            (
                "[hart]\nmemory = []",
                "`memory` takes at least one \"BASE:SIZE\" such as \"0x80000000:256M\"",
                "[]",
            ),
            (
                "[hart]\nmemory = 3",
                "`memory` takes a list of \"BASE:SIZE\" such as \"0x80000000:256M\"",
                "3",
            ),
            (
                "[hart]\nmax_insns = \"many\"",
                "`max_insns` takes a number such as 1000000 or \"10M\"",
                "\"many\"",
            ),
            (
                "[hart]\ncycles_per_tick = 0",
                "`cycles_per_tick` takes a number from 1 to 1000000000",
                "0",
            ),
            (
                "[hart.cost]\nlaod = 3",
                "unknown key `laod` in [hart.cost]; did you mean `load`?",
                "laod",
            ),
            (
                "[hart.cost]\nload = 0",
                "`load` takes a number from 1 to 255",
                "0",
            ),
            (
                "[hart.cost]\ntaken = 256",
                "`taken` takes a number from 0 to 255",
                "256",
            ),
            (
                "[hart]\ncost = 3",
                "`cost` takes a section: write [hart.cost]",
                "3",
            ),
            (
                "[hart]\nabsent_csrs = [\"mnothing\"]",
                "`absent_csrs` takes a list of CSRs such as [\"mcounteren\", \"0x7c0\"]",
                "\"mnothing\"",
            ),
            (
                "[hart]\ncustom_interrupts = [3]",
                "`custom_interrupts` takes a number from 16 to 63",
                "3",
            ),
            (
                "[hart]\nmodes = \"s\"",
                "`modes` takes one of \"m\", \"mu\", \"msu\"; did you mean \"m\"?",
                "\"s\"",
            ),
            (
                "[hart.reset]\nmtvecc = 3",
                "`mtvecc` is not the name or number of a CSR",
                "mtvecc",
            ),
            (
                "[hart.reset]\nmtvec = \"a\"",
                "`mtvec` takes a number such as 0x1800",
                "\"a\"",
            ),
            (
                "[hart]\nmemroy = []",
                "unknown key `memroy` in [hart]; did you mean `memory`?",
                "memroy",
            ),
        ] {
            assert_eq!(
                refused(text),
                (message.to_owned(), place.to_owned()),
                "{text}"
            );
        }
    }
}
