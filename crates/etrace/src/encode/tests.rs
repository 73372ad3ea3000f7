//! The examples of the texts, and what the other tests share.

use alloc::vec;
use alloc::vec::Vec;

use hartrace_flow::{Context as Owner, HartId, Ingress, IngressSink, Mode, Trigger};
use hartrace_isa::{Itype, Xlen};

use super::*;
use crate::packet::bits::mask;
use crate::{
    BranchMap, Context, DataSupport, Ending, IdleIrdepth, Ioption, Ioptions, Kind, Packet,
    QualStatus, Queue, Report, Resync, ResyncRule, ResyncUnit, Start, Support, Trap, UpdisconRule,
    Version,
};

mod events;
mod examples;
mod hostile;
mod options;
mod random;
mod resync;
mod runs;
mod traps;

/// Packets one by one.
#[derive(Debug, Default)]
struct Packets(Vec<Vec<u8>>);

impl Sink for Packets {
    fn message(&mut self, bytes: &[u8]) {
        self.0.push(bytes.to_vec());
    }
}

const VERSIONS: [Version; 2] = [Version::V1_1_1, Version::V2_0];
const ALL_VERSIONS: [Version; 3] = [Version::V1_1_1, Version::V2_0, Version::V2_05];

fn config(version: Version) -> Config {
    Config::new(version, Xlen::Rv64)
}

fn v2() -> Config {
    config(Version::V2_0)
}

fn encoder(config: &Config) -> Encoder<Packets> {
    Encoder::new(config.clone(), Packets::default()).unwrap()
}

/// The packets of an encoder, read back.
fn read(encoder: &Encoder<Packets>) -> Vec<Packet> {
    let layout = encoder.config().layout();
    let packets = encoder.sink().0.iter();
    let read = |bytes: &Vec<u8>| {
        let [header, payload @ ..] = &bytes[..] else {
            panic!("a packet without a header")
        };
        assert_eq!(*header, Kind::Instruction.header(payload.len() as u8));
        Packet::read(payload, &layout).unwrap()
    };
    packets.map(read).collect()
}

fn feed<S: Sink>(encoder: &mut Encoder<S>, blocks: &[Ingress]) {
    for block in blocks {
        encoder.ingress(HartId(0), block);
    }
}

/// What comes out for these blocks of hart 0 and the end.
fn packets(config: &Config, blocks: &[Ingress]) -> Vec<Packet> {
    let mut encoder = encoder(config);
    feed(&mut encoder, blocks);
    encoder.finish();
    read(&encoder)
}

/// The same with the support packets around it, if the trace ends so.
fn check(config: &Config, blocks: &[Ingress], inner: &[Packet], ended: QualStatus) {
    let mut expected = vec![support(config, true, QualStatus::NoChange)];
    expected.extend_from_slice(inner);
    expected.push(support(config, false, ended));
    assert_eq!(packets(config, blocks), expected);
}

/// The bytes for these blocks of hart 0 and the end.
fn bytes(config: &Config, blocks: &[Ingress]) -> Vec<u8> {
    let mut encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
    feed(&mut encoder, blocks);
    encoder.finish();
    encoder.into_sink()
}

/// One instruction of so many halfwords.
fn at(iaddr: u64, iretire: u32, itype: Itype) -> Ingress {
    Ingress {
        itype,
        iretire,
        ilastsize: (iretire == 2).into(),
        iaddr,
        ..Ingress::default()
    }
}

fn i(iaddr: u64) -> Ingress {
    at(iaddr, 2, Itype::None)
}

fn taken(iaddr: u64) -> Ingress {
    at(iaddr, 2, Itype::Taken)
}

fn not_taken(iaddr: u64) -> Ingress {
    at(iaddr, 2, Itype::NotTaken)
}

fn jalr(iaddr: u64) -> Ingress {
    at(iaddr, 2, Itype::IndirectCall)
}

/// An exception in which nothing retired.
fn exception(iaddr: u64, cause: u32, tval: u64) -> Ingress {
    Ingress {
        cause,
        tval,
        ..at(iaddr, 0, Itype::Exception)
    }
}

fn interrupt(iaddr: u64, cause: u32) -> Ingress {
    Ingress {
        cause,
        ..at(iaddr, 0, Itype::Interrupt)
    }
}

fn in_mode(mode: Mode, block: Ingress) -> Ingress {
    Ingress { mode, ..block }
}

fn support(config: &Config, ienable: bool, qual_status: QualStatus) -> Packet {
    Packet::Support(Support {
        ienable,
        encoder_mode: 0,
        qual_status,
        ioptions: config.ioptions_field(),
        data: config.doptions_width.map(|_| DataSupport::default()),
    })
}

/// A start in machine mode at no taken branch.
fn start(addr: u64) -> Packet {
    Packet::Start(start_fields(addr))
}

fn start_fields(addr: u64) -> Start {
    Start {
        branch: true,
        privilege: 3,
        address: addr >> 1,
        ..Start::default()
    }
}

fn start_in(mode: Mode, addr: u64) -> Packet {
    Packet::Start(Start {
        privilege: mode.code(),
        ..start_fields(addr)
    })
}

/// The difference of two addresses as a field of 63 bits.
fn delta(from: u64, to: u64) -> Report {
    Report {
        address: to.wrapping_sub(from) >> 1 & mask(63),
        ..Report::default()
    }
}

fn updiscon(report: Report) -> Report {
    Report {
        updiscon: true,
        ..report
    }
}

fn notify(report: Report) -> Report {
    Report {
        notify: true,
        ..report
    }
}

fn address(from: u64, to: u64) -> Packet {
    Packet::Address(delta(from, to))
}

/// Outcomes as the texts write them: the oldest on the right, 0 for taken.
fn map(count: u8, bits: u32) -> BranchMap {
    BranchMap { bits, count }
}

fn branches(map: BranchMap, report: Report) -> Packet {
    Packet::Branches {
        map,
        address: Some(report),
    }
}

/// A trap packet in machine mode.
fn trap_fields(cause: u32, addr: u64) -> Trap {
    Trap {
        branch: true,
        privilege: 3,
        ecause: cause,
        thaddr: true,
        address: Some(addr >> 1),
        tval: Some(0),
        ..Trap::default()
    }
}

fn handler(cause: u32, addr: u64, tval: u64) -> Packet {
    Packet::Trap(Trap {
        tval: Some(tval),
        ..trap_fields(cause, addr)
    })
}

/// A trap whose handler has not retired anything.
fn trap_only(cause: u32, addr: u64, tval: u64) -> Packet {
    Packet::Trap(Trap {
        thaddr: false,
        tval: Some(tval),
        ..trap_fields(cause, addr)
    })
}
