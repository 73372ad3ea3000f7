//! The fast paths against the general ones.

use hartrace_flow::{Access, AccessKind, DataIngress};
use hartrace_isa::Xlen;
use hartrace_testkit::Random;

use super::quick::{self, WINDOW};
use super::*;
use crate::{Config, Kind, Version};

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
    let mut quickly = 0;
    for _ in 0..200 {
        let config = settings(&mut random);
        let layout = config.data_layout().unwrap();
        let mut fast = DataEncoder::new(&config).unwrap();
        let mut slow = DataEncoder::new(&config).unwrap();
        let mut before = random.draw();
        for _ in 0..50 {
            let access = access(&mut random, before);
            before = access.addr;
            let framed = fast.quick(&access).unwrap();
            let port = DataIngress::unified(&access, 0);
            let [Some(packet), None] = slow.cycle(&port, (true, false)) else {
                panic!("{access:?}");
            };
            let payload = slow.payload(&packet);
            let mut expected = alloc::vec::Vec::new();
            payload.write_framed(Kind::Data, &mut expected);
            assert_eq!(framed.bytes(), expected, "{packet:?} {config:?}");
            let mut window = [0; WINDOW];
            // What follows does not matter.
            window.fill_with(|| random.draw() as u8);
            let len = expected.len().min(WINDOW);
            window[..len].copy_from_slice(&expected[..len]);
            if let Some(read) = quick::transfer(&window, expected.len() - 1, &layout) {
                assert_eq!(read, packet);
                quickly += 1;
            }
            let whole = DataPacket::read(payload.bytes(), &layout, &Outstanding::default());
            assert_eq!(whole, Ok(packet));
        }
    }
    assert!(quickly > 8000, "{quickly}");
}

/// Bytes of any kind: what is read at once is what is read field by field.
#[test]
fn any_bytes_are_read_alike() {
    let mut random = Random::new(12);
    for _ in 0..20_000 {
        let config = settings(&mut random);
        let layout = config.data_layout().unwrap();
        let mut window = [0; WINDOW];
        window.fill_with(|| random.draw() as u8);
        let len = 1 + random.below(31) as usize;
        if let Some(read) = quick::transfer(&window, len, &layout) {
            let payload = &window[1..=len];
            let whole = DataPacket::read(payload, &layout, &Outstanding::default());
            assert_eq!(whole, Ok(read), "{payload:x?}");
        }
    }
}
