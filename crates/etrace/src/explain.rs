//! Packets for display: every field with its bits, and full addresses.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hartrace_flow::Mode;

use crate::config::SupportParameters;
use crate::packet::bits::{Reader, Source};
use crate::packet::read;
use crate::{
    BranchMap, Config, Fault, Ioption, Layout, Packet, Padding, QualStatus, Report, Support,
};

mod follow;

pub use follow::Follower;

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

/// The names of the fields of all packets, of instruction trace and of data trace, in all
/// versions.
#[must_use]
pub fn field_names() -> Vec<&'static str> {
    const NAMES: [&str; 42] = [
        "format",
        "subformat",
        "address",
        "branch",
        "branch_count",
        "branch_fmt",
        "branch_map",
        "branches",
        "context",
        "ecause",
        "encoder_mode",
        "denable",
        "dloss",
        "doptions",
        "enable",
        "ienable",
        "index",
        "interrupt",
        "ioptions",
        "irdepth",
        "irets",
        "irreport",
        "notify",
        "options",
        "privilege",
        "qual_status",
        "thaddr",
        "time",
        "tval",
        "tvalepc",
        "updiscon",
        "addr_lsbs",
        "addr_msbs",
        "data",
        "data_len",
        "diff",
        "lrid",
        "op_len",
        "operand",
        "resp",
        "size",
        "subtype",
    ];
    let mut names = [&NAMES[..], &read::STANDARD_MODES, &read::STANDARD_DATA].concat();
    names.extend(SupportParameters::FIELDS.map(|(name, _)| name));
    names
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
        Ok(_) if layout.padding == Padding::Ignored && reading.left() < 8 => None,
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

    fn left(&self) -> u32 {
        self.fields.left()
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
            Ioption::DeltaAddress => "differences of addresses",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;
    use crate::testing::RandomPackets as _;
    use hartrace_isa::Xlen;
    use hartrace_testkit::Random;

    /// The fields cover the packet, one after the other, and their values are
    /// its bits.
    #[test]
    fn the_fields_are_the_packet() {
        let mut random = Random::new(1);
        let names = field_names();
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
                assert!(names.contains(&field.name), "{}", field.name);
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
}
