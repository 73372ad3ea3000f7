//! Configuration files.

use std::path::Path;

use hartrace_capture::config::{Config, Etrace, Form};
use hartrace_isa::Xlen;

use super::ensure;

/// Any text is a configuration or is refused in place; what was read is
/// written and read again to the same.
pub(super) fn config(bytes: &[u8]) -> Result<(), String> {
    let path = Path::new("run.toml");
    let config = match Config::from_bytes(bytes.to_vec(), path) {
        Ok(config) => config,
        Err(error) => {
            let words = error.to_string();
            return ensure(words.starts_with("run.toml:"), || words);
        }
    };
    let text = config.to_toml(false);
    let again = Config::parse(&text, path).map_err(|e| format!("{e}: {text}"))?;
    let twice = again.to_toml(false);
    ensure(text == twice, || format!("{text}\nbut\n{twice}"))?;
    Config::parse(&config.to_toml(true), path).map_err(|e| format!("with origins: {e}"))?;
    let _ = config.over(Config::defaults()).to_toml(true);
    Ok(())
}

pub(super) fn config_seeds() -> Vec<Vec<u8>> {
    [
        "[program]\nisa = \"rv64gc\"\nelf = [\"a.elf\", \"b.elf@0x1000\", { file = \"c\", base = 0x80000000, sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\" }]\nraw = [\"rom@0x1000\", { file = \"r\", base = \"0xffffffff80000000\" }]\n",
        "[ingress]\nitype_width = 3\ntable = \"etrace-2.0\"\nretirement = \"block\"\nmax_halfwords = 8\nsijump = true\nall_jumps = false\nretires = \"ecall\"\nctype = 2 # comment\n",
        "[trace]\nformat = \"spike\"\nversion = '1.0'\n[program]\nelf = \"x\"\n",
        "[a]\nb = [[[[1]]]]\nc = {d = {e = {}}}\n\"\\u0041\" = 1979-05-27T07:32:00Z\n",
        "[ntrace]\nx = 1e400\n[[program]]\n",
    ]
    .iter()
    .map(|t| t.as_bytes().to_vec())
    .collect()
}

/// The forms of discovery besides TOML.
const FORMS: [Form; 4] = [Form::Scf, Form::Ucf, Form::Ipxact, Form::Registers];

/// Any text as parameters in the forms of discovery: it is refused in place, or written
/// in each form that can hold it, and then read again to the same. Any text as the
/// description of registers with any values: refused or read.
pub(super) fn discovery(bytes: &[u8]) -> Result<(), String> {
    let path = Path::new("encoder.scf");
    let mut values = [[0; 8]; 2];
    for (to, from) in values.as_flattened_mut().iter_mut().zip(bytes) {
        *to = *from;
    }
    let text = String::from_utf8_lossy(bytes);
    let _ = Config::from_registers(values.map(u64::from_le_bytes), Some(&text));
    let config = match Config::from_bytes(bytes.to_vec(), path) {
        Ok(config) => config,
        Err(error) => {
            let words = error.to_string();
            return ensure(words.starts_with("encoder.scf:"), || words);
        }
    };
    for form in FORMS {
        // Settings that contradict each other, or that the form has no place for.
        let Ok((text, _)) = config.to_form(form, Xlen::Rv64) else {
            continue;
        };
        let again = Config::parse(&text, path).map_err(|e| format!("{e}: {text}"))?;
        // The default of the version decides what the form leaves out. Modes need their
        // parameters, which are in another file.
        let again = match form {
            Form::Ucf => again.over(config.clone()),
            _ => Config {
                etrace: Etrace {
                    version: config.etrace.version.clone(),
                    ..again.etrace
                },
                ..again
            },
        };
        let (twice, _) = again
            .to_form(form, Xlen::Rv64)
            .map_err(|e| format!("{e}: {text}"))?;
        ensure(text == twice, || format!("{text}\nbut\n{twice}"))?;
    }
    Ok(())
}

pub(super) fn discovery_seeds() -> Vec<Vec<u8>> {
    let pairs = [
        "# static\n[Required Attributes]\narch_p=0\nbpred_size_p=0\ncache_size_p = 5 # 32\ncontext_width_p=0x20\nnocontext_p=0\nnotime_p=1\niaddress_lsb_p=1\niaddress_width_p=40\nitype_width_p=3\nfilters_p=3\n",
        "; data\n[required]\ndaddress_width_p = 48\ndata_width_p = 32\nlrid_width_p = 6\n",
        "[codec]\ncycle-accurate = false\nresync-max = 3\nfull-address = true\nimplicit-return = false\njump-target-cache = true\nno-data = true\ndata-compress = 2\n",
        "[etrace]\nversion = \"1.1.1-draft\"\nbpred_size = 7\ncontext_width = 0\n[etrace.parameters]\ncomparators = 3\nfilters = 2\n",
    ];
    let mut seeds: Vec<Vec<u8>> = pairs.iter().map(|t| t.as_bytes().to_vec()).collect();
    let defaults = Config::default();
    for form in FORMS {
        let text = defaults.to_form(form, Xlen::Rv32);
        seeds.extend(text.map(|(text, _)| text.into_bytes()));
    }
    seeds
}
