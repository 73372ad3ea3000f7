//! `[contexts]`: names of contexts, such as those of processes.

use super::read::{Problem, Reader};
use super::section::Section;
use super::value::Setting;
use super::write::{Writer, quote};
use crate::program::parse_address;
use std::collections::BTreeMap;
use std::fmt;
use toml::de::{DeTable, DeValue};

/// `[contexts]`: the name of each context that has one, by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts(pub BTreeMap<u64, Setting<String>>);

impl Contexts {
    /// These names, and others of contexts that have none.
    #[must_use]
    pub fn over(self, below: Contexts) -> Contexts {
        Section::over(self, below)
    }
}

impl Section for Contexts {
    const TITLE: &'static str = "[contexts]";

    fn over(self, below: Contexts) -> Contexts {
        let mut names = below.0;
        names.extend(self.0);
        Contexts(names)
    }

    fn read(reader: &mut Reader, table: &DeTable<'_>) -> Contexts {
        let mut names = BTreeMap::new();
        for (key, value) in table {
            let Some(number) = parse_address(key.get_ref()) else {
                let message = "a context is a number, such as 5 or 0x1f".to_owned();
                reader.fail(Problem::Invalid(message), key.span());
                continue;
            };
            match value.get_ref() {
                DeValue::String(name) if !name.is_empty() => {
                    let origin = reader.origin(value);
                    let value = name.to_string();
                    names.insert(number, Setting { value, origin });
                }
                _ => {
                    let message = "the name of a context is a string that is not empty".to_owned();
                    reader.fail(Problem::Invalid(message), value.span());
                }
            }
        }
        Contexts(names)
    }

    fn write(&self, out: &mut Writer) -> fmt::Result {
        if !self.0.is_empty() {
            out.section(Contexts::TITLE)?;
        }
        for (number, name) in &self.0 {
            out.key(&format!("{number:#x}"), Some(name), |name| quote(name))?;
        }
        Ok(())
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
    fn names_by_number() {
        let below = parse("[contexts]\n5 = \"sh\"\n0x1f = \"a \\\"b\\\"\"\n").unwrap();
        let above = parse("[contexts]\n31 = \"ls\"\n").unwrap();
        let merged = above.over(below.clone()).to_toml(false);
        assert_eq!(merged, "[contexts]\n0x5 = \"sh\"\n0x1f = \"ls\"\n");
        for origins in [false, true] {
            let again = parse(&below.to_toml(origins)).unwrap();
            assert_eq!(again.to_toml(false), below.to_toml(false));
        }
    }

    #[test]
    fn mistakes() {
        let refused = |text| parse(text).unwrap_err();
        assert!(refused("[contexts]\nsh = 5\n").starts_with("a context is a number"));
        assert!(refused("[contexts]\n5 = 5\n").starts_with("the name of a context"));
        assert!(refused("[contexts]\n5 = \"\"\n").starts_with("the name of a context"));
        assert!(refused("contexts = 5\n").contains("write [contexts]"));
    }
}
