//! Detects the kind of a file from its first bytes.

use crate::code_history;
use crate::config::{FORMATS, Form};
use crate::records::{BOM, SCHEMA};
use crate::wave_port::WavePort;
use hartrace_ctr::dump::DumpReader;
use hartrace_etrace::is_framed;
use hartrace_logs::LogFormat;
use hartrace_ntrace::guess;
use hartrace_tandem as tandem;
use hartrace_wave::WaveFormat;
use std::fmt;

/// How many bytes of a file [`detect`] wants to see.
pub const HEAD: usize = 1 << 16;

/// Lines of text that are looked at.
const LINES: usize = 64;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No bytes at all.
    Empty,
    /// An ELF file, of any machine.
    Elf,
    /// A log of the Spike simulator, `-l` or `--log-commits`.
    SpikeLog,
    /// One pc per line, hexadecimal.
    PcList,
    /// Rows of the trace ingress port, with a heading.
    IngressCsv,
    /// Instructions of Spike as the E-Trace reference flow lists them
    /// (`spike_pc_trace`), with a heading.
    SpikeCsv,
    /// A log of another simulator or core.
    Log(LogFormat),
    /// A waveform, of which the port is read that was chosen, or that it has.
    Wave(Option<WavePort>),
    /// A stream of N-Trace messages.
    Ntrace,
    /// A stream of E-Trace packets.
    Etrace,
    /// Packets of E-Trace as the reference flow lists them (`te_inst`), with a
    /// heading.
    EtraceCsv,
    /// A stream of groups of the tandem-verification trace.
    Tandem,
    /// Streams of the tandem-verification trace in a container.
    TandemContainer,
    /// Snapshots of control transfer records.
    CtrDump,
    /// Snapshots of control transfer records as JSON lines.
    CtrJson,
    /// A code history.
    CodeHistory,
    /// A configuration file.
    Config,
    /// A configuration file that belongs to a trace.
    Sidecar,
    /// None of these.
    Unknown,
}

impl Kind {
    /// A word for it, for JSON and the like.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Empty => "empty",
            Kind::Elf => "elf",
            Kind::SpikeLog => "spike",
            Kind::PcList => "pc",
            Kind::IngressCsv => "ingress",
            Kind::SpikeCsv => "spike-csv",
            Kind::Log(format) => format.word(),
            Kind::Wave(None) => "wave",
            Kind::Wave(Some(WavePort::Rvfi)) => "rvfi-wave",
            Kind::Wave(Some(WavePort::Ingress)) => "ingress-wave",
            Kind::Wave(Some(WavePort::Cva6)) => "cva6-wave",
            Kind::Ntrace => "ntrace",
            Kind::Etrace => "etrace",
            Kind::EtraceCsv => "etrace-csv",
            Kind::Tandem => "tandem",
            Kind::TandemContainer => "tandem-container",
            Kind::CtrDump => "ctr",
            Kind::CtrJson => "ctr-json",
            Kind::CodeHistory => "code-history",
            Kind::Config => "config",
            Kind::Sidecar => "sidecar",
            Kind::Unknown => "unknown",
        }
    }

    /// Whether it is a log.
    #[must_use]
    pub const fn is_log(self) -> bool {
        matches!(
            self,
            Kind::SpikeLog
                | Kind::PcList
                | Kind::IngressCsv
                | Kind::SpikeCsv
                | Kind::Log(_)
                | Kind::Wave(_)
        )
    }

    /// The words of the formats of logs, by which one is chosen.
    pub fn log_words() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().map(|named| named.0)
    }

    /// The format of a log with this word.
    #[must_use]
    pub fn log_named(word: &str) -> Option<Kind> {
        let found = FORMATS.iter().find(|named| named.0 == word);
        found.map(|named| named.1)
    }
}

/// What people call it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Empty => "empty file",
            Kind::Elf => "ELF file",
            Kind::SpikeLog => "Spike log",
            Kind::PcList => "pc list",
            Kind::IngressCsv => "ingress CSV",
            Kind::SpikeCsv => "Spike CSV",
            Kind::Log(format) => format.name(),
            Kind::Wave(None) => "waveform",
            Kind::Wave(Some(WavePort::Rvfi)) => "waveform with RVFI",
            Kind::Wave(Some(WavePort::Ingress)) => "waveform with an ingress port",
            Kind::Wave(Some(WavePort::Cva6)) => "waveform with a CVA6 trace port",
            Kind::Ntrace => "N-Trace",
            Kind::Etrace => "E-Trace",
            Kind::EtraceCsv => "E-Trace CSV",
            Kind::Tandem => "tandem trace",
            Kind::TandemContainer => "tandem trace in a container",
            Kind::CtrDump => "control transfer records",
            Kind::CtrJson => "control transfer records as JSON",
            Kind::CodeHistory => "code history",
            Kind::Config => "configuration",
            Kind::Sidecar => "sidecar",
            Kind::Unknown => "unknown",
        })
    }
}

