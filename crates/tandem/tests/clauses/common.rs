//! Traces by hand, and what becomes of them.

use std::ops::ControlFlow;

use hartrace_flow::{Consumer, Event, HartId};
use hartrace_isa::Xlen;
use hartrace_tandem::{
    Config, Decoder, EaddrWidth, Fault, Flen, Group, Item, Mlen, Next, Nibbles, Operation, PcForm,
    Problem, Reader, Register, Request, Response,
};
use hartrace_testkit::Random;

/// What a reader gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Group(Group),
    Problem(Problem),
    Resumed(u64),
}

impl Told {
    pub(crate) fn fault(&self) -> Option<Fault> {
        match self {
            Told::Problem(problem) => Some(problem.fault),
            _ => None,
        }
    }
}

/// Bytes as the specification prints them.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.split_whitespace().collect();
    let byte = |s: &&str| u8::from_str_radix(s, 16).unwrap();
    digits.iter().map(byte).collect()
}

pub(crate) fn write(config: &Config, items: &[Item]) -> Vec<u8> {
    let mut bytes = Vec::new();
    items.iter().for_each(|item| item.write(config, &mut bytes));
    bytes
}

/// Everything in chunks of this size.
pub(crate) fn read_chunks(config: &Config, bytes: &[u8], chunk: usize) -> Vec<Told> {
    let mut reader = Reader::new(config.clone());
    read_all(&mut reader, bytes.chunks(chunk.max(1)))
}

pub(crate) fn read_all<'a>(
    reader: &mut Reader,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Told> {
    let mut all = Vec::new();
    let mut total = 0;
    for chunk in chunks {
        total += chunk.len() as u64;
        let mut rest = chunk;
        loop {
            match reader.next(&mut rest) {
                Next::More => break,
                next => all.push(told(reader, next)),
            }
        }
        assert!(rest.is_empty());
    }
    loop {
        match reader.finish() {
            Next::More => break,
            next => all.push(told(reader, next)),
        }
    }
    assert_eq!(reader.offset(), total, "every byte is passed once");
    all
}

fn told(reader: &Reader, next: Next) -> Told {
    match next {
        Next::Group => Told::Group(reader.group().clone()),
        Next::Problem(problem) => Told::Problem(problem),
        Next::Resumed(bytes) => Told::Resumed(bytes),
        Next::More => panic!(),
    }
}

pub(crate) fn read(config: &Config, bytes: &[u8]) -> Vec<Told> {
    read_chunks(config, bytes, usize::MAX)
}

/// The groups of a trace in which nothing is wrong.
pub(crate) fn groups(config: &Config, bytes: &[u8]) -> Vec<Group> {
    let group = |told| match told {
        Told::Group(group) => group,
        other => panic!("{other:x?}"),
    };
    read(config, bytes).into_iter().map(group).collect()
}

/// The one group there is.
pub(crate) fn group(config: &Config, bytes: &[u8]) -> Group {
    let mut all = groups(config, bytes);
    assert_eq!(all.len(), 1, "{all:x?}");
    all.remove(0)
}

/// The faults of a trace.
pub(crate) fn faults(config: &Config, bytes: &[u8]) -> Vec<Fault> {
    let all = read(config, bytes);
    all.iter().filter_map(Told::fault).collect()
}

/// Events as text.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) lines: Vec<String>,
    pub(crate) pause: bool,
}

