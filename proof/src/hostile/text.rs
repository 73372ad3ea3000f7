//! Bit fields and configuration files.

use std::path::Path;

use hartrace_capture::config::Config;
use hartrace_flow::{BitReader, BitWriter};

use super::{Input, ensure};

/// Fields are read back as they were written, plain and sign-compressed, and
/// any bytes can be read in any widths.
pub(super) fn bits(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let mut writer = BitWriter::new();
    let mut fields = Vec::new();
    let mut len = 0;
    while !input.is_empty() && fields.len() < 256 {
        let width = u32::from(input.below(66));
        let value = input.number(8);
        writer.write(value, width);
        let width = width.min(64);
        fields.push((width, value & u64::MAX.checked_shr(64 - width).unwrap_or(0)));
        len += width as usize;
    }
    ensure(writer.len() == len, || format!("{} bits", writer.len()))?;
    let plain = writer.bytes().to_vec();
    let mut reader = BitReader::new(&plain);
    for &(width, value) in &fields {
        let read = reader.read(width);
        ensure(read == Some(value), || format!("{read:?}, not {value}"))?;
    }
    ensure(reader.left() < 8, || "bits left over".into())?;
    let packed = writer.sign_compressed().to_vec();
    ensure(packed.len() <= plain.len(), || "compression grows".into())?;
    let mut reader = BitReader::new(&packed);
    for &(width, value) in &fields {
        let read = reader.read_extended(width);
        ensure(read == value, || format!("{read}, not {value}, extended"))?;
    }
    let mut reader = BitReader::new(bytes);
    for &(width, value) in &fields {
        let before = reader.position();
        let read = reader.read(width);
        let there = before + width as usize <= bytes.len() * 8;
        ensure(read.is_some() == there, || "read past the end".into())?;
        let _ = value;
    }
    Ok(())
}

pub(super) fn bits_seeds() -> Vec<Vec<u8>> {
    let seed = |n: u8| (0..90).map(|i: u8| i.wrapping_mul(n) ^ n).collect();
    (1..8).map(seed).collect()
}

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
