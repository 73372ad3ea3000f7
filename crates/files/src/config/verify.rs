//! `[verify]`: what is compared when a core, its log or its trace is verified.

use super::read::{Reader, Value};
use super::write::{list, quote};
use hartrace_tandem::Elements;
use hartrace_tandem::verify::Volatile;

section! {
    /// `[verify]`. What is `None` is not said.
    Verify = "[verify]" {
        /// State that comes from the core: registers, bits of them, memory; as
        /// [`Volatile::add`] reads it.
        volatile: Vec<String> = (volatile);
        /// Whether time, counters, pending interrupts and the CLINT are volatile without
        /// being named.
        default_volatile: bool = (boolean);
        /// State that the core does not report, besides what its format never does.
        absent: Elements = (absent);
        /// CSRs that are not reported hold what the hart has computed: what instructions
        /// read of them is compared.
        check_csrs: bool = (boolean);
    }
}

impl Reader {
    fn volatile(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<String>> {
        self.list(name, value, "registers and memory", |r, n, v| {
            let text = r.string(n, v)?;
            match Volatile::nothing().add(&text) {
                Ok(()) => Some(text),
                Err(error) => {
                    let expected = format!(
                        "registers and memory such as \"mip\", \"mstatus:0x6000\" or \
                         \"0x10000000:0x1000\": {error}"
                    );
                    r.refuse(n, v, &expected)
                }
            }
        })
    }
}

fn volatile(texts: &[String]) -> String {
    list(texts, |text| quote(text))
}

fn absent(elements: &Elements) -> String {
    list(&elements.names(), |name| quote(name))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    const TEXT: &str = "[verify]\nvolatile = [\"mip\", \"0x10000000:0x1000\"]\n\
                        default_volatile = false\nabsent = [\"trap.mtval\", \"fpr\"]\n\
                        check_csrs = true\n";

    #[test]
    fn everything_is_read_and_written() {
        let config = Config::parse(TEXT, Path::new("a.toml")).unwrap();
        let volatile = config.verify.volatile.as_ref().unwrap();
        assert_eq!(volatile.value, ["mip", "0x10000000:0x1000"]);
        let written = config.to_toml(false);
        let again = Config::parse(&written, Path::new("b.toml")).unwrap();
        assert_eq!(again.to_toml(false), written);
    }

    #[test]
    fn mistakes() {
        for (text, message) in [
            (
                "volatile = [\"mipp\"]",
                "`volatile` takes registers and memory such as \"mip\"",
            ),
            ("volatile = 3", "`volatile` takes a list of"),
            (
                "absent = [\"nothing\"]",
                "`absent` takes a list of elements",
            ),
            (
                "default_volatile = 1",
                "`default_volatile` takes true or false",
            ),
        ] {
            let text = format!("[verify]\n{text}\n");
            let error = Config::parse(&text, Path::new("a.toml")).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
        }
    }
}
