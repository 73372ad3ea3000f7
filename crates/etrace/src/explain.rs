//! Packets taken apart for people: every field with the bits it stands in, and
//! what addresses come to.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::packet::bits::{Reader, Source, mask};
use crate::packet::read;
use crate::{Config, Fault, Ioption, Layout, Packet, QualStatus};

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
}

/// The fields of a packet, as far as they can be told, and what is wrong with
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
    let Some(fields) = Reader::new(payload) else {
        return (Vec::new(), Some(Fault::EmptyPacket));
    };
    let mut reading = Reading {
        fields,
        bits: payload.len() as u32 * 8,
        found: Vec::new(),
    };
    let fault = read::read(&mut reading, layout).err();
    let extra = (!reading.fields.is_end()).then_some(Fault::ExtraBits);
    (reading.found, fault.or(extra))
}

/// Notes the fields that are read.
struct Reading<'a> {
    fields: Reader<'a>,
    /// Bits of the payload.
    bits: u32,
    found: Vec<Field>,
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

/// Keeps the address that each source told last, so that a packet can be shown
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
    /// behind it.
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
    use crate::{BranchMap, Report, Start, Trap, Version};
    use hartrace_isa::Xlen;
    use hartrace_testkit::Random;

    /// The fields cover the packet, one behind the other, and their values are
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
