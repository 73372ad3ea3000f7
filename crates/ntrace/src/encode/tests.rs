//! The examples of the texts, and each option on its own.

use alloc::vec;
use alloc::vec::Vec;

use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{Context, HartId, Ingress, IngressSink, Mode, Trigger};
use hartrace_isa::{Itype, Xlen};

use super::*;
use crate::{
    Body, Btype, Ending, Evcode, IcntFull, ImplicitReturn, Message, Owner, Periodic, Process,
    Queue, RepeatedHistory, StackKind, Sync, SyncUnit, Timestamps, TraceMode, TrapTypes,
    TriggerAction, Version,
};

mod events;
mod hostile;
mod options;
mod round;
mod runs;

/// Messages one by one.
#[derive(Debug, Default)]
struct Messages(Vec<Vec<u8>>);

impl Sink for Messages {
    fn message(&mut self, bytes: &[u8]) {
        self.0.push(bytes.to_vec());
    }
}

fn btm(version: Version) -> Config {
    Config {
        mode: TraceMode::Btm,
        ..htm(version)
    }
}

fn htm(version: Version) -> Config {
    Config::new(version, Xlen::Rv64)
}

fn encoder(config: &Config) -> Encoder<Messages> {
    Encoder::new(config.clone(), Messages::default()).unwrap()
}

/// The messages of an encoder, read back.
fn read(encoder: &Encoder<Messages>) -> Vec<Message<'_>> {
    let layout = encoder.config().layout();
    let Messages(all) = encoder.sink();
    let messages = all.iter();
    messages
        .map(|m| Message::read(m, &layout).unwrap())
        .collect()
}

fn bodies(encoder: &Encoder<Messages>) -> Vec<Body<'_>> {
    read(encoder).iter().map(|m| m.body).collect()
}

/// What comes out for these blocks of hart 0 and the end.
fn check(config: &Config, blocks: &[Ingress], expected: &[Body<'_>]) {
    let mut encoder = encoder(config);
    for block in blocks {
        encoder.ingress(HartId(0), block);
    }
    encoder.finish();
    assert_eq!(bodies(&encoder), expected);
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

fn c(iaddr: u64) -> Ingress {
    at(iaddr, 1, Itype::None)
}

fn i(iaddr: u64) -> Ingress {
    at(iaddr, 2, Itype::None)
}

fn trap(iaddr: u64, itype: Itype) -> Ingress {
    at(iaddr, 0, itype)
}

fn halted() -> Ingress {
    Ingress {
        halted: true,
        ..Ingress::default()
    }
}

fn idle() -> Ingress {
    Ingress::default()
}

fn sync(sync: Sync, icnt: u64, addr: u64) -> Body<'static> {
    Body::ProgTraceSync {
        sync,
        icnt,
        faddr: addr >> 1,
    }
}

fn start(addr: u64) -> Body<'static> {
    sync(Sync::DEBUG_EXIT, 0, addr)
}

fn direct(icnt: u64) -> Body<'static> {
    Body::DirectBranch { icnt }
}

fn jump(icnt: u64, xor: u64) -> Body<'static> {
    branch(Btype::Indirect, icnt, xor)
}

fn branch(btype: Btype, icnt: u64, xor: u64) -> Body<'static> {
    Body::IndirectBranch {
        btype,
        icnt,
        uaddr: xor >> 1,
    }
}

fn stop(evcode: Evcode, icnt: u64, hist: Option<u64>) -> Body<'static> {
    Body::ProgTraceCorrelation { evcode, icnt, hist }
}

fn end(icnt: u64, hist: u64) -> Body<'static> {
    stop(Evcode::DISABLED, icnt, Some(hist))
}

const VERSIONS: [Version; 2] = [Version::Rc7, Version::V1_0];

