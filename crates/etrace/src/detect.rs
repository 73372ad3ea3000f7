//! Detects whether bytes look like E-Trace, and with which settings.

mod forms;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hartrace_isa::Xlen;

use crate::{
    Config, Encapsulated, Encapsulation, Framer, Framing as _, Kind, Layout, Packet, Piece,
    Version, csv,
};

/// Bytes that are looked at.
const LOOK: usize = 1 << 20;

/// Packets with a full address that are looked at, each with every set of
/// widths.
const STARTS: u64 = 1000;

/// What a stream seems to be. As text it gives the reasons:
/// `1024 packets and 0 damaged stretches, ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// The settings: the defaults, or the widths of the reference models.
    pub config: Config,
    /// What these settings are called.
    pub name: &'static str,
    /// Packets of instruction trace.
    pub packets: u64,
    /// Stretches that are no packets.
    pub damaged: u64,
    /// Packets with a full address.
    pub starts: u64,
    /// Those whose address makes sense with these settings.
    pub sensible: u64,
    /// Packets that cannot be read with these settings, of those that were tried.
    pub bad: u64,
    /// Other settings that fit as well, and read the bytes differently.
    pub also: Vec<&'static str>,
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guess {
            packets,
            damaged,
            starts,
            sensible,
            name,
            ..
        } = self;
        write!(f, "{packets} packets and {damaged} damaged stretches")?;
        write!(f, ", {starts} with a full address")?;
        write!(f, ", {sensible} of which make sense with {name}")?;
        match self.config.encapsulation.is_reference() {
            true => Ok(()),
            false => write!(f, "; {}", self.config.encapsulation),
        }
    }
}

/// Whether the first MiB of a stream can be cut into packets, some of them with
/// a full address or about the encoder. The stream may start inside a packet.
///
/// ```
/// use hartrace_etrace::is_framed;
///
/// assert!(is_framed(&[0x41, 0x1f, 0x43, 0x73, 0x00, 0x04, 0x41, 0xf2]));
/// assert!(!is_framed(&[0x24, 0x0d, 0x00, 0x0b, 0x84, 0x50, 0x21, 0x07]));
/// ```
#[must_use]
pub fn is_framed(bytes: &[u8]) -> bool {
    Framed::new(bytes, &mut |_| {}).is_good() || forms::guess(bytes, Xlen::Rv64, None).is_some()
}

/// With which of the usual settings the first MiB of a stream makes sense;
/// `None` if it does not look like E-Trace. `is_code` says whether a program
/// has code at an address; without a program, say so by `None`.
#[must_use]
pub fn guess(bytes: &[u8], xlen: Xlen, is_code: Option<&dyn Fn(u64) -> bool>) -> Option<Guess> {
    let mut candidates = usual(xlen).map(Candidate::new);
    let mut starts = 0;
    let framed = Framed::new(bytes, &mut |payload| {
        let is_start = match payload.first().map(|first| first & 0xf) {
            Some(3) => true,
            Some(0xf) => false,
            _ => return,
        };
        starts += u64::from(is_start);
        if starts > STARTS {
            return;
        }
        for candidate in &mut candidates {
            let layout = candidate.config.layout();
            match Packet::read(payload, &layout) {
                Ok(packet) => candidate.packet(&packet, is_code),
                Err(_) => candidate.bad += 1,
            }
        }
    });
    let starts = starts.min(STARTS);
    if !framed.is_good() || framed.bad > 0 {
        // Another encapsulation must fit without any damage.
        let other = forms::guess(bytes, xlen, is_code);
        if other.is_some() || !framed.is_good() {
            return other;
        }
    }
    Some(best(candidates, framed.packets, framed.damaged, starts))
}

/// The same for a stream in this encapsulation, of which all packets must make sense.
#[must_use]
pub fn guess_in(
    form: &Encapsulation,
    bytes: &[u8],
    xlen: Xlen,
    is_code: Option<&dyn Fn(u64) -> bool>,
) -> Option<Guess> {
    forms::fits(bytes, form, xlen, is_code)
}

