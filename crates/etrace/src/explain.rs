//! Packets for display: every field with its bits, and full addresses.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hartrace_flow::Mode;

use crate::packet::bits::{Reader, Source, mask};
use crate::packet::read;
use crate::{BranchMap, Config, Fault, Ioption, Layout, Packet, QualStatus, Report, Support};

/// A field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the specification.
    pub name: &'static str,
    /// The value as sent, with the bits that were compressed away.
    pub value: u64,
    /// Its width.
    pub bits: u32,
    /// Its first bit, counted from the start of the payload.
    pub first_bit: u32,
    /// How many of its bits are in the payload; the others were compressed
    /// away.
    pub sent: u32,
}

impl Field {
    /// Index of the byte of the payload that has the last of its bits that
    /// were sent; `None` if none was.
    #[must_use]
    pub const fn last_byte(&self) -> Option<usize> {
        match self.sent {
            0 => None,
            sent => Some(((self.first_bit + sent - 1) / 8) as usize),
        }
    }

    /// Whether people write it as a decimal number: it counts or numbers
    /// something.
    #[must_use]
    pub fn is_decimal(&self) -> bool {
        matches!(
            self.name,
            "format"
                | "subformat"
                | "branch"
                | "branches"
                | "branch_count"
                | "privilege"
                | "ecause"
                | "interrupt"
                | "thaddr"
                | "notify"
                | "updiscon"
                | "irreport"
                | "ienable"
                | "enable"
                | "encoder_mode"
                | "qual_status"
                | "denable"
                | "dloss"
                | "size"
                | "diff"
                | "subtype"
                | "resp"
                | "lrid"
                | "data_len"
                | "op_len"
        )
    }
}

/// The fields of a packet, as far as they can be determined, and what is wrong with
/// it, if anything.
///
/// ```
/// use hartrace_etrace::{Config, Version, explain};
/// use hartrace_isa::Xlen;
///
/// let layout = Config::new(Version::V2_0, Xlen::Rv64).layout();
/// let (fields, fault) = explain(&[0x05, 0x58, 0x05], &layout);
/// let told: Vec<_> = fields.iter().map(|f| (f.name, f.value, f.bits, f.sent)).collect();
/// assert_eq!(told[..3], [("format", 1, 2, 2), ("branches", 1, 5, 5), ("branch_map", 0, 1, 1)]);
/// assert_eq!(told[3..5], [("address", 0x558, 63, 16), ("notify", 0, 1, 0)]);
/// assert_eq!(fault, None);
/// ```
#[must_use]
pub fn explain(payload: &[u8], layout: &Layout) -> (Vec<Field>, Option<Fault>) {
    let Some(mut reading) = Reading::new(payload) else {
        return (Vec::new(), Some(Fault::EmptyPacket));
    };
    let fault = match read::read(&mut reading, layout) {
        Err(fault) => Some(fault),
        Ok(packet) if packet.may_go_on(layout) => None,
        Ok(_) => (!reading.is_end()).then_some(Fault::ExtraBits),
    };
    (reading.into_fields(), fault)
}

/// Notes the fields that are read.
pub(crate) struct Reading<'a> {
    fields: Reader<'a>,
    /// Bits of the payload.
    bits: u32,
    found: Vec<Field>,
}

impl<'a> Reading<'a> {
    /// `None` without a byte.
    pub(crate) fn new(payload: &'a [u8]) -> Option<Reading<'a>> {
        Some(Reading {
            fields: Reader::new(payload)?,
            bits: payload.len() as u32 * 8,
            found: Vec::new(),
        })
    }

    /// Whether all bits after the last field repeat its last bit.
    pub(crate) fn is_end(&self) -> bool {
        self.fields.is_end()
    }

    /// The fields.
    pub(crate) fn into_fields(self) -> Vec<Field> {
        self.found
    }
}

impl Source for Reading<'_> {
    fn field(&mut self, name: &'static str, width: u32) -> u64 {
        let first_bit = self.fields.at();
        let value = self.fields.field(name, width);
        if width > 0 {
            self.found.push(Field {
                name,
                value,
                bits: width,
                first_bit,
                sent: self.bits.saturating_sub(first_bit).min(width),
            });
        }
        value
    }
}

impl Packet {
    /// What the codes in it mean, in a few words.
    #[must_use]
    pub fn meaning(&self, config: &Config) -> Option<String> {
        let mut words = Vec::new();
        match self {
            Packet::BranchCount { address, .. } => {
                words.extend(address.iter().flat_map(|(_, report)| flags(report)));
            }
            Packet::JumpTarget { map, irreport, .. } => {
                words.extend(outcomes(map));
                words.extend(irreport.then(|| "irreport".to_owned()));
            }
            Packet::Branches { map, address } => {
                words.extend(outcomes(map));
                words.extend(address.iter().flat_map(flags));
            }
            Packet::Address(report) => words.extend(flags(report)),
            Packet::Start(start) => {
                words.push(mode(start.privilege));
                words.extend((!start.branch).then(|| "taken branch".to_owned()));
            }
            Packet::Trap(trap) => {
                let kind = if trap.interrupt {
                    "interrupt"
                } else {
                    "exception"
                };
                words.push(mode(trap.privilege));
                words.push(format!("{kind} {}", trap.ecause));
                words.extend((!trap.thaddr).then(|| "no handler".to_owned()));
            }
            Packet::Context(context) => words.push(mode(context.privilege)),
            Packet::Support(support) => support.words(config, &mut words),
        }
        (!words.is_empty()).then(|| words.join(", "))
    }
}

