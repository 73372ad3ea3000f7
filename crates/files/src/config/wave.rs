//! `[wave]`: the port of a hart in a waveform, where it is not found by itself.

use super::read::{Problem, Reader, Value};
use super::section::Section;
use super::value::{Named, Setting};
use super::write::{Writer, quote};
use crate::wave_port::{WavePort, is_field};
use hartrace_wave::Edge;
use std::collections::BTreeMap;
use std::fmt;
use toml::de::{DeTable, DeValue};

const PORTS: Named<WavePort> = &[
    ("rvfi", WavePort::Rvfi),
    ("ingress", WavePort::Ingress),
    ("cva6", WavePort::Cva6),
];

const EDGES: Named<Edge> = &[("rising", Edge::Rising), ("falling", Edge::Falling)];

const LEVELS: Named<bool> = &[("low", false), ("high", true)];

section! {
    /// `[wave]`. What is `None` is not said.
    Wave = "[wave]" {
        /// What kind of port.
        port: WavePort = (named PORTS);
        /// The scope that it is in.
        scope: String = (string);
        /// What its names start with.
        prefix: String = (string);
        /// The clock; `none` is not possible.
        clock: String = (string);
        /// The edge at which the hart retires.
        edge: Edge = (named EDGES);
        /// The reset, or `none`.
        reset: String = (string);
        /// The level at which it is active.
        reset_active: bool = (named LEVELS);
    }
    sections {
        /// `[wave.signals]`.
        signals: WaveSignals;
    }
}

fn string(text: &String) -> String {
    quote(text)
}

/// `[wave.signals]`: signals of the port by their fields, one for all lanes or one for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaveSignals(pub BTreeMap<String, Setting<Vec<String>>>);

impl Section for WaveSignals {
    const TITLE: &'static str = "[wave.signals]";

    fn over(self, below: WaveSignals) -> WaveSignals {
        let mut signals = below.0;
        signals.extend(self.0);
        WaveSignals(signals)
    }

    fn read(reader: &mut Reader, table: &DeTable<'_>) -> WaveSignals {
        let mut signals = BTreeMap::new();
        for (key, value) in table {
            let field = key.get_ref().to_string();
            if !is_field(&field) {
                let message = format!("`{field}` is no signal of a port");
                reader.fail(Problem::Invalid(message), key.span());
                continue;
            }
            match names(value) {
                Some(value_names) => {
                    let origin = reader.origin(value);
                    let setting = Setting {
                        value: value_names,
                        origin,
                    };
                    signals.insert(field, setting);
                }
                None => {
                    let message = "a signal is a name, or a list of names, one for each lane";
                    reader.fail(Problem::Invalid(message.to_owned()), value.span());
                }
            }
        }
        WaveSignals(signals)
    }

    fn write(&self, out: &mut Writer) -> fmt::Result {
        if !self.0.is_empty() {
            out.section(WaveSignals::TITLE)?;
        }
        for (field, names) in &self.0 {
            out.key(field, Some(names), |names| match names.as_slice() {
                [one] => quote(one),
                names => {
                    let names: Vec<String> = names.iter().map(quote).collect();
                    format!("[{}]", names.join(", "))
                }
            })?;
        }
        Ok(())
    }
}

/// One name, or a list of them.
fn names(value: &Value<'_>) -> Option<Vec<String>> {
    let name = |value: &DeValue<'_>| match value {
        DeValue::String(name) if !name.is_empty() => Some(name.to_string()),
        _ => None,
    };
    match value.get_ref() {
        DeValue::Array(items) => {
            let names: Option<Vec<String>> =
                items.iter().map(|item| name(item.get_ref())).collect();
            names.filter(|names| !names.is_empty())
        }
        one => Some(vec![name(one)?]),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("a.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn all_of_it_is_read_and_written() {
        let text = "[wave]\nport = \"rvfi\"\nscope = \"tb.core\"\nprefix = \"rvfi_\"\n\
            clock = \"tb.clk\"\nedge = \"falling\"\nreset = \"tb.rst_n\"\nreset_active = \"low\"\n\n\
            [wave.signals]\ncsr_mstatus_wmask = \"none\"\norder = [\"a\", \"b\"]\nvalid = \"tb.v\"\n";
        let config = parse(text).unwrap();
        assert_eq!(config.to_toml(false), text);
        assert_eq!(parse(&config.to_toml(true)).unwrap().to_toml(false), text);
        let above = parse("[wave]\nedge = \"rising\"\n[wave.signals]\nvalid = \"w\"\n").unwrap();
        let merged = above.over(config).to_toml(false);
        assert!(merged.contains("edge = \"rising\"") && merged.contains("valid = \"w\""));
        assert!(merged.contains("order = [\"a\", \"b\"]"));
    }

    #[test]
    fn mistakes() {
        let refused = |text| parse(text).unwrap_err();
        assert!(refused("[wave]\nport = \"rvfl\"\n").contains("did you mean \"rvfi\"?"));
        assert!(refused("[wave.signals]\nvalidd = \"a\"\n").contains("`validd` is no signal"));
        assert!(refused("[wave.signals]\nvalid = 5\n").contains("a signal is a name"));
        assert!(refused("[wave.signals]\nvalid = []\n").contains("a signal is a name"));
        assert!(refused("[wave]\nclk = \"a\"\n").contains("unknown key `clk`"));
    }
}