impl Consumer for Events {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        self.lines.push(match event {
            Event::Run(r) => format!(
                "run {:x}-{:x} {} {:?} {:x}",
                r.start, r.end, r.insns, r.exit, r.next
            ),
            Event::Trap(t) => format!(
                "trap {:x?} to {:x?} {:?} {:x?}",
                t.epc, t.handler, t.cause, t.tval
            ),
            Event::Context(o) => format!("mode {:?}", o.mode),
            Event::Code(space) => format!("{space:?}"),
            Event::Time(t) => format!("time {t}"),
            Event::Access(a) => format!(
                "{} {:?} {} {:x} {:x?} {:x?} {:x?}",
                a.insn.unwrap(),
                a.access.kind,
                a.access.size,
                a.access.addr,
                a.access.paddr,
                a.access.data,
                a.access.operand
            ),
            Event::Mark(m) => format!("{m:?}"),
            Event::Warning(warning) => format!("{warning:?}"),
            Event::DataGap(gap) => format!("{gap:?}"),
            Event::Unconfirmed(what) => format!("{what:?}"),
            Event::Gap(g) => format!("gap {:x} {} {}", g.at, g.reason.code, g.bytes),
        });
        match self.pause {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// The events of a trace; the same in chunks of any size and with pauses.
pub(crate) fn decode(config: &Config, bytes: &[u8]) -> Vec<String> {
    let whole = decode_chunks(config, bytes, usize::MAX, false);
    for chunk in [1, 3, 17] {
        assert_eq!(decode_chunks(config, bytes, chunk, false), whole);
        assert_eq!(decode_chunks(config, bytes, chunk, true), whole);
    }
    whole
}

pub(crate) fn decode_chunks(
    config: &Config,
    bytes: &[u8],
    chunk: usize,
    pause: bool,
) -> Vec<String> {
    let mut decoder = Decoder::new(config.clone(), HartId(0)).unwrap();
    let mut events = Events {
        pause,
        ..Events::default()
    };
    for mut chunk in bytes.chunks(chunk) {
        while !chunk.is_empty() {
            let used = decoder.feed(chunk, &mut events);
            assert!(pause || used == chunk.len());
            chunk = &chunk[used..];
        }
    }
    decoder.finish(&mut events);
    assert_eq!(decoder.position(), bytes.len() as u64);
    events.lines
}

pub(crate) fn rv32() -> Config {
    Config {
        xlen: Xlen::Rv32,
        mlen: Mlen::M32,
        ..Config::default()
    }
}

pub(crate) fn sv32() -> Config {
    Config {
        mlen: Mlen::M34,
        ..rv32()
    }
}

/// Every set of parameters and dialects that the bytes depend on.
pub(crate) fn configs() -> Vec<Config> {
    let mut all = Vec::new();
    for widths in [Config::default(), rv32(), sv32()] {
        for flen in [Flen::None, Flen::F32, Flen::F64] {
            for eaddr in [EaddrWidth::Mlen, EaddrWidth::Xlen] {
                for nibbles in [Nibbles::Low, Nibbles::High] {
                    for pc in [PcForm::New, PcForm::Both] {
                        let mut config = Config {
                            flen,
                            eaddr,
                            nibbles,
                            pc,
                            ..widths.clone()
                        };
                        if pc == PcForm::Both {
                            config.style.pc = hartrace_tandem::PcStyle::Full;
                        }
                        config.validate().unwrap();
                        all.push(config);
                    }
                }
            }
        }
    }
    all
}

pub(crate) fn operations() -> Vec<Operation> {
    (0..14).filter_map(Operation::from_code).collect()
}

/// Every item that the parameters allow, with values that fill their fields.
pub(crate) fn items(config: &Config) -> Vec<Item> {
    let bits = |n: u32| u64::MAX >> (64 - n);
    let xlen = bits(config.xlen.bits());
    let mlen = bits(config.mlen.bytes() as u32 * 8);
    let eaddr = bits(config.eaddr_bytes() as u32 * 8);
    let odd = 0xfedc_ba98_7654_3210;
    let mut all = vec![
        Item::BeginGroup,
        Item::EndGroup,
        Item::IncrementPc,
        Item::Reset,
        Item::StateInit,
        Item::Insn16(0x8d0d),
        Item::Insn32(0x0062_81b3),
        Item::Insn32(0),
        Item::Mtime(odd),
        Item::PhysicalAddress(odd & mlen),
        Item::EffectiveAddress(odd & eaddr),
        Item::PcPhysical(odd & mlen),
        match config.pc {
            PcForm::New => Item::Pc(odd & xlen),
            PcForm::Both => Item::TwoPcs(odd & xlen, !odd & xlen),
        },
    ];
    all.extend([0, 1, 2, 3, 255].map(Item::Mode));
    let integer = [0, 3, 0x300, 0xfff, 0x1000, 0x1001, 0x101f];
    let float: &[u16] = match config.flen {
        Flen::None => &[],
        _ => &[0x1020, 0x103f],
    };
    for number in integer.iter().chain(float) {
        let register = Register::new(*number).unwrap();
        let width = match register.is_float() {
            true => bits(config.flen.bits()),
            false => xlen,
        };
        all.extend([0, odd, u64::MAX].map(|v| Item::Full(register, v & width)));
        all.extend([0, 1, -1, i8::MIN, i8::MAX].map(|o| Item::Offset(register, o)));
        all.extend([0, 1, 0x80, 0xff].map(|m| Item::Mask(register, m)));
    }
    for size in 0..4u8 {
        let data = odd & bits(8 << size);
        all.push(Item::StoreData(size, data));
        for op in operations() {
            all.push(Item::Request(Request {
                addr: odd & mlen,
                op,
                size,
                data: if op.only_reads() { 0 } else { data },
            }));
        }
    }
    all
}

/// The answers to a request.
pub(crate) fn answers(request: &Request) -> [Item; 2] {
    let bits = u64::MAX >> (64 - (8u32 << request.size));
    [false, true].map(|failure| {
        let data = match request.op.only_writes() {
            true => 0,
            false => 0x0123_4567_89ab_cdef & bits,
        };
        Item::Response(Response {
            op: request.op,
            size: request.size,
            failure,
            data,
        })
    })
}

/// A trace of loads, stores, sums and branches, one group each; the offsets
/// where groups start are given too.
pub(crate) fn stream(config: &Config, seed: u64, groups: usize) -> (Vec<u8>, Vec<usize>) {
    let mut random = Random::new(seed | 1);
    let mut bytes = Vec::new();
    let mut starts = Vec::new();
    let mut pc = 0x8000_0000u64;
    let first = [Item::StateInit, Item::Pc(pc), Item::Mode(3)];
    for number in 0..groups {
        starts.push(bytes.len());
        let value = random.draw() & u64::MAX >> (64 - config.xlen.bits());
        let register = Register::x(random.below(32) as u8);
        let addr = 0x8000_0000 + random.below(1 << 16);
        let mut body = match (number, random.below(8)) {
            (0, _) => first.to_vec(),
            (_, 0 | 1) => vec![
                Item::IncrementPc,
                Item::Insn32(0x0085_2503),
                Item::Full(register, value),
                Item::EffectiveAddress(addr),
            ],
            (_, 2) => vec![
                Item::IncrementPc,
                Item::Insn32(0x00b5_2423),
                Item::EffectiveAddress(addr),
                Item::StoreData(2, value & 0xffff_ffff),
            ],
            (_, 3) => {
                pc = addr & !3;
                vec![Item::Pc(pc), Item::Insn32(0xfeb5_1ce3)]
            }
            (_, 4) => vec![Item::Insn16(0x8d0d), Item::IncrementPc],
            _ => vec![
                Item::IncrementPc,
                Item::Insn32(0x00b5_0533),
                Item::Full(register, value),
            ],
        };
        body.insert(0, Item::BeginGroup);
        body.push(Item::EndGroup);
        bytes.extend(write(config, &body));
    }
    (bytes, starts)
}
