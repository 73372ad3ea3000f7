//! The fast paths against the general ones.

use alloc::vec;
use alloc::vec::Vec;

use hartrace_flow::{Access, AccessKind, DataAccess, DataIngress};
use hartrace_isa::Xlen;
use hartrace_testkit::Random;

use super::*;
use crate::encapsulation::{Headed, Heads, WINDOW};
use crate::testing::RandomForms as _;
use crate::{Config, Fault, Framer, Framing as _, Kind, MAX_PAYLOAD, PacketName, Piece, Version};

fn settings(random: &mut Random) -> Config {
    let version = random.one_of([Version::V1_1_1, Version::V2_0]);
    let mut data = DataConfig::new(version, Xlen::Rv64);
    data.atomics = random.flip();
    data.csrs = data.atomics;
    data.size_width = if random.flip() { 2 } else { 3 };
    data.daddress_width = 8 + random.below(57) as u8;
    data.xor_addresses = random.flip();
    data.compression = random.one_of([
        Compression::Dynamic,
        Compression::Xor,
        Compression::Differential,
    ]);
    data.full_address = random.below(4) == 0;
    data.full_data = random.below(4) == 0;
    if data.compression != Compression::Dynamic && random.flip() {
        data.diff_width = 1;
    }
    Config {
        data: Some(data),
        ..Config::new(version, Xlen::Rv64)
    }
}

/// An access near the last one, or anywhere.
fn access(random: &mut Random, before: u64) -> Access {
    let size = random.below(4) as u8;
    let near = before.wrapping_add(random.below(256)).wrapping_sub(128);
    let addr = if random.below(8) == 0 {
        random.draw()
    } else {
        near
    };
    let addr = if random.below(8) > 0 {
        addr >> size << size
    } else {
        addr
    };
    let value = random.draw() >> random.below(64);
    let value = if random.flip() { value } else { !value };
    Access {
        kind: random.one_of([AccessKind::Load, AccessKind::Store]),
        size,
        addr,
        paddr: None,
        data: Some(value & u64::MAX >> (64 - (8 << size))),
        operand: None,
    }
}

/// What the encoder writes at once is what it writes field by field, and what the
/// decoder reads at once is what it reads field by field.
#[test]
fn fast_paths_agree() {
    let mut random = Random::new(11);
    let (mut quickly, mut words) = (0, 0);
    for _ in 0..200 {
        let mut config = settings(&mut random);
        let data = config.data.as_mut().unwrap();
        (data.no_address, data.no_data) =
            random.one_of([(false, false), (false, false), (true, false), (false, true)]);
        let plain = !(data.no_address || data.no_data);
        let mut fast = DataEncoder::new(&config).unwrap();
        let mut slow = DataEncoder::new(&config).unwrap();
        let mut both = Both::new(&config);
        let mut before = random.draw();
        for _ in 0..50 {
            let access = access(&mut random, before);
            before = access.addr;
            let port = DataIngress::unified(&access, 0);
            let [Some(packet), None] = slow.cycle(&port, (true, false)) else {
                panic!("{access:?}");
            };
            let payload = slow.payload(&packet);
            if plain {
                let mut expected = Vec::new();
                payload.write_framed(Kind::Data, &mut expected);
                if let Some((word, len)) = fast.word(&access) {
                    let word = word.to_le_bytes();
                    assert_eq!(
                        &word[..len as usize],
                        payload.bytes(),
                        "{packet:?} {config:?}"
                    );
                    words += 1;
                } else {
                    let framed = fast.quick(&access).unwrap();
                    assert_eq!(framed.bytes(), expected, "{packet:?} {config:?}");
                }
            }
            // What follows does not matter.
            let mut padded = [0; MAX_PAYLOAD];
            padded.fill_with(|| random.draw() as u8);
            let len = payload.bytes().len();
            padded[..len].copy_from_slice(payload.bytes());
            quickly += u32::from(both.read(&padded, len).unwrap());
        }
    }
    assert!(quickly > 7000 && words > 200, "{quickly} {words}");
}

/// Bytes of any kind: what is read at once is what is read field by field.
#[test]
fn any_bytes_are_read_alike() {
    let mut random = Random::new(12);
    let mut quickly = 0;
    for _ in 0..200 {
        let mut config = settings(&mut random);
        let data = config.data.as_mut().unwrap();
        data.split = random.below(4) == 0;
        (data.no_address, data.no_data) =
            random.one_of([(false, false), (true, false), (false, true)]);
        let mut both = Both::new(&config);
        for _ in 0..100 {
            let mut padded = [0; MAX_PAYLOAD];
            padded.fill_with(|| random.draw() as u8);
            let len = 1 + random.below(31) as usize;
            // Faults are left to the reading field by field.
            quickly += u32::from(both.read(&padded, len).unwrap_or(false));
        }
    }
    assert!(quickly > 500, "{quickly}");
}

