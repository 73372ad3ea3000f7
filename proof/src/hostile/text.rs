//! Configuration files.

use std::path::Path;

use hartrace_capture::config::Config;

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
