//! Encapsulations and transports: instructions and data accesses of several harts go
//! through every one of them and come back.
//!
//! The packets of a run are encoded once. In each encapsulation, and through each
//! transport, they must be decoded to the same events: in chunks of any size, and from
//! the middle on. Damage may not change what is far from it.

use std::ops::ControlFlow;
use std::path::Path;

use hartrace_capture::config::{Config as Settings, Etrace};
use hartrace_capture::input::Input;
use hartrace_capture::trace::transport;
use hartrace_capture::trace::{
    CoreSight, Formatter, Pib, PibWidth, RamBuffer, RamSink, Transport, read_pins, write_pins,
};
use hartrace_etrace::{
    Config, DataConfig, Decoder, Encapsulation, Encoder, Form, Framer, Kind, Packer, Piece, Resync,
    ResyncUnit, Version,
};
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{Consumer, Effects, Event, HartId, Image, Observer, Port, Step, Wants};

use crate::generate::Random;
use crate::trace::{Recorded, programs};

/// Instructions without an argument.
const INSNS: u64 = 10_000_000;

/// Instructions of each hart in one round.
const STRETCH: u64 = 40_000;

/// Harts, one after the other and in turns.
const HARTS: u32 = 3;

/// Every form, with parameters of all kinds and room for several sources and data.
fn forms() -> Vec<Encapsulation> {
    let riscv = |src_bits, time_bytes, type_bits, sync_bytes| Encapsulation {
        src_bits,
        time_bytes,
        type_bits,
        sync_bytes,
        ..Encapsulation::new(Form::Riscv)
    };
    vec![
        riscv(8, 0, 1, 500),
        riscv(8, 8, 1, 500),
        riscv(3, 2, 2, 300),
        riscv(16, 4, 8, 300),
        riscv(11, 1, 3, 0),
        Encapsulation {
            src_bits: 8,
            time_bytes: 2,
            ..Encapsulation::new(Form::Smi)
        },
        Encapsulation {
            src_bits: 4,
            ..Encapsulation::new(Form::Smi)
        },
        Encapsulation {
            src_bits: 8,
            type_bits: 8,
            ..Encapsulation::new(Form::Slots)
        },
    ]
}

/// A packet: its source, its kind, its payload.
type Sent = (u16, Kind, Vec<u8>);

/// Encodes what each hart does.
struct Encoding {
    port: Port<Encoder<Vec<u8>>>,
    hart: HartId,
    accesses: u64,
    insns: u64,
    /// The last instruction, and how often it followed itself: a trace that ends in such a loop
    /// does not say how often it went round.
    last: (u64, u64),
}

impl Observer for Encoding {
    const WANTS: Wants = Wants::STEPS.with(Wants::ACCESSES).with(Wants::CSRS);

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        if let Step::Insn(insn) = step {
            self.insns += 1;
            self.last = match self.last {
                (pc, times) if pc == insn.pc => (pc, times + 1),
                _ => (insn.pc, 0),
            };
        }
        self.accesses += effects.accesses.len() as u64;
        self.port.step(self.hart, step, effects);
    }
}

/// A number that all events of one hart come to: their order counts, gaps do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    harts: Vec<(u64, u64, u64)>,
    gaps: u64,
}