/// The kind of a file that starts with `head`; give [`HEAD`] bytes, or all if
/// there are fewer.
#[must_use]
pub fn detect(head: &[u8]) -> Kind {
    apparent(head).unwrap_or_else(|| match head {
        _ if tandem::is_trace(head) => Kind::Tandem,
        _ if is_framed(head) => Kind::Etrace,
        _ if guess(head).is_some() => Kind::Ntrace,
        _ => Kind::Unknown,
    })
}

/// The same without a look at what a stream of a trace is made of; `None` for what may be
/// one, of any format.
pub fn apparent(head: &[u8]) -> Option<Kind> {
    if head.is_empty() {
        return Some(Kind::Empty);
    }
    if head.starts_with(b"\x7fELF") {
        return Some(Kind::Elf);
    }
    if tandem::container::FrameReader::is_container(head) {
        return Some(Kind::TandemContainer);
    }
    if head.starts_with(code_history::MAGIC) {
        return Some(Kind::CodeHistory);
    }
    if DumpReader::is_dump(head) {
        return Some(Kind::CtrDump);
    }
    if is_ctr_json(head) {
        return Some(Kind::CtrJson);
    }
    if WaveFormat::detect(head).is_some() {
        return Some(Kind::Wave(None));
    }
    if head.starts_with(b"ReTrace") {
        return Some(Kind::Log(LogFormat::RenodeBinary));
    }
    let Some(text) = text(head) else {
        return unpacker(head).map(|_| Kind::Unknown);
    };
    Some(of_text(text))
}

/// The kind of a file that starts with this text.
fn of_text(text: &str) -> Kind {
    let lines = || {
        let lines = text.lines().map(str::trim);
        lines.filter(|l| !l.is_empty() && !l.starts_with('#'))
    };
    // Simulators and programs talk before and between the lines of a log.
    if text.lines().any(|l| is_spike(l).is_some()) {
        return Kind::SpikeLog;
    }
    if let Some(format) = LogFormat::detect(text.as_bytes()) {
        return Kind::Log(format);
    }
    let Some(first) = lines().next() else {
        return Kind::Unknown;
    };
    if is_heading(first, &["itype", "iaddr", "iretire"]) {
        return Kind::IngressCsv;
    }
    if is_heading(first, &["format", "subformat", "branch_map"]) {
        return Kind::EtraceCsv;
    }
    if is_heading(first, &["VALID", "ADDRESS", "INSN"]) {
        return Kind::SpikeCsv;
    }
    // The last line may be cut off, and a few may be damaged.
    let looked_at = LINES.min(lines().count().saturating_sub(1)).max(1);
    let pcs = lines().take(looked_at).filter(|l| looks_like_pc(l)).count();
    if pcs * 4 >= looked_at * 3 {
        return Kind::PcList;
    }
    if is_parameters(text) {
        return Kind::Config;
    }
    if looks_like_toml(first) {
        let is_trace = |l: &str| without_comment(l) == "[trace]";
        return if lines().any(is_trace) {
            Kind::Sidecar
        } else {
            Kind::Config
        };
    }
    Kind::Unknown
}

/// The first line with anything on it is the header, whatever follows: its
/// reader reports the damaged line.
fn is_ctr_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
    let first = head.split(|&byte| byte == b'\n').next().unwrap_or(head);
    let name = format!("\"{SCHEMA}\"");
    first.starts_with(b"{")
        && first
            .windows(name.len())
            .any(|part| part == name.as_bytes())
}

/// The program that unpacks a compressed file that starts with `head`.
#[must_use]
pub fn unpacker(head: &[u8]) -> Option<&'static str> {
    let magics: [(&[u8], _); 3] = [
        (b"\x1f\x8b", "gzip"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ];
    let found = magics
        .into_iter()
        .find(|(magic, _)| head.starts_with(magic));
    found.map(|(_, program)| program)
}

