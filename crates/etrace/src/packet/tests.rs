//! Packets and their bytes: the tables of chapter 6, the examples of chapter
//! 12, and any packet in any layout.

use super::*;
use crate::Config;
use hartrace_isa::Xlen;

/// The layout of the reference models.
fn reference() -> Layout {
    Config {
        context_width: 32,
        ecause_width: 5,
        ..Config::new(Version::V2_0, Xlen::Rv64)
    }
    .layout()
}

/// A trace of the reference encoder: seven packets, one of each usual kind.
#[test]
fn a_trace_of_the_reference_encoder() {
    let packets: &[&[u8]] = &[
        &[0x1f],
        &[0x73, 0, 0, 0, 0, 0, 0x04],
        &[0x02, 0xe0, 0xff, 0xff, 0],
        &[0x85, 0x2d, 0, 0, 0, 0, 0, 0, 0, 0xff],
        &[0x77, 0, 0, 0, 0, 0x21, 0x07, 0, 0, 0x10],
        &[0xf2],
        &[0x4f],
    ];
    let layout = reference();
    for bytes in packets {
        let packet = Packet::read(bytes, &layout).unwrap();
        assert_eq!(&packet.write(&layout).bytes(), bytes);
    }
}