/// rc7, 8.4.4: a counter of four bits.
#[test]
fn icnt_full_in_rc7() {
    let blocks = [
        c(0x100),
        at(0x102, 2, Itype::NotTaken),
        c(0x106),
        i(0x108),
        i(0x10c),
        i(0x110),
        i(0x114),
        i(0x118),
        halted(),
    ];
    let config = Config {
        icnt_bits: 4,
        icnt_full: IcntFull::Sync,
        ..htm(Version::Rc7)
    };
    let sequential = Body::IndirectBranchHistSync {
        sync: Sync::SEQUENTIAL,
        btype: Btype::Indirect,
        icnt: 8,
        faddr: 0x88,
        hist: 2,
    };
    let last = stop(Evcode::DEBUG, 6, Some(1));
    check(&config, &blocks, &[start(0x100), sequential, last]);
    // Without branches in the history there is only ResourceFull.
    let mut linear = blocks;
    linear[1].itype = Itype::None;
    let full = Body::IcntFull { icnt: 8 };
    check(&config, &linear, &[start(0x100), full, last]);
    // And in BTM a sync message.
    let config = Config {
        mode: TraceMode::Btm,
        ..config
    };
    let sequential = sync(Sync::SEQUENTIAL, 8, 0x110);
    let last = stop(Evcode::DEBUG, 6, None);
    check(&config, &blocks, &[start(0x100), sequential, last]);
}

#[test]
fn icnt_goes_before_hist() {
    let config = Config {
        icnt_bits: 3,
        hist_bits: 3,
        ..htm(Version::V1_0)
    };
    let blocks = [
        at(0x100, 2, Itype::NotTaken),
        at(0x104, 2, Itype::Taken),
        c(0x200),
    ];
    let icnt = Body::IcntFull { icnt: 4 };
    let hist = Body::HistFull { hist: 0b101 };
    check(&config, &blocks, &[start(0x100), icnt, hist, end(1, 1)]);
}

/// A jump's own message carries the full counter; an implied return's does
/// not.
#[test]
fn a_full_icnt_waits_for_the_jump() {
    let mut config = Config {
        icnt_bits: 3,
        ..htm(Version::V1_0)
    };
    let blocks = [
        at(0x100, 2, Itype::DirectCall),
        at(0x200, 2, Itype::Return),
        c(0x104),
    ];
    check(
        &config,
        &blocks,
        &[start(0x100), jump(4, 0x100 ^ 0x104), end(1, 1)],
    );
    config.implicit_return = ImplicitReturn::Full;
    let full = Body::IcntFull { icnt: 4 };
    check(&config, &blocks, &[start(0x100), full, end(1, 1)]);
}

/// 10.1: a custom branch is a jump where it is taken.
#[test]
fn custom_instructions() {
    for version in VERSIONS {
        let config = htm(version);
        let stays = [i(0x100), i(0x104), c(0x108), halted()];
        let last = |icnt| stop(Evcode::DEBUG, icnt, Some(1));
        check(&config, &stays, &[start(0x100), last(5)]);
        let goes = [
            i(0x100),
            at(0x104, 2, Itype::Uninferable),
            c(0x200),
            halted(),
        ];
        let xor = 0x100 ^ 0x200;
        check(&config, &goes, &[start(0x100), jump(4, xor), last(1)]);
    }
}

/// Table 24: the reference is the last address sent.
#[test]
fn addresses_are_differences() {
    let config = htm(Version::V1_0);
    let ret = |addr| at(addr, 1, Itype::Return);
    let blocks = [ret(0x3fc04), ret(0x3f368), c(0x3e100)];
    let expected = [
        start(0x3fc04),
        Body::IndirectBranch {
            btype: Btype::Indirect,
            icnt: 1,
            uaddr: 0x7b6,
        },
        Body::IndirectBranch {
            btype: Btype::Indirect,
            icnt: 1,
            uaddr: 0x934,
        },
        end(1, 1),
    ];
    check(&config, &blocks, &expected);
}

/// Many instructions in a block, and the same one by one.
#[test]
fn blocks_of_any_size_give_the_same() {
    let single = [
        c(0x100),
        i(0x102),
        at(0x106, 2, Itype::Taken),
        c(0x200),
        at(0x202, 2, Itype::Return),
        c(0x300),
    ];
    let joined = [
        Ingress {
            iretire: 5,
            ..at(0x100, 2, Itype::Taken)
        },
        Ingress {
            iretire: 3,
            ..at(0x200, 2, Itype::Return)
        },
        c(0x300),
    ];
    for config in [htm(Version::V1_0), btm(Version::Rc7)] {
        let mut one = encoder(&config);
        let mut other = encoder(&config);
        single.iter().for_each(|b| one.ingress(HartId(0), b));
        joined.iter().for_each(|b| other.ingress(HartId(0), b));
        one.finish();
        other.finish();
        assert_eq!(one.sink().0, other.sink().0);
    }
}