impl Consumer for Seen {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        let index = hart.0 as usize;
        if self.harts.len() <= index {
            self.harts.resize(index + 1, (0, 0, 0));
        }
        let Some((hash, insns, accesses)) = self.harts.get_mut(index) else {
            return ControlFlow::Continue(());
        };
        let mut add = |value: u64| {
            *hash = (hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        };
        match event {
            Event::Run(run) => {
                add(run.start);
                add(run.insns.into());
                *insns += u64::from(run.insns);
            }
            Event::Access(data) => {
                add(data.access.addr);
                add(data.access.data.unwrap_or(7));
                *accesses += 1;
            }
            Event::Trap(trap) => add(trap.handler.unwrap_or(3)),
            Event::Gap(_) => self.gaps += 1,
            // Times depend on the encapsulation.
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Decodes a stream in chunks of all sizes.
fn decode(config: &Config, image: &Image, bytes: &[u8], random: &mut Random) -> Seen {
    let mut seen = Seen::default();
    let Ok(mut decoder) = Decoder::new(config.clone(), image) else {
        return seen;
    };
    let mut rest = bytes;
    while !rest.is_empty() {
        let len = (1 + random.below(5000) as usize).min(rest.len());
        let (mut chunk, behind) = rest.split_at(len);
        while !chunk.is_empty() {
            let used = decoder.feed(chunk, &mut seen).max(1);
            chunk = chunk.get(used..).unwrap_or_default();
        }
        rest = behind;
    }
    decoder.finish(&mut seen);
    seen
}

/// The packets of several harts, in turns.
fn packets(streams: &[Vec<u8>], random: &mut Random) -> Vec<Sent> {
    let mut queues: Vec<_> = streams
        .iter()
        .map(|bytes| {
            let (mut framer, mut rest) = (Framer::new(), bytes.as_slice());
            let mut all = std::collections::VecDeque::new();
            while let Some((_, piece)) = framer.next_piece(&mut rest) {
                if let Piece::Packet(packet) = piece {
                    all.push_back((packet.kind, packet.payload.to_vec()));
                }
            }
            all
        })
        .collect();
    let mut sent = Vec::new();
    while queues.iter().any(|queue| !queue.is_empty()) {
        let hart = random.below(queues.len() as u64) as usize;
        for _ in 0..1 + random.below(9) {
            let next = queues
                .get_mut(hart)
                .and_then(std::collections::VecDeque::pop_front);
            let Some((kind, payload)) = next else {
                break;
            };
            sent.push((hart as u16, kind, payload));
        }
    }
    sent
}

/// All packets in a form.
fn pack(form: Encapsulation, sent: &[Sent]) -> Vec<u8> {
    let mut packers: Vec<Packer> = (0..HARTS as u16)
        .map(|src| Packer::new(form, src))
        .collect();
    let mut bytes = Vec::new();
    for (time, (src, kind, payload)) in (0..).zip(sent) {
        if let Some(packer) = packers.get_mut(usize::from(*src)) {
            bytes.extend_from_slice(packer.pack(*kind, payload, time).bytes());
        }
    }
    bytes
}

/// The stream that a transport makes of the contents of a file.
fn opened(transport: &Transport, config: &Config, contents: Vec<u8>) -> Result<Vec<u8>, String> {
    let settings = Settings {
        etrace: Etrace::of(config),
        ..Settings::default()
    };
    let input = Input::of(Path::new("proof"), contents);
    let input = transport::unwrap(transport, input, &settings).map_err(|e| e.to_string())?;
    input.read_all(u64::MAX >> 1).map_err(|e| e.to_string())
}

/// The packets in CoreSight frames, each source with its id, and out again.
fn frames(config: &Config, sent: &[Sent], data_offset: Option<u8>) -> Result<Vec<u8>, String> {
    let inner = config.encapsulation;
    let mut packers: Vec<Packer> = (0..HARTS).map(|_| Packer::new(inner, 0)).collect();
    let mut formatter = Formatter::new(32);
    for (time, (src, kind, payload)) in (0..).zip(sent) {
        let Some(packer) = packers.get_mut(usize::from(*src)) else {
            continue;
        };
        let offset = match kind {
            Kind::Data => data_offset.unwrap_or(0),
            Kind::Instruction => 0,
        };
        let packed = packer.pack(*kind, payload, time);
        formatter.put(1 + *src as u8 + offset, packed.bytes());
    }
    let transport = Transport {
        coresight: Some(CoreSight { data_offset }),
        ..Transport::default()
    };
    opened(&transport, config, formatter.finish())
}

/// What was done.
#[derive(Default)]
struct Sum {
    insns: u64,
    accesses: u64,
    streams: u64,
    bytes: u64,
    entered: u64,
    damaged: u64,
}

/// One program in every form and through every transport.
fn round(program: &Recorded, random: &mut Random, sum: &mut Sum) -> Result<(), String> {
    let xlen = program.isa.xlen();
    let config = Config {
        data: Some(DataConfig::new(Version::V2_0, xlen)),
        resync: Resync {
            unit: ResyncUnit::Packets,
            max: 3,
            ..Resync::default()
        },
        ..Config::new(Version::V2_0, xlen)
    };
    let mut streams = Vec::new();
    let (mut insns, mut accesses) = (0, 0);
    for hart in 0..HARTS {
        let encoder = Encoder::new(config.clone(), Vec::new()).map_err(|e| e.to_string())?;
        let mut out = Encoding {
            port: Port::new(config.port(program.isa), encoder),
            hart: HartId(hart),
            accesses: 0,
            insns: 0,
            last: (0, 0),
        };
        program.run(STRETCH - u64::from(hart) * 1000, &mut out, |_| false)?;
        out.port.finish();
        insns += out.insns - out.last.1;
        accesses += out.accesses;
        streams.push(out.port.into_sink().into_sink());
    }
    let sent = packets(&streams, random);
    // Each hart alone, in the form of the reference models.
    let mut truth = Seen::default();
    for (hart, stream) in streams.iter().enumerate() {
        let seen = decode(&config, &program.image, stream, random);
        truth
            .harts
            .resize(truth.harts.len().max(hart + 1), (0, 0, 0));
        if let (Some(to), Some(from)) = (truth.harts.get_mut(hart), seen.harts.first()) {
            *to = *from;
        }
    }
    if truth.harts.iter().map(|hart| hart.1).sum::<u64>() != insns {
        return Err(format!(
            "{}: {truth:?}, not {insns} instructions",
            program.name
        ));
    }
    let expect = |what: &str, config: &Config, bytes: &[u8], random: &mut Random| {
        let seen = decode(config, &program.image, bytes, random);
        match seen == truth {
            true => Ok(()),
            false => Err(format!(
                "{} in {what}: {seen:x?}, not {truth:x?}",
                program.name
            )),
        }
    };
    for form in forms() {
        let config = Config {
            encapsulation: form,
            ..config.clone()
        };
        let bytes = pack(form, &sent);
        expect(&format!("{form:?}"), &config, &bytes, random)?;
        sum.insns += insns;
        sum.accesses += accesses;
        sum.streams += 1;
        sum.bytes += bytes.len() as u64;
        entered(&config, &bytes, &sent, random, sum)?;
        damaged(&config, &bytes, &sent, random, sum)?;
        // Pins of one to four bits.
        for width in [PibWidth::One, PibWidth::Two, PibWidth::Four] {
            let pib = Pib::new(width);
            if read_pins(&write_pins(&bytes, pib), pib, &form) != bytes {
                return Err(format!("{form:?} over {width:?}"));
            }
        }
    }
    let merged = Config {
        encapsulation: Encapsulation {
            src_id: 1,
            ..Encapsulation::MERGED
        },
        ..config.clone()
    };
    for (encapsulation, data_offset) in [
        (Encapsulation::new(Form::Atb), Some(40)),
        (Encapsulation::new(Form::Reference), None),
        (
            Encapsulation {
                time_bytes: 2,
                type_bits: 1,
                ..Encapsulation::new(Form::Riscv)
            },
            None,
        ),
    ] {
        let inner = Config {
            encapsulation,
            ..config.clone()
        };
        let bytes = frames(&inner, &sent, data_offset)?;
        // Instruction and data packets with ids of their own may change places.
        let what = format!("frames of {encapsulation:?}");
        match data_offset {
            None => expect(&what, &merged, &bytes, random)?,
            Some(_) => {
                let seen = decode(&merged, &program.image, &bytes, random);
                let counts = |seen: &Seen| {
                    let harts = seen.harts.iter();
                    harts.map(|hart| (hart.1, hart.2)).collect::<Vec<_>>()
                };
                if counts(&seen) != counts(&truth) {
                    return Err(format!("{what}: {seen:x?}, not {truth:x?}"));
                }
            }
        }
        sum.insns += insns;
        sum.accesses += accesses;
        sum.streams += 1;
        sum.bytes += bytes.len() as u64;
    }
    esp32(program, &streams, random, sum)
}

/// Packets found from some place on: each must be one that was sent, and in order.
fn follows(
    form: Encapsulation,
    bytes: &[u8],
    middle: bool,
    sent: &[Sent],
) -> Result<usize, String> {
    let mut framer = Framer::of(form);
    if middle {
        framer = framer.in_the_middle();
    }
    let (mut rest, mut found) = (bytes, Vec::new());
    while let Some((_, piece)) = framer.next_piece(&mut rest) {
        if let Piece::Packet(packet) = piece {
            found.push((packet.src, packet.kind, packet.payload.to_vec()));
        }
    }
    // The last ones must be the last that were sent.
    let matching = found.iter().rev().zip(sent.iter().rev());
    let same = matching.take_while(|(a, b)| alike(a, b)).count();
    Ok(same)
}

/// Equal up to repetitions of the last bit.
fn alike(a: &Sent, b: &Sent) -> bool {
    let (long, short) = match a.2.len() >= b.2.len() {
        true => (&a.2, &b.2),
        false => (&b.2, &a.2),
    };
    let sign = match short.last() {
        Some(last) if last & 0x80 != 0 => 0xff,
        _ => 0,
    };
    let rest = long.get(short.len()..).unwrap_or_default();
    (a.0, a.1) == (b.0, b.1) && long.starts_with(short) && rest.iter().all(|&byte| byte == sign)
}

/// A stream that is entered in the middle.
fn entered(
    config: &Config,
    bytes: &[u8],
    sent: &[Sent],
    random: &mut Random,
    sum: &mut Sum,
) -> Result<(), String> {
    let form = config.encapsulation;
    for _ in 0..5 {
        let from = random.below(bytes.len() as u64 / 2) as usize;
        let rest = bytes.get(from..).unwrap_or_default();
        recovers(form, rest, true, sent).map_err(|what| format!("from {from}: {what}"))?;
        sum.entered += 1;
    }
    Ok(())
}

/// Bytes that are flipped, lost or added; what comes long after them is as it was.
fn damaged(
    config: &Config,
    bytes: &[u8],
    sent: &[Sent],
    random: &mut Random,
    sum: &mut Sum,
) -> Result<(), String> {
    let form = config.encapsulation;
    for kind in 0..6 {
        let mut bytes = bytes.to_vec();
        let at = random.below(bytes.len() as u64 / 2) as usize;
        match kind % 3 {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            1 => {
                let end = (at + 1 + random.below(40) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                bytes.insert(at, random.draw() as u8);
            }
        }
        recovers(form, &bytes, false, sent).map_err(|what| format!("damaged at {at}: {what}"))?;
        sum.damaged += 1;
    }
    Ok(())
}

/// Whether enough packets are found in bytes that are entered or damaged in their first
/// half, in a form that says where packets start: half of the packets come after that.
fn recovers(form: Encapsulation, bytes: &[u8], entered: bool, sent: &[Sent]) -> Result<(), String> {
    let same = follows(form, bytes, entered, sent)?;
    let marked = form.sync_bytes + u32::from(form.slot_bytes) > 0;
    match marked && same * 3 < sent.len() {
        true => Err(format!("{form:?}: {same} of {} packets", sent.len())),
        false => Ok(()),
    }
}

/// The packets of one hart without data, numbered, through a buffer that wraps.
fn esp32(
    program: &Recorded,
    streams: &[Vec<u8>],
    random: &mut Random,
    sum: &mut Sum,
) -> Result<(), String> {
    let form = Encapsulation {
        sync_bytes: 400,
        ..Encapsulation::new(Form::Esp32)
    };
    let config = Config {
        encapsulation: form,
        ..Config::new(Version::V2_0, program.isa.xlen())
    };
    let first = streams.first().map(std::slice::from_ref);
    let mut sent = packets(first.unwrap_or_default(), random);
    sent.retain(|packet| packet.1 == Kind::Instruction);
    let bytes = pack(form, &sent);
    let seen = decode(&config, &program.image, &bytes, random);
    if seen.gaps > 0 {
        return Err(format!("{} as {form:?}: {seen:?}", program.name));
    }
    let sink = RamSink::from_registers(0x1000, 0x1000 + 0x3ffc, 0x1000);
    let mut buffer = RamBuffer::new(sink, 0).map_err(|e| e.to_string())?;
    let mut whole = bytes.clone();
    whole.resize(whole.len().next_multiple_of(4), 0);
    buffer.write(&whole);
    let transport = Transport {
        ram: Some(buffer.registers()),
        ..Transport::default()
    };
    let stream = opened(&transport, &config, buffer.dump().to_vec())?;
    let kept = follows(form, &stream, false, &sent)?;
    let fits = stream.len() * 2 > buffer.dump().len() || !buffer.registers().wrapped;
    if kept == 0 || !fits {
        return Err(format!("{}: {kept} packets in a buffer", program.name));
    }
    sum.streams += 1;
    sum.bytes += bytes.len() as u64;
    Ok(())
}

/// `etrace-encapsulation [INSNS] [SEED]`: instructions and accesses of three harts through
/// every encapsulation and transport, in chunks, from the middle, and damaged.
///
/// # Errors
///
/// The first difference.
pub fn command(args: &[String]) -> Result<(), String> {
    let number = |i: usize, default: u64| match args.get(i) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number")),
    };
    let (wanted, seed) = (number(0, INSNS)?, number(1, 1)?);
    let programs = programs()?;
    let mut random = Random::new(seed);
    let mut sum = Sum::default();
    while sum.insns < wanted {
        for path in &programs {
            let program = Recorded::read(path)?;
            round(&program, &mut random, &mut sum)?;
            if sum.insns >= wanted {
                break;
            }
        }
    }
    println!(
        "{} instructions and {} accesses of {HARTS} harts equal in {} streams, {} bytes; entered \
         in the middle {} times, damaged {} times",
        sum.insns, sum.accesses, sum.streams, sum.bytes, sum.entered, sum.damaged
    );
    Ok(())
}