/// With which of the usual settings the rows of a table ([`csv`]) make sense;
/// `None` if none of the first thousand is a packet with any. A context or time
/// is as wide as the columns have it. `is_code` is as for [`guess`].
#[must_use]
pub fn guess_table(
    text: &[u8],
    xlen: Xlen,
    is_code: Option<&dyn Fn(u64) -> bool>,
) -> Option<Guess> {
    let text = text.get(..LOOK).unwrap_or(text);
    let lines = text.split(|&byte| byte == b'\n').skip(1);
    let rows: Vec<String> = lines
        .take(STARTS as usize)
        .map(|line| String::from(String::from_utf8_lossy(line).trim()))
        .filter(|line| !line.is_empty())
        .collect();
    let filled = csv::filled(rows.iter().map(String::as_str));
    let mut candidates = usual(xlen).map(Candidate::new);
    let (mut starts, mut packets) = (0, 0);
    for candidate in &mut candidates {
        let config = &mut candidate.config;
        config.context_width = filled.context;
        if !config.version.is_draft() {
            config.time_width = filled.time;
        }
        let layout = config.layout();
        let (mut read, mut addresses) = (0, 0);
        for row in &rows {
            match csv::parse_row(row, &layout) {
                Ok(packet) => {
                    read += 1;
                    addresses += u64::from(matches!(packet, Packet::Start(_)));
                    candidate.packet(&packet, is_code);
                }
                Err(_) => candidate.bad += 1,
            }
        }
        (packets, starts) = (packets.max(read), starts.max(addresses));
    }
    let damaged = rows.len() as u64 - packets;
    (packets > 0).then(|| best(candidates, packets, damaged, starts))
}

/// The candidate that fits best, of equals the first.
fn best(candidates: [Candidate; 5], packets: u64, damaged: u64, starts: u64) -> Guess {
    let [first, ..] = &candidates;
    let mut best = first;
    for candidate in &candidates {
        if candidate.score() > best.score() {
            best = candidate;
        }
    }
    let mut equal = Vec::from([best.config.layout()]);
    let mut also = Vec::new();
    for candidate in candidates.iter().filter(|c| c.score() == best.score()) {
        let layout = candidate.config.layout();
        if !equal.iter().any(|other| reads_alike(&layout, other)) {
            also.push(candidate.name);
            equal.push(layout);
        }
    }
    Guess {
        config: best.config.clone(),
        name: best.name,
        packets,
        damaged,
        starts,
        sensible: best.good.unsigned_abs(),
        bad: best.bad.unsigned_abs(),
        also,
    }
}

/// Whether two layouts read all packets the same way but for support packets and
/// what those say about implicit return.
fn reads_alike(a: &Layout, b: &Layout) -> bool {
    let other = Layout {
        version: a.version,
        encoder_mode_width: a.encoder_mode_width,
        ioptions_width: a.ioptions_width,
        doptions_width: a.doptions_width,
        exception_bit: a.exception_bit,
        iret_ext: a.iret_ext,
        irdepth_width: a.irdepth_width,
        ..*b
    };
    a.version.is_draft() == b.version.is_draft() && other == *a
}