/// Packets in a row are read as one by one, also for those who look at no values, in any
/// settings.
#[test]
fn packets_in_a_row() {
    let mut random = Random::new(14);
    let (mut quickly, mut long) = (0, 0);
    for round in 0..300 {
        let mut config = settings(&mut random);
        if round % 2 == 0 {
            // Those whose values need not be looked at.
            config = Config {
                data: Some(DataConfig::new(Version::V2_0, Xlen::Rv64)),
                ..Config::new(Version::V2_0, Xlen::Rv64)
            };
        }
        let transfers = Transfers::new(&config).unwrap();
        let (form, head) = loop {
            let form = random.encapsulation();
            let timed = if random.flip() { u8::MAX } else { 0 };
            if let Some(head) = Heads::new(&form, 0).of(Kind::Data, timed) {
                break (form, *head);
            }
        };
        let mut bytes = vec![0; 1000];
        bytes.fill_with(|| random.draw() as u8);
        // Data packets where they are expected.
        let mut at = 0;
        while at < bytes.len() {
            at += head.start_packet(1 + random.below(16) as u8, &mut bytes[at..]);
        }
        let mut framer = Framer::of(form);
        let mut one = DataSource::default();
        let mut alike = [one.clone(), one.clone()];
        let mut rest = bytes.as_slice();
        loop {
            let mut batches = [Batch::default(), Batch::default()];
            let read = [0, 1].map(|i| {
                let values = i == 0;
                alike[i].transfers((&head, rest), &transfers, &mut batches[i], values)
            });
            assert_eq!(read[0], read[1]);
            let (count, len) = read[0];
            for i in 0..count {
                let Some((_, Piece::Packet(packet))) = framer.next_piece(&mut rest) else {
                    panic!("{form:?}");
                };
                let (mut padded, size) = ([0; MAX_PAYLOAD], packet.payload.len());
                padded[..size].copy_from_slice(packet.payload);
                assert_eq!((packet.src, packet.kind), (0, Kind::Data));
                let batch = &mut Batch::default();
                let single = match one.transfer((&padded, size), &transfers, batch) {
                    Some(single) => single.iter().next().unwrap(),
                    // With the bits that repeat the last one it looks longer than it is.
                    None => {
                        let layout = config.data_layout().unwrap();
                        let packet = DataPacket::read(&padded[..size], &layout, &one.outstanding);
                        let data = config.data.as_ref().unwrap();
                        one.packet(&packet.unwrap(), &config, data).unwrap()
                    }
                };
                let [all, form] = batches
                    .each_ref()
                    .map(|batch| batch.first(count).iter().nth(i));
                let (all, form) = (all.unwrap(), form.unwrap());
                assert_eq!(all, single);
                // Values that are not looked at may be anything.
                let data = single.access.data.and(form.access.data);
                let access = Access {
                    addr: form.access.addr,
                    data,
                    ..single.access
                };
                assert_eq!(form, DataAccess { access, ..single });
                quickly += 1;
                long += u32::from(size > 8);
            }
            assert_eq!(alike[0], one);
            assert!(len > 0 || count == 0);
            // One that is not read like this.
            if framer.next_piece(&mut rest).is_none() || rest.len() <= WINDOW {
                break;
            }
        }
    }
    assert!(quickly > 2000 && long > 200, "{quickly} {long}");
}

/// A decoder that reads at once what it can, and one that does not.
struct Both {
    config: Config,
    layout: DataLayout,
    transfers: Transfers,
    fast: DataSource,
    slow: DataSource,
}

impl Both {
    fn new(config: &Config) -> Both {
        Both {
            layout: config.data_layout().unwrap(),
            transfers: Transfers::new(config).unwrap(),
            fast: DataSource::default(),
            slow: DataSource::default(),
            config: config.clone(),
        }
    }

    /// Whether a packet is read at once. `Err` if it cannot be read.
    fn read(&mut self, padded: &[u8; MAX_PAYLOAD], len: usize) -> Result<bool, Fault> {
        let data = self.config.data.as_ref().unwrap();
        let before = self.slow.clone();
        let payload = &padded[..len];
        let whole = DataPacket::read(payload, &self.layout, &Outstanding::default())
            .and_then(|packet| self.slow.packet(&packet, &self.config, data));
        let batch = &mut Batch::default();
        let quick = self.fast.transfer((padded, len), &self.transfers, batch);
        match (quick, whole) {
            (Some(quick), whole) => {
                assert_eq!(
                    whole,
                    Ok(quick.iter().next().unwrap()),
                    "{payload:x?} {:?}",
                    self.config
                );
                assert_eq!(self.fast, self.slow);
                Ok(true)
            }
            (None, Ok(_)) => {
                assert_eq!(self.fast, before, "nothing was done");
                self.fast = self.slow.clone();
                Ok(false)
            }
            (None, Err(fault)) => {
                self.slow = before;
                Err(fault)
            }
        }
    }
}

/// What a packet is known to be by its first bits is what reading all of it says.
#[test]
fn names_of_loads_and_stores_by_their_first_bits() {
    let mut random = Random::new(13);
    let mut quickly = 0;
    for _ in 0..400 {
        let mut config = settings(&mut random);
        let data = config.data.as_mut().unwrap();
        data.split = random.below(8) == 0;
        (data.no_address, data.no_data) =
            random.one_of([(false, false), (false, false), (true, false), (false, true)]);
        let layout = config.data_layout().unwrap();
        let formats = Formats::new(&layout);
        for _ in 0..50 {
            let mut bytes = [0; MAX_PAYLOAD];
            bytes.fill_with(|| random.draw() as u8);
            // What follows the payload belongs to the next packet.
            let len = 1 + random.below(MAX_PAYLOAD as u64) as usize;
            let payload = &bytes[..len];
            let packet = Headed {
                len,
                payload: &bytes,
                bytes: len,
                shift: 0,
            };
            let Some(format) = formats.of(&packet) else {
                continue;
            };
            quickly += 1;
            let read = DataPacket::read(payload, &layout, &Outstanding::default());
            assert_eq!(
                read.map(|packet| packet.name()),
                Ok(PacketName::of_transfer(format)),
                "{payload:x?} {layout:?}"
            );
        }
    }
    assert!(quickly > 1000, "{quickly}");
}
