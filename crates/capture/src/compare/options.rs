//! The option sets that are compared.

use crate::config::{Config, ConfigError};
use crate::trace::Format;
use std::fmt::Write as _;
use std::path::Path;

/// A format with some of its options on: one row of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSet {
    /// The format.
    pub format: Format,
    /// The options that are on, in short.
    pub name: &'static str,
    /// Settings of the format's section that differ from those of [`controlled`], as
    /// key and TOML value.
    settings: &'static [(&'static str, &'static str)],
}

/// Settings that every option set of a format determines: these unless it says
/// otherwise. All other settings are those of the configuration.
const fn controlled(format: Format) -> &'static [(&'static str, &'static str)] {
    match format {
        Format::Ntrace => &[
            ("mode", "\"htm\""),
            ("implicit_return", "\"off\""),
            ("repeated_history", "\"off\""),
            ("repeat_branch", "false"),
        ],
        Format::Etrace => &[
            ("sijump", "false"),
            ("implicit_return", "false"),
            ("implicit_exception", "false"),
            ("branch_prediction", "false"),
            ("jump_target_cache", "false"),
        ],
        Format::Tandem => &[],
    }
}

const fn ntrace(
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> OptionSet {
    OptionSet {
        format: Format::Ntrace,
        name,
        settings,
    }
}

const fn etrace(
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> OptionSet {
    OptionSet {
        format: Format::Etrace,
        name,
        settings,
    }
}

const RETURNS: (&str, &str) = ("implicit_return", "\"full\"");
const HISTORY: (&str, &str) = ("repeated_history", "\"on\"");

const SIJUMP: (&str, &str) = ("sijump", "true");
const IMPLICIT_RETURN: (&str, &str) = ("implicit_return", "true");
/// 32 entries, as N-Trace has by default.
const RETURN_STACK: (&str, &str) = ("return_stack_size", "5");
const IMPLICIT_EXCEPTION: (&str, &str) = ("implicit_exception", "true");
const PREDICTION: (&str, &str) = ("branch_prediction", "true");
/// 128 entries, the most that every version allows.
const PREDICTOR: (&str, &str) = ("bpred_size", "7");
const CACHE: (&str, &str) = ("jump_target_cache", "true");
/// As many as predictor entries.
const CACHE_SIZE: (&str, &str) = ("cache_size", "7");

/// All modes of E-Trace and further settings.
macro_rules! all_modes {
    ($($more:expr),*) => {
        &[
            SIJUMP,
            IMPLICIT_RETURN,
            RETURN_STACK,
            IMPLICIT_EXCEPTION,
            PREDICTION,
            PREDICTOR,
            CACHE,
            CACHE_SIZE,
            $($more),*
        ]
    };
}

/// All option sets, in the order in which they are shown.
pub const OPTION_SETS: &[OptionSet] = &[
    ntrace("btm", &[("mode", "\"btm\"")]),
    ntrace(
        "btm repeat-branch",
        &[("mode", "\"btm\""), ("repeat_branch", "true")],
    ),
    ntrace("htm", &[]),
    ntrace("htm implicit-return", &[RETURNS]),
    ntrace("htm repeated-history", &[HISTORY]),
    ntrace("htm all", &[RETURNS, HISTORY]),
    ntrace(
        "htm all sync=256",
        &[
            RETURNS,
            HISTORY,
            ("sync", "\"messages\""),
            ("sync_max", "4"),
        ],
    ),
    ntrace("htm all sync=off", &[RETURNS, HISTORY, ("sync", "\"off\"")]),
    etrace("base", &[]),
    etrace("sequential-jump", &[SIJUMP]),
    etrace("implicit-return", &[IMPLICIT_RETURN, RETURN_STACK]),
    etrace("implicit-exception", &[IMPLICIT_EXCEPTION]),
    etrace("branch-prediction", &[PREDICTION, PREDICTOR]),
    etrace("jump-target-cache", &[CACHE, CACHE_SIZE]),
    etrace("all", all_modes![]),
    etrace(
        "all sync=256",
        all_modes![("resync", "\"packets\""), ("resync_max", "4")],
    ),
    etrace("all sync=off", all_modes![("resync", "\"off\"")]),
    etrace("2.05 all", all_modes![("version", "\"2.05\"")]),
    etrace(
        "2.05 all sync=off",
        all_modes![("version", "\"2.05\""), ("resync", "\"off\"")],
    ),
];

impl OptionSet {
    /// The settings that make it, as a configuration file: with it, `run --trace`
    /// writes the same bytes.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut text = format!("[{}]\n", self.format.name());
        let own = |key: &str| self.settings.iter().find(|own| own.0 == key);
        let shared = controlled(self.format).iter();
        let shared = shared.filter(|(key, _)| own(key).is_none());
        for (key, value) in shared.chain(self.settings) {
            // Writing to memory does not fail.
            let _ = writeln!(text, "{key} = {value}");
        }
        text
    }

    /// The same over other settings.
    ///
    /// # Errors
    ///
    /// None with the sets of this module: a test reads all of them.
    pub fn over(&self, below: &Config) -> Result<Config, ConfigError> {
        let own = Config::parse(&self.toml(), Path::new(self.name))?;
        Ok(own.over(below.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_isa::Xlen;

    #[test]
    fn every_set_is_a_configuration_of_its_own() {
        let mut seen = Vec::new();
        for set in OPTION_SETS {
            let config = set.over(&Config::defaults()).expect(set.name);
            let settings = set.format.settings(&config, Xlen::Rv64).expect(set.name);
            assert!(!seen.contains(&settings), "{}", set.name);
            seen.push(settings);
            let same = |other: &&OptionSet| (other.format, other.name) == (set.format, set.name);
            assert_eq!(OPTION_SETS.iter().filter(same).count(), 1, "{}", set.name);
        }
    }

    #[test]
    fn options_of_the_configuration_do_not_leak_into_a_set() {
        let text = "[ntrace]\nmode = \"btm\"\nrepeat_branch = true\nhist_bits = 16\n";
        let below = Config::parse(text, Path::new("x")).unwrap();
        let htm = OPTION_SETS.iter().find(|set| set.name == "htm").unwrap();
        let toml = htm.over(&below).unwrap().to_toml(false);
        assert!(toml.contains("mode = \"htm\""), "{toml}");
        assert!(toml.contains("repeat_branch = false"), "{toml}");
        assert!(toml.contains("hist_bits = 16"), "{toml}");
    }
}