impl Support {
    fn words(&self, config: &Config, words: &mut Vec<String>) {
        let on = if self.ienable { "enabled" } else { "disabled" };
        words.push(on.to_owned());
        let status = match self.qual_status {
            QualStatus::NoChange => None,
            QualStatus::EndedRep => Some("ended_rep"),
            QualStatus::TraceLost => Some("trace_lost"),
            QualStatus::EndedNtr => Some("ended_ntr"),
        };
        words.extend(status.map(str::to_owned));
        for (bit, option) in config.ioptions.order().iter().enumerate() {
            if self.ioptions >> bit & 1 != 0 {
                words.push(match option {
                    Some(option) => option.words().to_owned(),
                    None => format!("option {bit}"),
                });
            }
        }
    }
}

impl Ioption {
    /// What it is, in a few words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Ioption::SequentialJump => "sequential jumps",
            Ioption::ImplicitReturn => "implicit return",
            Ioption::ImplicitException => "implicit exception",
            Ioption::BranchPrediction => "branch prediction",
            Ioption::JumpTargetCache => "jump target cache",
            Ioption::FullAddress => "full addresses",
            Ioption::ResyncDisabled => "no resync",
            Ioption::ImplicitReturnExtension => "irets",
        }
    }
}

/// The oldest first: T for taken, N for not taken.
fn outcomes(map: &BranchMap) -> Option<String> {
    let letter = |n| if map.bits >> n & 1 == 0 { 'T' } else { 'N' };
    (map.count > 0).then(|| (0..map.count).map(letter).collect())
}

fn flags(report: &Report) -> impl Iterator<Item = String> + use<> {
    let all = [
        (report.notify, "notify"),
        (report.updiscon, "updiscon"),
        (report.irreport, "irreport"),
    ];
    let set = all.into_iter().filter(|(set, _)| *set);
    set.map(|(_, name)| name.to_owned())
}

fn mode(code: u8) -> String {
    match Mode::from_code(code) {
        Some(mode) => mode.name().to_owned(),
        None => format!("mode {code}"),
    }
}

/// Keeps the address that each source reported last, so that a packet can be shown
/// with the full one.
#[derive(Clone, Debug)]
pub struct Follower {
    config: Config,
    sources: BTreeMap<u16, Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    /// The field in full.
    address: Option<u64>,
    /// Addresses are no differences.
    full: bool,
}

impl Follower {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(config: &Config) -> Follower {
        Follower {
            config: config.clone(),
            sources: BTreeMap::new(),
        }
    }

    /// The full address of the next packet, where it has one and it can be
    /// known. An entry of the jump target cache cannot, nor can differences
    /// after it.
    pub fn packet(&mut self, src: u16, packet: &Packet) -> Option<u64> {
        let config = &self.config;
        let last = self.sources.entry(src).or_insert(Last {
            address: None,
            full: config.full_address,
        });
        let report = match packet {
            Packet::BranchCount { address, .. } => address.map(|(_, report)| report),
            Packet::Branches { address, .. } => *address,
            Packet::Address(report) => Some(*report),
            Packet::Start(start) => return last.set(Some(start.address), config),
            Packet::Trap(trap) => return last.set(trap.address, config),
            Packet::JumpTarget { .. } => return last.set(None, config),
            Packet::Support(support) => {
                let full = config.ioptions.get(support.ioptions, Ioption::FullAddress);
                last.full = full.unwrap_or(last.full);
                if support.qual_status == QualStatus::TraceLost {
                    last.address = None;
                }
                None
            }
            Packet::Context(_) => None,
        };
        let address = report?.address;
        let known = match last.full {
            true => Some(address),
            false => last.address.map(|before| before.wrapping_add(address)),
        };
        last.set(known, config)
    }

    /// Something is missing: differences lead nowhere until the next full
    /// address.
    pub fn lost(&mut self) {
        for last in self.sources.values_mut() {
            last.address = None;
        }
    }
}