/// Text without control characters, up to the last whole character.
fn text(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => {
            std::str::from_utf8(head.get(..e.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let strange = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\x1b');
    (!text.contains(strange)).then_some(text)
}

/// `core   0: 0x... (0x...) ...`, with the privilege before the pc if it is a
/// commit. Commits of cores have no `core`, but may have the number of the hart.
fn is_spike(line: &str) -> Option<()> {
    let rest = match line.strip_prefix("core") {
        Some(line) => {
            let (hart, rest) = line.split_once(':')?;
            hart.trim().parse::<u32>().ok()?;
            rest
        }
        None => {
            let mut words = line.split_ascii_whitespace();
            let modes = (words.next()?, words.next()?);
            let mode = |word: &str| matches!(word.as_bytes(), [b'0'..=b'7']);
            match modes {
                (first, second) if mode(first) && second.starts_with("0x") => line,
                (first, second) if first.parse::<u32>().is_ok() && mode(second) => {
                    line.trim_start().split_once(' ')?.1
                }
                _ => return None,
            }
        }
    };
    let mut words = rest.split_ascii_whitespace().peekable();
    words.next_if(|w| w.len() == 1);
    let pc = words.next()?.strip_prefix("0x")?;
    let hex = pc.chars().all(|c| c.is_ascii_hexdigit());
    (hex && words.next()?.starts_with("(0x")).then_some(())
}

/// The columns that every row has, wherever they stand, and no numbers.
fn is_heading(line: &str, wanted: &[&str]) -> bool {
    let mut columns = line.split(',').map(str::trim);
    let has = |name: &&str| columns.clone().any(|c| column_is(c, name));
    wanted.iter().all(has) && columns.all(|c| c.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// `iaddr` or, with several blocks per cycle, `iaddr_0`.
fn column_is(column: &str, name: &str) -> bool {
    let rest = column.strip_prefix(name);
    rest.is_some_and(|r| r.is_empty() || r == "_0")
}

/// What stands before a `#`.
fn without_comment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(text, _)| text).trim()
}

/// Parameters of an E-Trace encoder in a form other than TOML.
fn is_parameters(text: &str) -> bool {
    match Form::detect(text) {
        Form::Toml => false,
        Form::Ipxact => text.contains("discovery_info_"),
        Form::Scf | Form::Ucf | Form::Registers => true,
    }
}

/// Fixed width, or marked as hexadecimal: other columns of numbers are not
/// pcs.
fn looks_like_pc(line: &str) -> bool {
    let line = without_comment(line);
    let marked = line.strip_prefix("0x").or_else(|| line.strip_prefix("0X"));
    let digits = marked.unwrap_or(line);
    let width = if marked.is_some() { 1..=16 } else { 8..=16 };
    width.contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_hexdigit())
}

fn looks_like_toml(line: &str) -> bool {
    if let Some(section) = line.strip_prefix('[') {
        return section.split_once(']').is_some_and(|(name, rest)| {
            let rest = rest.trim();
            is_key(name.trim()) && (rest.is_empty() || rest.starts_with('#'))
        });
    }
    // Makefiles and shell scripts assign too, but not quoted or with numbers.
    let value = |text: &str| {
        let starts = |c: char| c.is_ascii_digit() || matches!(c, '"' | '\'' | '[' | '{' | '-');
        matches!(text, "true" | "false") || text.starts_with(starts)
    };
    line.split_once('=')
        .is_some_and(|(key, rest)| is_key(key.trim()) && value(rest.trim()))
}

fn is_key(text: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !text.is_empty() && text.chars().all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        for (head, kind) in [
            (&b""[..], Kind::Empty),
            (b"\x7fELF", Kind::Elf),
            (b"\x89HTCODE\n\x01", Kind::CodeHistory),
            (
                b"core   0: 0x0000000000001000 (0x00000297) auipc   t0, 0x0\n",
                Kind::SpikeLog,
            ),
            (
                b"warning: x\ncore   0: 3 0x80000000 (0x00010117) x2  0x80010000\n",
                Kind::SpikeLog,
            ),
            (b"0000000080000000\n0000000080000004\n", Kind::PcList),
            (b"80000000\n80000004\n8000", Kind::PcList),
            (b"# pcs\n0x80000000\r\n0x80000002\r\n", Kind::PcList),
            (b"80000000", Kind::PcList),
            (b"80000000\nhello\n80000002\n80000004\n\n0\n", Kind::PcList),
            (b"80000000\nhello\n80000002\n", Kind::Unknown),
            (b"1\n2\n3\n", Kind::Unknown),
            (
                b"itype_0,cause,tval,priv,iaddr_0,iretire_0,ilastsize_0\n0,0,0,3,80000000,2,1\n",
                Kind::IngressCsv,
            ),
            (b"iaddr,iretire,itype\n", Kind::IngressCsv),
            (b"80000000 # start\n0X80000004\n\n", Kind::PcList),
            (
                b"VALID,ADDRESS,INSN,PRIVILEGE,EXCEPTION,ECAUSE,TVAL,INTERRUPT\n",
                Kind::SpikeCsv,
            ),
            (b"iaddr,size\n", Kind::Unknown),
            (b"\x89CTR\r\n\x1a\n\x01\0\0\0", Kind::CtrDump),
            (
                b"{\"type\":\"header\",\"schema\":\"hartrace-ctr\",\"version\":1}\n",
                Kind::CtrJson,
            ),
            (
                b"\xef\xbb\xbf\r\n{\"type\":\"header\",\"schema\":\"hartrace-ctr\",\"version\":1}\n\0\xff",
                Kind::CtrJson,
            ),
            (
                b"{\"type\":\"header\",\"schema\":\"hartrace-log\",\"version\":1}\n",
                Kind::Unknown,
            ),
            (b"\x41\x1f\x43\x73\0\x04\x41\xf2", Kind::Etrace),
            (b"\x89TPC\r\n\x1a\n", Kind::TandemContainer),
            (b"\x01\x03\x10\x01\0\x02\x01\x03\x10", Kind::Tandem),
            (
                b"format,subformat,address,branch,branches,branch_map\n",
                Kind::EtraceCsv,
            ),
            (b"# a config\n\n[ingress]\nctype = 1\n", Kind::Config),
            (b"isaa = 3\n", Kind::Config),
            (b"[Required Attributes]\narch_p=0\n", Kind::Config),
            (b"; modes\n[codec]\nsi-jump = false\n", Kind::Config),
            (b"<a><name>discovery_info_0</name></a>\n", Kind::Config),
            (b"<html>\n", Kind::Unknown),
            (b"[trace] # of what\nformat = \"pc\"\n", Kind::Sidecar),
            (b"[program]\n[trace]\n", Kind::Sidecar),
            (b"CC = gcc\n", Kind::Unknown),
            (b"hello world\n", Kind::Unknown),
            (b"[2026-01-01] log entry\n", Kind::Unknown),
            (b"\xff\xfe\0", Kind::Unknown),
            (b"0000\x000080000000\n", Kind::Unknown),
            (b"\n\n", Kind::Unknown),
        ] {
            assert_eq!(detect(head), kind, "{:?}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn what_may_be_a_stream_is_not_looked_into() {
        for stream in [
            &b"\x41\x1f\x43\x73\0\x04\x41\xf2"[..],
            b"\x01\x03\x10\x01\0\x02\x01\x03\x10",
            b"\xff\xfe\0",
        ] {
            assert_eq!(apparent(stream), None);
        }
        assert_eq!(apparent(b"\x1f\x8b\x08\0"), Some(Kind::Unknown));
        assert_eq!(apparent(b"hello world\n"), Some(Kind::Unknown));
    }

    #[test]
    fn compressed_files() {
        assert_eq!(unpacker(b"\x1f\x8b\x08\0"), Some("gzip"));
        assert_eq!(unpacker(b"\xfd7zXZ\0\0"), Some("xz"));
        assert_eq!(unpacker(b"\x28\xb5\x2f\xfd\0"), Some("zstd"));
        assert_eq!(unpacker(b"\x1f"), None);
        assert_eq!(unpacker(b"\x7fELF"), None);
    }

    #[test]
    fn a_character_cut_at_the_end_is_no_obstacle() {
        let text = "[ingress] # é".as_bytes();
        assert_eq!(detect(&text[..text.len() - 1]), Kind::Config);
    }

    #[test]
    fn any_prefix_of_any_bytes_is_some_kind() {
        let seed = b"core   0: 3 0x80000000 (0x00010117) x2\n\x7fELF[a]=,\xc3";
        for start in 0..seed.len() {
            for end in start..seed.len() {
                let _ = detect(&seed[start..end]);
            }
        }
    }
}