/// The settings that are tried, the likeliest first.
fn usual(xlen: Xlen) -> [(&'static str, Config); 5] {
    let plain = Config::new(Version::V2_0, xlen);
    let reference = Config {
        context_width: 32,
        ecause_width: 5,
        ..plain.clone()
    };
    let debug = Config {
        iaddress_lsb: 0,
        ..reference.clone()
    };
    [
        ("the default widths", plain),
        ("the widths of the reference models", reference),
        ("the widths of the reference models, iaddress_lsb 0", debug),
        (
            "the default widths of the 1.1.1-draft",
            Config::new(Version::V1_1_1, xlen),
        ),
        (
            "the default widths of 2.05",
            Config::new(Version::V2_05, xlen),
        ),
    ]
}

struct Candidate {
    name: &'static str,
    config: Config,
    good: i64,
    bad: i64,
}

impl Candidate {
    const fn new((name, config): (&'static str, Config)) -> Candidate {
        Candidate {
            name,
            config,
            good: 0,
            bad: 0,
        }
    }

    const fn score(&self) -> i64 {
        self.good - self.bad
    }

    /// A packet that could be read; format 3 subformat 0 has a full address.
    fn packet(&mut self, packet: &Packet, is_code: Option<&dyn Fn(u64) -> bool>) {
        if let Packet::Support(support) = packet {
            // No text has another mode.
            self.bad += i64::from(support.encoder_mode != 0);
        }
        let Packet::Start(start) = packet else {
            return;
        };
        let layout = self.config.layout();
        let shift = 64 - u32::from(layout.iaddress_width);
        let address = (start.address << layout.iaddress_lsb << shift) as i64 >> shift;
        let address = self.config.xlen.wrap(address as u64);
        let sensible = match is_code {
            Some(is_code) => is_code(address),
            // No system has more than 48 bits of addresses, or code at 0.
            None => address != 0 && (address as i64) << 16 >> 16 == address as i64,
        };
        self.good += i64::from(sensible && matches!(start.privilege, 0 | 1 | 3));
    }
}

/// What a stream is cut into.
#[derive(Default)]
struct Framed {
    packets: u64,
    damaged: u64,
    /// Packets of format 3.
    syncs: u64,
    /// Bytes in packets, and in what is none.
    good: u64,
    bad: u64,
}

impl Framed {
    fn new(bytes: &[u8], take: &mut dyn FnMut(&[u8])) -> Framed {
        let mut rest = bytes.get(..LOOK).unwrap_or(bytes);
        let mut framer = Framer::new();
        let mut framed = Framed::default();
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            match piece {
                Piece::Packet(Encapsulated {
                    kind: Kind::Instruction,
                    payload,
                    ..
                }) => {
                    framed.packets += 1;
                    framed.good += 1 + payload.len() as u64;
                    framed.syncs += u64::from(payload.first().is_some_and(|b| b & 3 == 3));
                    take(payload);
                }
                Piece::Packet(packet) => framed.good += packet.len as u64,
                Piece::Bad(_, len) | Piece::Lost(.., len) => {
                    framed.damaged += 1;
                    framed.bad += len;
                }
                Piece::Idle(_) => {}
            }
        }
        if let Some((_, Piece::Bad(_, len))) = framer.finish() {
            framed.bad += len;
        }
        framed
    }

    /// Bytes of no meaning look like a header in one of four cases, and few of
    /// them like several packets in a row.
    fn is_good(&self) -> bool {
        self.syncs > 0 && self.bad * 2 <= self.good
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BranchMap, QualStatus, Report, Start, Support};
    use alloc::vec::Vec;

    fn stream(config: &Config) -> Vec<u8> {
        let layout = config.layout();
        let mut bytes = Vec::new();
        let mut put = |packet: Packet| {
            let payload = packet.write(&layout);
            payload.write_framed(Kind::Instruction, &mut bytes);
        };
        let support = Support {
            ienable: true,
            ..Support::default()
        };
        put(Packet::Support(support));
        for n in 0..200u64 {
            put(Packet::Start(Start {
                branch: true,
                privilege: 3,
                address: (0x8000_0000 + 6 * n) >> config.iaddress_lsb,
                ..Start::default()
            }));
            let map = BranchMap { bits: 5, count: 3 };
            let address = Some(Report {
                address: n,
                ..Report::default()
            });
            put(Packet::Branches { map, address });
        }
        bytes
    }

    #[test]
    fn the_usual_settings_are_told_apart() {
        let is_code = |address: u64| (0x8000_0000..0x8000_1000).contains(&address);
        for xlen in [Xlen::Rv32, Xlen::Rv64] {
            for (name, config) in usual(xlen) {
                let bytes = stream(&config);
                assert!(is_framed(&bytes));
                let found = guess(&bytes, xlen, Some(&is_code)).unwrap();
                let (layout, expected) = (found.config.layout(), config.layout());
                assert!(reads_alike(&layout, &expected), "{name} {xlen:?}");
                assert_eq!((found.starts, found.sensible), (200, 200));
            }
            // Without the program, those with and without a context.
            for (name, config) in usual(xlen).into_iter().take(2) {
                let found = guess(&stream(&config), xlen, None).unwrap();
                assert_eq!(found.name, name, "{xlen:?}");
            }
        }
    }

    /// Support packets of 2.05 say which modes and tables there are; those of 2.0
    /// cannot be read so.
    #[test]
    fn the_standard_support_packet_is_recognised() {
        for version in [Version::V2_0, Version::V2_05] {
            let config = Config {
                return_stack_size: 5,
                implicit_return: true,
                ..Config::new(version, Xlen::Rv64)
            };
            for qual_status in [QualStatus::NoChange, QualStatus::EndedRep] {
                let support = Packet::Support(Support {
                    ienable: true,
                    qual_status,
                    ioptions: config.ioptions_field(),
                    ..Support::default()
                });
                let mut bytes = Vec::new();
                let payload = support.write(&config.layout());
                payload.write_framed(Kind::Instruction, &mut bytes);
                bytes.extend(stream(&config));
                let found = guess(&bytes, Xlen::Rv64, None).unwrap();
                assert_eq!(found.config.version, version, "{qual_status:?}");
            }
        }
    }

    #[test]
    fn noise_and_cut_streams() {
        let config = Config::new(Version::V2_0, Xlen::Rv64);
        let bytes = stream(&config);
        for cut in 0..40 {
            assert!(is_framed(&bytes[cut..]), "{cut}");
        }
        let mut random = 1u32;
        let mut noise = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        };
        for _ in 0..50 {
            let noise: Vec<u8> = (0..2000).map(|_| noise()).collect();
            assert!(!is_framed(&noise));
        }
        assert!(!is_framed(&[]) && !is_framed(&[0; 99]));
    }
}