impl Last {
    /// A new address; gives it as the program has it.
    fn set(&mut self, field: Option<u64>, config: &Config) -> Option<u64> {
        self.address = field;
        let width = u32::from(config.iaddress_width).clamp(1, 64);
        let address = field? << config.iaddress_lsb.min(63) & mask(width);
        // Upper bits that are not traced repeat the highest that is.
        let unused = 64 - width;
        let extended = (address << unused) as i64 >> unused;
        Some(extended as u64 & mask(config.xlen.bits()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RandomPackets as _;
    use crate::{Start, Trap, Version};
    use hartrace_isa::Xlen;
    use hartrace_testkit::Random;

    /// The fields cover the packet, one after the other, and their values are
    /// its bits.
    #[test]
    fn the_fields_are_the_packet() {
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let layout = random.layout();
            let packet = random.packet(&layout);
            let payload = packet.write(&layout);
            let (fields, fault) = explain(payload.bytes(), &layout);
            assert_eq!(fault, None);
            let mut again = crate::packet::bits::Writer::default();
            let (mut at, mut sent) = (0, 0);
            for field in &fields {
                assert_eq!(field.first_bit, at);
                at += field.bits;
                sent += field.sent;
                again.put(field.value, field.bits);
            }
            assert_eq!(at, packet.bits(&layout));
            assert_eq!(sent, at.min(payload.bytes().len() as u32 * 8));
            assert_eq!(again.compressed(), payload);
            assert_eq!(fields[0].value, u64::from(packet.format()));
        }
    }

    #[test]
    fn names_are_those_of_the_text() {
        let names = |version| {
            let layout = Config::new(version, Xlen::Rv64).layout();
            let mut names = Vec::new();
            for payload in [[0x07, 0], [0x0f, 0]] {
                names.extend(explain(&payload, &layout).0.iter().map(|f| f.name));
            }
            names.join(" ")
        };
        assert_eq!(
            names(Version::V1_1_1),
            "format subformat branch privilege ecause interrupt address tvalepc \
             format subformat enable encoder_mode qual_status options"
        );
        assert_eq!(
            names(Version::V2_0),
            "format subformat branch privilege ecause interrupt thaddr address tval \
             format subformat ienable encoder_mode qual_status ioptions denable dloss doptions"
        );
    }

    #[test]
    fn what_is_bad_is_told_as_far_as_it_goes() {
        let layout = Layout {
            bpred_size: 3,
            ..Config::new(Version::V2_0, Xlen::Rv32).layout()
        };
        assert_eq!(explain(&[], &layout).1, Some(Fault::EmptyPacket));
        // branch_fmt = 01.
        let (fields, fault) = explain(&[0, 0, 0, 0, 4], &layout);
        assert_eq!(fault, Some(Fault::UnknownBranchFmt));
        assert_eq!(fields.len(), 3);
        let (fields, fault) = explain(&[0x02, 0, 0, 0, 0, 2], &layout);
        assert_eq!((fields.len(), fault), (5, Some(Fault::ExtraBits)));
        assert_eq!(fields[1].last_byte(), Some(4));
    }

    #[test]
    fn differences_are_followed() {
        let config = Config {
            iaddress_width: 39,
            ..Config::new(Version::V2_0, Xlen::Rv64)
        };
        let mut follower = Follower::new(&config);
        let delta = |delta: i64| {
            let address = (delta >> 1) as u64 & mask(38);
            Packet::Address(Report {
                address,
                ..Report::default()
            })
        };
        let start = |address: u64| {
            Packet::Start(Start {
                address: address >> 1 & mask(38),
                ..Start::default()
            })
        };
        assert_eq!(follower.packet(0, &delta(4)), None);
        assert_eq!(follower.packet(0, &start(0x8000_0000)), Some(0x8000_0000));
        assert_eq!(follower.packet(0, &delta(-8)), Some(0x7fff_fff8));
        assert_eq!(follower.packet(1, &delta(4)), None);
        // The kernel's half, and back round.
        let kernel = 0xffff_ffff_ffff_fffe;
        assert_eq!(follower.packet(0, &start(kernel)), Some(kernel));
        assert_eq!(follower.packet(0, &delta(4)), Some(2));
        assert_eq!(follower.packet(0, &delta(-4)), Some(kernel));
        follower.lost();
        assert_eq!(follower.packet(0, &delta(4)), None);
        let trap = Packet::Trap(Trap {
            address: Some(8),
            ..Trap::default()
        });
        assert_eq!(follower.packet(0, &trap), Some(16));
        let jump = Packet::JumpTarget {
            index: 1,
            map: BranchMap::default(),
            irreport: false,
            irdepth: 0,
        };
        assert_eq!(follower.packet(0, &jump), None);
        assert_eq!(follower.packet(0, &delta(4)), None);
        // Full addresses need no base.
        let support = Packet::Support(crate::Support {
            ioptions: 4,
            ..crate::Support::default()
        });
        assert_eq!(follower.packet(0, &support), None);
        assert_eq!(follower.packet(0, &delta(4)), Some(4));
        // RV32 has 32 bits.
        let mut follower = Follower::new(&Config::new(Version::V2_0, Xlen::Rv32));
        let high = Packet::Start(Start {
            address: 0x7fff_fff0,
            ..Start::default()
        });
        assert_eq!(follower.packet(0, &high), Some(0xffff_ffe0));
    }
}
